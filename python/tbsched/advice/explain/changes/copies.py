"""Copies that take less time, hold up less, or follow each other as one."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import TypeGuard

from tbsched.advice.explain.changes.proposal import MAX_PAUSE_SECONDS, Proposal, edited, free_stream
from tbsched.advice.explain.explanation import Cause
from tbsched.advice.explain.facts import Facts
from tbsched.counting import counted
from tbsched.prediction.calls import waits_for_gpu
from tbsched.program.activity import OPERATOR, UNKNOWN
from tbsched.program.sequence import (
    LEGACY_STREAM,
    Copy,
    Event,
    RecordEvent,
    Sequence,
    Stream,
    Synchronize,
    WaitEvent,
)

_MIN_BYTES = 1 << 16  # size of copies from which rates are estimated
_MIN_COPIES = 4  # copies that follow each other
_START = -1  # the place before the first event


def propose_pinned_memory(facts: Facts, launch: int, cause: Cause) -> Iterator[Proposal]:
    """Proposes pinned memory for all pageable copies, which then no longer block. A host that reads
    what was copied from the GPU right away has to wait as long as before."""
    changed: dict[int, Event | None] = {}
    rates = {kind: _pinned_rate(facts, kind) for kind in ("h2d", "d2h")}
    for place, event in enumerate(facts.program.sequence):
        if isinstance(event, Copy) and not event.pinned and (rate := rates.get(event.kind)):
            seconds = min(event.bytes / rate, event.duration or 0.0)
            changed[place] = replace(event, pinned=True, duration=seconds)
    if not changed:
        return
    waits = _waits_of_copy_operators(facts, [*changed])
    how = " and non_blocking=True" if waits else ""
    condition = "if their memory can be pinned before (cudaHostAlloc, pin_memory=True)"
    if not all(event is None or _is_copy_to_gpu(event) for event in changed.values()):
        condition += (
            ", and the host does not read at once what was copied from the GPU: it waits for it "
            "later"
        )
    yield edited(
        facts,
        f"pinned memory{how} for {counted(len(changed), 'copy', 'copies')} from or to pageable "
        "memory",
        changed | dict.fromkeys(waits),
        condition,
    )


def _waits_of_copy_operators(facts: Facts, copies: list[int]) -> list[int]:
    """Returns the places of waits for the GPU in operators that copy to it."""
    calls, sequence = facts.calls, facts.program.sequence
    maker = facts.account.times.made_in(calls)
    is_operator = facts.account.activity.host["kind"] == OPERATOR
    makers = {
        int(maker[place])
        for place in copies
        if _is_copy_to_gpu(sequence[place])
        and maker[place] != UNKNOWN
        and is_operator[maker[place]]
    }
    return [
        place
        for place, event in enumerate(sequence)
        if isinstance(event, Synchronize) and int(maker[place]) in makers
    ]


def _is_copy_to_gpu(event: Event) -> TypeGuard[Copy]:
    """Returns whether an event is a copy from the host to the GPU."""
    return isinstance(event, Copy) and event.kind == "h2d"


def propose_copies_ahead(facts: Facts, launch: int, cause: Cause) -> Iterator[Proposal]:
    """Proposes copies to the GPU in a stream of their own, one group ahead of their kernels.

    What follows a group of copies in its stream waits for it, as before. A group waits for what
    came before the group before it, which used the same buffer: so there are two buffers.
    """
    sequence = facts.program.sequence
    stream = _busiest_copy_stream(facts)
    if stream is None:
        return
    if any(isinstance(event, WaitEvent) and event.stream == stream for event in sequence):
        return  # the copies may be what waits for the events
    used = [event.event for event in sequence if isinstance(event, RecordEvent | WaitEvent)]
    new, number = free_stream(facts), max(used, default=-1) + 1  # a CUDA event that is not used
    new_events: list[tuple[Event, float]] = []  # events, and the gaps before them
    last_event: int | None = None  # the CUDA event that stands for all before the last group
    count, in_group = 0, False
    for event_, gap in zip(sequence, facts.program.host, strict=True):
        is_copy = _is_copy_to_gpu(event_) and event_.stream == stream
        thread = getattr(event_, "host", 0)
        if is_copy and not in_group:
            if last_event is not None:
                new_events.append((WaitEvent(last_event, new, host=thread), 0.0))
            last_event, number = number, number + 1
            new_events.append((RecordEvent(last_event, stream, host=thread), 0.0))
        if in_group and not is_copy:
            new_events.append((RecordEvent(number, new, host=thread), 0.0))
            new_events.append((WaitEvent(number, stream, host=thread), 0.0))
            number += 1
        in_group = is_copy
        if isinstance(event_, Copy) and is_copy:
            count += 1
            event_ = replace(event_, stream=new, non_blocking=True)
        new_events.append((event_, gap))
    if count:
        yield Proposal(
            f"{count} copies to the GPU in a stream of their own, one group ahead of the kernels",
            lambda: (
                Sequence(event for event, _ in new_events),
                tuple(gap for _, gap in new_events),
            ),
            "if they fill two buffers by turns, and the host has what they copy by then",
        )


def _busiest_copy_stream(facts: Facts) -> Stream | None:
    """Returns the stream with kernels and the most time of copies to the GPU; None: none."""
    kernels = {launch.stream for launch in facts.program.sequence.launches}
    seconds: dict[Stream, float] = defaultdict(float)
    for event in facts.program.sequence:
        if _is_copy_to_gpu(event) and event.stream in kernels and event.stream is not None:
            seconds[event.stream] += event.duration or 0.0
    return max(seconds, key=lambda stream: seconds[stream], default=None)


def _pinned_rate(facts: Facts, kind: str) -> float:
    """Returns bytes per second of pinned copies in one direction, measured or else the device's."""
    rates = [
        event.bytes / event.duration
        for event in facts.program.sequence
        if isinstance(event, Copy) and event.kind == kind and event.pinned
        if event.duration and event.bytes >= _MIN_BYTES
    ]
    return statistics.median(rates) if rates else facts.spec.host_copy_bandwidth * 1e6


def propose_joined_copies(facts: Facts) -> Iterator[Proposal]:
    """Proposes each run of copies of one direction and stream as one copy that waits once.

    In between the host may wait, and do what it does from one to the next. The one copy takes as
    long as all, less what each takes however small it is, which is what the shortest one takes.
    """
    sequence, gaps = facts.program.sequence, [*facts.program.host]
    changed: dict[int, Event | None] = {}
    before = runs = 0
    for run in _runs_of_copies(facts):
        copies = [event for place in run if isinstance(event := sequence[place], Copy)]
        if len(copies) < _MIN_COPIES:
            continue
        times = [copy.duration or 0.0 for copy in copies]
        seconds = sum(times) - min(times) * (len(times) - 1)
        size = sum(copy.bytes for copy in copies)
        changed[run[0]] = replace(copies[0], bytes=size, duration=seconds)
        last = run[-1] if isinstance(sequence[run[-1]], Synchronize) else None
        for place in run[1:]:
            gaps[place] = 0.0
            if place != last:
                changed[place] = None
        before, runs = before + len(copies), runs + 1
    if runs:
        yield edited(
            facts,
            f"{before} copies between host and GPU as {runs}, one for those that follow each other",
            changed, "if what they copy is put together before, or taken apart after", tuple(gaps),
        )  # fmt: skip


def _runs_of_copies(facts: Facts) -> Iterator[list[int]]:
    """Yields the places of copies, and of waits between them, that can become one copy."""
    open_: dict[tuple[int, Stream | None, str], list[int]] = {}  # by thread, stream and direction
    for place, event in enumerate(facts.program.sequence):
        host = getattr(event, "host", 0)
        if isinstance(event, Copy) and event.kind != "d2d":
            key: tuple[int, Stream | None, str] = (host, event.stream, event.kind)
            is_late = facts.program.host[place] > MAX_PAUSE_SECONDS
            others = [k for k in open_ if k[:2] == key[:2] and (k != key or is_late)]
            yield from (open_.pop(other) for other in others)
            open_.setdefault(key, []).append(place)
        elif isinstance(event, Synchronize):
            for (thread, _, _), run in open_.items():
                if thread == host:
                    run.append(place)
        else:
            stream = getattr(event, "stream", None)
            ended = [key for key in open_ if key[1] == stream]
            yield from (open_.pop(key) for key in ended)
    yield from open_.values()


def propose_copies_to_gpu_first(facts: Facts, launch: int, cause: Cause) -> Iterator[Proposal]:
    """Proposes all copies to the GPU issued before those from it.

    With one copy engine, a copy from the GPU that waits for its kernel holds up those to the GPU
    of other streams that were issued after it.
    """
    if facts.spec.copy_engine_count != 1:
        return
    sequence, host = facts.program.sequence, facts.program.host
    behind = earliest_places(sequence.events)
    if not _any_passes_copy_from_gpu(sequence.events, behind):
        return
    order = reordered(len(sequence), behind)
    yield Proposal(
        "all copies to the GPU issued before those from it: one copy engine makes both",
        lambda: (
            Sequence([sequence[place] for place in order]),
            tuple(host[place] for place in order),
        ),
        "if the buffers of all steps fit, and the host has what they copy by then",
    )


def earliest_places(events: tuple[Event, ...]) -> dict[int, int]:
    """Returns the place that each movable copy to the GPU must stay behind; -1: it may be first.

    It passes nothing of its stream, nothing of the legacy stream, and no call of its host thread
    that waits for the GPU. All other events stay in order, and so do copies that move.
    """
    behind: dict[int, int] = {}
    last_of_stream: dict[Stream, int] = {}
    last_wait: dict[int, int] = {}  # by host thread
    last_legacy = _START
    for place, event in enumerate(events):
        stream, thread = getattr(event, "stream", None), getattr(event, "host", 0)
        if _may_move(event):
            place_before = _START if stream is None else last_of_stream.get(stream, _START)
            # Behind a copy that moves, too, it has the same place, and comes after it.
            place_before = behind.get(place_before, place_before)
            behind[place] = max(place_before, last_legacy, last_wait.get(thread, _START))
        if waits_for_gpu(event):
            last_wait[thread] = place
        if stream == LEGACY_STREAM:
            last_legacy = place
        elif stream is not None:
            last_of_stream[stream] = place
    return behind


def reordered(events: int, behind: dict[int, int]) -> list[int]:
    """Returns the places of all events in order, with some moved right behind given places."""
    return sorted(
        range(events),
        key=lambda place: (behind[place], 1, place) if place in behind else (place, 0, place),
    )


def _may_move(event: Event) -> bool:
    """Returns whether an event is a pinned copy to the GPU that does not block its host."""
    return (
        isinstance(event, Copy)
        and event.kind == "h2d"
        and event.pinned
        and not event.blocking
        and event.stream != LEGACY_STREAM
    )


def _any_passes_copy_from_gpu(events: tuple[Event, ...], behind: dict[int, int]) -> bool:
    """Returns whether any copy that moves passes a copy from the GPU."""
    last = _START
    for place, event in enumerate(events):
        if place in behind and behind[place] < last:
            return True
        if isinstance(event, Copy) and event.kind == "d2h":
            last = place
    return False
