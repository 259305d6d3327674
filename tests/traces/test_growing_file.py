"""A trace file that grows: nothing that was appended is lost, a torn last line is repaired."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest

from helpers import launch, run
from tbsched.traces.files import load_traces
from tbsched.traces.growing_file import TraceFile
from tbsched.traces.trace import Trace


def traces(count: int, device: str = "rtx3090") -> list[Trace]:
    return [
        dataclasses.replace(run(device, launch(blocks)), id=f"{device}-{blocks}")
        for blocks in range(1, count + 1)
    ]


def ids(path: Path) -> list[str]:
    return [trace.id for trace in load_traces(path)]


def write(path: Path, what: list[Trace]) -> None:
    with TraceFile(path) as file:
        for trace in what:
            file.append(trace)


def test_what_is_appended_can_be_read_before_the_file_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    with TraceFile(path, sync_every=1000) as file:
        for number, trace in enumerate(traces(3), 1):
            file.append(trace)
            assert len(load_traces(path)) == number


def test_a_second_opening_appends_and_knows_the_first(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    write(path, traces(2))
    with TraceFile(path) as file:
        assert [trace.id for trace in file.traces] == ["rtx3090-1", "rtx3090-2"]
        file.append(traces(3)[2])
    assert ids(path) == ["rtx3090-1", "rtx3090-2", "rtx3090-3"]


def test_each_device_has_its_header(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    write(path, [*traces(1), *traces(1, "h200"), *traces(1)])
    assert [trace.device.sms for trace in load_traces(path)] == [82, 132, 82]


@pytest.mark.parametrize("cut", [1, 2, 10, 40])
def test_a_torn_last_line_is_taken_out(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "c.jsonl"
    write(path, traces(3))
    os.truncate(path, path.stat().st_size - 1 - cut)
    with pytest.warns(UserWarning, match=r"c\.jsonl: its last line \(\d+ bytes\) was cut"):
        write(path, traces(4)[3:])
    assert ids(path) == ["rtx3090-1", "rtx3090-2", "rtx3090-4"]


def test_a_last_line_that_lacks_its_newline_only_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    write(path, traces(2))
    os.truncate(path, path.stat().st_size - 1)
    write(path, traces(3)[2:])
    assert ids(path) == ["rtx3090-1", "rtx3090-2", "rtx3090-3"]


def test_a_torn_header_leaves_an_empty_corpus(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text('{"tbsched_trace":1,"dev')
    with pytest.warns(UserWarning, match=r"its last line \(23 bytes\) was cut, and is left out"):
        write(path, traces(1))
    assert ids(path) == ["rtx3090-1"]


def test_a_broken_line_in_the_middle_is_an_error_that_names_it(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    write(path, traces(3))
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines[:2], "{broken\n", *lines[2:]]))
    with pytest.raises(ValueError, match=r"c\.jsonl, line 3"):
        TraceFile(path)


@pytest.mark.parametrize("tail", [b'{"id":"cu', b'{"id":"a"}'])
def test_a_file_that_is_refused_stays_as_it_is(tmp_path: Path, tail: bytes) -> None:
    path = tmp_path / "c.jsonl"
    write(path, traces(1))
    held = path.read_bytes() + b'{"id":"x"}\n' + tail
    path.write_bytes(held)
    with pytest.raises(ValueError, match=r"c\.jsonl, line 3: 'events' is missing"):
        TraceFile(path)
    assert path.read_bytes() == held


@pytest.mark.filterwarnings("ignore:.*was cut")
@pytest.mark.parametrize("cut", [1, 5])
def test_a_file_to_which_nothing_is_appended_stays_as_it_is(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "c.jsonl"
    write(path, traces(2))
    os.truncate(path, path.stat().st_size - cut)
    held = path.read_bytes()
    with TraceFile(path) as file:
        assert len(file.traces) == (2 if cut == 1 else 1)
    assert path.read_bytes() == held


@pytest.mark.parametrize("name", ["c.jsonl.xz", "c.jsonl.gz"])
def test_a_compressed_file_cannot_grow(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="compressed"):
        TraceFile(tmp_path / name)


def test_two_campaigns_cannot_share_a_file(tmp_path: Path) -> None:
    with TraceFile(tmp_path / "c.jsonl"), pytest.raises(ValueError, match="in use"):
        TraceFile(tmp_path / "c.jsonl")


def test_no_such_folder(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        TraceFile(tmp_path / "none" / "c.jsonl")
