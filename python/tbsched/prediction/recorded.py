"""Random outcomes of a recorded timed sequence, read from the recording."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.calls import Calls
from tbsched.program.arrays import Int64Array
from tbsched.program.events.graph import Graph, GraphLaunch
from tbsched.program.events.launch import Launch
from tbsched.program.sequence import Copy, Event, Memset, Sequence, Stream
from tbsched.traces.placement import Placement
from tbsched.traces.trace import Trace

AnyEvent = TypeVar("AnyEvent", bound=Event)

# Blocks that a GPU places at once start within two ticks of its clock, each of 32 ns, one after the
# other (H200, traces h200-timed/programs).
_SAME_TIME_NS = 64
# One in a hundred of 5,898 calls took more than this, and no root of 750 came later than so long
# after the one before it (H200).
_MAX_CALL_NS, _MAX_ROOT_NS = 32_000, 6_000


def ran_ns(observation: Trace, spec: DeviceSpec) -> Iterator[Int64Array]:
    """Yields how long each block of each launch ran, int64 ns (blocks,), without waits for memory.

    Blocks of a recording run from when they were placed. Some make their first step 0.1 us later.
    Those of a prediction make it at once.
    """
    is_recorded = observation.issue_times is not None and not is_predicted(observation)
    left_ns: dict[Stream, int] = {}  # when all before in the stream had left
    for launch, placement in zip(observation.sequence.launches, observation, strict=True):
        if placement.start_ns is None or placement.end_ns is None:
            raise ValueError("predict_as_recorded: nobody recorded when the blocks ran")
        ran = placement.end_ns - placement.start_ns
        if launch.programmatic and launch.memory_wait is not None and launch.stream in left_ns:
            until_wait_ns = round(launch.memory_wait * 1e9)
            waited = np.maximum(left_ns[launch.stream] - placement.start_ns - until_wait_ns, 0)
            ran = np.where(ran < until_wait_ns, ran, np.maximum(ran - waited, until_wait_ns))
        if launch.stream is not None:
            left = int(placement.end_ns.max()) + spec.exit_latency_ns
            left_ns[launch.stream] = max(left, left_ns.get(launch.stream, left))
        yield ran + _start_delays_ns(placement.start_ns) if is_recorded else ran


def is_predicted(trace: Trace) -> bool:
    """Returns whether a trace was predicted, and not recorded, also if it comes from a file."""
    return "model" in trace.device.details


def _start_delays_ns(start_ns: Int64Array) -> Int64Array:
    """Returns by how many ns each block started after the first one placed at the same time."""
    order = np.argsort(start_ns, kind="stable")
    sorted_ns = start_ns[order]
    is_first = np.diff(sorted_ns, prepend=sorted_ns[0] - _SAME_TIME_NS - 1) > _SAME_TIME_NS
    first_ns = sorted_ns[is_first][np.cumsum(is_first) - 1]
    late = np.empty_like(start_ns)
    late[order] = sorted_ns - first_ns
    return late


def with_own_transfer_times(sequence: Sequence) -> Sequence:
    """Returns the sequence with copies and memsets that take the device's time for their bytes.
    Whatever duration a program gives, a GPU does not know it."""
    changed: dict[Graph, Graph] = {}

    def own(event: AnyEvent) -> AnyEvent:
        """Returns an event without the durations of its copies and memsets."""
        if isinstance(event, Copy | Memset):
            return replace(event, duration=None)
        if not isinstance(event, GraphLaunch) or not event.graph.transfers:
            return event
        graph = event.graph
        if graph not in changed:
            changed[graph] = graph.with_nodes(map(own, graph.nodes))
        return replace(event, graph=changed[graph])

    return Sequence(map(own, sequence))


def until_first_end(observation: Trace) -> Trace:
    """Returns the launches placed before any block ended, as a trace of a held sequence."""
    end = min([int(p.end_ns.min()) for p in observation if p.end_ns is not None], default=0)
    begins = _first_starts(observation)
    launches, placements = [], []
    for number in np.argsort(begins, kind="stable").tolist():
        placement = observation[number]
        if begins[number] >= end or placement.start_ns is None:
            break
        is_there = placement.start_ns < end
        launches.append(held(observation.sequence.launches[number]))
        smid = np.where(is_there, placement.smid, -1).astype(np.int32)
        placements.append(Placement(smid, smid))
        if not is_there.all():
            break
    return Trace(Sequence(launches), observation.device, tuple(placements), check=False)


def held(launch: Launch) -> Launch:
    """Returns the launch as it is alone on a GPU, with blocks that stay until they are released."""
    return replace(
        launch, duration=None, stream=None, non_blocking=False, programmatic=False, trigger=None,
        memory_wait=None, completion_event=None, first_use=False, delay=None, host=0,
        gpu=0, meets=None, in_block_order=False,
    )  # fmt: skip


def issue_times(observation: Trace, predicted: Trace, spec: DeviceSpec) -> list[float] | None:
    """Returns when the driver handed on each launch, in seconds; None: no times were recorded.

    The host notes when it makes a call. The driver hands the launch on some microseconds later, and
    the roots of a graph one after the other. When it did so shows in the time at which a launch
    call returned. If nobody recorded that, it shows in the start of a launch that waits for
    nothing, if that is no later than the host's next call.
    """
    if observation.issue_times is None:
        return None
    issued = np.array([round(time * 1e9) for time in observation.issue_times])
    if observation.call_times is not None:
        issued = _issued_before_returns(observation, issued, spec)
    starts = _first_starts(observation)
    calls = list(_calls(observation.sequence, spec))
    waited = set()
    if predicted.waits is not None:
        began = _first_starts(predicted)[predicted.waits["launch"]]
        waited = set(predicted.waits["launch"][predicted.waits["begin_ns"] < began].tolist())
    at_once = [
        (launch, int(starts[launch]) - call.latency_ns, call.is_graph)
        for call in calls
        for launch in call.roots
        if launch not in waited
    ]
    handed_on = {
        launch: time
        for launch, time, is_graph in at_once
        if is_graph or observation.call_times is None
    }
    if not handed_on:
        return [time / 1e9 for time in issued.tolist()]
    # No launch is handed on before its call. Graphs alone may all be handed on long after it.
    clock = min(time - issued[launch] for launch, time, _ in at_once)
    issued_ns = issued.copy()
    for host in {call.host for call in calls}:
        _move_to_hand_on([call for call in calls if call.host == host], handed_on, clock, issued_ns)
    return [time / 1e9 for time in issued_ns.tolist()]


def recorded_calls(observation: Trace, issue_times: list[float]) -> Calls:
    """Returns the calls of a recording, with launches issued at the given seconds. Of the other
    events it takes the times of their calls, if the recording has them."""
    issue_ns = [round(time * 1e9) for time in issue_times]
    called_ns = calls_as_issued(observation)
    if called_ns is None:
        return Calls(issue_ns=issue_ns)
    began_ns = called_ns[:, 0]
    late = max(0, -int(began_ns.min()))
    return Calls(issue_ns=[time + late for time in issue_ns], called_ns=(began_ns + late).tolist())


def calls_as_issued(observation: Trace) -> Int64Array | None:
    """Returns when each call began and returned, int64 ns (events, 2), on the clock of the issue
    times; None: nobody recorded it."""
    if observation.call_times is None or observation.issue_times is None:
        return None
    called_ns = np.rint(np.array(observation.call_times) * 1e9).astype(np.int64)
    issued_ns = np.rint(np.array(observation.issue_times) * 1e9).astype(np.int64)
    launches = np.array([len(event.launches) for event in observation.sequence])
    makes_launches = launches > 0
    firsts = (launches.cumsum() - launches)[makes_launches]
    # Both count from another call. A launch is issued within its call.
    ahead_ns = int((issued_ns[firsts] - called_ns[makes_launches, 0]).min())
    return called_ns + ahead_ns


def host_write_ns(observation: Trace, predicted: Trace, spec: DeviceSpec) -> int:
    """Returns the median delay of launches behind another one, in ns, beyond the device's
    latencies.

    The GPU waits until the blocks of a recording have written to the memory of the host. That time
    depends on the host: for one kind of GPU it was 0.3 us in one machine, and 1.0 us in another.
    """
    if predicted.waits is None:
        return 0
    soonest = spec.exit_latency_ns + spec.completion_latency_ns
    behind = predicted.waits[predicted.waits["cause"] == "stream"]
    behind = behind[behind["behind"] >= 0]

    def after(trace: Trace) -> Int64Array:
        """Returns by how many ns the launches started after the end of the one before."""
        ends = np.array([p.end_ns.max() for p in trace if p.end_ns is not None])
        after_ns: Int64Array = _first_starts(trace)[behind["launch"]] - ends[behind["behind"]]
        return after_ns

    late = after(observation)[after(predicted) == soonest] - soonest
    return max(0, round(float(np.median(late)))) if len(late) else 0


def _issued_before_returns(observation: Trace, issued: Int64Array, spec: DeviceSpec) -> Int64Array:
    """Returns when each launch was issued, int64 ns (launches,), corrected by when its call
    returned and when it started. Where kernels are loaded, no launch may have started soon enough
    to tell the clocks apart."""
    issued_ns = issued.copy()
    latest = np.full(len(issued), 2**62)
    if len(issued) and not any(launch.first_use for launch in observation.sequence.launches):
        latest = _first_starts(observation) - spec.launch_latency_ns
        latest -= (latest - issued).min()
    returns: list[tuple[int, int]] = []
    by_host: dict[int, list[int]] = {}
    assert observation.call_times is not None
    first = 0
    for event, (began, returned) in zip(observation.sequence, observation.call_times, strict=True):
        if isinstance(event, Launch):
            # Times of issue count from another call, if the first one makes no launch.
            returns.append((int(issued[first]) + round((returned - began) * 1e9), first))
        if isinstance(event, Launch | GraphLaunch):
            by_host.setdefault(event.host, []).extend(range(first, first + len(event.launches)))
        first += len(event.launches)
    loaded: set[str] = set()
    for returned_ns, number in sorted(returns):
        launch = observation.sequence.launches[number]
        loads = launch.first_use and launch.name not in loaded
        took = spec.launch_call_ns + loads * (spec.launch_call_ns + spec.first_use_ns)
        issued_ns[number] = max(issued_ns[number], min(returned_ns - took, latest[number]))
        if launch.first_use and launch.name is not None:
            loaded.add(launch.name)
    for launches in by_host.values():
        issued_ns[launches] = np.maximum.accumulate(issued_ns[launches])
    return issued_ns


def _move_to_hand_on(
    calls: list[_Call], handed_on: dict[int, int], clock: int, issued: Int64Array
) -> None:
    """Changes the issue times of a host's launches, ``issued`` in ns, to when the driver handed
    them on."""
    lasts = calls[-1].launches[-1]
    nexts = [int(issued[call.launches[0]]) for call in calls[1:]]
    nexts.append(int(issued[lasts]) + _MAX_CALL_NS + len(calls[-1].roots) * _MAX_ROOT_NS)
    latest_before = 0
    for call, following in zip(calls, nexts, strict=True):
        latest = following
        for launch in reversed(call.roots):
            # One that starts later than that has waited for something.
            if handed_on.get(launch, 2**62) - clock <= following:
                latest = min(latest, handed_on[launch] - clock)
                issued[launch] = max(latest, issued[launch])
        for launch in call.launches:
            issued[launch] = latest_before = max(latest_before, int(issued[launch]))


def _first_starts(trace: Trace) -> Int64Array:
    """Returns the start of the first block of each launch, int64 ns (launches,)."""
    return np.array([p.start_ns.min() for p in trace if p.start_ns is not None])


@dataclass(frozen=True, slots=True)
class _Call:
    """A call that makes launches.

    Attributes:
        host: the thread that calls.
        launches: its launches.
        roots: those of them that wait for no other.
        latency_ns: time until they reach the GPU.
        is_graph: whether they are the nodes of a graph.
    """

    host: int
    launches: range
    roots: list[int]
    latency_ns: int
    is_graph: bool


def _calls(sequence: Sequence, spec: DeviceSpec) -> Iterator[_Call]:
    """Yields the calls that launch, each with those of its launches that wait for no other."""
    first = 0
    for event in sequence:
        launches = range(first, first + len(event.launches))
        first = launches.stop
        if isinstance(event, GraphLaunch):
            has_predecessor = {b for _, b in event.graph._decided_edges}
            kernels = [k for k, node in enumerate(event.graph.nodes) if isinstance(node, Launch)]
            roots = [launches[k] for k, node in enumerate(kernels) if node not in has_predecessor]
            yield _Call(event.host, launches, roots, spec.graph_latency_ns, True)
        elif isinstance(event, Launch):
            yield _Call(event.host, launches, [*launches], spec.launch_latency_ns, False)
