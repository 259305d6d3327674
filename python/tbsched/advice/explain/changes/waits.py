"""Waits of a host that come later, and values that it need not read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tbsched.advice.explain.changes.host_windows import gaps_without, times_of_calls
from tbsched.advice.explain.changes.operators import is_value, without_host_wait
from tbsched.advice.explain.changes.proposal import Proposal, edited
from tbsched.advice.explain.explanation import Cause
from tbsched.advice.explain.facts import Facts
from tbsched.counting import counted
from tbsched.prediction.calls import waits_for_gpu
from tbsched.program.activity import OPERATOR, UNKNOWN
from tbsched.program.sequence import Event, HostCall, Synchronize


def pure_waits(facts: Facts, host: int) -> dict[int, Event | None]:
    """Returns the places of calls of a host that only wait or copy, with what each becomes without
    its wait; None: it goes."""
    return {
        place: without_host_wait(event)
        for place, event in enumerate(facts.program.sequence)
        if getattr(event, "host", 0) == host
        and waits_for_gpu(event)
        and not isinstance(event, HostCall)
    }


def gaps_without_waits(facts: Facts, changed: dict[int, Event | None]) -> tuple[float, ...]:
    """Returns the gaps between calls, in seconds, without what leads to calls that are not made."""
    removed = [place for place, event in changed.items() if event is None]
    return gaps_without(facts, times_of_calls(facts, removed))


def propose_later_waits(facts: Facts, launch: int, cause: Cause) -> Iterator[Proposal]:
    """Proposes that a host waits once in each step, where it now waits last.

    If its waits were for several streams or events, the last one is for the whole GPU.
    """
    waits = pure_waits(facts, facts.host_of(launch))
    groups = [places for places in _by_step(facts, [*waits]) if len(places) > 1]
    changed: dict[int, Event | None] = {}
    for *earlier, last in groups:
        changed |= {place: waits[place] for place in earlier}
        events = [facts.program.sequence[place] for place in (*earlier, last)]
        waited_for = {(getattr(x, "stream", None), getattr(x, "event", None)) for x in events}
        if isinstance(events[-1], Synchronize) and len(waited_for) > 1:
            changed[last] = replace(events[-1], stream=None, event=None)
    if changed:
        yield edited(
            facts,
            f"{sum(map(len, groups))} synchronisations of the host as {len(groups)}, the last one "
            "in each step",
            changed,
            "if the host uses only then what the GPU has computed",
            gaps_without_waits(facts, changed),
        )


def propose_no_reads(facts: Facts, launch: int, cause: Cause) -> Iterator[Proposal]:
    """Proposes the program without single values that a host copies from the GPU and waits for.

    Only copies that no operator of PyTorch makes: of an operator all goes, which is a change of its
    own.
    """
    sequence, host = facts.program.sequence, facts.host_of(launch)
    maker = facts.account.times.made_in(facts.calls)
    by_operator = (maker != UNKNOWN) & (facts.account.activity.host["kind"][maker] == OPERATOR)
    removed: dict[int, Event | None] = {}
    reads = 0
    copied: int | None = None  # the place of a copy that the host made last, and does not wait for
    for place, event in enumerate(sequence):
        if getattr(event, "host", 0) != host:
            continue
        if isinstance(event, Synchronize) and copied is not None:
            removed |= {copied: None, place: None}
            reads += 1
        copied = None
        if is_value(event) and not by_operator[place]:
            if waits_for_gpu(event):
                removed[place] = None
                reads += 1
            else:
                copied = place
    if reads > 1:
        yield edited(
            facts,
            f"without {counted(reads, 'value')} that the host copies from the GPU and waits for: "
            "tested on the GPU, or only now and then",
            removed,
            "if the host does not use what the GPU has computed by then",
            gaps_without_waits(facts, removed),
        )


def _by_step(facts: Facts, waits: list[int]) -> list[list[int]]:
    """Returns the places of waits by the step in which they ended, or before, between and after
    steps; [] if no steps are known."""
    times, host = facts.account.steps.times, facts.account.activity.host
    bounds = np.union1d(times.begin, times.end)
    known = [place for place in waits if facts.calls[place] != UNKNOWN] if len(bounds) else []
    step = np.searchsorted(bounds, host["end_ns"][facts.calls[known]], side="right")
    groups: dict[int, list[int]] = {}
    for place, number in zip(known, step.tolist(), strict=True):
        groups.setdefault(number, []).append(place)
    return [*groups.values()]
