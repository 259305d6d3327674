"""A change that might shorten a program, before it is predicted."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from tbsched.advice.explain.explanation import Cause
from tbsched.advice.explain.facts import Facts
from tbsched.hardware.spec import DeviceSpec
from tbsched.program.sequence import Event, Launch, Sequence, with_launches

MAX_PAUSE_SECONDS = 5e-4  # seconds between calls; in a longer one the host does something else


@dataclass(frozen=True, slots=True)
class Edits:
    """Events of a program that change or go, and the gaps between its calls.

    Attributes:
        events: by its place what an event becomes; None: it goes.
        gaps: before each event of the program as it is, in seconds; below 0: more than all of a
            fitted gap is taken away.
    """

    events: Mapping[int, Event | None]
    gaps: tuple[float, ...]


# A program, and the gaps between its calls in seconds.
Changed: TypeAlias = tuple[Sequence, tuple[float, ...]]


@dataclass(frozen=True)
class Proposal:
    """A change of a program, which is made when it is first asked for: many are proposed twice.

    Attributes:
        what: the change in words.
        change: returns the changed program and its gaps between calls.
        condition: what must hold for the program to compute the same; empty: nothing.
        is_bound: whether it says only how much any change of this kind can save at most.
        spec: the device, changed if the change is one of its settings; None: as it is.
        edits: what the change does to single events, so that it goes together with others; None:
            it changes an order, or more.
    """

    what: str
    change: Callable[[], Changed]
    condition: str = ""
    spec: DeviceSpec | None = None
    is_bound: bool = False
    edits: Edits | None = None

    @cached_property
    def changed(self) -> Changed:
        """The changed program, and its gaps between calls."""
        return self.change()

    @property
    def sequence(self) -> Sequence:
        """The changed program."""
        return self.changed[0]

    @property
    def host(self) -> tuple[float, ...]:
        """Its gaps between calls, in seconds."""
        return self.changed[1]


# Sees the program and what a launch waited for; gives changes that would have let it run.
Proposer: TypeAlias = Callable[[Facts, int, Cause], Iterator[Proposal]]


def edited(
    facts: Facts, what: str, events: Mapping[int, Event | None], condition: str = "",
    gaps: tuple[float, ...] | None = None,
) -> Proposal:  # fmt: skip
    """Returns the change of some events by their places, and of the gaps between calls."""
    edits = Edits(events, facts.program.host if gaps is None else gaps)
    return Proposal(what, lambda: _applied(facts, edits), condition, edits=edits)


def joined_proposal(facts: Facts, first: Proposal, second: Proposal) -> Proposal | None:
    """Returns the proposal of both changes; None: they change one event, or more than events."""
    if first.edits is None or second.edits is None or first.spec or second.spec:
        return None
    events = dict(first.edits.events)
    for place, event in second.edits.events.items():
        if place in events and None not in (events[place], event) and events[place] != event:
            return None
        events[place] = None if events.get(place, event) is None else event
    gaps = tuple(
        a + b - given  # both save their part of it
        for a, b, given in zip(first.edits.gaps, second.edits.gaps, facts.program.host, strict=True)
    )
    conditions = dict.fromkeys(each for each in (first.condition, second.condition) if each)
    return edited(facts, f"{first.what}; and {second.what}", events, "; ".join(conditions), gaps)


def relaunched(
    facts: Facts, what: str, changed: Mapping[int, Launch], condition: str = "",
    gaps: tuple[float, ...] | None = None,
) -> Proposal:  # fmt: skip
    """Returns the change of some launches by their numbers, and of the gaps between calls."""

    def change() -> Changed:
        sequence = facts.program.sequence
        launches = [changed.get(k, launch) for k, launch in enumerate(sequence.launches)]
        return with_launches(sequence, launches), facts.program.host if gaps is None else gaps

    return Proposal(what, change, condition)


def _applied(facts: Facts, edits: Edits) -> Changed:
    """Returns the changed program and its gaps. The time before a call that is not made passes
    before the next one of its thread.

    A gap has more than the time between two calls: by what the call itself took longer than it is
    predicted to, and what calls before a launch did. That goes with those calls.
    """
    events: list[Event] = []
    gaps: list[float] = []
    kept: dict[int, float] = {}
    unfitted: set[int] = set()  # threads without a call since their last launch
    rows = zip(
        facts.program.sequence, edits.gaps, facts.program.host, facts.window_seconds.tolist(),
        facts.longer_seconds.tolist(), strict=True,
    )  # fmt: skip
    for place, (event, gap, fitted, window, longer) in enumerate(rows):
        host = getattr(event, "host", 0)
        made = edits.events.get(place, event)
        if made is None:
            kept[host] = kept.get(host, 0.0) + max(0.0, _shifted(gap, fitted, window))
        elif event.launches and host in unfitted:
            gap = _shifted(gap, fitted, window + longer)
        if event.launches:
            unfitted.discard(host)
        elif made is None:
            unfitted.add(host)
        if made is not None:
            events.append(made)
            gaps.append(max(0.0, gap) + kept.pop(host, 0.0))
    return Sequence(events), tuple(gaps)


def _shifted(gap: float, given: float, base: float) -> float:
    """Returns a changed gap, relative to another one than that given; NaN: to the given one."""
    return gap if math.isnan(base) else base + gap - given


def free_stream(facts: Facts) -> int:
    """Returns a stream that the program does not use."""
    streams = [getattr(event, "stream", None) for event in facts.program.sequence]
    return max([0, *(x + 1 for x in streams if isinstance(x, int))])
