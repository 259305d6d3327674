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
from tbsched.program.sequence import Launch


def other_stream(facts: Facts, launch: int, cause: Cause) -> Iterator[Proposal]:
    """A stream of their own, for the launch and for all launches of its kernel."""
    if not isinstance(facts.program.sequence[int(facts.event[launch])], Launch):
        return
    launches, new = facts.program.sequence.launches, free_stream(facts)
    for numbers, who in each_and_all(facts, launch):
        changed = {k: moved_to(launches[k], new) for k in numbers}
        yield Proposal(
            f"{who} in another stream, a non-blocking one",
            with_some(facts, changed),
            facts.program.host,
            f"if nothing of it needs {facts.named(cause.behind)}, nor the other way round",
        )
