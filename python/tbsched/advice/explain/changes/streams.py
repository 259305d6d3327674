"""Launches in another stream, where they do not wait for what is before them."""

from __future__ import annotations

from collections.abc import Iterator

from tbsched.advice.explain.changes.proposal import (
    Proposal,
    each_and_all,
    free_stream,
    moved_to,
    with_some,
)
from tbsched.advice.explain.explanation import Cause
from tbsched.advice.explain.facts import Facts
from tbsched.prediction.calls import waits_for_gpu
from tbsched.program.events.transfers import Transfer
from tbsched.program.sequence import (
    LEGACY_STREAM,
    Event,
    GraphLaunch,
    Launch,
    RecordEvent,
    Stream,
    WaitEvent,
    WaitValue,
)

_MOST_STREAMS = 16


def other_stream(facts: Facts, launch: int, cause: Cause) -> Iterator[Proposal]:
    """Yields a stream of their own, for the launch and for all launches of its kernel.

    Only past kernels: nothing is moved past a copy, or away from an event that is waited for. A
    collective stays in its order.
    """
    if cause.behind < 0:
        return
    launches, new = facts.program.sequence.launches, free_stream(facts)
    for numbers, who in each_and_all(facts, launch):
        if any(facts.is_collective(k) for k in (*numbers, cause.behind)):
            continue
        if _passes(facts, numbers):
            continue
        yield Proposal(
            f"{who} in another stream, a non-blocking one",
            with_some(facts, {k: moved_to(launches[k], new) for k in numbers}),
            facts.program.host,
            f"if nothing of it needs {facts.named(cause.behind)} or what else was before it in its "
            "stream, nor the other way round",
        )


def several_streams(facts: Facts, launch: int, cause: Cause) -> Iterator[Proposal]:
    """Launches of one kernel by turns in several streams, as many as fit beside each other."""
    launches, alike = facts.program.sequence.launches, facts.alike(launch)
    room = int(1 / max(1 - facts.idle_share(launch), 1 / _MOST_STREAMS))
    count = min(room, _MOST_STREAMS, len(alike))
    if count < 2 or launches[launch].stream is None:
        return
    if facts.is_collective(launch) or _passes(facts, alike):
        return
    new = free_stream(facts)
    changed = {k: moved_to(launches[k], new + turn % count) for turn, k in enumerate(alike)}
    yield Proposal(
        f"{len(alike)} launches of {facts.kernel_name(launch)} by turns in {count} streams",
        with_some(facts, changed),
        facts.program.host,
        "if they need neither each other nor what is between them in their stream",
    )


def _passes(facts: Facts, numbers: list[int]) -> bool:
    """Returns whether launches that leave their stream pass a copy, an event or a collective of it.

    Neither what is before them in the stream, nor what comes after them and may need them. Work of
    the legacy stream is before and after that of blocking streams, too. What came before the host
    waited for the GPU is over, and nobody passes it.
    """
    sequence, stream = facts.program.sequence, facts.stream_of(numbers[0])
    if not all(isinstance(sequence[int(facts.event[number])], Launch) for number in numbers):
        return True  # a node is where its graph is
    is_blocking = not facts.program.sequence.launches[numbers[0]].non_blocking
    awaited = {event.event for event in sequence if isinstance(event, WaitEvent)}
    moved = {int(facts.event[number]) for number in numbers}
    holds_up = has_left = False
    number = 0
    for place, event in enumerate(sequence):
        own = range(number, number + len(event.launches))
        number = own.stop
        if waits_for_gpu(event):
            holds_up = has_left = False
        elif place in moved:
            if holds_up:
                return True
            has_left = True
        elif _is_ordered(event, stream, is_blocking=is_blocking):
            is_bound = isinstance(event, Transfer | WaitEvent | WaitValue | GraphLaunch) or any(
                facts.is_collective(each) for each in own
            )
            is_awaited = isinstance(event, RecordEvent) and event.event in awaited
            if has_left and (is_bound or is_awaited):
                return True
            holds_up = holds_up or is_bound
    return False


def _is_ordered(event: Event, stream: Stream | None, *, is_blocking: bool) -> bool:
    """Returns whether an event follows, and is followed by, work of a stream."""
    own = getattr(event, "stream", None)
    if own == stream:
        return True
    if LEGACY_STREAM not in (own, stream):
        return False
    return is_blocking and not getattr(event, "non_blocking", False)
