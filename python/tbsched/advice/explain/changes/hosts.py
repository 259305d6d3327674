"""What a host could do sooner: call, not wait, and have kernels loaded."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import replace

from tbsched.advice.explain.changes.proposal import Proposal, with_events, with_some
from tbsched.advice.explain.explanation import Cause
from tbsched.advice.explain.facts import Facts
from tbsched.prediction.calls import waits_for_gpu
from tbsched.program.sequence import Copy, Event

_NAMED = 2  # launches that a condition names


def no_pauses(facts: Facts, launch: int, cause: Cause) -> Iterator[Proposal]:
    """No time between calls, as if what the host does between them took none."""
    host = facts.host_of(launch)
    sequence = facts.program.sequence
    gaps = [
        0.0 if getattr(event, "host", 0) == host else gap
        for event, gap in zip(sequence, facts.program.host, strict=True)
    ]
    who = "the host" if host == 0 else f"host thread {host}"
    yield Proposal(
        f"no time between the calls of {who}: a CUDA graph, larger kernels, or less work there",
        sequence,
        tuple(gaps),
    )


def without_synchronisation(facts: Facts, launch: int, cause: Cause) -> Iterator[Proposal]:
    """Without the last call that waits before a launch, and without all of its host thread."""
    host, sequence = facts.host_of(launch), facts.program.sequence
    every = {
        place: _without_wait(event)
        for place, event in enumerate(sequence)
        if getattr(event, "host", 0) == host and waits_for_gpu(event)
    }
    last = max((place for place in every if place < facts.event[launch]), default=None)
    if last is None:
        return
    condition = "if the host does not use what the GPU has computed by then"
    yield Proposal(
        f"without the synchronisation before {facts.named(launch)}",
        *with_events(facts, {last: every[last]}),
        condition,
    )
    if len(every) > 1:
        yield Proposal(
            f"without {len(every)} synchronisations of the host",
            *with_events(facts, every),
            condition,
        )


def _without_wait(event: Event) -> Event | None:
    return replace(event, blocking=False, pinned=True) if isinstance(event, Copy) else None


def warmed_up(facts: Facts, launch: int, cause: Cause) -> Iterator[Proposal]:
    """Kernels that were used before, so that none is loaded, by the launch or right before it."""
    launches, host = facts.program.sequence.launches, [*facts.program.host]
    calls = facts.long_calls
    usual = statistics.median([host[place] for place in facts.event.tolist()])
    loaded = [
        number
        for number in calls.launch[calls.loads | calls.may_load].tolist()
        if launches[number].first_use or host[facts.event[number]] > usual
    ]
    if not loaded:
        return
    for number in loaded:
        host[facts.event[number]] = min(host[facts.event[number]], usual)
    conditions = ["if the host only loads kernels in the time before these launches"]
    guessed = [number for number in loaded if not launches[number].first_use]
    if guessed:
        conditions.append(f"as first calls that took long suggest: {_listed(facts, guessed)}")
    count = f"{len(loaded)} kernels" if len(loaded) > 1 else facts.named(loaded[0])
    yield Proposal(
        f"{count} used once before (or CUDA_MODULE_LOADING=EAGER)",
        with_some(facts, {k: replace(launches[k], first_use=False) for k in loaded}),
        tuple(host),
        ", ".join(conditions),
    )


def _listed(facts: Facts, launches: list[int]) -> str:
    some = ", ".join(map(facts.named, launches[:_NAMED]))
    return some if len(launches) <= _NAMED else f"{some} and {len(launches) - _NAMED} more"
