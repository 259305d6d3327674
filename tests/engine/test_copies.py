"""Copies and memsets in a CUDA graph: how long they take and which of them wait, rule by rule."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import tbsched as tb
from tbsched.traces.timeline import span_of

SOON = tb.Launch(1, 64, 32, duration=1e-5)
SPEC = tb.device("h200")
HOST_US = SPEC.node_copy_latency_ns / 1e3  # until a copy moves bytes
BULK = SPEC.host_copy_bandwidth * 1000  # bytes; they take a millisecond
Transfer = tb.Copy | tb.Memset


def starts_us(
    *nodes: tb.Launch | Transfer, edges: Any = (), spec: tb.DeviceSpec = SPEC
) -> list[float]:
    found = tb.predict(tb.Sequence([tb.Graph(nodes, edges).launch()]), spec)
    starts = [span_of(k, placement)[0] for k, placement in enumerate(found)]
    return [(start - min(starts)) / 1e3 for start in starts]


def took_us(transfer: Transfer) -> float:
    """Between two launches, without what lies between them if it takes no time."""
    chain = [(0, 1), (1, 2)]
    none = starts_us(SOON, tb.Memset(1, duration=0.0), SOON, edges=chain)
    return starts_us(SOON, transfer, SOON, edges=chain)[1] - none[1]


def side_by_side_us(*transfers: Transfer, spec: tb.DeviceSpec = SPEC) -> list[float]:
    """When the launches start that wait for transfers that a launch starts, all together."""
    many = len(transfers)
    nodes = [SOON, *transfers, *(SOON for _ in transfers)]
    edges = [(0, 1 + k) for k in range(many)] + [(1 + k, 1 + many + k) for k in range(many)]
    return starts_us(*nodes, edges=edges, spec=spec)[1:]


@pytest.mark.parametrize(
    ("transfer", "expected"),
    [
        (tb.Copy(BULK, "h2d"), 1000 + HOST_US),
        (tb.Copy(BULK, "d2h"), 1000 + HOST_US),
        (tb.Copy(1, "d2h"), HOST_US),
        (tb.Copy(1024, "h2d"), SPEC.small_copy_latency_ns / 1e3),
        (tb.Copy(1, "d2d"), (SPEC.device_copy_latency_ns + SPEC.exit_latency_ns) / 1e3),
        (tb.Memset(5000), (SPEC.memset_latency_ns + SPEC.exit_latency_ns) / 1e3),
        (tb.Memset(4096), SPEC.small_memset_latency_ns / 1e3),
        (tb.Copy(BULK, "h2d", duration=7e-6), 7 + HOST_US),
        (tb.Copy(1024, "h2d", duration=7e-6), 7),
        (tb.Copy(1, "d2d", duration=7e-6), 7 + SPEC.exit_latency_ns / 1e3),
        (tb.Memset(1, duration=7e-6), 7),
    ],
    ids=str,
)
def test_it_takes_a_latency_and_its_bytes_or_the_duration(
    transfer: Transfer, expected: float
) -> None:
    assert took_us(transfer) == pytest.approx(expected, abs=0.001)


@pytest.mark.parametrize("kind", ["h2d", "d2h"])
def test_copies_of_a_direction_move_their_bytes_one_after_the_other(kind: Any) -> None:
    gap = SPEC.host_copy_gap_ns / 1e3
    first, second = side_by_side_us(tb.Copy(BULK, kind), tb.Copy(BULK, kind))
    assert second - first == pytest.approx(1000 + gap, abs=1)
    first, second = side_by_side_us(*[tb.Copy(BULK, kind, duration=1e-5)] * 2)
    assert second - first == pytest.approx(10 + gap, abs=1)


@pytest.mark.parametrize(
    ("before", "latency_us"),
    [
        (tb.Copy(BULK, "d2h"), (SPEC.host_copy_gap_ns - SPEC.node_latency_ns) / 1e3),
        (tb.Copy(BULK, "h2d"), HOST_US),
        (tb.Copy(1, "d2d"), HOST_US),
        (tb.Memset(1), HOST_US),
    ],
    ids=str,
)
def test_one_after_another_of_its_direction_has_a_gap_for_a_latency(
    before: Transfer, latency_us: float
) -> None:
    chain = [(0, 1), (1, 2), (2, 3)]
    none, found = (
        starts_us(SOON, before, other, SOON, edges=chain)[1]
        for other in (tb.Memset(1, duration=0.0), tb.Copy(BULK, "d2h"))
    )
    assert found - none == pytest.approx(1000 + latency_us, abs=0.01)


def test_a_copy_after_a_small_one_has_its_latency() -> None:
    chain = [(0, 1), (1, 2), (2, 3)]
    one, two = (
        starts_us(SOON, tb.Copy(1, "h2d"), other, SOON, edges=chain)[1]
        for other in (tb.Copy(1, "h2d"), tb.Copy(BULK, "h2d"))
    )
    assert two - one == pytest.approx(1000 + HOST_US - SPEC.small_copy_latency_ns / 1e3, abs=0.01)


@pytest.mark.parametrize(
    "other", [tb.Copy(BULK, "d2h"), tb.Copy(1, "h2d"), tb.Copy(BULK, "d2d"), tb.Memset(BULK)]
)
def test_others_do_not_wait_for_them(other: Transfer) -> None:
    free = tb.device("h200-both-ways-as-alone")
    alone, _ = side_by_side_us(other, tb.Memset(1), spec=free)
    _, found = side_by_side_us(tb.Copy(BULK, "h2d"), other, spec=free)
    assert found == pytest.approx(alone, abs=1)


LONG = tb.Copy(1, "d2h", duration=1e9)
CHAIN = [(k, k + 1) for k in range(20)]


@pytest.mark.parametrize(
    ("transfer", "edges"), [(LONG, []), (LONG, CHAIN), (tb.Memset(1, duration=1e9), CHAIN)]
)
def test_copies_beyond_the_range_of_time_are_refused(transfer: Transfer, edges: Any) -> None:
    with pytest.raises(ValueError, match=r"duration: a copy or memset from .* beyond the"):
        starts_us(*[transfer] * 20, SOON, edges=edges)


def test_it_runs_beside_a_full_gpu() -> None:
    full = tb.Launch(264, 1024, 32, duration=2e-3)
    graph = tb.Graph([tb.Copy(BULK, "d2h"), SOON], [(0, 1)])
    found = tb.predict(tb.Sequence([full, graph.launch()]), "h200")
    assert 0 < span_of(1, found[1])[0] - span_of(0, found[0])[1] < 1000


def test_later_work_waits_for_the_copies_of_a_graph() -> None:
    graph = tb.Graph([SOON, tb.Copy(BULK, "d2h")], [(0, 1)])
    after = tb.Launch(1, 64, 32, duration=1e-5, stream=0)
    found = tb.predict(tb.Sequence([graph.launch(0), after]), "h200")
    assert span_of(1, found[1])[0] > span_of(0, found[0])[1] + 1_000_000
    assert f"for copy 0 ({BULK} B, d2h), before it in its stream" in found.explain(1)


def test_a_launch_names_the_copy_that_it_waited_for_last() -> None:
    graph = tb.Graph(
        [tb.Memset(1), tb.Copy(1 << 20, "h2d"), SOON, tb.Memset(8), SOON],
        [(0, 2), (1, 2), (2, 3), (3, 4)],
    )
    found = tb.predict(tb.Sequence([graph.launch(0), graph.launch(1)]), "h200")
    assert "for copy 1 (1024 KB, h2d), a node of its graph (without the edge" in found.explain(0)
    assert "for memset 2 (8 B), a node of its graph" in found.explain(1)
    assert "for memset 5 (8 B), a node of its graph" in found.explain(3)
    assert found.sequence.transfers[1] == tb.Copy(1 << 20, "h2d")
    assert found.waits is not None
    assert {*found.waits["behind"]} >= {-2 - 1, -2 - 2, -2 - 5}


def test_a_copy_is_the_last_of_an_earlier_launch_of_its_graph() -> None:
    graph = tb.Graph([SOON, tb.Copy(1 << 20, "d2d")], [(0, 1)])
    found = tb.predict(tb.Sequence([graph.launch(0), graph.launch(1)]), "h200")
    assert "for copy 0 (1024 KB, d2d), of an earlier launch of its graph" in found.explain(1)


def test_a_copy_at_the_head_of_a_hardware_queue_holds_up_what_is_behind_it() -> None:
    one = replace(SPEC, hardware_queues=1)
    graph = tb.Graph([tb.Copy(64, "h2d"), SOON], [(0, 1)])
    first = replace(SOON, stream=0)
    program = [first, graph.launch(0), replace(SOON, stream=1)]
    found = tb.predict(tb.Sequence(program), one)
    assert "behind copy 0 (64 B, h2d) in hardware queue 0" in found.explain(2)


def test_a_copy_that_is_the_first_root_begins_as_a_kernel_would() -> None:
    """What waits for it starts right after the second root, as on an H200; of a later root, not."""
    copy, soon = tb.Copy(16384, "h2d"), tb.Launch(1, 64, 32, duration=3e-5)

    def after_the_other_root(graph: tb.Graph) -> float:
        first, second = tb.predict(tb.Sequence([graph.launch(0)]), "h200")
        return (int(second.start_ns.min()) - int(first.start_ns.min())) / 1e3

    assert abs(after_the_other_root(tb.Graph([copy, soon, soon], [(0, 2)]))) < 1.5
    assert after_the_other_root(tb.Graph([soon, copy, soon], [(1, 2)])) > 7
