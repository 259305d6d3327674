"""CUDA graphs that an H200 and an H100 ran, against the model (docs/explanation/graphs.md).

The rules were found in the recordings of the H200. Those of the H100 are only scored.
"""

from __future__ import annotations

import json
import lzma
from collections import Counter, defaultdict
from dataclasses import replace
from functools import cache
from statistics import mean
from typing import Any

import numpy as np
import pytest

from conformance.recorded.timed import share_of_pairs
from helpers import ROOT
from tbsched.campaigns import order_differs
from tbsched.comparison.times import compare_times
from tbsched.hardware.catalogue import device
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import predict, predict_as_recorded
from tbsched.program.events.graph import Graph, GraphLaunch
from tbsched.program.sequence import Launch, Sequence
from tbsched.traces.files import load_traces
from tbsched.traces.timeline import span_of
from tbsched.traces.trace import Trace

WAYS = ROOT / "tests" / "traces" / "ways"
H200 = device("h200")
# These kernels write to the memory of the GPU alone. Those of ``tb.observe`` also write to the
# host's, and are over 0.2 us later.
NO_HOST = replace(H200, node_latency_ns=300, relay_ns=380)


@cache
def recorded(name: str) -> list[Trace]:
    return load_traces(WAYS / f"graphs-{name}.jsonl.xz")


def gaps_ns(trace: Trace) -> list[float]:
    """From the last end of what each node waits for to its first start."""
    gaps = []
    first = 0
    for launched in trace.sequence:
        assert isinstance(launched, GraphLaunch)
        nodes = trace.placements[first : first + len(launched.launches)]
        first += len(nodes)
        before: dict[int, float] = {}
        for a, b in launched.graph.edges:
            before[b] = max(before.get(b, 0.0), span_of(a, nodes[a])[1])
        gaps += [span_of(node, nodes[node])[0] - end for node, end in before.items()]
    return gaps


def error_ns(traces: list[Trace], spec: DeviceSpec = NO_HOST) -> float:
    """By how much these gaps are predicted wrong, on average."""
    errors = [
        abs(found - expected)
        for trace in traces
        for found, expected in zip(
            gaps_ns(predict_as_recorded(trace, spec)), gaps_ns(trace), strict=True
        )
    ]
    return mean(errors)


def in_their_blocks(traces: list[Trace], spec: DeviceSpec = NO_HOST) -> float:
    """Returns the share of launches with as many blocks on each SM as was recorded."""
    found = [
        np.array_equal(np.sort(placed.smid), np.sort(recorded.smid))
        for trace in traces
        for placed, recorded in zip(predict_as_recorded(trace, spec), trace, strict=True)
    ]
    return mean(found)


@pytest.mark.parametrize("name", ["again", "heavy"])
def test_the_host_calls_again_after_the_last_root(name: str) -> None:
    spare_ns = []
    for trace in recorded(name):
        times, number = trace.issue_times, 0
        assert times is not None
        for event in trace.sequence:
            first = number
            number += len(event.launches) if isinstance(event, GraphLaunch) else 1
            if isinstance(event, GraphLaunch) and number < len(times):
                roots = {*range(len(event.launches))} - {node for _, node in event.graph.edges}
                call_ns = (len(roots) - 1) * H200.node_interval_ns
                spare_ns.append((times[number] - times[first]) * 1e9 - call_ns)
    assert len(spare_ns) > 10
    assert min(spare_ns) > 0


def test_nodes_follow_each_other_as_on_an_h200() -> None:
    traces = recorded("h200")
    assert len(traces) == 270
    assert share_of_pairs(traces, NO_HOST) > 0.999
    assert error_ns(traces) < 150
    assert in_their_blocks(traces) > 0.99


def test_graphs_that_were_only_scored_run_as_predicted() -> None:
    traces = recorded("h100")
    assert len(traces) == 60
    assert share_of_pairs(traces, NO_HOST) > 0.999
    assert error_ns(traces) < 100
    assert in_their_blocks(traces) > 0.95


def test_graphs_that_fill_the_gpu_overlap_as_predicted() -> None:
    runs: dict[str, list[Trace]] = defaultdict(list)
    for trace in recorded("heavy"):
        runs[trace.id].append(trace)
    itself = [compare_times(again, first) for first, again in runs.values()]
    assert len(itself) == 30
    found = share_of_pairs([first for first, _ in runs.values()], NO_HOST)
    assert found > 0.99
    assert found > sum(d.pairs_agreeing for d in itself) / sum(d.pairs for d in itself) - 0.005


def test_a_graph_does_not_run_beside_itself() -> None:
    traces = recorded("again")
    assert len(traces) == 12
    diffs = [compare_times(predict_as_recorded(trace, H200), trace) for trace in traces]
    given = [
        compare_times(predict(trace.sequence, H200, issue_times=trace.issue_times), trace)
        for trace in traces
    ]
    for found in (diffs, given):
        assert sum(d.pairs for d in found) - sum(d.pairs_agreeing for d in found) <= 2


@pytest.mark.parametrize(
    "other",
    [{"node_places": 0}, {"node_places": 1000}, {"node_latency_ns": 0}, {"relay_ns": 0}],
    ids=str,
)
def test_with_another_rule_nodes_start_at_other_times(other: dict[str, Any]) -> None:
    traces = recorded("h200")[::4]
    assert error_ns(traces, replace(NO_HOST, **other)) > 1.1 * error_ns(traces)


@pytest.mark.parametrize(
    "other",
    [
        {"node_place_ns": 0},
        {"node_interval_ns": 0},
        {"mechanisms": device("h200-no-graph-branches").mechanisms},
    ],
    ids=["node_place_ns", "node_interval_ns", "graph_branches"],
)
def test_with_another_rule_blocks_go_to_other_sms(other: dict[str, Any]) -> None:
    traces = recorded("h200")[::4]
    assert in_their_blocks(traces, replace(NO_HOST, **other)) < in_their_blocks(traces) - 0.02


def in_all_their_blocks(traces: list[Trace], spec: DeviceSpec) -> float:
    """The share of programs in which every block is on the SM that was recorded."""
    return mean([
        all(
            np.array_equal(placed.smid, recorded.smid)
            for placed, recorded in zip(predict_as_recorded(trace, spec), trace, strict=True)
        )
        for trace in traces
    ])  # fmt: skip


def test_nodes_that_the_driver_issues_go_to_the_sms_of_an_h200() -> None:
    traces = [trace for trace in recorded("copies") if trace.extra["agree"]]
    assert len(traces) == 193
    spec = device("h200")
    assert in_all_their_blocks(traces, spec) > 0.9
    without = replace(spec, mechanisms=device("h200-no-graph-copies").mechanisms)
    assert in_all_their_blocks(traces, without) < 0.86


def test_a_graph_that_is_launched_again_keeps_its_queues() -> None:
    """The third of three roots starts first: in another stream it is alone at its front end."""
    runs = [trace for trace in recorded("copies") if trace.id == "again-3"]
    assert len(runs) == 8
    alone = [
        int(np.argmin([launch.start_ns.min() for launch in trace[6:]]))
        for run in runs
        for trace in (run, predict_as_recorded(run, device("h200")))
    ]
    assert alone.count(2) >= 15
    # Three graphs that differ by a nanosecond have queues of their own.
    events = [
        Graph([replace(node, duration=node.duration + k * 1e-9) for node in event.launches])
        .launch(event.stream)
        for k, event in enumerate(runs[0].sequence)
    ]  # fmt: skip
    apart = predict_as_recorded(replace(runs[0], sequence=Sequence(events)), device("h200"))
    assert np.argmin([launch.start_ns.min() for launch in apart[6:]]) != 2


@cache
def three_roots() -> list[dict[str, Any]]:
    """Graphs that wait for one end: which roots, and how long after it each started."""
    with lzma.open(WAYS / "root-queues.jsonl.xz", "rt") as lines:
        return [json.loads(line) for line in lines]


def first_as_recorded(spec: DeviceSpec) -> float:
    """The share of graphs of which the recorded root starts first: that alone at its front end."""
    found = []
    for row in three_roots():
        program = Sequence.from_json(json.dumps(row["program"]))
        trace = predict(program, spec, launch_interval=12e-6)
        starts = [trace[root].start_ns.min() for root in row["roots"]]
        found += [float(np.argmin(starts) == np.argmin(after)) for after in row["after_us"]]
    return mean(found)


def test_the_last_root_turns_to_another_front_end_where_branches_join() -> None:
    assert len(three_roots()) == 198
    assert first_as_recorded(device("h200")) == 1
    assert first_as_recorded(device("h200-joins-turn-nothing")) < 0.78


@cache
def brought() -> list[dict[str, Any]]:
    """Graphs and the hardware queue of each root: 0 was used longest ago before, 7 last."""
    with lzma.open(WAYS / "graph-streams.jsonl.xz", "rt") as lines:
        return [json.loads(line) for line in lines]


def queues_of_roots(row: dict[str, Any], spec: DeviceSpec) -> list[int | None]:
    """Where no queue was used before, the number of a queue says when its turn comes."""
    graph = Graph([Launch(1, 32, 16, duration=3e-6)] * row["nodes"], map(tuple, row["edges"]))
    follow = {after for _, after in graph.edges}
    trace = predict(Sequence([graph.launch(0)]), spec)
    return [trace[node].hardware_queue for node in range(row["nodes"]) if node not in follow]


def share_of_queues(spec: DeviceSpec) -> float:
    """Returns the share for all graphs of up to five nodes, in a stream without a queue."""
    rows = [row for row in brought() if row["new_stream"]]
    return mean(queues_of_roots(row, spec) == row["queues"] for row in rows)


def share_of_last_roots(spec: DeviceSpec) -> float:
    """How often the last root of a random graph takes the first turn as recorded, or does not."""
    rows = [row for row in brought() if row["nodes"] > 5]
    return mean((queues_of_roots(row, spec)[-1] == 0) == (row["queues"][-1] == 0) for row in rows)


def test_where_branches_join_the_last_stream_of_a_graph_takes_a_queue_first() -> None:
    assert len(brought()) == 1051
    assert share_of_queues(device("h200")) > 0.96
    assert share_of_queues(device("h200-joins-turn-nothing")) == 0
    assert share_of_last_roots(device("h200")) > 0.99
    assert share_of_last_roots(device("h200-joins-turn-nothing")) < 0.3


@cache
def told_in_turn() -> list[Trace]:
    return load_traces(WAYS / "graphs-told.jsonl.xz")


def starts_in_order(spec: DeviceSpec) -> float:
    """The share of recordings whose last two launches start in the recorded order."""
    found = [
        [np.argsort([int(p.start_ns.min()) for p in each[-2:]]).tolist() for each in pair]
        for pair in ((trace, predict_as_recorded(trace, spec)) for trace in told_in_turn())
    ]
    return mean(a == b for a, b in found)


def test_nodes_behind_a_memset_and_roots_in_another_stream_are_told_in_turn() -> None:
    assert len(told_in_turn()) == 24
    assert starts_in_order(H200) == 1
    assert starts_in_order(replace(H200, node_place_ns=0)) == 0


@cache
def decided() -> list[Trace]:
    return load_traces(WAYS / "deciders-h200.jsonl.xz")


def waits_to_decide(trace: Trace) -> bool:
    """Returns whether what follows a decision started when the first launch had left an SM."""
    behind = len(trace.sequence) - 1
    assert trace[0].end_ns is not None
    return span_of(behind, trace[behind])[0] > int(trace[0].end_ns.min())


def test_a_conditional_node_decides_in_a_block_that_needs_room() -> None:
    """Launches leave little of each SM. Where too little is left, the decision waits for them."""
    busy = [
        trace
        for trace in decided()
        if isinstance(trace.sequence[-1], GraphLaunch)
        and not isinstance(trace.sequence[-1].graph.parts[0], Launch)
        and trace.sequence.launches[0].blocks >= H200.sms
    ]
    seen = [waits_to_decide(trace) for trace in busy]
    assert Counter(seen) == {True: 39, False: 49}
    assert [waits_to_decide(predict_as_recorded(trace, H200)) for trace in busy] == seen


def test_everything_waits_behind_a_decision() -> None:
    """Directed programs and four of a campaign, which ran on an H200."""
    campaign = load_traces(ROOT / "tests" / "traces" / "hosts" / "decisions-h200.jsonl.xz")
    assert not any(order_differs(trace, "h200") for trace in (*decided(), *campaign))


def test_a_loop_hands_its_turn_on() -> None:
    """Blocks of each run of a body are on the recorded SMs: a decision itself takes no turn."""
    loops = load_traces(WAYS / "loops-h200.jsonl.xz")
    assert len(loops) == 100
    for trace in loops:
        for seen, expected in zip(trace, predict_as_recorded(trace, H200), strict=True):
            np.testing.assert_array_equal(seen.smid, expected.smid)


def root_error_ns(traces: list[Trace], spec: DeviceSpec) -> float:
    """By how much the starts of a graph's roots behind a kernel are predicted wrong, on average."""
    errors = []
    for trace in traces:
        played = predict_as_recorded(trace, spec)
        (launched,) = [event for event in trace.sequence if isinstance(event, GraphLaunch)]
        followers = {after for _, after in launched.graph._decided_edges}
        for node in set(range(len(launched.launches))) - followers:
            seen, expected = (
                run[1 + node].start_ns.min() - run[0].end_ns.max() for run in (trace, played)
            )
            errors.append(abs(seen - expected))
    return mean(errors)


def test_conditions_are_reset_before_roots_behind_a_kernel() -> None:
    """Graphs of one to six roots of one block, with and without conditional nodes."""
    plain, decided = [], []
    for trace in load_traces(WAYS / "forks-h200.jsonl.xz"):
        for launched in trace.sequence[1:]:
            if isinstance(launched, GraphLaunch):
                (decided if launched.graph.has_conditionals else plain).append(trace)
    assert (len(plain), len(decided)) == (96, 256)
    never = replace(H200, condition_reset_ns=0)
    assert root_error_ns(plain, H200) < 1_400
    assert root_error_ns(decided, H200) < 1_200
    assert root_error_ns(decided, never) > 2_300


def test_conditions_of_a_graph_that_waits_for_nothing_hold_no_root() -> None:
    """Such roots start when the driver submits them, and kernels that follow in time."""
    alone = [
        trace
        for trace in load_traces(WAYS / "forks-h200.jsonl.xz")
        if isinstance(trace.sequence[0], GraphLaunch)
    ]
    assert len(alone) == 132
    late_ns = []
    for trace in alone:
        played = predict_as_recorded(trace, H200)
        seen, expected = (
            np.array([placed.start_ns.min() - run[0].start_ns.min() for placed in run])
            for run in (trace, played)
        )
        late_ns.append(np.abs(seen - expected).max())
    assert np.median(late_ns) < 600
    assert np.percentile(late_ns, 90) < 1_500
