"""Files become sequences by the first reader that takes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from helpers import TRACES
from tbsched.importers.readers import read_sequences
from tbsched.program.sequence import Launch, Release, Sequence
from tbsched.traces.files import load_traces

SEQUENCE = Sequence([Launch(66, 512, 32), Release(0)])


def test_list_of_events_is_one_sequence(tmp_path: Path) -> None:
    place = tmp_path / "events.json"
    place.write_text(SEQUENCE.to_json(), "utf-8")
    assert read_sequences(place) == [SEQUENCE]


def test_trace_file_gives_the_sequence_of_each_trace() -> None:
    place = TRACES / "basic.jsonl.xz"
    assert read_sequences(place) == [trace.sequence for trace in load_traces(place)]


def test_folder_gives_those_of_all_its_trace_files(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl.xz").write_bytes((TRACES / "basic.jsonl.xz").read_bytes())
    assert len(read_sequences(tmp_path)) == 2 * len(load_traces(TRACES / "basic.jsonl.xz"))


def test_what_is_no_list_of_events_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "events.json"
    place.write_text("{}", "utf-8")
    with pytest.raises(TypeError, match="a list is needed"):
        read_sequences(place)


def test_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_sequences(tmp_path / "none.json")
