"""When the host makes its calls, as the core takes it."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from tbsched.errors import shown
from tbsched.hardware.spec import DeviceSpec
from tbsched.program.checks import seconds
from tbsched.program.events.kinds import Event
from tbsched.program.sequence import (
    Copy,
    GraphLaunch,
    HostCall,
    HostFunction,
    Launch,
    Memset,
    RecordEvent,
    Sequence,
    Synchronize,
    WaitEvent,
    WaitValue,
    WriteValue,
)


class Calls(NamedTuple):
    """When the host makes its calls: by ``issue_ns``, by ``gap_ns``, or else at an interval.

    Attributes:
        issue_ns: a time for each launch.
        gap_ns: for each event the time since the last call of its host thread returned.
        interval_ns: from one launch call of a thread to the next, if both of them are None.
        called_ns: with ``issue_ns``, the time of the call of each event. None: events between two
            launches of a thread are called together with the first of the two.
    """

    issue_ns: list[int] | None = None
    gap_ns: list[int] | None = None
    interval_ns: int = 0
    called_ns: list[int] | None = None


def concatenated(programs: Iterable[tuple[Sequence, Calls]]) -> Calls:
    """Returns the calls of one sequence that holds all events of the programs, one after the other.
    The programs have no host thread in common. All have times, or all have the same interval."""
    issue_ns: list[int] = []
    called_ns: list[int] = []
    interval_ns, all_timed, any_called = 0, True, False
    for seq, calls in programs:
        interval_ns = calls.interval_ns
        if calls.issue_ns is None:
            all_timed = False
            continue
        any_called = any_called or calls.called_ns is not None
        issue_ns += calls.issue_ns
        called_ns += calls.called_ns or _called_with_launches(seq, calls.issue_ns)
    if not all_timed:
        return Calls(interval_ns=interval_ns)
    return Calls(issue_ns=issue_ns, called_ns=called_ns if any_called else None)


def _called_with_launches(seq: Sequence, issue_ns: list[int]) -> list[int]:
    """Returns the time of each event's call, given when each launch is issued.

    An event without launches is called with the last launch of its thread before it, or with the
    thread's first launch if there is none before it.
    """
    unread = iter(issue_ns)
    launch_times = [[next(unread) for _ in event.launches] for event in seq]
    last_by_host: dict[int, int] = {}
    for event, times in zip(reversed(seq), reversed(launch_times), strict=True):
        if times:
            last_by_host[host_of(event)] = times[0]
    called_ns = []
    for event, times in zip(seq, launch_times, strict=True):
        called_ns.append(times[0] if times else last_by_host.get(host_of(event), 0))
        if times:
            last_by_host[host_of(event)] = times[-1]
    return called_ns


class CallLengths:
    """Durations of host calls that wait for nothing, the same as in the core.

    A call for a copy from pageable memory also moves the bytes; that time is left out.
    """

    def __init__(self, spec: DeviceSpec) -> None:
        self._spec = spec
        self._calls_by_host: Counter[int] = Counter()
        self._host_kinds: set[tuple[int, str]] = set()  # kinds of calls that a host has made
        self._stream_kinds: set[tuple[object, str]] = set()  # kinds of calls made for a stream

    def next_ns(self, event: Event, host: int) -> int:
        """Returns the duration of the next call of a thread, and counts the call."""
        spec = self._spec
        match event:
            case Launch() | GraphLaunch():
                return spec.launch_call_ns + self._first_uses("launch", event.stream, host)
            case Copy():
                is_kernel = event.kind == "d2d" and spec.mechanisms.copy_kernels
                longer = self._first_uses(event.kind, event.stream, host)
                return self._transfer_ns(is_kernel or not event.pinned) + longer
            case Memset():
                is_kernel = event.bytes > spec.small_memset_bytes and spec.mechanisms.copy_kernels
                return self._transfer_ns(is_kernel) + self._first_uses("set", event.stream, host)
            case RecordEvent(timing=True) | WriteValue() | WaitValue():
                return spec.value_call_ns
            case RecordEvent() | WaitEvent():
                return spec.event_call_ns + self._first_of_kind(type(event).__name__, host)
            case HostFunction():
                return spec.host_function_call_ns
            case HostCall():
                return round(event.duration * 1e9)
        return 0

    def _transfer_ns(self, is_long: bool) -> int:
        """Returns the duration of a transfer's call: that of a launch call or of a copy call."""
        return self._spec.launch_call_ns if is_long else self._spec.copy_call_ns

    def _first_uses(self, kind: str, stream: object, host: int) -> int:
        """Counts a call. Returns by how many ns it takes longer, as its host or its stream makes
        calls of this kind for the first time."""
        self._calls_by_host[host] += 1
        is_new = stream is None or (stream, kind) not in self._stream_kinds
        self._stream_kinds.add((stream, kind))
        spec = self._spec
        host_ns = spec.first_call_ns // self._calls_by_host[host] + self._first_of_kind(kind, host)
        return host_ns + is_new * spec.new_stream_call_ns

    def _first_of_kind(self, kind: str, host: int) -> int:
        """Counts a call; returns by how many ns it takes longer as the host's first of its kind."""
        is_first = (host, kind) not in self._host_kinds
        self._host_kinds.add((host, kind))
        return is_first * self._spec.first_kind_call_ns


def waits_for_gpu(event: Event) -> bool:
    """Returns whether a call blocks until work has ended. A copy blocks if it says so, or if its
    bytes go to pageable memory."""
    if isinstance(event, Copy):
        return event.blocking or (event.kind == "d2h" and not event.pinned)
    return isinstance(event, Synchronize) or (
        isinstance(event, HostCall) and event.waits is not None
    )


def calls_of(
    seq: Sequence,
    launch_interval: float,
    issue_times: Iterable[float] | None,
    host: float | Iterable[float] | None,
) -> Calls:
    """Returns when the host makes the calls of a sequence. Raises TypeError or ValueError: times
    for a held sequence, of the wrong number, or given in more than one way."""
    given = {"launch_interval": launch_interval or None, "issue_times": issue_times, "host": host}
    names = [name for name, value in given.items() if value is not None]
    if len(names) > 1:
        raise ValueError(f"{names[1]}: given together with {names[0]}; only one of them can be")
    if names and not seq.timed:
        raise ValueError(f"{names[0]}: {shown(given[names[0]])} needs launches with durations")
    if host is not None:
        return Calls(gap_ns=_gaps(seq, host))
    if issue_times is not None:
        return _at_times(seq, issue_times)
    return Calls(interval_ns=round(launch_interval * 1e9))


def _gaps(seq: Sequence, host: float | Iterable[float]) -> list[int]:
    """Returns the ns before each event's call, from the argument ``host``."""
    if isinstance(host, int | float):
        gaps = [seconds("predict", "host", host)] * len(seq)
    else:
        gaps = _seconds("host", host, "a number of seconds, or one per event,")
    if len(gaps) != len(seq):
        raise ValueError(f"host: {len(seq)} gaps are needed, one per event, got {shown(gaps)}")
    return [round(gap * 1e9) for gap in gaps]


def _at_times(seq: Sequence, issue_times: Iterable[float]) -> Calls:
    """Returns the calls at ``issue_times``, which are one per launch or one per event."""
    times = _seconds("issue_times", issue_times, "a time per launch, or one per event,")
    launches = [len(event.launches) for event in seq]
    if len(times) == sum(launches):
        hosts = [
            host_of(event) for event, own in zip(seq, launches, strict=True) for _ in range(own)
        ]
        issue_ns, called_ns = times, None
    elif len(times) == len(launches):
        hosts = [host_of(event) for event in seq]
        issue_ns = [time for time, own in zip(times, launches, strict=True) for _ in range(own)]
        called_ns = [round(time * 1e9) for time in times]
    if len(times) not in (sum(launches), len(launches)) or not _ascend(hosts, times):
        events = "" if len(launches) == sum(launches) else f", or {len(launches)}, one per event,"
        raise ValueError(
            f"issue_times: {sum(launches)} ascending times{events} are needed, got {shown(times)}"
        )
    return Calls(issue_ns=[round(time * 1e9) for time in issue_ns], called_ns=called_ns)


def _ascend(hosts: list[int], times: list[float]) -> bool:
    """Returns whether the times ascend within each host thread."""
    of_host: dict[int, list[float]] = {}
    for host, time in zip(hosts, times, strict=True):
        of_host.setdefault(host, []).append(time)
    return all(a <= b for times_ in of_host.values() for a, b in itertools.pairwise(times_))


def host_of(event: Event) -> int:
    """Returns the host thread that makes the call."""
    return getattr(event, "host", 0)


def _seconds(name: str, given: Iterable[float], needed: str) -> list[float]:
    """Returns the numbers given as an argument of :func:`predict`, each checked as seconds."""
    try:
        values = list(given)
    except TypeError:
        raise TypeError(f"{name}: {needed} is needed, got {shown(given)}") from None
    return [seconds("predict", name, value) for value in values]
