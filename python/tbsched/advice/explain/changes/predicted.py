"""The changes that are worth it: those that the model predicts to shorten the program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tbsched.advice.change import Change
from tbsched.advice.explain.changes.proposal import Proposal
from tbsched.advice.explain.changes.table import PROPOSERS
from tbsched.advice.explain.explanation import Cause, Gap
from tbsched.advice.explain.facts import Facts
from tbsched.prediction.predict import predict

# So many changes are predicted; fewer of a program of many launches.
_MOST, _FEWEST, _LAUNCHES = 40, 8, 100_000
_LEAST_GAIN = 1e-3  # of the makespan


def changes_of(facts: Facts, gaps: Iterable[Gap]) -> tuple[Change, ...]:
    """Changes that would shorten the program, the shortest predicted makespan first."""
    given = facts.prediction.makespan
    most = max(_FEWEST, min(_MOST, _LAUNCHES // max(len(facts.start_ns), 1)))
    found: dict[str, Change] = {}
    tried: set[str] = set()
    for proposal in _proposals(facts, gaps):
        if proposal.what in tried:
            continue
        if len(tried) == most:
            break
        tried.add(proposal.what)
        makespan = _makespan(facts, proposal)
        if makespan is not None and makespan < given * (1 - _LEAST_GAIN):
            found[proposal.what] = Change(
                proposal.what, proposal.sequence, makespan, proposal.host, proposal.condition
            )
    return tuple(sorted(found.values(), key=lambda change: change.makespan))


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


def _makespan(facts: Facts, proposal: Proposal) -> float | None:
    """Predicted seconds; None: the device refuses it."""
    spec = facts.spec if proposal.spec is None else proposal.spec
    try:
        return predict(proposal.sequence, spec, host=proposal.host).makespan
    except ValueError:
        return None
