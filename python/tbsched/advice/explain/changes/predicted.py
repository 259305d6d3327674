"""The changes that are worth it: those that the model predicts to shorten the program."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Iterator

from tbsched.advice.change import Change
from tbsched.advice.explain.changes.proposal import Proposal
from tbsched.advice.explain.changes.table import PROPOSERS
from tbsched.advice.explain.explanation import Cause, Gap
from tbsched.advice.explain.facts import Facts
from tbsched.prediction.fitting.merged import merged
from tbsched.prediction.orders import makespan_ns
from tbsched.progress import each

# So many changes are predicted; fewer of a program of many launches, or many merged blocks.
_MOST, _FEWEST, _LAUNCHES, _BLOCKS = 40, 8, 100_000, 2**24
_LEAST_GAIN = 1e-3  # of the makespan


def changes_of(facts: Facts, gaps: Iterable[Gap]) -> tuple[Change, ...]:
    """Changes that would shorten the program, the shortest predicted makespan first.

    Each is predicted with merged blocks, and one that gains once more as it is.
    """
    limit_ns = round(facts.prediction.makespan * (1 - _LEAST_GAIN) * 1e9)

    def predicted(proposal: Proposal) -> int | None:
        spec = facts.spec if proposal.spec is None else proposal.spec
        found = None
        with contextlib.suppress(ValueError):  # the device refuses it
            quick = merged(proposal.sequence, spec)
            found = makespan_ns(quick, spec, host=proposal.host, limit_ns=limit_ns)
            if found is not None and quick is not proposal.sequence:
                found = makespan_ns(proposal.sequence, spec, host=proposal.host, limit_ns=limit_ns)
        return found

    proposals = list(itertools.islice(_distinct(facts, gaps), _most(facts)))
    found = [
        Change(one.what, one.sequence, ns / 1e9, one.host, one.condition)
        for one, ns in zip(proposals, each(predicted, proposals, "predicting changes"), strict=True)
        if ns is not None
    ]
    return tuple(sorted(found, key=lambda change: change.makespan))


def _most(facts: Facts) -> int:
    """How many changes are predicted."""
    launches = merged(facts.program.sequence, facts.spec).launches
    blocks = sum(launch.blocks for launch in launches)
    return max(_FEWEST, min(_MOST, _LAUNCHES // len(launches), _BLOCKS // blocks))


def _distinct(facts: Facts, gaps: Iterable[Gap]) -> Iterator[Proposal]:
    tried: set[str] = set()
    for proposal in _proposals(facts, gaps):
        if proposal.what not in tried:
            tried.add(proposal.what)
            yield proposal


def _proposals(facts: Facts, gaps: Iterable[Gap]) -> Iterator[Proposal]:
    """What might shorten each gap, those for the causes that took longest first."""
    totals: dict[tuple[str, str], float] = {}
    longest: dict[tuple[str, str], tuple[float, int, Cause]] = {}
    for gap in gaps:
        for cause in gap.causes:
            name = facts.program.sequence.launches[gap.launch].name or str(gap.launch)
            key = (cause.cause, name)
            cost = cause.seconds * gap.cost / max(gap.end - gap.begin, 1e-12)
            totals[key] = totals.get(key, 0.0) + cost
            if key not in longest or cost > longest[key][0]:
                longest[key] = (cost, gap.launch, cause)
    for key in sorted(totals, key=lambda key: -totals[key]):
        _, launch, cause = longest[key]
        for proposer in PROPOSERS.get(cause.cause, ()):
            yield from proposer(facts, launch, cause)
