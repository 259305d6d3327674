"""What others call kernels, devices and traces is shown, and nothing obeys it."""

from __future__ import annotations

import csv
import dataclasses
import io
from pathlib import Path
from xml.etree import ElementTree

import pytest

import tbsched as tb
from helpers import gpu, launch
from tbsched import storage, views
from tbsched.cli import console
from tbsched.hardware.spec import Provenance
from tbsched.views.layout.names import cut_apart
from tbsched.views.tables import table_of, written
from tbsched.views.terminal import visible, visible_lines

TITLE = "\x1b]0;owned\x07"  # sets the title of the window
CLEAR = "\x1b[2J\x1b[31m\x9b1m"
TURNED = "\u202egnp.exe\u2066\u200f"  # is read from the right to the left
HOSTILE = f"gemm{TITLE}{CLEAR}{TURNED}\rlaunch 9\nsafe: yes"


def obeyed(text: str) -> set[str]:
    """The characters that a terminal does not just print."""
    return {c for c in text.replace("\n", "") if not c.isprintable()}


def test_line_has_marks_for_what_cannot_be_seen() -> None:
    assert visible("a\x1b[2Jb\u202ec\td\u2028e") == "a\ufffd[2Jb\ufffdc d e"
    assert visible("gemm<é, 界>") == "gemm<é, 界>"
    assert visible_lines("a\x1b\nb") == "a\ufffd\nb"


def hostile() -> list[tb.Launch]:
    return [launch(3, name=HOSTILE, duration=1e-3), launch(40, 8, name=TURNED, duration=1e-3)]


@pytest.mark.parametrize("held", [True, False])
def test_names_of_kernels_and_devices_are_not_obeyed(held: bool) -> None:
    spec = dataclasses.replace(gpu(2), title=HOSTILE)
    events = [dataclasses.replace(x, duration=None) if held else x for x in hostile()]
    trace = dataclasses.replace(tb.predict(tb.Sequence(events), spec), id=HOSTILE)
    values: list[object] = [
        trace, trace.sequence, tb.compare(trace, trace), tb.device("h200"), spec,
        tb.coresident([dataclasses.replace(x, duration=None) for x in events], gpu(2)),
        tb.capacity(events[1], spec, beside=[events[0]]), trace.residents(),
    ]  # fmt: skip
    if not held:
        values += [tb.what_if(trace.sequence, spec), tb.best_order(events, spec)]
        assert not obeyed(trace.explain(1))
    for value in values:
        for text in (str(value), repr(value), views.text(value, 80)):
            assert not obeyed(text), type(value)
        assert "\n" not in views.short(value)
        assert not set(views.html(value)) & set("\x1b\x07\x9b\u202e\u2066\u200f")
    rows = [line for line in str(trace.sequence).splitlines() if "gemm" in line]
    assert len(rows) == 1  # a name is on one line


def test_command_line_prints_nothing_that_is_obeyed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out, err = io.StringIO(), io.StringIO()
    monkeypatch.setattr(console.console, "_file", out)
    monkeypatch.setattr(console._notes, "_file", err)
    console.show(f"{HOSTILE}: 3 of 4")
    console.show(table_of(("name",), [(HOSTILE,)]))
    console.note(f"tbsched: {HOSTILE}: no such file")
    assert out.getvalue().count("gemm") == 2
    assert not obeyed(out.getvalue() + err.getvalue())


def test_no_text_of_a_file_begins_a_line_of_its_own() -> None:
    """A device of a file, an error and a path that would forge a line of output."""
    spec = dataclasses.replace(gpu(2), title=HOSTILE)
    origins = {"device.title": Provenance("measured", HOSTILE)}
    spec = dataclasses.replace(spec, provenance=origins)
    for text in (str(spec), repr(spec), views.short(spec), storage.shown(Path(HOSTILE))):
        assert not any(line.startswith("safe") for line in text.splitlines())
        assert not obeyed(text)


def test_tables_are_as_wide_as_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"void cutlass::Kernel<{'x' * 60}_{k}, {'y' * 60}>" for k in range(3)]
    sequence = tb.Sequence([launch(name=name) for name in names])
    assert names[2] in str(sequence)
    for width in (120, 80, 60):
        lines = views.text(sequence, width).splitlines()
        assert max(map(len, lines)) <= width
        assert len(set(lines)) == len(lines)  # kernels that differ are told apart
    out = io.StringIO()
    monkeypatch.setattr(console.console, "_file", out)
    monkeypatch.setattr(console.console, "_force_terminal", True)
    monkeypatch.setenv("COLUMNS", "70")
    console.show(sequence)
    assert max(map(len, out.getvalue().splitlines())) <= 70


def test_numbers_and_short_columns_are_not_cut() -> None:
    table = table_of(("n", "kind"), [("123456789", "held")], left=(1,))
    assert table.text(5).splitlines() == ["        n  kind", "123456789  held"]


def test_columns_of_numbers_that_find_no_room_stand_below() -> None:
    names = tuple(f"heading{k}" for k in range(9))
    rows = [(f"row {k}", *(f"{k}{n}" for n in range(8))) for k in range(2)]
    table = table_of(names, rows)
    lines = table.text(40).splitlines()
    assert lines == [
        "heading0  heading1  heading2  heading3",
        "row 0           00        01        02",
        "row 1           10        11        12",
        "",
        "heading0  heading4  heading5  heading6",
        "row 0           03        04        05",
        "row 1           13        14        15",
        "",
        "heading0  heading7  heading8",
        "row 0           06        07",
        "row 1           16        17",
    ]
    assert max(map(len, table.text().splitlines())) > 80
    found = tb.sm.simulate_many(tb.sm.preset("SCP", blocks=1, loads=2), ["owl", "fair"])
    for width in (60, 80, 100):
        lines = views.text(found, width).splitlines()
        assert max(map(len, lines)) <= width
        assert set("\n".join(lines).split()) == set(views.text(found).split())


def test_long_name_does_not_make_a_long_text() -> None:
    name = "k" * 2**20
    sequence = tb.Sequence([launch(name=f"{name}{k}", duration=1e-3) for k in range(50)])
    for value in (sequence, tb.predict(sequence, gpu(2))):
        assert len(str(value)) < 400_000
        assert len(views.html(value)) < 400_000


@pytest.mark.parametrize("longest", [12, 36, 48])
def test_different_names_stay_different_when_cut(longest: int) -> None:
    same = "a" * 200
    texts = [
        *(f"{same}{k}{same}" for k in range(12)), f"{same}x{same}y{same}", f"{same}x{same}z{same}",
        same, same[:-1], "short", "a\nb", "a b", "a\tb",
    ]  # fmt: skip
    found = cut_apart([*texts, texts[0]], longest)
    assert found[-1] == found[0]
    assert len(set(found)) == len(texts)
    assert max(map(len, found)) <= longest + 1


def test_lines_and_tables_are_written_below_each_other() -> None:
    table = table_of(("a", "b"), [("x", "1")], more="and 2 rows more")
    assert written(["head", table, "", "end"]) == "head\na  b\nx  1\nand 2 rows more\n\nend"


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        ('=HYPERLINK("http://x","y")', '\'=HYPERLINK("http://x","y")'),
        ("@SUM(1)", "'@SUM(1)"), ("+1+cmd|' /C calc'!A0", "'+1+cmd|' /C calc'!A0"),
        ("-1+1", "'-1+1"),
        ("\t=1", "'\t=1"), ("=1", "'=1"), ("-1.5e-3", "-1.5e-3"), ("gemm", "gemm"),
        ("a=b", "a=b"), ("\u202e=1+1", "'\u202e=1+1"), ("\x1b=1+1", "'\x1b=1+1"),
        ("\ufeff@SUM(1)", "'\ufeff@SUM(1)"), ("\x1b[31mgemm", "\x1b[31mgemm"),
    ],
)  # fmt: skip
def test_no_cell_of_a_csv_file_is_run(name: str, cell: str, tmp_path: Path) -> None:
    place = tmp_path / "a.csv"
    tb.show.to_csv(tb.Sequence([launch(name=name)]), place)
    with place.open(newline="", encoding="utf-8") as file:
        (row,) = csv.DictReader(file)
    assert row["name"] == cell


def test_kernels_that_differ_are_told_apart_wherever_they_are_shown() -> None:
    names = [f"void f<{'x' * 90}{k}{'y' * 90}>" for k in range(3)]
    sequence = tb.Sequence([launch(8, name=name, duration=1e-3) for name in names])
    trace = tb.predict(sequence, gpu())
    for value in (sequence, trace, trace.residents()):
        root = ElementTree.fromstring(views.html(value))
        cells = [
            cell.text or "" for cell in root.iter("td") if (cell.text or "").startswith("void")
        ]
        keys = [
            (key.find("i").tail or "") for key in root.iter("span") if key.find("i") is not None
        ]
        for shown in (cells, [key for key in keys if key.startswith("void")]):
            assert len(set(shown)) == len(shown)
