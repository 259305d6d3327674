"""Logs of cuda_scheduling_examiner, and traces of tbsched, become programs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tbsched as tb
from helpers import ROOT
from importers.written import entry, log


def test_log_has_the_time_of_each_block(tmp_path: Path) -> None:
    place = log(tmp_path / "a.json", entry(1.0, 1.5, 1.25), entry(2.0, 2.5, kernel_name="second"))
    program = tb.load_program(place)
    first, second = program.sequence.launches
    assert first.duration == pytest.approx((0.5, 0.25))
    assert (first.blocks, first.threads, first.name, second.name) == (2, 128, "one", "second")
    assert first.registers == 32
    assert any("assumed 32 registers" in sentence for sentence in program.assumed)
    assert program.host == pytest.approx((0.0, 0.99999), abs=1e-9)
    assert program.measured["start_ns"].tolist() == [20_000, 1_000_020_000]


def test_folder_of_logs_is_one_program_of_several_threads(tmp_path: Path) -> None:
    log(tmp_path / "a.json", entry(1.0, 1.5))
    waited = entry(1.1, 1.4)
    waited["cuda_launch_times"][2] = 1.41
    log(tmp_path / "b.json", waited, label="two")
    program = tb.load_program(tmp_path)
    assert [launch.stream for launch in program.sequence.launches] == [0, 1]
    assert [event.host for event in program.sequence] == [0, 1, 1]  # type: ignore[union-attr]
    assert isinstance(program.sequence[2], tb.Synchronize)
    trace = tb.predict(program.sequence, "xavier", host=program.host)
    assert trace.concurrent(0, 1)
    assert tb.load_program(tmp_path, streams=[1]).measured["name"].tolist() == ["two"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"block_times": [1.0]}, r"times\[2\].block_times: two times per block are needed, got 1"),
        ({"block_times": [2.0, 1.0]}, r"block_times: a block ended before it started"),
        ({"block_times": [-1.0, 1.0]}, "seconds from 0 are needed"),
        ({"block_times": [0, 1e300]}, "seconds from 0 are needed"),
        ({"block_times": "x"}, "a list of seconds"),
        ({"block_count": 2**40}, "block_count: a number from 1"),
        ({"thread_count": 2048}, r"Launch.threads: 2048"),
        ({"cuda_launch_times": [2.0, 1.0, 0]}, "before it was made"),
    ],
)
def test_log_that_cannot_be_is_named(
    tmp_path: Path, changes: dict[str, object], words: str
) -> None:
    place = log(tmp_path / "a.json", {**entry(1.0, 1.5), **changes})
    with pytest.raises(ValueError, match=words) as error:
        tb.load_program(place)
    assert "a.json" in str(error.value)


def test_unfinished_log_is_refused(tmp_path: Path) -> None:
    place = log(tmp_path / "a.json", entry(1.0, 1.5))
    place.write_text(place.read_text("utf-8")[:-9], "utf-8")
    with pytest.raises(ValueError, match=re.escape("did the benchmark run to its end?")):
        tb.load_program(place)


def test_trace_with_times_is_a_program(tmp_path: Path) -> None:
    program = tb.Sequence([tb.Launch(264, 1024, 64, stream=0, duration=1e-3, name="k")])
    played = tb.predict(program, "h200", host=0.0)
    tb.save_traces(tmp_path / "one.jsonl.gz", [played])
    found = tb.load_program(tmp_path / "one.jsonl.gz")
    assert found.measured["end_ns"][0] - found.measured["start_ns"][0] == played.makespan * 1e9
    assert tb.predict(found.sequence, "h200", host=found.host).makespan == pytest.approx(
        played.makespan, rel=1e-3
    )


def test_gaps_of_a_recording_are_its_own(tmp_path: Path) -> None:
    recorded = tb.load_traces(ROOT / "tests" / "traces" / "hosts" / "calls-h200.jsonl.xz")
    tb.save_traces(tmp_path / "one.jsonl", recorded[5:6])
    assert tb.load_program(tmp_path / "one.jsonl").host == recorded[5].host_gaps


def test_streams_of_a_trace_have_the_numbers_that_they_have_there(tmp_path: Path) -> None:
    last = 2**31 - 1  # a name for each stream up to it would fill the memory
    kernel = tb.Launch(2, 64, 32, duration=1e-3, stream=last)
    tb.save_traces(tmp_path / "one.jsonl", [tb.predict(tb.Sequence([kernel]), "h200", host=0.0)])
    program = tb.load_program(tmp_path / "one.jsonl")
    assert program.measured["stream"].tolist() == [last]
    assert program.streams == ()


def test_trace_file_that_is_no_program_is_refused(tmp_path: Path) -> None:
    held = tb.predict(tb.Sequence([tb.Launch(8, 64, 32)]), "h200")
    place = tmp_path / "held.jsonl"
    tb.save_traces(place, [held])
    with pytest.raises(ValueError, match="does not say when blocks ran"):
        tb.load_program(place)
    with pytest.raises(ValueError, match="no part can be selected"):
        tb.load_program(place, end=1.0)
    tb.save_traces(place, [held, held])
    with pytest.raises(ValueError, match="2 traces; a program is one of them"):
        tb.load_program(place)


def test_trace_without_the_starts_of_blocks_is_refused(tmp_path: Path) -> None:
    played = tb.predict(tb.Sequence([tb.Launch(2, 64, 32, duration=1e-3)]), "xavier")
    tb.save_traces(tmp_path / "one.jsonl", [played])
    text = (tmp_path / "one.jsonl").read_text("utf-8").replace("start_ns", "begin_ns")
    (tmp_path / "one.jsonl").write_text(text, "utf-8")
    with pytest.raises(ValueError, match="does not say when blocks ran"):
        tb.load_program(tmp_path / "one.jsonl")
