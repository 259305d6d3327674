"""Long files are read piece by piece, and a terminal shows how far."""

from __future__ import annotations

import codecs
import gzip
import json
import lzma
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tbsched as tb
from helpers import ROOT
from importers.written import call, kernel, kineto
from tbsched.importers.reading import packed
from tbsched.importers.reading.members import members

TEXT = '{"a": [1, 2.5, {"b": [1]}, "x,]}"], "c": {"d": null}, "e": [], "f": [ ], "n": 12}'


def cut(data: bytes, size: int) -> Iterator[bytes]:
    return (data[k : k + size] for k in range(0, len(data), size))


@given(st.integers(1, 90))
def test_members_are_the_same_however_the_file_is_cut(size: int) -> None:
    found = list(members(cut(TEXT.encode(), size), ("a", "e", "f")))
    assert found == [
        ("a", 1), ("a", Decimal("2.5")), ("a", {"b": [1]}), ("a", "x,]}"), ("c", {"d": None}),
        ("n", 12),
    ]  # fmt: skip


@given(st.integers(0, len(TEXT) - 1), st.integers(1, 90))
def test_text_that_ends_early_is_refused(end: int, size: int) -> None:
    with pytest.raises(ValueError, match="not whole JSON, near byte"):
        list(members(cut(TEXT[:end].encode(), size), ("a", "e")))


def test_no_list_is_held_as_a_whole() -> None:
    taken = 0

    def pieces() -> Iterator[bytes]:
        nonlocal taken
        yield b'{"a": ['
        for _ in range(1000):
            taken += 1
            yield b"[0], "
        yield b"[1]]}"

    for number, _ in enumerate(members(pieces(), ("a",))):
        assert taken <= 2 * number + 4


def test_bar_is_for_what_takes_long_on_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "a.json.gz"
    place.write_bytes(gzip.compress(json.dumps(list(range(99))).encode()))
    monkeypatch.setattr("tbsched.progress._SECONDS", 0.0)
    assert list(packed.pieces_of(place)) == [place_content(place)]
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert list(packed.pieces_of(place)) == [place_content(place)]
    assert "reading a.json.gz" in capsys.readouterr().err


CAPTURE = ROOT / "tests" / "real" / "recordings" / "h100" / "cupy_legacy_stream-a.jsonl.xz"


@pytest.mark.parametrize("packing", [bytes, gzip.compress, lzma.compress])
@pytest.mark.parametrize("kind", ["capture", "kineto"])
def test_a_byte_order_mark_is_passed_over(
    tmp_path: Path, kind: str, packing: Callable[[bytes], bytes]
) -> None:
    place = kineto(tmp_path / "plain.json", call(1, 1, 1), kernel(1, 3, 5))
    text = place.read_bytes() if kind == "kineto" else lzma.decompress(CAPTURE.read_bytes())
    place.write_bytes(text)
    marked = tmp_path / "marked.json"
    marked.write_bytes(packing(codecs.BOM_UTF8 + text))
    plain, found = (tb.load_program(each, fit=False) for each in (place, marked))
    assert found.sequence == plain.sequence
    if kind == "capture":
        assert tb.hang(marked).kind == tb.hang(place).kind


def place_content(place: Path) -> bytes:
    return gzip.decompress(place.read_bytes())
