"""Other carveouts, so that kernels agree about the configuration of an SM."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tbsched.advice.explain.changes.proposal import Proposal, with_some
from tbsched.advice.explain.explanation import Cause
from tbsched.advice.explain.facts import Facts
from tbsched.program.library_kernels import is_of_library

_CARVEOUTS = (0, 50, 100)  # per cent


def other_carveout(facts: Facts, launch: int, cause: Cause) -> Iterator[Proposal]:
    """One for all kernels, or another one for the kernel that waited; libraries keep theirs."""
    launches = facts.program.sequence.launches
    name = launches[launch].name
    free = [k for k, x in enumerate(launches) if not is_of_library(x)]
    own = [k for k in free if k == launch or (name and launches[k].name == name)]
    every = "every kernel" if len(free) == len(launches) else "every kernel that is of no library"
    for carveout in _CARVEOUTS:
        for numbers, who in ((free, every), (own, facts.named(launch))):
            changed = {k: replace(launches[k], carveout=carveout) for k in numbers}
            sequence = with_some(facts, changed)
            if sequence != facts.program.sequence:
                what = f"carveout {carveout} for {who}"
                yield Proposal(what, sequence, facts.program.host)
