"""Launches that are issued sooner, or are more urgent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tbsched.advice.explain.changes.proposal import Proposal, with_some
from tbsched.advice.explain.explanation import Cause
from tbsched.advice.explain.facts import Facts
from tbsched.program.sequence import Launch, Sequence

_URGENT = -5  # the most urgent priority of an H100 and of an H200 (cuCtxGetStreamPriorityRange)


def more_urgent(facts: Facts, launch: int, cause: Cause) -> Iterator[Proposal]:
    """Yields a stream of a more urgent priority."""
    launches = facts.program.sequence.launches
    stream = launches[launch].stream
    own = [
        k
        for k, x in enumerate(launches)
        if k == launch or (stream is not None and x.stream == stream)
    ]
    if launches[launch].priority > _URGENT and not isinstance(stream, str):
        changed = {k: replace(launches[k], priority=_URGENT) for k in own}
        who = facts.named(launch) if stream is None else f"stream {stream}"
        yield Proposal(
            f"priority {_URGENT} for {who}", with_some(facts, changed), facts.program.host
        )


def issued_first(facts: Facts, launch: int, cause: Cause) -> Iterator[Proposal]:
    """Issued before what it waits behind, by the same host thread."""
    sequence = facts.program.sequence
    if cause.behind < 0 or facts.is_collective(launch):
        return  # ranks issue their collectives in one order
    place, behind = int(facts.event[launch]), int(facts.event[cause.behind])
    one, other = sequence[place], sequence[behind]
    if not (isinstance(one, Launch) and isinstance(other, Launch)) or behind >= place:
        return
    between = sequence.events[behind:place]
    if one.host != other.host or not all(may_swap(one, event) for event in between):
        return
    events = [*sequence.events]
    events.insert(behind, events.pop(place))
    yield Proposal(
        f"{facts.named(launch)} issued before {facts.named(cause.behind)}",
        Sequence(events),
        facts.program.host,
    )


def may_swap(launch: Launch, event: object) -> bool:
    """Returns whether a launch may be issued before an event: another launch of another stream."""
    return (
        isinstance(event, Launch)
        and not isinstance(event.stream, str)
        and not isinstance(launch.stream, str)
        and (launch.stream is None or launch.stream != event.stream)
    )
