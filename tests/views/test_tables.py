"""Tables have the columns that their page says, in every library and file."""

from __future__ import annotations

import csv
import functools
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tbsched as tb
from helpers import ROOT, gpu, launch
from profiled import profiled
from sm.characterization.model_sm import ModelSm
from tbsched import views
from tbsched.advice.explain.facts import names_of
from tbsched.advice.periodic import Responses
from tbsched.campaigns.results import Counterexample, Report
from tbsched.campaigns.space.coverage import Coverage
from tbsched.views.files import tables
from tbsched.views.layout.names import numbered
from tbsched.views.tables import table_of, written
from tbsched.views.words import seconds_words
from views.gallery import search, variants

TIMED = tb.Sequence(
    [
        launch(4, duration=1e-3, name="gemm", stream=tb.LEGACY_STREAM),
        tb.RecordEvent(0, 1),
        launch(4, stream=0, duration=(1e-3, 2e-3, 1e-3, 2e-3)),
    ]
)
LAUNCHES = tb.Sequence([launch(duration=1e-3, name="é,\n"), launch(duration=2e-3, stream=3)])
LAUNCHES_OF_A_STREAM = tb.Sequence(2 * [launch(duration=1e-3, name="a", stream=0)])
HELD = tb.Sequence([launch(40, 8, name="gemm"), launch(8, carveout=50), tb.Release(0)])


def report() -> Report:
    diff = tb.compare(tb.predict(HELD, gpu(4)), tb.predict(HELD, gpu(4), "first_fit"))
    example = Counterexample(HELD, diff.a, diff.b, diff, "", True, False)
    return Report(
        1, "x", "y", "exact", 1, 1, 2, 48, 0, 0, (example,), (), 0, 0, 0, 1.0, Coverage(), "seconds"
    )


def periodic_responses() -> Responses:
    released = tb.periodic([tb.Task("é,\n", [launch(duration=1e-3)], 2e-3)])
    trace = tb.predict(released.sequence, gpu(), issue_times=released.issue_times)
    return released.responses(trace)


VALUES: dict[str, Callable[[], Any]] = {
    "Trace": lambda: tb.predict(TIMED, gpu()),
    "Trace, held": lambda: tb.predict(HELD, gpu(4)),
    "Processes": lambda: tb.predict_processes([LAUNCHES, LAUNCHES], "h200"),
    "Sequence": lambda: TIMED,
    "Diff": lambda: report().counterexamples[0].diff,
    "TimeDiff": lambda: tb.compare_times(*[tb.predict(LAUNCHES, gpu())] * 2),
    "Residents": lambda: tb.predict(HELD, gpu(4)).residents(2),
    "Report": report,
    "Calibration": lambda: tb.calibrate("tx2", 3600.0, sequences=0, progress=False),
    "WhatIf": lambda: tb.what_if(LAUNCHES, gpu()),
    "Explanation": lambda: tb.explain(profiled(LAUNCHES_OF_A_STREAM, "h200"), "h200"),
    "Responses": periodic_responses,
    "BestOrder": lambda: tb.best_order(LAUNCHES, gpu()),
    "LaunchConfigs": lambda: tb.launch_configs(gpu(), tb.Kernel(82 * 64, 200)),
    "Capacity": lambda: tb.capacity(launch(), gpu(4), beside=[launch(2, 32)]),
    "Capacities": lambda: tb.capacities(launch(), gpu(4), threads=[32, 1024], carveouts=[None, 0]),
    "Coresidency": lambda: tb.coresident([launch(4, 16), launch(5, 16)], gpu(4, warps_per_sm=32)),
    "RankCoresidency": lambda: tb.coresident(
        tb.Sequence(
            [
                tb.Launch(1, 32, 16, stream=0, gpu=k, host=k, meets=name, duration=1e-6)
                for k, names in enumerate(["ab", "ba"])
                for name in names
            ]
        ),
        [gpu(4)] * 2,
    ),
    "HangReport": lambda: tb.hang(ROOT / "tests" / "hangs" / "recorded" / "room.jsonl"),
    "DeviceDiff": lambda: tb.compare_devices("h100", "h200"),
    "DeviceSpec": lambda: tb.device("h200"),
    "Characterization": lambda: tb.sm.characterize(
        ModelSm(), ["fp32.fma"], repeats=1, warps=(1, 4), progress=False
    ),
    "Variants": variants,
    "Search": search,
    "Simulation": lambda: tb.sm.simulate(tb.sm.preset("SCP", blocks=2)),
    "Simulations": lambda: tb.sm.simulate_many(tb.sm.preset("SCP", blocks=2)),
    "Program": lambda: tb.load_program(ROOT / "tests" / "profiles" / "h100" / "copies.json.gz"),
}
PAGE = (ROOT / "docs" / "reference" / "tables.md").read_text("utf-8")
SECTIONS = dict(re.findall(r"^## (\w+)$(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))


@functools.cache
def value_of(name: str) -> Any:
    return VALUES[name]()


TABLES = pytest.mark.parametrize("name", VALUES)


def test_page_has_every_class_with_a_table() -> None:
    assert SECTIONS.keys() == views.SHOWN.keys() - views.WITHOUT_TABLE
    assert {name.partition(",")[0] for name in VALUES} == SECTIONS.keys()


@TABLES
def test_columns_are_those_of_the_page_and_of_one_length(name: str) -> None:
    found = views.columns(value_of(name))
    section = SECTIONS[name.partition(",")[0]]
    assert all(f"`{column}`" in section for column in found)
    assert len({len(column) for column in found.values()}) == 1
    assert len(next(iter(found.values())))


def test_columns_of_the_page_are_those_of_some_table() -> None:
    found: dict[str, set[str]] = {}
    for name in VALUES:
        found.setdefault(name.partition(",")[0], set()).update(views.columns(value_of(name)))
    for name, section in SECTIONS.items():
        cells = re.findall(r"^\| (`.+?) \|", section, re.MULTILINE)
        named = {word for cell in cells for word in re.findall(r"`(\w+)`", cell)}
        assert named <= found[name], name


def test_a_row_of_a_trace_is_a_block() -> None:
    trace = value_of("Trace")
    found = views.columns(trace)
    rows = trace.timeline
    for mine, theirs in (("launch", "launch"), ("sm", "sm"), ("start_ns", "start_ns")):
        assert np.array_equal(found[mine], rows[theirs])
    assert found["name"].tolist() == ["gemm"] * 4 + [None] * 4
    assert found["limiter"].tolist() == [trace[k].limiter for k in rows["launch"]]
    held = views.columns(value_of("Trace, held"))
    waits = held["smid"] < 0
    rows = zip(held["launch"][waits], held["limiter"][waits], strict=True)
    assert {*rows} == {(0, "warps"), (1, "queue")}
    assert {*held["limiter"][~waits]} == {None}


@TABLES
def test_pandas_has_the_columns_and_keeps_whole_numbers(name: str) -> None:
    pytest.importorskip("pandas")
    value = value_of(name)
    frame, found = value.to_pandas(), views.columns(value)
    assert list(frame) == list(found)
    for column in found:
        given = [item for item in found[column] if item is not None]
        assert frame[column].dropna().tolist() == given
        assert frame[column].isna().sum() == len(found[column]) - len(given)


@TABLES
def test_parquet_file_holds_the_arrow_table(name: str, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    value = value_of(name)
    tb.show.to_parquet(value, tmp_path / "x.parquet")
    table = pq.read_table(tmp_path / "x.parquet")
    assert table == tb.show.to_arrow(value)
    plain = {key: list(column) for key, column in views.columns(value).items()}
    assert table.to_pydict() == plain


@TABLES
def test_csv_file_holds_the_columns_as_text(name: str, tmp_path: Path) -> None:
    value = value_of(name)
    tb.show.to_csv(value, tmp_path / "x.csv")
    with open(tmp_path / "x.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for key, column in views.columns(value).items():
        assert [row[key] for row in rows] == ["" if x is None else str(x) for x in column]


NAMES = (
    "a\rb",
    "a\nb",
    "a\r\nb",
    "a,b",
    'a"b',
    "a\x85b",
    "a\u2028b",
    "a\x0bb",
    "b\r",
    "b\n",
    "a;b",
)


def test_row_of_a_csv_file_stays_one_whatever_a_name_holds(tmp_path: Path) -> None:
    sequence = tb.Sequence([launch(name=name) for name in NAMES])
    tb.show.to_csv(sequence, tmp_path / "x.csv")
    with open(tmp_path / "x.csv", encoding="utf-8", newline="") as file:
        assert [row["name"] for row in csv.DictReader(file)] == [*NAMES]
    pandas = pytest.importorskip("pandas")
    assert pandas.read_csv(tmp_path / "x.csv")["name"].tolist() == [*NAMES]


@pytest.mark.parametrize("value", [tb.forced_even("h200", launch()), report().counterexamples[0]])
def test_value_without_a_table_says_so(value: Any, tmp_path: Path) -> None:
    words = f"{type(value).__name__} has no table"
    for ask in (value.to_pandas, lambda: tb.show.to_arrow(value)):
        with pytest.raises(TypeError, match=words):
            ask()
    with pytest.raises(TypeError, match=words):
        tb.show.to_csv(value, tmp_path / "x.csv")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("library", "module", "ask"),
    [
        ("pandas", "pandas", lambda: TIMED.to_pandas()),
        ("pyarrow", "pyarrow", lambda: tb.show.to_arrow(TIMED)),
        ("perfetto", "tbsched.views.files.tracks", lambda: _perfetto()),
    ],
)
def test_library_that_is_missing_is_named(
    monkeypatch: pytest.MonkeyPatch, library: str, module: str, ask: Callable[[], object]
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=f"need {library}: pip install {library}"):
        ask()


def _perfetto() -> None:
    tb.show.to_perfetto(tb.predict(TIMED, gpu()), "/dev/null")


def test_half_of_a_surrogate_pair_is_a_question_mark(tmp_path: Path) -> None:
    kernel = tb.Launch(2, 64, 32, duration=1e-5, name="a\ud800", first_use=True)
    trace = tb.predict(tb.Sequence([kernel]), "h200", host=0.0)
    pandas = pytest.importorskip("pandas")
    kept = "a\ud800" if pandas.__version__ < "3" else "a?"  # pandas 2 keeps any string
    assert set(trace.to_pandas()["name"]) == {kept}
    pytest.importorskip("pyarrow")
    assert tb.show.to_arrow(trace)["name"].to_pylist() == ["a?", "a?"]
    tb.show.to_parquet(trace, tmp_path / "a.parquet")


def test_different_kernels_are_never_shown_by_one_name(tmp_path: Path) -> None:
    """Names of templates begin and end alike, and are cut."""
    begin, end = (
        "void at::native::vectorized_elementwise_kernel<4, at::",
        "std::array<char*, 2ul> >",
    )
    names = [f"{begin}{what}Functor, {end * 3}" for what in ("Add", "Mul", "Mul, int, int")]
    launches = [tb.Launch(132, 1024, 32, stream=0, duration=1e-4, name=name) for name in names]
    trace = tb.predict(tb.Sequence(launches), "h200", host=0.0)
    shown = [numbered(trace.sequence, k).partition(" (")[2] for k in range(3)]
    assert len(set(shown)) == 3
    tb.save_traces(tmp_path / "run.jsonl", [trace])
    assert len(set(names_of(tb.load_program(tmp_path / "run.jsonl")).values())) == 3


@pytest.mark.parametrize("width", [60, 80, 120])
def test_what_is_printed_fits_the_terminal(width: int) -> None:
    """Tables are cut, their headings broken, and sentences wrapped; no word is lost."""
    words = (
        "- Of every kernel: assumed no local memory, no clusters, and a carveout of the driver's"
    )
    table = table_of(
        ("SMs", "a heading of many words", "what refuses one more"),
        [
            (str(k), "7", f"{k}: too few registers in the processing block whose turn it is")
            for k in range(9)
        ],
        left=(2,),
    )
    lines = written([words, table, f"  {words}"], width).split("\n")
    assert max(map(len, lines)) <= width
    text = " ".join(" ".join(lines).split())
    assert text.startswith(words)
    assert text.endswith(words)
    above = [line for line in lines if "too few" not in line and "Of every" not in line]
    assert {"a", "heading", "of", "many", "words"} <= set(" ".join(above).split())
    assert written([words, table]) == f"{words}\n{table.text()}"


def test_rows_become_text_piece_by_piece(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    trace = tb.predict(tb.Sequence([launch(blocks=20, name="=k"), launch(blocks=5)]), "h200")
    tb.show.to_csv(trace, tmp_path / "whole.csv")
    cells = tables._cells
    lengths: list[int] = []
    monkeypatch.setattr(tables, "_PIECE", 10)
    monkeypatch.setattr(tables, "_cells", lambda part: lengths.append(len(part)) or cells(part))
    tb.show.to_csv(trace, tmp_path / "pieces.csv")
    assert {*lengths} == {10, 5}  # a table of many rows would take much memory as Python's values
    assert (tmp_path / "pieces.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()


def test_a_negative_time_has_the_unit_of_a_positive_one() -> None:
    times = (0.011, -0.011, -2.5e-6, -3.0, 0.0)
    words = ["11 ms", "-11 ms", "-2.5 us", "-3 s", "0 ns"]
    assert [seconds_words(time) for time in times] == words
