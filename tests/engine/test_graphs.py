"""In which order, how soon and where the nodes of a CUDA graph follow each other, rule by rule.

Each case is the smallest of its kind (traces ways/graphs-*; docs/explanation/graphs.md).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest

import tbsched as tb
from tbsched.hardware.catalogue import device
from tbsched.traces.timeline import span_of

H200 = device("h200")
US = 1e-6


def graph(durations: Iterable[float], edges: Iterable[tuple[int, int]]) -> tb.Graph:
    """Nodes of one block."""
    return tb.Graph([tb.Launch(1, 32, 16, duration=us * US) for us in durations], edges)


def starts(found: tb.Trace) -> list[int]:
    return [span_of(number, placed)[0] for number, placed in enumerate(found)]


def ends(found: tb.Trace) -> list[int]:
    return [span_of(number, placed)[1] for number, placed in enumerate(found)]


def order(found: tb.Trace, nodes: Iterable[int]) -> list[int]:
    """The nodes as they start."""
    return sorted(nodes, key=starts(found).__getitem__)


def run(given: tb.Graph) -> tb.Trace:
    return tb.predict(tb.Sequence([given.launch()]), "h200")


def fan(count: int) -> tb.Graph:
    """Node 0 and `count` that wait for it."""
    return graph([50] + count * [60], [(0, k + 1) for k in range(count)])


def test_up_to_six_dependents_start_in_order_and_more_in_reverse() -> None:
    assert order(run(fan(6)), range(1, 7)) == [1, 2, 3, 4, 5, 6]
    assert order(run(fan(7)), range(1, 8)) == [7, 6, 5, 4, 3, 2, 1]


def test_roots_start_in_order_one_after_the_other() -> None:
    found = starts(run(graph([50, 50, 50], [])))
    assert found[1] - found[0] == found[2] - found[1] == H200.node_interval_ns


def test_the_hosts_next_call_comes_after_the_last_root() -> None:
    launch = tb.Launch(1, 32, 16, duration=50 * US, stream=1)
    found = tb.predict(tb.Sequence([graph([50, 50, 50], []).launch(), launch]), "h200")
    assert starts(found)[3] == 2 * H200.node_interval_ns + H200.launch_latency_ns


def test_calls_of_other_threads_come_after_the_last_root() -> None:
    # With one queue the other graph would else stand before the root for whose end it waits.
    one = replace(H200, hardware_queues=1)
    two, other = graph([50, 50], []).launch(), graph([50], []).launch(host=1)
    found = starts(tb.predict(tb.Sequence([two, other]), one))
    assert found[1] == found[0] + H200.node_interval_ns
    assert found[2] > found[1]


def test_a_graph_comes_after_launches_that_waited_for_the_graph_before() -> None:
    # Else the legacy graph would stand before the legacy launch that it waits for.
    first, launch = graph([50, 50, 50], []).launch(), tb.Launch(
        1, 32, 16, stream="legacy", duration=50 * US, host=1
    )  # fmt: skip
    last = graph([50], []).launch(stream="legacy", host=2)
    found = tb.predict(tb.Sequence([first, launch, last]), H200)
    assert starts(found)[4] > ends(found)[3] > ends(found)[2]


@pytest.mark.parametrize("streams", [(0, 0, 0), (0, 1, 2)])
def test_roots_of_later_calls_do_not_keep_those_of_earlier_ones_from_the_queues(
    streams: tuple[int, ...],
) -> None:
    given = graph([50, 50, 50, 50], [])
    found = tb.predict(tb.Sequence([given.launch(stream=stream) for stream in streams]), "h200")
    first, second, third = (starts(found)[k : k + 4] for k in (0, 4, 8))
    assert max(first) < min(second)
    assert max(second) < min(third)
    assert min(second) > ends(found)[3] > ends(found)[0] > starts(found)[3]


def test_the_first_root_is_told_last_in_another_stream() -> None:
    given = graph([50, 50], [])
    for stream, order in ((0, [0, 1]), (1, [1, 0])):
        found = tb.predict(tb.Sequence([given.launch(stream=0), given.launch(stream=stream)]), H200)
        assert np.argsort(starts(found)[2:]).tolist() == order


def test_a_dependent_of_one_branch_starts_sooner_than_a_join() -> None:
    direct = run(graph([50, 60, 70, 50], [(0, 1), (0, 2), (1, 3), (2, 3)]))
    join = run(graph([60, 70, 50], [(0, 2), (1, 2)]))
    assert starts(direct)[3] - ends(direct)[2] == H200.exit_latency_ns + H200.node_latency_ns
    assert starts(join)[2] - ends(join)[1] == (
        2 * (H200.exit_latency_ns + H200.node_latency_ns) + H200.relay_ns
    )


def test_a_join_belongs_to_the_branch_of_the_last_root() -> None:
    # 2 joins 0 and 1. What waits for it and for 1 is in one branch; with 0 it is in two.
    of_last = run(graph([50, 60, 50, 50], [(0, 2), (1, 2), (1, 3), (2, 3)]))
    of_first = run(graph([50, 60, 50, 50], [(0, 2), (1, 2), (0, 3), (2, 3)]))
    gaps = [starts(found)[3] - ends(found)[2] for found in (of_last, of_first)]
    assert gaps[1] - gaps[0] == H200.exit_latency_ns + H200.node_latency_ns + H200.relay_ns


def test_joins_start_in_reverse_order() -> None:
    given = graph([60, 10, 50, 50, 50], [(a, b) for a in (0, 1) for b in (2, 3, 4)])
    assert order(run(given), (2, 3, 4)) == [4, 3, 2]


def test_the_last_dependent_takes_the_place_of_a_join() -> None:
    # Node 2 is a join: 4 moves before 3.
    given = graph([60, 10, 50, 50, 50], [(0, 2), (0, 3), (0, 4), (1, 2)])
    assert order(run(given), (2, 3, 4)) == [4, 3, 2]


def test_a_relay_takes_room_but_nobody_sees_it() -> None:
    # A relay of node 1 goes to the SM that 1 has left, and 2 to another one.
    program = tb.Sequence([graph([70, 60, 50, 50], [(1, 2), (0, 3), (1, 3)]).launch()])
    found = tb.predict(program, "h200")
    assert found[2].smid[0] != found[1].smid[0]
    assert len(found.timeline) == 4
    assert found.waits is not None
    assert {*found.waits["launch"]} | {*found.waits["behind"]} <= {-1, 0, 1, 2, 3}
    alone = tb.predict(tb.Sequence([graph([70, 60, 50], [(1, 2)]).launch()]), "h200")
    assert alone[2].smid[0] == alone[1].smid[0]
    relayed_at = ends(found)[1] + H200.exit_latency_ns + H200.node_latency_ns + 100
    assert {*found.residents(relayed_at / 1e9).rows["launch"].tolist()} == {0}


@pytest.mark.parametrize("busy", [False, True])
def test_beside_a_relay_nothing_enters_an_sm_that_was_idle(busy: bool) -> None:
    """On an idle H200 its SM got the first block 0.5 to 0.8 us later; on a busy one as usual."""
    kernel = tb.Launch(1, 32, 16, 8, carveout=100, duration=60 * US)
    wide = replace(kernel, blocks=528, threads=256)
    given = tb.Graph(
        [kernel, replace(kernel, duration=10 * US), wide, kernel], [(0, 2), (0, 3), (1, 3)]
    )
    full = replace(wide, blocks=132, threads=1024, stream=5, duration=300 * US)
    found = tb.predict(tb.Sequence([*([full] if busy else []), given.launch()]), "h200")
    node = found[int(busy) + 2]
    assert (len(set(node.smid.tolist())) == 132) == busy


def test_a_relay_comes_before_more_urgent_nodes() -> None:
    kernel, urgent = (tb.Launch(1, 32, 16, priority=p, duration=5e-5) for p in (0, -5))
    long = tb.Launch(1, 32, 16, duration=7e-5)
    given = tb.Graph([long, kernel, urgent, kernel], [(1, 2), (0, 3), (1, 3)])
    found = tb.predict(tb.Sequence([given.launch()]), "h200")
    assert found[2].smid[0] != found[1].smid[0]


@pytest.mark.parametrize("stream", [0, 1])
def test_a_graph_waits_for_its_own_launch_before(stream: int) -> None:
    given = graph([50, 60], [])
    found = tb.predict(tb.Sequence([given.launch(), given.launch(stream=stream)]), "h200")
    other = tb.predict(tb.Sequence([given.launch(), graph([50, 61], []).launch(stream=1)]), "h200")
    assert starts(found)[2] > ends(found)[1]
    assert starts(other)[2] < ends(other)[0]


def test_a_graph_that_is_issued_when_its_launch_before_is_over_does_not_wait_for_that() -> None:
    spec = replace(
        H200, graph_latency_ns=0, completion_latency_ns=0, exit_latency_ns=0, event_latency_ns=100
    )
    given = graph([1], [])
    found = tb.predict(
        tb.Sequence([given.launch(0), given.launch(1)]), spec, issue_times=[0, 1 * US]
    )
    assert starts(found) == [0, 1000]
    assert "Launch 1 did not wait" in found.explain(1)


def behind_a_memset(child: int) -> list[int]:
    """Two roots and a kernel behind a small memset, in the order of their starts; as numbered."""
    kernel = tb.Launch(1, 32, 16, duration=50 * US)
    nodes = [tb.Memset(4), kernel, kernel, kernel]
    return order(run(tb.Graph(nodes, [(0, child)])), range(3))


def test_what_follows_a_memset_starts_once_the_driver_has_issued_it() -> None:
    assert behind_a_memset(child=1) == [0, 1, 2]
    assert behind_a_memset(child=3) == [0, 1, 2]


@pytest.mark.parametrize("slow", [tb.HostFunction(0), tb.Copy(4096, "h2d")], ids=["host", "copy"])
def test_a_slow_node_takes_the_time_until_the_next_root(slow: tb.Event) -> None:
    kernel = tb.Launch(1, 32, 16, duration=50 * US)

    def ahead(node: tb.Event) -> int:
        """Returns how much sooner a kernel behind a memset starts than a root issued at 20 us."""
        nodes = [tb.Memset(1 << 18), kernel, node, kernel]
        program = tb.Sequence([tb.Graph(nodes, [(0, 1)]).launch()])
        behind, root = tb.predict(program, H200, issue_times=[0, 20 * US])
        return span_of(1, root)[0] - span_of(0, behind)[0]

    assert ahead(slow) > 10_000
    assert ahead(tb.Memset(1 << 18)) < 10_000


def test_no_relay_starts_a_copy() -> None:
    """It would take an SM before the kernel that follows the same node."""
    kernel = tb.Launch(1, 32, 16, duration=50 * US)
    nodes = [kernel, tb.Launch(1, 32, 16, duration=20 * US), tb.Copy(4, "h2d"), kernel]
    joined = run(tb.Graph(nodes, [(0, 2), (1, 2), (0, 3)]))
    alone = run(tb.Graph(nodes, [(1, 2), (0, 3)]))
    assert joined[2].smid == alone[2].smid


def test_core_refuses_a_graph_without_nodes() -> None:
    empty = tb.Graph([tb.Launch(1, 32, 16, duration=US)])
    sequence = tb.Sequence([tb.GraphLaunch(empty, stream=0)])
    object.__setattr__(empty, "nodes", ())  # as C++ users can have it
    with pytest.raises(ValueError, match="no nodes"):
        tb.predict(sequence, H200)
