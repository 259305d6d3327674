"""Copies that follow each other, as one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tbsched.advice.explain.changes.proposal import MOST_PAUSE, Proposal, edited
from tbsched.advice.explain.facts import Facts
from tbsched.program.sequence import Copy, Event, Stream, Synchronize

_FEWEST = 4  # copies that follow each other


def copies_together(facts: Facts) -> Iterator[Proposal]:
    """Each run of copies of one direction and stream as one copy, which waits once.

    In between the host may wait, and do what it does from one to the next. The one copy takes as
    long as all, less what each takes however small it is, which is what the shortest one takes.
    """
    sequence, gaps = facts.program.sequence, [*facts.program.host]
    changed: dict[int, Event | None] = {}
    before = runs = 0
    for run in _runs(facts):
        copies = [
            event for event in map(sequence.events.__getitem__, run) if isinstance(event, Copy)
        ]
        if len(copies) < _FEWEST:
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
            changed,
            "if what they copy is put together before, or taken apart after",
            tuple(gaps),
        )


def _runs(facts: Facts) -> Iterator[list[int]]:
    """Yields the places of copies, and of the waits between them, that follow each other."""
    open_: dict[tuple[int, Stream | None, str], list[int]] = {}  # by thread, stream and direction
    for place, event in enumerate(facts.program.sequence):
        host = getattr(event, "host", 0)
        if isinstance(event, Copy) and event.kind != "d2d":
            key: tuple[int, Stream | None, str] = (host, event.stream, event.kind)
            is_late = facts.program.host[place] > MOST_PAUSE
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
