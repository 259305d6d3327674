"""The changes that are worth it: those that the model predicts to shorten the program."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from tbsched.advice.account.idle import HOST
from tbsched.advice.change import Change
from tbsched.advice.explain.changes.proposal import Proposal, both
from tbsched.advice.explain.changes.table import LESS_WORK, PROPOSERS
from tbsched.advice.explain.explanation import Cause, Gap
from tbsched.advice.explain.facts import Facts
from tbsched.prediction.fitting.merged import merged
from tbsched.prediction.orders import makespan_ns
from tbsched.prediction.predict import predict_launches
from tbsched.program.sequence import Launch
from tbsched.progress import each
from tbsched.traces.trace import Trace

# Most changes that are predicted; fewer for programs with many launches or merged blocks.
_MOST, _FEWEST, _LAUNCHES, _BLOCKS = 40, 4, 50_000, 2**22
_LEAST_GAIN = 1e-3  # share of the makespan
# One more change is combined with the best one for this many that are predicted, at least one; and
# the share of the makespan that each must save in addition.
_PREDICTED_FOR_ONE, _LEAST_MORE = 4, 0.03


def changes_of(facts: Facts, gaps: Iterable[Gap]) -> tuple[Change, ...]:
    """Changes that would shorten the program, the shortest predicted makespan first, then bounds.

    Each is predicted with merged blocks, and one that gains once more as it is. Copies may run
    before the first kernel and after the last one. A change saves no more than it shortens all of
    it, the copies included.
    """
    given_ns = round(facts.prediction.makespan * 1e9)
    given = merged(facts.program.sequence, facts.spec)
    trace, whole_ns = facts.prediction, 0
    if facts.program.sequence.transfers:
        if given is not facts.program.sequence:
            trace = predict_launches(given, facts.spec, host=facts.program.host)
        whole_ns = _whole_ns(trace)
    limit_ns = round(facts.prediction.makespan * (1 - _LEAST_GAIN) * 1e9)

    def predicted(proposal: Proposal) -> int | None:
        """Returns the makespan of a proposal in ns; None if it is refused or not less."""
        spec = facts.spec if proposal.spec is None else proposal.spec
        found = None
        with contextlib.suppress(ValueError):  # the device refuses it
            quick = merged(proposal.sequence, spec)
            if not whole_ns:
                found = makespan_ns(quick, spec, host=proposal.host, limit_ns=limit_ns)
            elif not (trace := predict_launches(quick, spec, host=proposal.host)).hang:
                found = round(trace.makespan * 1e9)
                saved_ns = whole_ns - _whole_ns(trace)
            if found is not None and found < limit_ns and quick is not proposal.sequence:
                found = makespan_ns(proposal.sequence, spec, host=proposal.host, limit_ns=limit_ns)
            if found is not None and whole_ns:
                found = max(found, given_ns - saved_ns)
        return found if found is not None and found < limit_ns else None

    most = _most(given.launches)
    proposals = list(itertools.islice(_distinct(facts, gaps), most))
    found = [
        (ns, one)
        for one, ns in zip(proposals, each(predicted, proposals, "predicting changes"), strict=True)
        if ns is not None
    ]
    found.sort(key=lambda each: (each[1].is_bound, each[0]))
    together = _together(facts, found, predicted, 1 + most // _PREDICTED_FOR_ONE)
    makespan = facts.prediction.makespan
    return tuple(
        Change(x.what, x.sequence, ns / 1e9, x.host, x.condition, makespan - ns / 1e9, x.is_bound)
        for ns, x in [*together, *found]
    )


def _together(
    facts: Facts,
    found: list[tuple[int, Proposal]],
    predicted: Callable[[Proposal], int | None],
    tries: int,
) -> list[tuple[int, Proposal]]:
    """Returns the best proposal joined with others that save more with it; [] if none do."""
    able = [(ns, one, one.edits.events.keys()) for ns, one in found if one.edits is not None]
    if not able:
        return []
    least, best, events = able[0]
    # First those that change other events: they are more likely to save something else.
    others = sorted(able[1:], key=lambda each: not events.isdisjoint(each[2]))
    parts, enough = 1, least - _LEAST_MORE * facts.prediction.makespan * 1e9
    for _, other, _ in others[:tries]:
        joint = both(facts, best, other)
        ns = None if joint is None else predicted(joint)
        if joint is not None and ns is not None and ns < enough:
            least, best, parts = ns, joint, parts + 1
            enough = least - _LEAST_MORE * facts.prediction.makespan * 1e9
    is_best = parts > 1 and least < found[0][0]
    return [(least, replace(best, what=f"together: {best.what}"))] if is_best else []


def _whole_ns(trace: Trace) -> int:
    """Returns the time from first to last work with copies and memsets."""
    assert trace.transfer_ns is not None  # predictions have times of transfers
    starts = [int(p.start_ns.min()) for p in trace if p.start_ns is not None]
    ends = [int(p.end_ns.max()) for p in trace if p.end_ns is not None]
    starts += trace.transfer_ns[:, 0].tolist()
    ends += trace.transfer_ns[:, 1].tolist()
    return max(ends) - min(starts)


def _most(launches: tuple[Launch, ...]) -> int:
    """Returns how many changes of a program of these merged launches are predicted."""
    blocks = sum(launch.blocks for launch in launches)
    return max(_FEWEST, min(_MOST, _LAUNCHES // len(launches), _BLOCKS // blocks))


def _distinct(facts: Facts, gaps: Iterable[Gap]) -> Iterator[Proposal]:
    """Yields each proposal once, those first that may save most."""
    tried: set[str] = set()
    groups = [*_less_work(facts), *_for_gaps(facts, gaps)]
    for _, proposals in sorted(groups, key=lambda group: -group[0]):
        for proposal in proposals:
            if proposal.what not in tried:
                tried.add(proposal.what)
                yield proposal


def _less_work(facts: Facts) -> Iterator[tuple[float, list[Proposal]]]:
    """Proposals of less work, with the seconds that it takes."""
    rows = facts.program.measured
    took = dict.fromkeys(range(len(facts.program.sequence)), 0.0)
    for place, ns in zip(facts.event.tolist(), rows["end_ns"] - rows["start_ns"], strict=True):
        took[place] += float(ns) / 1e9
    for proposer in LESS_WORK:
        for proposal in proposer(facts):
            assert proposal.edits is not None  # it changes events
            removed = [place for place, event in proposal.edits.events.items() if event is None]
            saved = sum(facts.program.host) - sum(proposal.edits.gaps)
            yield saved + sum(took[place] for place in removed), [proposal]


def _for_gaps(facts: Facts, gaps: Iterable[Gap]) -> Iterator[tuple[float, Iterator[Proposal]]]:
    """Yields the cost of all gaps with one cause, and proposals that might shorten them."""
    totals: dict[object, float] = {}
    longest: dict[object, tuple[float, int, Cause]] = {}
    for gap in gaps:
        for cause in gap.causes:
            if gap.launch < 0:
                continue
            key: object = (cause.cause, _about(facts, gap.launch, cause))
            cost = cause.seconds * gap.cost / max(gap.end - gap.begin, 1e-12)
            totals[key] = totals.get(key, 0.0) + cost
            if key not in longest or cost > longest[key][0]:
                longest[key] = (cost, gap.launch, cause)
    for key, (_, launch, cause) in longest.items():
        yield totals[key], _let_run(facts, launch, cause)


def _about(facts: Facts, launch: int, cause: Cause) -> int | str:
    """Returns what distinguishes causes of one kind: the host's action, or the waiting kernel."""
    if cause.cause == HOST:
        return facts.host_name(cause)
    return facts.program.sequence.launches[launch].name or launch


def _let_run(facts: Facts, launch: int, cause: Cause) -> Iterator[Proposal]:
    """Yields proposals that might let a waiting launch run."""
    for proposer in PROPOSERS.get(cause.cause, ()):
        yield from proposer(facts, launch, cause)
