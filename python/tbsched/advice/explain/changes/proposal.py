"""A change that might shorten a program, before it is predicted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from tbsched.advice.explain.explanation import Cause
from tbsched.advice.explain.facts import Facts
from tbsched.hardware.spec import DeviceSpec
from tbsched.program.sequence import Event, Launch, Sequence, with_launches


@dataclass(frozen=True, slots=True)
class Proposal:
    """A change of a program.

    Attributes:
        what: the change in words.
        sequence: the changed program.
        host: its gaps between calls.
        condition: what must hold for the program to compute the same; empty: nothing.
        is_bound: whether it says only how much any change of this kind can save at most.
        spec: the device, changed if the change is one of its settings; None: as it is.
    """

    what: str
    sequence: Sequence
    host: tuple[float, ...]
    condition: str = ""
    spec: DeviceSpec | None = None
    is_bound: bool = False


# Sees the program and what a launch waited for; gives changes that would have let it run.
Proposer: TypeAlias = Callable[[Facts, int, Cause], Iterator[Proposal]]


def with_some(facts: Facts, changed: dict[int, Launch]) -> Sequence:
    """The program with other launches in the place of some, by their numbers."""
    launches = facts.program.sequence.launches
    return with_launches(
        facts.program.sequence, [changed.get(k, launch) for k, launch in enumerate(launches)]
    )


def with_events(
    facts: Facts, changed: dict[int, Event | None]
) -> tuple[Sequence, tuple[float, ...]]:
    """The program with other events in the place of some, None: without them; and its host.

    The time before a call that is not made passes before the next one of its thread.
    """
    events: list[Event] = []
    gaps: list[float] = []
    kept: dict[int, float] = {}
    for place, (event, gap) in enumerate(
        zip(facts.program.sequence, facts.program.host, strict=True)
    ):
        host = getattr(event, "host", 0)
        made = changed.get(place, event)
        if made is None:
            kept[host] = kept.get(host, 0.0) + gap
        else:
            events.append(made)
            gaps.append(gap + kept.pop(host, 0.0))
    return Sequence(events), tuple(gaps)


def each_and_all(facts: Facts, launch: int) -> list[tuple[list[int], str]]:
    """A launch by itself, and all of its kernel in its stream; with what they are called."""
    found = [([launch], facts.named(launch))]
    alike = facts.alike(launch)
    if len(alike) > 1:
        found.append((alike, f"each of {len(alike)} launches of {facts.kernel_name(launch)}"))
    return found


def moved_to(launch: Launch, stream: int) -> Launch:
    """The launch in another stream, a non-blocking one of the same partition."""
    return replace(launch, stream=stream, non_blocking=True)


def free_stream(facts: Facts) -> int:
    """A stream that the program does not use."""
    streams = [getattr(event, "stream", None) for event in facts.program.sequence]
    return max([0, *(x + 1 for x in streams if isinstance(x, int))])
