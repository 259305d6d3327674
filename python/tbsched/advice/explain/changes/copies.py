"""Copies that take less time, and hold up less."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import replace
from typing import TypeGuard

from tbsched.advice.explain.changes.proposal import Proposal, edited, free_stream
from tbsched.advice.explain.explanation import Cause
from tbsched.advice.explain.facts import Facts
from tbsched.counting import counted
from tbsched.program.activity import OPERATOR, UNKNOWN
from tbsched.program.sequence import (
    Copy,
    Event,
    RecordEvent,
    Sequence,
    Stream,
    Synchronize,
    WaitEvent,
)

_LEAST_BYTES = 1 << 16  # size of copies from which rates are estimated


def pinned_memory(facts: Facts, launch: int, cause: Cause) -> Iterator[Proposal]:
    """Pinned memory for all copies from and to pageable memory, which then do not block either."""
    changed: dict[int, Event | None] = {}
    rates = {kind: _pinned_rate(facts, kind) for kind in ("h2d", "d2h")}
    for place, event in enumerate(facts.program.sequence):
        if isinstance(event, Copy) and not event.pinned and event.kind != "d2d":
            rate = rates[event.kind]
            if rate:
                seconds = min(event.bytes / rate, event.duration or 0.0)
                changed[place] = replace(event, pinned=True, duration=seconds)
    if not changed:
        return
    waits = _waits_of_copies(facts, [*changed])
    how = " and non_blocking=True" if waits else ""
    yield edited(
        facts,
        f"pinned memory{how} for {counted(len(changed), 'copy', 'copies')} from or to pageable "
        "memory",
        changed | dict.fromkeys(waits),
        "if their memory can be pinned before (cudaHostAlloc, pin_memory=True)"
        + _unwaited(changed),
    )


def _unwaited(changed: dict[int, Event | None]) -> str:
    """Returns the note that the host must wait for copies from the GPU itself, if there are any.

    A host that reads them right away has to wait as long as before.
    """
    if all(event is None or _to_gpu(event) for event in changed.values()):
        return ""
    return (
        ", and the host does not read at once what was copied from the GPU: it waits for it later"
    )


def _waits_of_copies(facts: Facts, copies: list[int]) -> list[int]:
    """Returns the waits for the GPU in operators that copy to it, which pinned memory saves."""
    calls, sequence = facts.calls, facts.program.sequence
    maker = facts.account.times.made_in(calls)
    is_operator = facts.account.activity.host["kind"] == OPERATOR
    makers = {
        int(maker[place])
        for place in copies
        if _to_gpu(sequence[place]) and maker[place] != UNKNOWN and is_operator[maker[place]]
    }
    return [
        place
        for place, event in enumerate(sequence)
        if isinstance(event, Synchronize) and int(maker[place]) in makers
    ]


def _to_gpu(event: Event) -> TypeGuard[Copy]:
    return isinstance(event, Copy) and event.kind == "h2d"


def copies_ahead(facts: Facts, launch: int, cause: Cause) -> Iterator[Proposal]:
    """Copies to the GPU in a stream of their own, one group ahead of the kernels that need them.

    What follows a group of copies in its stream waits for it, as before. A group waits for what
    came before the group before it, which used the same buffer: so there are two buffers.
    """
    sequence = facts.program.sequence
    stream = _busiest(facts)
    if stream is None:
        return
    if any(isinstance(event, WaitEvent) and event.stream == stream for event in sequence):
        return  # the copies may be what waits for the events
    new, event = free_stream(facts), _free_event(facts)
    events: list[Event] = []
    host: list[float] = []
    before: int | None = None  # the event that stands for all before the last group
    count, is_in = 0, False
    for own, gap in zip(sequence, facts.program.host, strict=True):
        is_copy = isinstance(own, Copy) and own.kind == "h2d" and own.stream == stream
        thread = getattr(own, "host", 0)
        if is_copy and not is_in:
            if before is not None:
                events.append(WaitEvent(before, new, host=thread))
                host.append(0.0)
            before, event = event, event + 1
            events.append(RecordEvent(before, stream, host=thread))
            host.append(0.0)
        if is_in and not is_copy:
            events += [RecordEvent(event, new, host=thread), WaitEvent(event, stream, host=thread)]
            host += [0.0, 0.0]
            event += 1
        is_in = is_copy
        if isinstance(own, Copy) and is_copy:
            count += 1
            own = replace(own, stream=new, non_blocking=True)
        events.append(own)
        host.append(gap)
    if count:
        yield Proposal(
            f"{count} copies to the GPU in a stream of their own, one group ahead of the kernels",
            Sequence(events),
            tuple(host),
            "if they fill two buffers by turns, and the host has what they copy by then",
        )


def _busiest(facts: Facts) -> Stream | None:
    """Returns the stream with most time of copies to the GPU, of those that kernels run in."""
    kernels = {launch.stream for launch in facts.program.sequence.launches}
    seconds: dict[Stream, float] = {}
    for event in facts.program.sequence:
        if _to_gpu(event) and event.stream in kernels and event.stream is not None:
            seconds[event.stream] = seconds.get(event.stream, 0.0) + (event.duration or 0.0)
    return max(seconds, key=lambda stream: seconds[stream], default=None)


def _free_event(facts: Facts) -> int:
    """Returns the number of a CUDA event that the program does not use."""
    numbers = [e.event for e in facts.program.sequence if isinstance(e, RecordEvent | WaitEvent)]
    return max(numbers, default=-1) + 1


def _pinned_rate(facts: Facts, kind: str) -> float:
    """Bytes per second of copies with pinned memory, of the profile, else of the device."""
    rates = [
        event.bytes / event.duration
        for event in facts.program.sequence
        if isinstance(event, Copy) and event.kind == kind and event.pinned
        if event.duration and event.bytes >= _LEAST_BYTES
    ]
    return statistics.median(rates) if rates else facts.spec.host_copy_bandwidth * 1e6
