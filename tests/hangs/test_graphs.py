"""Why a program hangs whose graphs have not ended."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tbsched as tb
from hangs.conftest import RECORDED
from hangs.test_hang import ALIVE, captured, issued
from helpers import examples
from tbsched.hangs.graphs import graph_of
from tbsched.hangs.unfinished import read_unfinished

OLD = {"whole": False}
# Programs that ran on one H200 or two: why they hang by construction, and the captures of their
# ranks, which name the code of kernels as code.txt does.
GRAPHS = [
    json.loads(line)
    for line in lzma.open(RECORDED / "graphs.jsonl.xz", "rt", encoding="utf-8")  # noqa: SIM115
]


def kernel(name: str, blocks: int = 1, shared: int = 0, **more: object) -> dict[str, Any]:
    return {
        "kind": "kernel", "name": name, "grid": [blocks, 1, 1], "block": [64, 1, 1],
        "dynamic_shared_memory": shared, "registers": 32, "static_shared_memory": 0,
        "local_memory": 0, "cooperative": False, "programmatic": False, **more,
    }  # fmt: skip


def graph(number: int, nodes: list[dict[str, Any]], *edges: int, **more: object) -> list[Any]:
    lines = [{"graph_node": at, "of": number, **node} for at, node in enumerate(nodes)]
    whole = {"graph": number, "executable": 5, "nodes": len(nodes), "edges": [*edges]}
    return [*lines, whole | more]


def replay(call: int, stream: int, number: int, **more: object) -> dict[str, Any]:
    return {
        "issued": call, "what": "graph", "function": "cuGraphLaunch", "thread": 0,
        "system_thread": 1, "at": 1000 * call, "context": 1, "stream": stream, "graph": number,
        "changed": False, "before": [0, 0, 0], **more,
    }  # fmt: skip


def of(place: Path, *lines: Any) -> tb.HangReport:
    return tb.hang(captured(place / "run.jsonl", *lines, ALIVE))


def test_kernels_of_a_graph_that_find_no_room(tmp_path: Path) -> None:
    halves = graph(0, [kernel("half", 132, 120 << 10), kernel("half", 132, 120 << 10)])
    found = of(tmp_path, *halves, replay(1, 13, 0))
    assert (found.kind, found.stranded[0].missing) == ("room", 132)
    assert found.stranded[0].cause == "shared_memory"


def test_kernels_of_two_graphs_that_find_no_room(tmp_path: Path) -> None:
    graphs = [*graph(0, [kernel("a", 66, 150 << 10)]), *graph(1, [kernel("b", 132, 150 << 10)])]
    found = of(tmp_path, *graphs, replay(1, 13, 0), replay(2, 14, 1))
    assert (found.kind, found.stranded[0].name, found.stranded[0].missing) == ("room", "b", 66)


def test_kernel_behind_another_one_in_its_graph_is_in_the_order_of_the_program(
    tmp_path: Path,
) -> None:
    found = of(tmp_path, *graph(0, [kernel("left"), kernel("right")], 0, 1), replay(1, 13, 0))
    assert found.kind == "not_known"
    assert [(row.name, row.cause, row.behind) for row in found.stranded] == [
        ("right", "node", "left")
    ]


def test_child_graph_is_taken_apart(tmp_path: Path) -> None:
    nodes = [kernel("before"), {"kind": "graph"}, kernel("in", 4), kernel("after")]
    nodes[2] |= {"parent": 1, "body": 0}
    first = of(tmp_path, *graph(0, nodes, 0, 1, 1, 3), replay(1, 13, 0))
    assert [(row.name, row.behind) for row in first.stranded] == [
        ("in", "before"), ("after", "in"),
    ]  # fmt: skip


def test_host_function_of_a_graph(tmp_path: Path) -> None:
    nodes = [{"kind": "empty"}, {"kind": "host_function"}, kernel("after")]
    found = of(tmp_path, *graph(0, nodes, 0, 1, 1, 2), replay(1, 13, 0))
    assert found.kind == "host"
    assert "function of the host" in found.reason


def test_host_function_behind_a_kernel_of_its_graph_is_not_reached(tmp_path: Path) -> None:
    nodes = [kernel("before"), {"kind": "host_function"}]
    assert of(tmp_path, *graph(0, nodes, 0, 1), replay(1, 13, 0)).kind == "not_known"
    assert of(tmp_path, *graph(0, nodes), replay(1, 13, 0)).kind == "host"


def test_conditional_node_alone_is_not_known(tmp_path: Path) -> None:
    found = of(tmp_path, *graph(0, [{"kind": "conditional"}]), replay(1, 13, 0))
    assert found.kind == "not_known"


def test_graph_that_was_made_before_the_capture_is_not_known(tmp_path: Path) -> None:
    launch = replay(1, 13, 0)
    del launch["graph"]
    assert of(tmp_path, launch).kind == "not_known"


def test_what_was_changed_and_not_told_is_assumed(tmp_path: Path) -> None:
    lines = graph(0, [kernel("k")])
    assert not any("changed" in each for each in of(tmp_path, *lines, replay(1, 13, 0)).unseen)
    changed = of(tmp_path, *lines, replay(1, 13, 0, changed=True))
    assert any("changed in the graph of call 1" in each for each in changed.unseen)
    half = of(tmp_path, *graph(0, [kernel("k")], **OLD), replay(1, 13, 0))
    assert any("All nodes and edges of the graph of call 1" in each for each in half.unseen)


def test_order_of_ranks_whose_collectives_are_in_graphs(tmp_path: Path) -> None:
    graphs = [*graph(0, [kernel("ncclDevKernel_A")]), *graph(1, [kernel("ncclDevKernel_B")])]
    ranks = []
    for rank, (first, second) in enumerate(((0, 1), (1, 0))):
        calls = (replay(1, 13, first, before=[7]), replay(2, 13, second, before=[7]))
        ranks.append(captured(tmp_path / f"r{rank}.jsonl", *graphs, *calls, ALIVE, process=rank))
    assert tb.hang(*ranks).kind == "order_of_ranks"
    assert tb.hang(ranks[0], ranks[0]).kind != "order_of_ranks"


def test_kernels_of_a_graph_are_counted_from_those_before_it(tmp_path: Path) -> None:
    nodes = [kernel("a"), kernel("b"), kernel("a")]
    lines = (*graph(0, nodes), replay(1, 13, 0, before=[5, 9]), issued(2, 14, "a", before=7))
    found = read_unfinished(captured(tmp_path / "run.jsonl", *lines, ALIVE)).operations
    assert [(each.key, each.launches_before, each.is_first) for each in found] == [
        ((1, 0), 5, True), ((1, 1), 9, True), ((1, 2), 6, False), ((2, -1), 7, False),
    ]  # fmt: skip


@pytest.mark.parametrize("edges", [[0, -1], [0, True], ["a", 0], [0]])
def test_edges_that_cannot_be_are_refused(tmp_path: Path, edges: list[object]) -> None:
    lines = graph(0, [kernel("k")], edges=edges)
    with pytest.raises(ValueError, match=r"run\.jsonl.*edges: "):
        read_unfinished(captured(tmp_path / "run.jsonl", *lines))


@st.composite
def _graphs(draw: st.DrawFn) -> tuple[int, list[tuple[int, int]], list[int]]:
    count = draw(st.integers(1, 8))
    pairs = [(a, b) for b in range(count) for a in range(b)]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    return count, edges, sorted(draw(st.sets(st.integers(0, count - 1))))


@given(_graphs())
@settings(max_examples=examples(200))
def test_edges_between_some_nodes_keep_their_order(
    given: tuple[int, list[tuple[int, int]], list[int]],
) -> None:
    """Of kept nodes, one waits for another one if and only if it did before."""
    count, edges, kept = given
    ends = [end for edge in edges for end in edge]
    whole = graph_of({"nodes": count, "edges": ends}, {k: {"kind": "empty"} for k in range(count)})
    between = whole.edges(kept)
    ends = [end for edge in between for end in edge]
    left = graph_of(
        {"nodes": len(kept), "edges": ends}, {k: {"kind": "empty"} for k in range(len(kept))}
    )
    for a, first in enumerate(kept):
        for b, second in enumerate(kept):
            assert left.waits_for(b, a) == whole.waits_for(second, first)


@pytest.mark.parametrize("program", GRAPHS, ids=lambda each: str(each["name"]))
def test_kind_of_a_recorded_program(
    program: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TBSCHED_NVDISASM", str(Path(__file__).with_name("fake_nvdisasm.py")))
    paths = []
    for number, lines in enumerate(program["ranks"]):
        paths.append(tmp_path / f"rank{number}.jsonl")
        paths[-1].write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")
    found = tb.hang(*paths)
    assert found.kind == program["kind"], found.text
    if found.kind == "room":
        row = found.stranded[0]
        assert row.name.startswith(program["launch"])
        assert (row.missing, row.blocks) == (program["missing"], program["blocks"])


def test_recorded_programs_are_all_there() -> None:
    kinds = {each["kind"] for each in GRAPHS}
    assert kinds == {"room", "host", "loading", "not_hanging", "order_of_ranks"}
    assert len(GRAPHS) == 8
