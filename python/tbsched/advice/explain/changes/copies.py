"""Copies that wait for less, and hold up less."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tbsched.advice.explain.changes.proposal import Proposal, free_stream, with_events
from tbsched.advice.explain.explanation import Cause
from tbsched.advice.explain.facts import Facts
from tbsched.program.sequence import Copy, Event, GraphLaunch, Memset


def other_copy(facts: Facts, launch: int, cause: Cause) -> Iterator[Proposal]:
    """The copy that a launch waited for in another stream, or with pinned memory."""
    place = _place(facts, -2 - cause.behind) if cause.behind <= -2 else None
    if place is None:
        return
    event = facts.program.sequence[place]
    assert isinstance(event, Copy | Memset)
    who = facts.named(cause.behind)
    moved: Event = replace(event, stream=free_stream(facts), non_blocking=True)
    yield Proposal(
        f"{who} in another stream, a non-blocking one",
        *with_events(facts, {place: moved}),
        f"if {facts.named(launch)} does not need it",
    )
    if isinstance(event, Copy) and not event.pinned:
        pinned = replace(event, pinned=True, duration=None)
        yield Proposal(f"pinned memory for {who}", *with_events(facts, {place: pinned}))


def _place(facts: Facts, transfer: int) -> int | None:
    """Where in the sequence a copy or memset is; None: in a graph."""
    number = 0
    for place, event in enumerate(facts.program.sequence):
        if isinstance(event, Copy | Memset):
            if number == transfer:
                return place
            number += 1
        elif isinstance(event, GraphLaunch):
            number += len(event.graph.transfers)
    return None
