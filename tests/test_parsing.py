"""JSON and TOML that no parser of Python's takes: said in words, with the file, by every reader."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import tbsched as tb
from tbsched import parsing
from tbsched.sm.characterization.runs import load_runs

DEEP = "[" * 100_000
LONG = "1" * 5000
HEADER = '{"tbsched_characterization":2,"device":{}}\n'
TRACES = '{"tbsched_trace":1,"device":{"name":"x","sms":1}}\n'
READERS: dict[str, tuple[Callable[[Path], object], str]] = {
    "traces": (tb.load_traces, TRACES),
    "runs": (load_runs, HEADER),
    "profiles": (tb.sm.load_profiles, ""),
    "a sequence": (lambda path: tb.Sequence.from_json(path.read_text()), ""),
    "a log": (lambda path: tb.load_program(path, "h200"), '{"scenario_name":"s","times": '),
    "a profile": (lambda path: tb.load_program(path, "h200"), '{"traceEvents": '),
    "a capture": (lambda path: tb.load_program(path, "h200"), '{"tbsched_capture":1}\n'),
    "a device": (tb.device, "a = "),
    "a config": (tb.sm.config, "a = "),
}


@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize(
    ("text", "words"), [(DEEP, "nested too deeply"), (LONG, "an integer of more than 4300 digits")]
)
def test_what_python_cannot_parse_is_refused_in_words(
    tmp_path: Path, kind: str, text: str, words: str
) -> None:
    read, before = READERS[kind]
    path = tmp_path / ("x.toml" if kind in ("a device", "a config") else "x.jsonl")
    path.write_text(f"{before}{text}\n{{}}\n")
    with pytest.raises(ValueError, match=words) as caught:
        read(path)
    assert kind == "a sequence" or "x." in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"[1,]", "Expecting value at column 4"),
        (b"[1,\n2}", "Expecting ',' delimiter at line 2, column 2"),
        (b'"\xff"', "byte 1 is no UTF-8"),
    ],
)
def test_the_place_of_a_mistake_is_said(text: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parsing.json_value(text)
    with pytest.raises(ValueError, match="byte 0 is no UTF-8"):
        parsing.toml_tables(b"\xff")
