"""What a capture writes of the nodes of a graph that has not ended, as the fake CUPTI plays it."""

from __future__ import annotations

from pathlib import Path

import pytest

from capture.conftest import Played
from capture.test_unfinished import launch, of, played
from tbsched.hangs.unfinished import read_unfinished

HOST, CHILD, WAIT_EVENT = 3, 4, 6  # as of CUgraphNodeType


def kernel(graph: int, node: int, name: str = "k", grid: int = 40, block: int = 256) -> str:
    what = f'wide({graph}), wide({node}), "{name}", {grid}, {block}, 512, False'
    return f'gpu.play("kernel_node", {what})\n'


def node(graph: int, number: int, kind: int, other: int = 0) -> str:
    return f'gpu.play("node", wide({graph}), wide({number}), {kind}, wide({other}))\n'


def edge(graph: int, before: int, after: int, programmatic: bool = False) -> str:
    return f'gpu.play("graph_edge", wide({graph}), wide({before}), wide({after}), {programmatic})\n'


def instantiate(executable: int, graph: int, result: int = 0) -> str:
    return f'gpu.play("instantiate", wide({executable}), wide({graph}), {result})\n'


def replay(call: int, executable: int = 5, stream: int = 13) -> str:
    return f'gpu.play("graph_launch", {call}, wide({executable}), wide({stream}))\n'


def test_nodes_of_an_unfinished_graph_are_in_the_file(run: Played, tmp_path: Path) -> None:
    code = kernel(3, 31) + kernel(3, 32, "_Z3addPfi", 8) + node(3, 33, HOST)
    code += node(3, 34, WAIT_EVENT, 9)
    code += edge(3, 31, 32) + edge(3, 31, 33, True) + instantiate(5, 3) + replay(2)
    lines = played(run, tmp_path, code)
    (graph,) = of(lines, "graph")
    assert graph == {
        "graph": 0, "executable": 5, "nodes": 4, "edges": [0, 1], "programmatic_edges": [0, 2],
    }  # fmt: skip
    (issued,) = of(lines, "issued")
    assert (issued["what"], issued["graph"], issued["changed"]) == ("graph", 0, False)
    assert issued["before"] == [0, 0]
    first, second, third, fourth = of(lines, "graph_node")
    assert first == {
        "graph_node": 0, "of": 0, "kind": "kernel", "name": "k", "grid": [40, 1, 1],
        "block": [256, 1, 1], "dynamic_shared_memory": 512, "cooperative": False,
        "programmatic": False, "priority": 0,
    }  # fmt: skip
    assert (second["name"], second["grid"]) == ("add(float*, int)", [8, 1, 1])
    assert third == {"graph_node": 2, "of": 0, "kind": "host_function"}
    assert fourth == {"graph_node": 3, "of": 0, "kind": "wait", "event": 9}


def test_bodies_of_child_and_conditional_nodes_are_in_the_file(run: Played, tmp_path: Path) -> None:
    code = kernel(4, 41) + kernel(6, 61) + node(3, 31, CHILD, 4)
    code += 'gpu.play("conditional", wide(3), wide(32), wide(6))\n'
    code += edge(3, 31, 32) + instantiate(5, 3) + replay(2)
    lines = played(run, tmp_path, code)
    nodes = of(lines, "graph_node")
    assert [(each["kind"], each.get("parent"), each.get("body")) for each in nodes] == [
        ("graph", None, None), ("kernel", 0, 0), ("conditional", None, None), ("kernel", 2, 0),
    ]  # fmt: skip
    assert of(lines, "graph")[0]["edges"] == [0, 2]


def test_launches_of_a_graph_are_counted_by_their_kernels(run: Played, tmp_path: Path) -> None:
    code = kernel(3, 31) + kernel(3, 32) + kernel(3, 33, "_Z3addPfi") + instantiate(5, 3)
    code += launch(1, 14) + replay(2) + replay(3) + launch(4, 14)
    lines = of(played(run, tmp_path, code), "issued")
    assert [line["before"] for line in lines] == [0, [0, 1], [2, 2], 3]


def test_graph_that_was_updated_is_told_as_it_was_launched(run: Played, tmp_path: Path) -> None:
    code = kernel(3, 31) + kernel(4, 41, grid=7) + instantiate(5, 3) + replay(1)
    code += 'gpu.play("update", wide(5), wide(4))\n' + replay(2)
    code += 'gpu.play("set_node", wide(5), wide(41))\n' + replay(3)
    lines = played(run, tmp_path, code)
    launches = of(lines, "issued")
    assert [(line["graph"], line["changed"]) for line in launches] == [
        (0, False), (1, False), (1, True),
    ]  # fmt: skip
    assert [(line["of"], line["grid"]) for line in of(lines, "graph_node")] == [
        (0, [40, 1, 1]), (1, [7, 1, 1]),
    ]  # fmt: skip


@pytest.mark.parametrize("end", ['gpu.play("destroy", wide(5), 0)\n', ""])
def test_graph_that_is_not_known_has_no_nodes(run: Played, tmp_path: Path, end: str) -> None:
    """It was made before the capture, or could not be made; or another one has its handle."""
    code = kernel(3, 31) + instantiate(5, 3, 0 if end else 1) + end + replay(2)
    lines = played(run, tmp_path, code)
    assert "graph" not in of(lines, "issued")[0]
    assert not of(lines, "graph")


def test_graphs_that_end_are_not_told(run: Played, tmp_path: Path) -> None:
    code = kernel(3, 31) + instantiate(5, 3) + replay(2)
    code += 'gpu.play("issue_synchronize", 3, wide(13), 0)\n'
    lines = played(run, tmp_path, code)
    assert not of(lines, "graph")
    assert not of(lines, "graph_node")


def loading(place: Path) -> str:
    """The module of ``tbsched_probe`` is loaded."""
    launcher = pytest.importorskip("tbsched._launcher", reason="built without nvcc")
    (place / "a.cubin").write_bytes(launcher.patch(launcher.images()["sm_90"], 32, 64))
    return 'image = open("a.cubin", "rb").read()\ngpu.play("module", image, wide(len(image)))\n'


@pytest.mark.parametrize("count", [0, 2])
def test_arguments_of_a_node_are_not_read_as_those_of_another_kernel_of_its_name(
    run: Played, tmp_path: Path, count: int
) -> None:
    """A kernel of another module may take fewer: what is behind them is not there."""
    code = loading(tmp_path) + f'gpu.play("parameters", wide({count}))\n'
    code += kernel(3, 31, "tbsched_probe") + instantiate(5, 3) + replay(1)
    (node,) = of(played(run, tmp_path, code), "graph_node")
    assert "arguments" not in node


def test_code_of_a_node_is_in_the_file_though_it_is_loaded_later(
    run: Played, tmp_path: Path
) -> None:
    load = loading(tmp_path)
    graphs = [
        kernel(graph, 10 * graph + 1, "tbsched_probe") + instantiate(graph, graph)
        for graph in (3, 4)
    ]
    lines = played(run, tmp_path, graphs[0] + load + graphs[1] + replay(1, 3) + replay(2, 4))
    first, second = of(lines, "graph_node")
    assert (first["registers"], first["local_memory"], first["code"]) == (32, 64, 0)
    assert (second["registers"], second["code"]) == (32, 0)
    assert len(of(lines, "code")) == 1
    assert "arguments" not in first  # its parameters were not known
    assert second["arguments"][:1] == second["host_arguments"][:1] == [0]  # type: ignore[index]


def test_graph_that_gets_the_handle_of_a_destroyed_one_is_known(
    run: Played, tmp_path: Path
) -> None:
    """Another thread makes it before the call that destroys the first one has returned."""
    code = kernel(3, 31) + kernel(4, 41, grid=7) + instantiate(5, 3)
    code += 'gpu.play("destroy", wide(5), 1)\n' + instantiate(5, 4)
    code += 'gpu.play("destroy", wide(5), 2)\n' + replay(2)
    lines = played(run, tmp_path, code)
    assert [line["grid"] for line in of(lines, "graph_node")] == [[7, 1, 1]]


@pytest.mark.parametrize(("step", "found"), [("8000", 0), ("12000", 2)])
def test_time_that_it_takes_to_read_a_graph_is_told_of(
    run: Played, tmp_path: Path, step: str, found: int
) -> None:
    """The call is noted when it begins, and its graph is read when it returns."""
    run(kernel(3, 31) + instantiate(5, 3), FAKE_CUPTI_STEP=step)
    text = (tmp_path / "run.jsonl").read_text("utf-8")
    assert text.count('{"overhead":"callback"') == found


def ran(call: int, node: int) -> str:
    what = f'"k", {call}, 1, 13, wide(1), wide(2), 2, 32, 16, wide({node}), 0'
    return f'gpu.play("kernel", {what})\n'


def test_graph_has_ended_with_its_last_node(run: Played, tmp_path: Path) -> None:
    code = kernel(3, 31) + kernel(3, 32) + instantiate(5, 3) + replay(1) + replay(2)
    code += ran(1, 71) + ran(1, 72) + ran(2, 71)
    lines = played(run, tmp_path, code)
    assert [line["issued"] for line in of(lines, "issued")] == [2]
    assert [each.key for each in read_unfinished(tmp_path / "run.jsonl").operations] == [
        (2, 0), (2, 1),
    ]  # fmt: skip


def test_graph_whose_nodes_have_no_records_may_not_have_ended(run: Played, tmp_path: Path) -> None:
    code = launch(1) + kernel(3, 31) + node(3, 32, HOST) + instantiate(5, 3) + replay(2)
    lines = played(run, tmp_path, code + ran(2, 71))
    assert [line["issued"] for line in of(lines, "issued")] == [2]


def test_work_before_an_event_ends_with_the_first_node_of_a_graph_that_waited_for_it(
    run: Played, tmp_path: Path
) -> None:
    code = kernel(3, 31) + kernel(3, 32) + instantiate(5, 3) + launch(1, 14)
    code += 'gpu.play("issue_record", 2, wide(14), wide(900))\n'
    code += 'gpu.play("issue_wait", 3, wide(13), wide(900))\n'
    code += replay(4) + "import time; time.sleep(1.2)\n" + ran(4, 71)
    lines = played(run, tmp_path, code)
    assert {line["ended"] for line in of(lines, "ended")} == {1, 2, 3}
    left = read_unfinished(tmp_path / "run.jsonl").operations
    assert {each.call for each in left} == {4}
