"""The order of a recorded program's launches: which of them the model cannot explain."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from tbsched.hardware.catalogue import device as find_device
from tbsched.hardware.initial_state import InitialState
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import predict_as_recorded
from tbsched.program.arrays import Int64Array
from tbsched.program.checks import instance
from tbsched.program.sequence import GraphLaunch, HostFunction, Launch, Sequence
from tbsched.traces.annotations import called, called_ns, issued, issued_ns
from tbsched.traces.hang import refuse_hang
from tbsched.traces.placement import Placement
from tbsched.traces.trace import Trace

Pair: TypeAlias = tuple[int, int]

# Times of calls and of the work between kernels vary by less, but for host functions.
TOLERANCE_NS = 20_000
# From the end of the work before a host function until it begins: an H200 and an H100 take some 50
# us, and now and then 500 us (traces hosts/events-h200, events-h100).
_WAKING_NS = (20_000, 150_000, 300_000, 600_000)
# The driver hands a call on at any time within so long after it began.
_LATE_NS = 3_000
_DRAWS = 8  # of these times
# How long the thread stays awake decides whether it has to wake up again.
_AWAKE_NS = (0, 15_000)


def order_differs(
    observation: Trace,
    device: str | os.PathLike[str] | DeviceSpec = "h200",
    policy: str | None = None,
    initial_state: InitialState | None = None,
) -> tuple[Pair, ...]:
    """Returns the pairs of launches that ran in an order which the model cannot explain.

    The program is predicted as it was recorded. A pair is one of these if a launch started before
    the end of another one, and is predicted to start behind it, or the other way round, and if the
    time between them differs by more than 20 us. How long the driver's thread takes to begin a host
    function is chance: the pair must differ whatever that time is. When the
    driver handed a call on is not recorded: the pair must differ for eight draws of these times, up
    to 3 us after each call began, and up to its return for graphs of a program of several threads.

    Args:
        observation: a trace of a timed sequence, recorded on a GPU.
        device, policy, initial_state: as for :func:`tbsched.predict_as_recorded`.

    Returns:
        The pairs. The first number is that of the launch that is over when the other one starts,
        in the prediction or in the recording.

    Raises:
        TypeError, ValueError: as :func:`tbsched.predict_as_recorded`; no timed sequence.

    Example:
        >>> from tbsched.campaigns import order_differs
        >>> program = tb.Sequence(2 * [tb.Launch(8, 64, 32, stream=0, duration=1e-4)])
        >>> order_differs(tb.predict(program, "h200"), "h200")
        ()
    """
    instance("order_differs", "observation", observation, Trace)
    if not observation.sequence.timed:
        raise ValueError("order_differs: observation: launches with durations are needed")
    refuse_hang("order_differs", observation)
    spec = find_device(device)
    gaps = gaps_between(observation)
    differ = np.ones(gaps.shape, np.bool_)
    for reading, model in _plausible(observation, spec):
        played = predict_as_recorded(reading, model, policy, initial_state)
        if played.hang is not None:
            continue  # it explains no order at all
        expected = gaps_between(played)
        differ &= (expected >= 0) != (gaps >= 0)
        differ &= np.abs(expected - gaps) > TOLERANCE_NS
        if not differ.any():
            break
    np.fill_diagonal(differ, val=False)
    return tuple((int(first), int(second)) for first, second in zip(*differ.nonzero(), strict=True))


def _plausible(observation: Trace, spec: DeviceSpec) -> Iterator[tuple[Trace, DeviceSpec]]:
    """Yields recordings and devices with which the program may have run as observed: with other
    times at which the driver handed launches on, and at which host functions begin."""
    for device in _devices(observation.sequence, spec):
        for reading in _readings(observation, spec):
            yield reading, device


def _readings(observation: Trace, spec: DeviceSpec) -> Iterator[Trace]:
    """Yields the recording, then the same with calls that the driver handed on later."""
    yield observation
    sequence = observation.sequence
    began_ns, at_ns = called_ns(observation.extra), issued_ns(observation.extra)
    if began_ns is None or at_ns is None:
        return
    calls_ns = np.array(began_ns)
    hosts = np.array([getattr(event, "host", 0) for event in sequence])
    threads = {event.host for event in sequence if isinstance(event, Launch | GraphLaunch)}
    overlaps = [len(threads) > 1 and isinstance(event, GraphLaunch) for event in sequence]
    launches = [len(event.launches) for event in sequence]
    until_end_ns = np.maximum(np.ptp(calls_ns, axis=1) - spec.launch_call_ns, 0)
    latest_ns = np.where(overlaps, until_end_ns, 0)

    def later(late_ns: Int64Array) -> Trace:
        """Returns the observation with calls handed on later by these delays, one per event."""
        handed_on_ns = np.array(at_ns) + np.repeat(late_ns, launches)
        called_then_ns = np.maximum(calls_ns, calls_ns[:, :1] + late_ns[:, None])
        for host in set(hosts.tolist()):  # a thread makes its next call after this one
            _ascend(handed_on_ns, np.repeat(hosts, launches) == host)
            _ascend(called_then_ns, hosts == host)
        times = {**issued(handed_on_ns.tolist()), **called(called_then_ns.tolist())}
        return replace(observation, extra={**observation.extra, **times})

    if latest_ns.any():
        yield later(latest_ns)
    for seed in range(_DRAWS):
        share = np.random.default_rng(seed).random(len(latest_ns))
        yield later(np.rint(share * np.maximum(latest_ns, _LATE_NS)).astype(np.int64))


def _ascend(times_ns: Int64Array, of_thread: npt.NDArray[np.bool_]) -> None:
    """Makes times that precede an earlier one of the same thread equal to it, in place."""
    times_ns[of_thread] = np.maximum.accumulate(times_ns[of_thread], axis=0)


def _devices(sequence: Sequence, spec: DeviceSpec) -> Iterator[DeviceSpec]:
    """Yields the device, and ones whose host functions begin sooner or later."""
    yield spec
    if not any(map(_has_functions, sequence)):
        return
    for waking_ns in _WAKING_NS:
        late_ns = waking_ns - spec.host_function_latency_ns
        yield replace(
            spec,
            host_function_latency_ns=waking_ns,
            host_function_direct_ns=max(0, spec.host_function_direct_ns + late_ns),
        )
    for awake_ns in _AWAKE_NS:
        yield replace(spec, host_function_return_ns=awake_ns)


def _has_functions(event: object) -> bool:
    if isinstance(event, GraphLaunch):
        return any(isinstance(node, HostFunction) for node in event.graph.nodes)
    return isinstance(event, HostFunction)


def gaps_between(trace: Trace) -> npt.NDArray[np.int64]:
    """Returns the time from the end of one launch to the start of another, int64 ns (launches,
    launches): [a, b] is from the end of a to the start of b."""
    if not len(trace):
        return np.zeros((0, 0), np.int64)
    starts, ends = (np.array(times, np.int64) for times in zip(*map(_span, trace), strict=True))
    return np.asarray(starts[None, :] - ends[:, None])


def _span(placement: Placement) -> tuple[int, int]:
    if placement.start_ns is None or placement.end_ns is None:
        raise ValueError("order_differs: observation: it does not say when blocks ran")
    return int(placement.start_ns.min()), int(placement.end_ns.max())
