"""Traces and their files: JSON lines that keep what they do not know and refuse what is newer."""

from __future__ import annotations

import gzip
import json
import lzma
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers import ROOT
from tbsched import unpacking
from tbsched.program.partition import Partition, SmSplit
from tbsched.program.sequence import Copy, Event, Graph, Launch, Memset, Release, Sequence
from tbsched.traces import files
from tbsched.traces.files import load_traces, save_traces
from tbsched.traces.growing_file import TraceFile
from tbsched.traces.placement import DeviceInfo, Placement
from tbsched.traces.trace import Trace

GPU = DeviceInfo("NVIDIA H200", 132, {"compute_capability": "9.0", "driver": "1.2"})
HEADER = '{"tbsched_trace":1,"device":{"name":"G","sms":4}}'
RECORD = '{"id":"a","events":[{"launch":{"blocks":2,"threads":1,"registers":1}}],"smid":[[0,-1]]}'
ENDINGS = [".jsonl", ".jsonl.xz", ".jsonl.gz"]


def int32(*values: int) -> np.ndarray[Any, np.dtype[np.int32]]:
    return np.array(values, np.int32)


def full_trace() -> Trace:
    sequence = Sequence([Launch(2, 64, 16, name="a"), Launch(3, 32, 16), Release(0)])
    first = Placement(
        int32(0, 131),
        int32(0, 131),
        None,
        np.array([1, 2**40], np.int64),
        np.array([3, 4], np.int64),
        int32(0, 1, 4, 5).reshape(2, 2),
    )
    second = Placement(int32(1, -1, -1), int32(1, 0, -1), "slots")
    return Trace(sequence, GPU, (first, second), id="t1", extra={"unstable": False})


def assert_same(a: Trace, b: Trace) -> None:
    assert (a.sequence, a.device, a.id, a.extra) == (b.sequence, b.device, b.id, b.extra)
    for p, q in zip(a, b, strict=True):
        assert p.limiter == q.limiter
        for key in ("smid", "final_smid", "start_ns", "end_ns", "warp_slots"):
            x, y = getattr(p, key), getattr(q, key)
            assert (x is None) == (y is None), key
            if x is not None:
                np.testing.assert_array_equal(x, y)
                assert x.dtype == y.dtype


@pytest.mark.parametrize("ending", ENDINGS)
def test_traces_survive_a_file_with_everything_they_hold(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"t{ending}"
    plain = Trace(Sequence([Launch(1, 1, 1)]), GPU, (Placement(int32(7)),))
    save_traces(path, [full_trace(), plain])
    read = load_traces(path)
    assert len(read) == 2
    assert_same(read[0], full_trace())
    assert_same(read[1], plain)


def test_ending_chooses_the_compression(tmp_path: Path) -> None:
    for ending, opener in ((".jsonl.xz", lzma.open), (".jsonl.gz", gzip.open), (".jsonl", open)):
        path = tmp_path / f"t{ending}"
        save_traces(path, [full_trace()])
        with opener(path, "rt") as lines:
            assert json.loads(next(lines))["tbsched_trace"] == 1


def test_traces_of_several_devices_share_a_file(tmp_path: Path) -> None:
    other = Trace(Sequence(), DeviceInfo("other", 2), ())
    traces = [full_trace(), other, other, full_trace()]
    save_traces(tmp_path / "t.jsonl", traces)
    assert [trace.device.name for trace in load_traces(tmp_path / "t.jsonl")] == [
        "NVIDIA H200",
        "other",
        "other",
        "NVIDIA H200",
    ]
    assert (tmp_path / "t.jsonl").read_text().count("tbsched_trace") == 3


# Launches that version 1 has no words for.
NEW = {
    "partition": Partition((0, 2), split=SmSplit(2, ignore_coscheduling=True)),
    "cooperative": True,
    "non_blocking": True,
    "programmatic": True,
    "trigger": 1e-6,
    "memory_wait": 2e-6,
    "completion_event": 3,
}


def of(event: Event) -> Trace:
    return Trace(Sequence([event]), GPU, (Placement(int32(7)),))


@pytest.mark.parametrize("field", NEW)
def test_what_version_1_has_no_words_for_is_written_in_version_2(
    tmp_path: Path, field: str
) -> None:
    plain, new = (of(Launch(1, 1, 1, duration=1.0, **some)) for some in ({}, {field: NEW[field]}))
    path = tmp_path / "t.jsonl"
    save_traces(path, [plain, new, plain])
    headers = [json.loads(line).get("tbsched_trace") for line in path.read_text().splitlines()]
    assert headers == [1, None, 2, None, None]
    assert [trace.sequence for trace in load_traces(path)] == [
        plain.sequence, new.sequence, plain.sequence
    ]  # fmt: skip


def test_a_growing_file_gets_a_header_of_the_version_it_needs(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    plain = of(Launch(1, 1, 1, duration=1.0))
    graph = of(Graph([Launch(1, 1, 1, duration=1.0)]).launch("legacy"))
    with TraceFile(path) as file:
        for trace in (plain, graph, graph):
            file.append(trace)
    headers = [json.loads(line).get("tbsched_trace") for line in path.read_text().splitlines()]
    assert headers == [1, None, 2, None, None]
    assert [trace.sequence for trace in load_traces(path)][1:] == [graph.sequence] * 2


def test_folder_is_read_in_order_of_its_file_names(tmp_path: Path) -> None:
    for name in ("b.jsonl", "a.jsonl.xz", "c.jsonl.gz"):
        trace = Trace(Sequence(), GPU, (), id=name)
        save_traces(tmp_path / name, [trace])
    (tmp_path / "notes.txt").write_text("not a trace")
    assert [trace.id for trace in load_traces(tmp_path)] == ["a.jsonl.xz", "b.jsonl", "c.jsonl.gz"]


def test_nothing_is_left_behind_when_writing_fails(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text("old")
    with pytest.raises(TypeError, match=r"save_traces\.traces\[1\]: a Trace is needed, got 'x'"):
        save_traces(path, [full_trace(), "x"])  # type: ignore[list-item]
    broken = Trace(Sequence(), GPU, (), extra={"key": object()})
    with pytest.raises(TypeError):
        save_traces(path, [broken])
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_keys_that_nobody_knows_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(f'{HEADER}\n{RECORD[:-1]},"mood":"good"}}\n')
    (trace,) = load_traces(path)
    assert trace.extra == {"mood": "good"}
    save_traces(path, [trace])
    assert load_traces(path)[0].extra == {"mood": "good"}


def test_blank_lines_are_skipped(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(f"\n{HEADER}\n\n{RECORD}\n\n")
    assert load_traces(path)[0].id == "a"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no header line"),
        ("{", "line 1"),
        ("[]", "line 1: an object is needed"),
        (RECORD, "line 1: the first line must be a header"),
        ('{"tbsched_trace":4,"device":{"name":"G","sms":4}}', "line 1: .*version 4.*newer tbsched"),
        (
            '{"tbsched_trace":0,"device":{"name":"G","sms":4}}',
            "version 0; .* reads versions 1 to 3",
        ),
        ('{"tbsched_trace":true,"device":{"name":"G","sms":4}}', "version True"),
        ('{"tbsched_trace":1}', "line 1: 'device'"),
        ('{"tbsched_trace":1,"device":{"name":"G"}}', "line 1: 'sms'"),
        ('{"tbsched_trace":1,"device":{"name":"G","sms":"four"}}', "line 1: .*four"),
        (f"{HEADER}\n{{}}", "line 2: 'events'"),
        (f"{HEADER}\n" + RECORD.replace("[[0,-1]]", "[[0]]"), r"smid\[0\] has shape \(1,\)"),
        (f"{HEADER}\n" + RECORD.replace("[[0,-1]]", "[]"), "0 placements for 1 launches"),
        (f"{HEADER}\n" + RECORD.replace("-1", "4"), r"smid\[0\] has an SM outside 0\.\.3"),
        (f"{HEADER}\n" + RECORD.replace("-1", "-2"), "has an SM outside"),
        (f"{HEADER}\n" + RECORD.replace("-1", "1e99"), "line 2"),
        (f"{HEADER}\n" + RECORD.replace('"blocks":2', '"blocks":0'), "blocks: 0 is outside"),
    ],
)
def test_file_that_holds_no_traces_is_refused_with_its_line(
    tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(text)
    with pytest.raises(ValueError, match=message) as caught:
        load_traces(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("ending", [".jsonl.xz", ".jsonl.gz"])
@pytest.mark.parametrize("content", [b"", b"not compressed", b"\x1f\x8b\xfd7zXZ"])
def test_file_that_is_not_compressed_as_its_name_says_is_refused(
    tmp_path: Path, ending: str, content: bytes
) -> None:
    path = tmp_path / f"t{ending}"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=re.escape(str(path))):
        load_traces(path)


@pytest.mark.parametrize("ending", [".jsonl.xz", ".jsonl.gz"])
def test_truncated_file_is_refused(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"t{ending}"
    save_traces(path, [full_trace()] * 100)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ValueError, match=r"t\.jsonl"):
        load_traces(path)


def test_absent_file_is_file_not_found(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load_traces(tmp_path / "absent.jsonl")


@pytest.mark.parametrize(
    ("smid", "message"),
    [
        (int32(0), r"smid\[0\] has shape \(1,\), the launch has 2 blocks"),
        (int32(0, 1, 2), r"smid\[0\] has shape \(3,\)"),
        (int32(0, 132), r"smid\[0\] has an SM outside 0\.\.131"),
        (int32(0, -2), r"smid\[0\] has an SM outside"),
    ],
)
def test_trace_checks_its_blocks(smid: Any, message: str) -> None:
    sequence = Sequence([Launch(2, 1, 1)])
    with pytest.raises(ValueError, match=message):
        Trace(sequence, GPU, (Placement(smid),), id="x")
    with pytest.raises(ValueError, match="final_" + message):
        Trace(sequence, GPU, (Placement(int32(0, 0), smid),), id="x")


def test_placement_counts_blocks_per_sm() -> None:
    placement = Placement(int32(2, 2, 0, -1))
    assert placement.placed == 3
    assert placement.occupancy(3).tolist() == [1, 0, 2]
    assert placement.occupancy(4).tolist() == [1, 0, 2, 0]
    for sms in (-1, 0, 2):
        with pytest.raises(ValueError, match=rf"occupancy\.sms: {sms} is outside 3\.\.1048576"):
            placement.occupancy(sms)
    assert Placement(int32(-1, -1)).occupancy(2).tolist() == [0, 0]


# -- what traces need, and no more ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[[0,-1]]", '[[1.7,"3",true]]', r"smid: integers are needed, got 1\.7"),
        ("[[0,-1]]", "[[true,0]]", "smid: integers are needed, got True"),
        ("[[0,-1]]", "[[[0],[1]]]", "smid: integers are needed"),
        ("[[0,-1]]", "[0,1]", ""),
        ("[[0,-1]]", '["01"]', "smid: integers are needed"),
        ("[[0,-1]]", "[null]", r"smid\[0\] has shape None"),
        ("[[0,-1]]", '{"0":[0,1]}', "smid: a list with an item per launch is needed"),
        ("[[0,-1]]", "[[0,4294967296]]", "smid: numbers outside"),
        ("[[0,-1]]", f"[[0,{10**30}]]", ""),
        ("}", ',"final_smid":[[0]]}', r"final_smid\[0\] has shape \(1,\)"),
        ("}", ',"final_smid":[[0,9]]}', r"final_smid\[0\] has an SM outside"),
        ("}", ',"final_smid":[null,null]}', "final_smid: 2 placements for 1 launches"),
        ("}", ',"start_ns":[[1]],"end_ns":[[1,2]]}', r"start_ns\[0\] has shape \(1,\)"),
        ("}", ',"start_ns":[[1,0.5]]}', r"start_ns: integers are needed, got 0\.5"),
        ("}", f',"start_ns":[[1,{2**63 - 1}]]}}', "start_ns: numbers outside"),
        ("}", f',"start_ns":[[1,{-(2**63)}]]}}', "start_ns: numbers outside"),
        ("}", ',"warp_slots":[[[0],[1,2]]]}', "warp_slots: as many numbers for each block"),
        ("}", ',"warp_slots":[[[0,1],[1,2]]]}', r"warp_slots\[0\] has shape \(2, 2\)"),
        ("}", ',"warp_slots":[[0,1]]}', ""),
        ("}", ',"limiter":[3]}', "limiter: a word or null is needed, got 3"),
        ("}", ',"limiter":"slots"}', "limiter: a list with an item per launch is needed"),
        ("}", ',"issued_ns":["now"]}', "issued_ns: nanoseconds per launch are needed"),
        ("}", ',"issued_ns":[1,2]}', "issued_ns: nanoseconds per launch are needed"),
        ('"registers":1', '"registers":1,"mood":2', "mood' is unknown"),
    ],
)
def test_record_that_is_not_of_its_launches_is_refused(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    path = tmp_path / "t.jsonl"
    begin, _, end = RECORD.rpartition(old)
    path.write_text(f"{HEADER}\n{begin}{new}{end}\n")
    with pytest.raises(ValueError, match=f"line 2: .*{message}"):
        load_traces(path)


@pytest.mark.parametrize("sms", ["2147483648", "0", "-1", "true", "1.5", '"4"'])
def test_header_has_as_many_sms_as_a_gpu_may(tmp_path: Path, sms: str) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(HEADER.replace("4", sms))
    with pytest.raises(ValueError, match=r"line 1: device\.sms"):
        load_traces(path)


def test_word_that_nobody_knows_is_shown_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(f'{HEADER}\n{RECORD[:-1]},"limiter":["moon"]}}\n')
    assert "moon" in str(load_traces(path)[0])


def test_arrays_of_a_file_cannot_be_written_to(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    save_traces(path, [full_trace()])
    for placement in load_traces(path)[0]:
        assert placement.final_smid is not None
        assert not placement.smid.flags.writeable
        assert not placement.final_smid.flags.writeable


@pytest.mark.parametrize("ending", ENDINGS)
def test_byte_order_mark_is_no_part_of_the_file(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"t{ending}"
    opener: Any = {".xz": lzma.open, ".gz": gzip.open}.get(path.suffix, open)
    with opener(path, "wt", encoding="utf-8-sig") as out:
        out.write(f"{HEADER}\n{RECORD}\n".replace('"G"', '"Grafikkarte Ä"'))
    assert load_traces(path)[0].device.name == "Grafikkarte Ä"


@pytest.mark.parametrize("ending", ENDINGS)
def test_line_that_never_ends_is_not_read_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    monkeypatch.setattr(files, "MAX_LINE_BYTES", 1000)
    path = tmp_path / f"t{ending}"
    opener: Any = {".xz": lzma.open, ".gz": gzip.open}.get(path.suffix, open)
    with opener(path, "wb") as out:
        out.write(HEADER.encode() + b"\n" + b" " * 100_000)
    with pytest.raises(ValueError, match="line 2: more than 1000 bytes, the most of a line"):
        load_traces(path)
    with pytest.raises(ValueError, match="save_traces: trace 't' takes"):
        save_traces(path, [Trace(Sequence(), GPU, (), id="t", extra={"long": "x" * 1000})])


@pytest.mark.parametrize("limit", ["BYTES", "LINES"])
def test_small_file_that_unpacks_to_much_is_not_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    path = tmp_path / "t.jsonl.xz"
    with lzma.open(path, "wt") as out:
        out.write(f"{HEADER}\n" + f"{RECORD}\n" * 1000)
    assert len(load_traces(path)) == 1000
    monkeypatch.setattr(unpacking, f"MAX_{limit}", 500)
    monkeypatch.setattr(unpacking, f"{limit}_PER_BYTE", 0)
    with pytest.raises(ValueError, match=f"unpack to more than .*500 {limit.lower()}"):
        load_traces(path)


@pytest.mark.parametrize("ending", ["xz", "gz"])
def test_small_file_unpacks_to_as_much_as_the_page_says(tmp_path: Path, ending: str) -> None:
    page = (ROOT / "docs" / "reference" / "trace-format.md").read_text("utf-8")
    (most,) = re.findall(r"compressed file may unpack to (\d+) MiB", page)
    path = tmp_path / f"t.jsonl.{ending}"
    blank, begin = f"{' ' * (2**20 - 1)}\n", f"{HEADER}\n{RECORD}\n"
    for mib, fits in ((int(most) - 1, True), (int(most), False)):
        with path.open("wb") as file, unpacking.PACKERS[f".{ending}"](file) as out:
            out.write(begin.encode() + blank.encode() * mib)
        assert unpacking.BYTES_PER_BYTE * path.stat().st_size < 2**20 * int(most)
        if fits:
            assert len(load_traces(path)) == 1
        else:
            with pytest.raises(ValueError, match=f"unpack to more than {2**20 * int(most)} bytes"):
                load_traces(path)


def test_times_of_copies_are_kept(tmp_path: Path) -> None:
    sequence = Sequence([Copy(8, "h2d", stream=1), Memset(8)])
    trace = Trace(sequence, GPU, (), transfer_ns=np.array([[1, 5], [2, 3]]))
    save_traces(tmp_path / "a.jsonl", [trace])
    assert '{"tbsched_trace":2' in (tmp_path / "a.jsonl").read_text("utf-8")
    (found,) = load_traces(tmp_path / "a.jsonl")
    assert found.sequence == sequence
    assert found.transfer_ns is not None
    assert found.transfer_ns.tolist() == [[1, 5], [2, 3]]
    with pytest.raises(ValueError, match=r"transfer_ns has shape \(1, 2\), the sequence needs"):
        Trace(sequence, GPU, (), transfer_ns=np.array([[1, 5]]))


@pytest.mark.parametrize("rows", ["[5]", "[[1.5, 2]]", '["a"]', "[[1, true]]"])
def test_times_of_copies_that_are_none_are_refused(tmp_path: Path, rows: str) -> None:
    record = '{"events":[{"copy":{"bytes":8,"kind":"d2d"}}],"smid":[],"transfer_ns":' + rows + "}"
    path = tmp_path / "a.jsonl"
    path.write_text(HEADER.replace(":1,", ":2,", 1) + "\n" + record + "\n", "utf-8")
    with pytest.raises((TypeError, ValueError), match="transfer_ns"):
        load_traces(path)
