"""What knows one GPU refuses several, and blocks that meet; files and views know both."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import tbsched as tb
from helpers import gpu
from tbsched import views
from tbsched.launcher.observe import Asked
from tbsched.traces.trace import Trace

US = 1e-6
KERNEL = tb.Launch(4, 32, 16, duration=US)
ELSEWHERE = tb.Sequence([KERNEL, tb.Launch(4, 32, 16, duration=US, gpu=1)])
MEETING = tb.Sequence([KERNEL, tb.Launch(4, 32, 16, duration=US, meets="x")])
TO_PEER = tb.Sequence([KERNEL, tb.Copy(4096, "p2p", peer=1)])
PLACE = "xavier"
KNOW_ONE: dict[str, Callable[[tb.Sequence], object]] = {
    "observe": Asked,
    "makespan_bounds": lambda seq: tb.makespan_bounds(seq, PLACE),
    "predict_processes": lambda seq: tb.predict_processes([seq, seq], PLACE, time_slice=1e-3),
    "coresident": lambda seq: tb.coresident(seq, PLACE),
    "what_if": lambda seq: tb.what_if(seq, PLACE),
}


def device() -> tb.DeviceSpec:
    return gpu(blocks_per_sm=4, hardware_queues=32)


def hung() -> Trace:
    both = [tb.Launch(3, 32, 16, stream=k, duration=US, gpu=k, meets="ab"[k]) for k in range(2)]
    crossed = [
        tb.Launch(3, 32, 16, stream=2, duration=US, gpu=1 - k, meets="ab"[k]) for k in range(2)
    ]
    return tb.predict(tb.Sequence([*both, *crossed]), [device()] * 2)


@pytest.mark.parametrize("owner", KNOW_ONE)
@pytest.mark.parametrize("seq", [ELSEWHERE, MEETING, TO_PEER])
def test_what_knows_one_gpu_refuses_several_by_name(owner: str, seq: tb.Sequence) -> None:
    message = rf"^{owner}: (Sequence\.events\[1\]\.(gpu|peer) is 1|Launch\.meets of launch 1)"
    with pytest.raises(ValueError, match=message):
        KNOW_ONE[owner](seq)


@pytest.mark.parametrize("field", [{"gpu": 1}, {"meets": "x"}])
def test_launches_in_a_list_are_of_one_gpu_too(field: dict[str, object]) -> None:
    launch = tb.Launch(4, 32, 16, duration=US, **field)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"coresident\.launches\[0\]: Launch\."):
        tb.coresident([launch], PLACE)
    with pytest.raises(ValueError, match=r"^best_order: "):
        tb.best_order([KERNEL, launch], PLACE)


def test_comparisons_refuse_traces_of_several_gpus_and_hangs() -> None:
    several = tb.predict(ELSEWHERE, [device()] * 2)
    with pytest.raises(ValueError, match="compare: a trace of several GPUs"):
        tb.compare(several, several)
    with pytest.raises(ValueError, match="compare_times: a trace of several GPUs"):
        tb.compare_times(several, several)
    alone = tb.predict(tb.Sequence([tb.Launch(9, 32, 16, duration=US, meets="x")]), device())
    assert tb.compare(alone, alone).exact
    with pytest.raises(ValueError, match=r"compare_times: the program never ends\. It hangs\."):
        tb.compare_times(alone, alone)
    with pytest.raises(ValueError, match=r"predict_as_recorded: Launch\.meets of launch 0"):
        tb.predict_as_recorded(alone, device())


@pytest.mark.parametrize("host", [None, 0.0])
def test_hang_and_devices_come_back_from_a_file(tmp_path: Path, host: float | None) -> None:
    one = tb.predict(tb.Sequence([tb.Launch(9, 32, 16, duration=US, meets="x")]), device())
    plain = tb.predict(tb.Sequence([KERNEL]), device())
    waits = tb.predict(
        tb.Sequence([tb.WaitValue("v", 2, stream=0), KERNEL, tb.Synchronize(), KERNEL]),
        device(),
        host=host,
    )
    given = (plain, hung(), one, waits)
    tb.save_traces(tmp_path / "some.jsonl", given)
    found = tb.load_traces(tmp_path / "some.jsonl")
    for before, after in zip(given, found, strict=True):
        assert after.hang == before.hang
        assert after.devices == before.devices
        assert after.assumed_rules == before.assumed_rules
        assert np.array_equal(after.timeline, before.timeline)
        assert after.call_times == before.call_times
        assert after.issue_times == before.issue_times
    lines = (tmp_path / "some.jsonl").read_text("utf-8").splitlines()
    headers = [line for line in map(json.loads, lines) if "tbsched_trace" in line]
    assert [("devices" in each, each["tbsched_trace"]) for each in headers] == [
        (False, 1), (True, 3), (False, 3),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hang": None}, r"start_ns: integers are needed, got None"),
        ({"hang": {}}, "hang: an object of launches, calls and values is needed"),
        ({"hang": {"launches": [[0, 9, "x", -1]], "calls": [], "values": []}}, "is outside 0..8"),
        ({"hang": {"launches": [[0, 4]], "calls": [], "values": []}}, "launch, blocks that start"),
        ({"hang": {"launches": [], "calls": [7], "values": []}}, r"hang\.calls: 7 is outside 0..0"),
        ({"hang": {"launches": [], "calls": [], "values": [[0, 1]]}}, "GPU, name, value and what"),
    ],
)
def test_file_with_a_wrong_hang_is_refused(
    tmp_path: Path, change: dict[str, object], message: str
) -> None:
    one = tb.predict(tb.Sequence([tb.Launch(9, 32, 16, duration=US, meets="x")]), device())
    tb.save_traces(tmp_path / "a.jsonl", [one])
    header, record = (tmp_path / "a.jsonl").read_text("utf-8").splitlines()
    changed = {**json.loads(record), **change}
    if changed["hang"] is None:
        del changed["hang"]
    (tmp_path / "b.jsonl").write_text(f"{header}\n{json.dumps(changed)}\n", "utf-8")
    with pytest.raises(ValueError, match=message):
        tb.load_traces(tmp_path / "b.jsonl")


def test_views_show_what_never_ends_and_name_the_gpu() -> None:
    trace = hung()
    text = str(trace)
    assert "2 GPUs: " in text
    assert "never" in text
    assert "It hangs." in text
    assert "makespan" not in text
    page = trace._repr_html_()
    assert "GPU 1, stream 2" in page
    assert "It hangs." in page
    data = views.data(trace)
    assert data["makespan"] is None
    assert data["hang"]["stranded"][0]["gpu"] in (0, 1)
    assert [row["sms"] for row in data["devices"]] == [1, 1]
    frame = trace.to_pandas()
    assert frame["gpu"].tolist() == [trace.sequence.launch_gpus[k] for k in frame["launch"]]


def test_rows_of_streams_and_sms_are_those_of_a_gpu() -> None:
    from tbsched.views.layout.lanes import spans_by_sm, spans_by_stream

    trace = tb.predict(ELSEWHERE, ["xavier", "rtx3090"])
    by_sm, by_stream = spans_by_sm(trace), spans_by_stream(trace)
    assert by_sm.titles[:9] == (*(f"GPU 0, SM {k}" for k in range(8)), "GPU 1, SM 0")
    assert len(by_sm.titles) == 8 + 82
    rows = [set(by_sm.row[by_sm.launch == k].tolist()) for k in range(2)]
    assert max(rows[0]) < 8 <= min(rows[1])
    assert by_stream.titles == ("GPU 0, own streams", "GPU 1, own streams")


def test_explanation_names_launches_of_the_same_gpu_alone() -> None:
    full = [tb.Launch(4, 32, 16, duration=US, gpu=k) for k in range(2)]
    after = tb.Launch(4, 32, 16, duration=US, gpu=1)
    words = tb.predict(tb.Sequence([*full, after]), [device()] * 2).explain(2)
    assert "beside launch 1 (" in words
    assert "launch 0" not in words


def test_perfetto_file_of_several_gpus_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="to_perfetto: a trace of several GPUs"):
        tb.show.to_perfetto(hung(), tmp_path / "x.pftrace")


def test_recording_of_two_gpus_is_accounted_for_without_changes(tmp_path: Path) -> None:
    one = tb.Launch(8, 1024, 32, duration=1e-4, name="one")
    two = tb.Launch(8, 1024, 32, duration=2e-4, gpu=1, name="two")
    program = tb.Sequence([one, two, tb.Copy(1 << 20, "h2d", gpu=1)])
    tb.save_traces(tmp_path / "two.jsonl", [tb.predict(program, ["h200"] * 2)])
    found = tb.explain(tb.load_program(tmp_path / "two.jsonl"))
    assert {row.gpu for row in found.account if row.by == "one"} == {0}
    assert {row.gpu for row in found.account if row.by == "two"} == {1}
    assert not found.changes
    assert "several GPUs" in str(found)


@pytest.mark.parametrize("wrong", [3.5, "x", True, {"a": None}])
def test_damaged_times_of_a_hang_are_refused_by_field(tmp_path: Path, wrong: object) -> None:
    place = tmp_path / "hung.jsonl"
    tb.save_traces(place, [hung()])
    header, line = place.read_text().splitlines()
    record = json.loads(line)
    record["start_ns"][0] = wrong
    place.write_text(f"{header}\n{json.dumps(record)}\n")
    with pytest.raises(ValueError, match=r"start_ns: "):
        tb.load_traces(place)


def test_what_if_of_a_program_that_hangs_says_so() -> None:
    waits = tb.Sequence([tb.WaitValue("f", stream=1), tb.Launch(8, 64, 32, stream=1, duration=US)])
    with pytest.raises(ValueError, match=r"^what_if: as it is, the program never ends"):
        tb.what_if(waits, PLACE)
