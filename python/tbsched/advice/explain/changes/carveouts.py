"""Other carveouts, so that kernels agree about the configuration of an SM."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tbsched.advice.explain.changes.proposal import Proposal, with_some
from tbsched.advice.explain.explanation import Cause
from tbsched.advice.explain.facts import Facts

_CARVEOUTS = (0, 50, 100)  # per cent


def other_carveout(facts: Facts, launch: int, cause: Cause) -> Iterator[Proposal]:
    """One for all kernels, or another one for the kernel that waited."""
    launches = facts.program.sequence.launches
    name = launches[launch].name
    own = [k for k, x in enumerate(launches) if k == launch or (name and x.name == name)]
    for carveout in _CARVEOUTS:
        for numbers, who in (([*range(len(launches))], "every kernel"), (own, facts.named(launch))):
            changed = {k: replace(launches[k], carveout=carveout) for k in numbers}
            sequence = with_some(facts, changed)
            if sequence != facts.program.sequence:
                what = f"carveout {carveout} for {who}"
                yield Proposal(what, sequence, facts.program.host)
