"""Copies in another order, where one copy engine makes those of both directions."""

from __future__ import annotations

from collections.abc import Iterator

from tbsched.advice.explain.changes.proposal import Proposal
from tbsched.advice.explain.explanation import Cause
from tbsched.advice.explain.facts import Facts
from tbsched.prediction.calls import waits_for_gpu
from tbsched.program.sequence import LEGACY_STREAM, Copy, Event, Sequence, Stream

_START = -1  # the place before the first event


def to_gpu_first(facts: Facts, launch: int, cause: Cause) -> Iterator[Proposal]:
    """All copies to the GPU issued before those from it.

    With one copy engine, a copy from the GPU that waits for its kernel holds up those to the GPU
    of other streams that were issued after it.
    """
    if facts.spec.copy_engine_count != 1:
        return
    sequence, host = facts.program.sequence, facts.program.host
    behind = earliest(sequence.events)
    if not _pass_copies_from_gpu(sequence.events, behind):
        return
    order = reordered(len(sequence), behind)
    yield Proposal(
        "all copies to the GPU issued before those from it: one copy engine makes both",
        Sequence([sequence[place] for place in order]),
        tuple(host[place] for place in order),
        "if the buffers of all steps fit, and the host has what they copy by then",
    )


def earliest(events: tuple[Event, ...]) -> dict[int, int]:
    """Returns the event that each copy to the GPU follows once it has moved; -1: it is the first.

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
            own = _START if stream is None else last_of_stream.get(stream, _START)
            # Behind a copy that moves, too, it has the same place, and comes after it.
            own = behind.get(own, own)
            behind[place] = max(own, last_legacy, last_wait.get(thread, _START))
        if waits_for_gpu(event):
            last_wait[thread] = place
        if stream == LEGACY_STREAM:
            last_legacy = place
        elif stream is not None:
            last_of_stream[stream] = place
    return behind


def reordered(events: int, behind: dict[int, int]) -> list[int]:
    """The places of all events, those that move right behind the event that they may not pass."""
    return sorted(
        range(events),
        key=lambda place: (behind[place], 1, place) if place in behind else (place, 0, place),
    )


def _may_move(event: Event) -> bool:
    """Whether it is a copy to the GPU for which its host thread does nothing and does not wait."""
    return (
        isinstance(event, Copy)
        and event.kind == "h2d"
        and event.pinned
        and not event.blocking
        and event.stream != LEGACY_STREAM
    )


def _pass_copies_from_gpu(events: tuple[Event, ...], behind: dict[int, int]) -> bool:
    """Returns whether any that moves passes a copy from the GPU."""
    last = _START
    for place, event in enumerate(events):
        if place in behind and behind[place] < last:
            return True
        if isinstance(event, Copy) and event.kind == "d2h":
            last = place
    return False
