"""Values are shown by functions that are looked up by the name of their class."""

from __future__ import annotations

import dataclasses
import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import tbsched as tb
from helpers import ROOT, asks_for, gpu, launch
from tbsched import views
from tbsched.views.layout.lanes import spans_by_stream
from tbsched.views.tables import render, table_of
from views.gallery import graph, ways

TIMED = tb.Sequence([launch(4, duration=1e-3), launch(4, stream=0, duration=1e-3)])
HELD = tb.Sequence([launch(4)])
WAITS = tb.Sequence([launch(300, 8), launch(1, 32, name="[a]")])


@pytest.mark.parametrize("view", ["text", "short", "html", "data"])
@pytest.mark.parametrize("name", views.SHOWN)
def test_view_is_where_the_table_says(name: str, view: str) -> None:
    file, word = views.SHOWN[name]
    module = importlib.import_module(f"tbsched.views.{file}")
    assert callable(getattr(module, f"{word}_{view}"))


@pytest.mark.parametrize("name", views.SHOWN)
def test_gallery_has_a_picture_of_it(name: str) -> None:
    """``make pictures`` draws it from the code on the page."""
    _, word = views.SHOWN[name]
    picture = f"figures/gallery/{word.replace('_', '-')}.png"
    if name == "Trace":
        picture = "figures/gallery/prediction.png"
    assert f"(../{picture})" in (ROOT / "docs/reference/gallery.md").read_text("utf-8")
    assert (ROOT / "docs" / picture).stat().st_size > 2000


@pytest.mark.parametrize(
    ("value", "begin"),
    [
        (lambda: tb.predict(HELD, gpu()), "NVIDIA GeForce RTX 3090, 1 SMs, policy ampere\n"),
        (lambda: tb.predict(TIMED, gpu()), "NVIDIA GeForce RTX 3090, 1 SMs, policy ampere\n"),
        (lambda: tb.compare(*[tb.predict(HELD, gpu())] * 2), "model rtx3090/ampere and model "),
        (lambda: tb.compare_times(*[tb.predict(TIMED, gpu())] * 2), "100.00 % of 1 pairs of laun"),
        (lambda: tb.best_order(TIMED.launches, gpu()), "order 0, 1: 1 ms, the best of all orders"),
        (lambda: tb.what_if(TIMED, gpu()), "change "),
        (lambda: tb.forced_even("rtx3090", launch()), "even: there is one block"),
        (lambda: tb.launch_configs("rtx3090", tb.Kernel(82 * 64, 16)), "rtx3090: "),
    ],
)
def test_value_prints_its_view(value: Callable[[], object], begin: str) -> None:
    shown = value()
    assert str(shown) == views.text(shown)
    assert str(shown).startswith(begin)


def test_clusters_that_need_an_attribute_are_shown_as_such() -> None:
    for cluster, words in ((8, "cluster 8"), (16, "cluster 16 (non-portable)")):
        trace = tb.predict(tb.Sequence([tb.Launch(16, 64, 16, cluster=cluster)]), "h200")
        assert f", {words}  " in str(trace)


def test_text_is_written_and_not_displayed_in_a_notebook(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    diff = tb.compare(tb.predict(WAITS, "h200", "first_fit"), tb.predict(WAITS, "h200"))
    values = [
        tb.predict(WAITS, gpu()), tb.predict(TIMED, gpu()), diff, tb.what_if(TIMED, gpu()),
        tb.launch_configs("rtx3090", tb.Kernel(82 * 64, 16)),
    ]  # fmt: skip
    before = [str(value) for value in values]
    assert all(text.count("\n") > 3 for text in before)
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    assert [f"{value}" for value in values] == before
    assert capsys.readouterr().out == ""


def test_campaign_in_a_notebook_without_widgets_shows_no_bar(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    assert tb.fuzz("rtx3090", "rtx3090", max_examples=50, seed=1, progress=True).examples == 50
    assert capsys.readouterr().err.strip() == "fuzz: seed 1"


def test_table_is_not_cut() -> None:
    name = "a" * 300
    rows = [("1", name, "[b]"), ("", "é", "界")]
    lines = render(table_of(("n", "wide", "w"), rows, left=(1,))).splitlines()
    assert lines == [f"n  wide{' ' * 300}w", f"1  {name}  [b]", f"   é{' ' * 302}界"]


LARGER = [asks_for(8), asks_for(100)]


@pytest.mark.parametrize(
    ("spec", "policy", "events", "words"),
    [
        (gpu(), None, LARGER, "the TPC's shared-memory configuration does not suit"),
        (gpu(base="h200"), None, LARGER, "the SM's shared-memory configuration does not suit"),
        (gpu(), None, [launch(17, 8)], "no warp slot is free in the processing block whose"),
        (gpu(strict_round_robin=False), None, [launch(17, 8)], "too few warp slots are free"),
        (gpu(), "most_room", [launch(17, 8)], "too few warp slots are free"),
        (gpu(), None, [launch(9, 8, 255)], "too few registers in the processing block whose"),
        (gpu(), "first_fit", [launch(9, 8, 255)], "too few registers are free"),
    ],
)
def test_causes_are_in_words_of_the_devices_own_mechanism(
    spec: tb.DeviceSpec, policy: str | None, events: list[tb.Launch], words: str
) -> None:
    trace = tb.predict(tb.Sequence(events), spec, policy)
    assert words in str(trace)


def test_comparison_has_the_words_of_each_device() -> None:
    seq = tb.Sequence([launch(17, 8)])
    specs = (gpu(), gpu(strict_round_robin=False, blocks_per_sm=1))
    text = str(tb.compare(*(tb.predict(seq, spec) for spec in specs)))
    assert "a: blocks wait because no warp slot is free in the processing block" in text
    assert "b: blocks wait because no thread block slot is free" in text


def test_wait_beside_no_running_block_is_for_those_that_leave() -> None:
    trace = tb.predict(TIMED, gpu())
    waits = np.zeros(1, trace.waits.dtype)  # type: ignore[union-attr]
    waits["begin_ns"], waits["end_ns"], waits["cause"] = 10**9, 10**9 + 1, "configuration"
    text = dataclasses.replace(trace, waits=waits, wait_limiters=None).explain(0)
    assert "for TPCs with another shared-memory configuration than blocks that were leaving" in text


def test_launches_wait_for_what_has_a_configuration_of_its_own() -> None:
    timed = tb.Sequence([dataclasses.replace(one, duration=1e-3) for one in LARGER])
    for base, unit in (("rtx3090", "TPC"), ("h200", "SM")):
        text = str(tb.predict(timed, gpu(base=base)))
        assert f"for {unit}s with another shared-memory configuration than launch 0 set" in text


def test_copies_have_rows_and_numbers_of_their_own() -> None:
    kernel = launch(4, duration=1e-5)
    nodes = [kernel, tb.Copy(1 << 20, "h2d"), tb.Memset(12, duration=1e-6), kernel]
    copied = tb.Graph(nodes, [(0, 1), (1, 2), (2, 3), (0, 3), (1, 3)])
    rows = [" ".join(line.split()) for line in str(copied).splitlines()]
    assert rows[0] == "4 nodes, 5 edges"
    assert rows[3:5] == ["copy 0 1024 KB, h2d, after 0", "memset 1 12 B, 1 us, after copy 0"]
    assert rows[5].endswith("10 us, after 0, copy 0, memset 1")
    assert "memset" in copied._repr_html_()
    twice = tb.Sequence([copied.launch(), copied.launch(1)])
    assert "after copy 2" in str(twice)
    found = views.columns(twice)
    assert found["event"] == ["graph", "copy", "memset", "graph"] * 2
    assert found["launch"] == [0, None, None, 1, 2, None, None, 3]
    assert found["transfer"] == [None, 0, 1, None, None, 2, 3, None]
    assert found["bytes"][:4] == [None, 1 << 20, 12, None]
    assert found["kind"][:3] == [None, "h2d", None]
    assert found["after"][6:] == ["copy 2", "2, copy 2, memset 3"]
    assert twice.transfers == 2 * copied.transfers == 2 * (nodes[1], nodes[2])


def test_copies_of_a_prediction_have_their_times() -> None:
    program = tb.Sequence(
        [tb.Memset(64, stream=0), launch(4, stream=0, duration=1e-5), tb.Copy(1 << 20, "d2h")]
    )
    trace = tb.predict(program, "h200")
    rows = [" ".join(line.split()) for line in str(trace).splitlines()]
    start, end = (f"{time / 1e3:.4g} us" for time in trace.transfer_ns[1])  # type: ignore[index]
    assert f"copy 1 1024 KB, d2h {start} {end}" in rows
    assert any(row.startswith("memset 0 64 B, stream 0 ") for row in rows)
    many = tb.predict(tb.Sequence([tb.Memset(64)] * 60), "h200")
    assert "and 10 copies and memsets more" in str(many)


def test_order_that_only_moves_launches_among_other_calls_says_so() -> None:
    place = ROOT / "tests" / "profiles" / "h200" / "copies_pipeline.json.gz"
    found = tb.best_order(tb.load_program(place, fit=False), "h200")
    assert found.order == tuple(range(len(found.order)))
    assert found.makespan < found.given_makespan
    assert str(found).endswith("among other calls, in the same order")
    assert "in the same order" not in str(tb.best_order(TIMED.launches, gpu()))


def test_processes_show_their_turns() -> None:
    long, visit = (tb.Sequence([launch(8, duration=ms * 1e-3)]) for ms in (5, 1))
    found = tb.predict_processes([long, visit], "h200")
    rows = [" ".join(line.split()) for line in str(found).splitlines()]
    assert rows[0].startswith("2 processes, ")
    assert rows[1] == "process launches start end turns had the GPU"
    assert rows[3].startswith("1 1 launch, 8 blocks ")
    assert len(rows) == 6 + len(found.turns)
    assert f"<Processes: {rows[0]}>" == repr(found)
    assert "Turns" in found._repr_html_()
    assert found.to_pandas()["process"].tolist() == found.turns["process"].tolist()
    data = json.loads(json.dumps(views.data(found), allow_nan=False))
    assert (len(data["traces"]), len(data["turns"]), data["seen"]) == (2, len(found.turns), [])


@pytest.mark.parametrize("idle", [tb.Copy(1 << 20, "h2d"), tb.Synchronize()])
def test_process_that_never_has_a_turn_is_shown_beside_one_that_has(
    idle: tb.Copy | tb.Synchronize, tmp_path: Path
) -> None:
    busy, other = tb.Sequence([launch(8, duration=1e-4)]), tb.Sequence([idle])
    found = tb.predict_processes([busy, other], "h200")
    assert {*found.turns["process"].tolist()} == {0}
    rows = [" ".join(line.split()) for line in str(found).splitlines()]
    assert rows[2].startswith("0 1 launch, 8 blocks ")
    assert rows[3] == "1 0 launches, 0 blocks 0 ns 0 ns 0 0 ns"
    tb.show.to_html(found, tmp_path / "a.html")
    assert "had the GPU" in (tmp_path / "a.html").read_text("utf-8")


def test_clients_of_mps_have_no_turns() -> None:
    program = tb.Sequence([launch(8, duration=1e-3)])
    found = tb.predict_processes([program] * 3, "h200", mps=True)
    assert str(found).startswith("3 processes, clients of one MPS server, ")
    assert "turns" not in str(found)
    assert "Turns" not in found._repr_html_()
    assert len(found.to_pandas()) == 0


def test_process_without_launches_is_shown() -> None:
    idle = tb.Sequence([tb.Synchronize()])
    found = tb.predict_processes([idle, idle], "h200")
    assert found.makespan == 0
    assert str(found).startswith("2 processes, 0 ns on NVIDIA H200")
    assert "0 launches" in found._repr_html_()


def test_ways_to_launch_are_in_words() -> None:
    text = str(ways())
    for words in (
        "128 x 256, 32 regs, in 64 SMs, non-blocking stream 2, 200 us",
        "264 x 1024, 32 regs, cooperative, stream 4, 100 us",
        "stream 0, 100 us, triggers at 20 us\n",
        "stream 0, 100 us, dependent, waits for memory at 10 us, completion event 3\n",
        "3 launches, 206 blocks, in non-blocking stream 6\n",
        "8 x 128, 32 regs, 10 us, after 6, 7\n",
    ):
        assert words in text
    assert "10 us, after 0, 1" in str(graph())
    predicted = str(tb.predict(ways(), "h200"))
    for words in (
        "8 x 128, 32 regs, 10 us, node of graph 0, after 6, 7 ",
        "for room for all of its blocks at once, beside launch 6 (load)",
        "until each block of launch 0 (produce), before it in its stream, had triggered or left",
        "for the launch completion event of launch 1 (consume) (without",
        "for launch 8, of an earlier launch of its graph (a graph does not run beside itself)",
        "27.95 us held up behind launch 5 (sync), which is cooperative and waits for room for all",
        "held up behind a relay of launch 6 (load)",
    ):
        assert words in predicted
    assert str(tb.Partition((0, 1, 3, 5, 6, 7))) == "6 SMs\nSM 0-1, 3, 5-7"


def test_launch_that_waits_for_a_conditional_node_waits_for_no_launch() -> None:
    body = tb.Graph([tb.Launch(1, 32, 32, duration=1e-5, name=name) for name in "ab"])
    graph = tb.Graph([tb.Conditional(body)])
    trace = tb.predict(tb.Sequence([graph.launch(stream=0)]), "h200")
    assert trace.waits is not None
    assert trace.waits[["launch", "cause", "behind"]].tolist()[:2] == [
        (0, "node", -1),
        (1, "node", -1),
    ]
    assert all(
        "3.6 us for a conditional node of its graph to decide" in trace.explain(k) for k in (0, 1)
    )


def test_a_graph_would_wait_for_itself_in_any_stream() -> None:
    kernel = launch(duration=1e-5)
    twice, other = tb.Graph([kernel]), tb.Graph([kernel, kernel])
    program = tb.Sequence([twice.launch(), twice.launch(), other.launch()])
    trace = tb.predict(program, "h200")
    assert "for launch 0, before it in its stream (in another stream it would wait" in (
        trace.explain(1)
    )
    assert "for launch 1, before it in its stream (in another stream it would not" in (
        trace.explain(2)
    )


def test_nodes_are_in_the_row_of_their_stream() -> None:
    spans = spans_by_stream(tb.predict(ways(), "h200"))
    row_of = dict(zip(spans.launch.tolist(), spans.row.tolist(), strict=True))
    assert [spans.titles[row_of[number]] for number in (2, 3, 6, 8, 11)] == [
        "stream 1", "stream 2", "stream 5", "stream 5", "stream 6",
    ]  # fmt: skip


def test_what_nobody_shows_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match=r"views: Launch is not one of .*Trace"):
        views.text(launch())


def test_class_that_is_derived_is_shown_as_its_base() -> None:
    class Mine(tb.Trace):
        pass

    trace = tb.predict(HELD, gpu())
    mine = Mine(trace.sequence, trace.device, trace.placements)
    assert str(mine) == str(trace)


def test_page_of_a_clock_that_begins_before_zero() -> None:
    seq = tb.Sequence([tb.Launch(2, 64, 32, stream=k, duration=1e-5) for k in (0, 1)])
    trace = tb.predict(seq, "h200")
    placements = [
        dataclasses.replace(p, start_ns=p.start_ns - 20_000, end_ns=p.end_ns - 20_000)  # type: ignore[operator]
        for p in trace
    ]
    early = tb.Trace(seq, trace.device, tuple(placements))
    assert early._repr_html_().count("<svg") == trace._repr_html_().count("<svg")
