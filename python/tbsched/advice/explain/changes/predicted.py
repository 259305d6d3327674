"""The changes that are worth it: those that the model predicts to shorten the program."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from tbsched.advice.account.idle import HOST
from tbsched.advice.change import Change
from tbsched.advice.explain.changes.proposal import Proposal, Proposer, joined_proposal
from tbsched.advice.explain.changes.table import LESS_WORK, OF_PROGRAM, PROPOSERS
from tbsched.advice.explain.explanation import Cause, Gap
from tbsched.advice.explain.facts import Facts
from tbsched.prediction.fitting.merged import merged
from tbsched.prediction.orders import makespan_ns
from tbsched.prediction.predict import predict_launches
from tbsched.program.sequence import Event, Launch
from tbsched.progress import each
from tbsched.traces.trace import Trace

# Most changes that are predicted; fewer for programs with many launches or merged blocks. A launch
# takes as long to predict as so many blocks.
_MAX_CHANGES, _MIN_CHANGES, _LAUNCH_BUDGET, _BLOCKS_PER_LAUNCH = 40, 4, 40_000, 500
_MIN_GAIN = 1e-3  # share of the makespan
# One more change is combined with the best one for this many that are predicted, at least one; and
# the share of the makespan that each must save in addition.
_CHANGES_PER_COMBINATION, _MIN_FURTHER_GAIN = 4, 0.03


def changes_of(facts: Facts, gaps: Iterable[Gap]) -> tuple[Change, ...]:
    """Returns changes that shorten the program, the shortest makespan first, then bounds.

    Each is predicted with merged blocks, and one that gains once more as it is. Copies may run
    before the first kernel and after the last one. A change saves no more than it shortens all of
    it, the copies included.
    """
    makespan = facts.prediction.makespan
    makespan_ns_ = round(makespan * 1e9)
    given = merged(facts.program.sequence, facts.spec)
    trace, whole_ns = facts.prediction, 0
    if facts.program.sequence.transfers:
        if given is not facts.program.sequence:
            trace = predict_launches(given, facts.spec, host=facts.program.host)
        whole_ns = _span_with_transfers_ns(trace)
    limit_ns = round(makespan * (1 - _MIN_GAIN) * 1e9)

    def predicted(proposal: Proposal) -> int | None:
        """Returns the makespan of a proposal in ns; None: it is refused, or not shorter."""
        spec = facts.spec if proposal.spec is None else proposal.spec
        ns_ = None
        with contextlib.suppress(ValueError):  # the device refuses it
            quick = merged(proposal.sequence, spec)
            if not whole_ns:
                ns_ = makespan_ns(quick, spec, host=proposal.host, limit_ns=limit_ns)
            elif not (trace := predict_launches(quick, spec, host=proposal.host)).hang:
                ns_ = round(trace.makespan * 1e9)
                saved_ns = whole_ns - _span_with_transfers_ns(trace)
            if ns_ is not None and ns_ < limit_ns and quick is not proposal.sequence:
                ns_ = makespan_ns(proposal.sequence, spec, host=proposal.host, limit_ns=limit_ns)
            if ns_ is not None and whole_ns:
                ns_ = max(ns_, makespan_ns_ - saved_ns)
        return ns_ if ns_ is not None and ns_ < limit_ns else None

    most = _change_budget(given.launches)
    proposals = list(itertools.islice(_distinct_proposals(facts, gaps), most))
    gains = [
        (ns, one)
        for one, ns in zip(proposals, each(predicted, proposals, "predicting changes"), strict=True)
        if ns is not None
    ]
    gains.sort(key=lambda gain: (gain[1].is_bound, gain[0]))
    combined = _combined(facts, gains, predicted, 1 + most // _CHANGES_PER_COMBINATION)
    return tuple(
        Change(x.what, x.sequence, ns / 1e9, x.host, x.condition, makespan - ns / 1e9, x.is_bound)
        for ns, x in [*combined, *gains]
    )


def _combined(
    facts: Facts, gains: list[tuple[int, Proposal]], predicted: Callable[[Proposal], int | None],
    tries: int,
) -> list[tuple[int, Proposal]]:  # fmt: skip
    """Returns the best proposal joined with others that save more with it; [] if none does."""
    combinable = [
        (ns, proposal, proposal.edits.events.keys())
        for ns, proposal in gains
        if proposal.edits is not None and not proposal.is_bound
    ]
    if not combinable:
        return []
    least, best, events = combinable[0]
    # First those that change other events: they are more likely to save something else.
    others = sorted(combinable[1:], key=lambda row_: not events.isdisjoint(row_[2]))
    further_ns = _MIN_FURTHER_GAIN * facts.prediction.makespan * 1e9
    parts, limit = 1, least - further_ns
    for _, other, _ in others[:tries]:
        joint = joined_proposal(facts, best, other)
        ns = None if joint is None else predicted(joint)
        if joint is not None and ns is not None and ns < limit:
            least, best, parts = ns, joint, parts + 1
            limit = least - further_ns
    is_best = parts > 1 and least < gains[0][0]
    return [(least, replace(best, what=f"together: {best.what}"))] if is_best else []


def _span_with_transfers_ns(trace: Trace) -> int:
    """Returns the ns from the first to the last work, copies and memsets among it."""
    assert trace.transfer_ns is not None  # predictions have times of transfers
    starts = [int(p.start_ns.min()) for p in trace if p.start_ns is not None]
    ends = [int(p.end_ns.max()) for p in trace if p.end_ns is not None]
    starts += trace.transfer_ns[:, 0].tolist()
    ends += trace.transfer_ns[:, 1].tolist()
    return max(ends) - min(starts)


def _change_budget(launches: tuple[Launch, ...]) -> int:
    """Returns how many changes to predict for a program with these merged launches."""
    blocks = sum(launch.blocks for launch in launches)
    each = len(launches) + blocks // _BLOCKS_PER_LAUNCH
    return max(_MIN_CHANGES, min(_MAX_CHANGES, _LAUNCH_BUDGET // each))


def _distinct_proposals(facts: Facts, gaps: Iterable[Gap]) -> Iterator[Proposal]:
    """Yields each proposal once: the first of each cause, the costliest cause first, then the
    second of each, and so on."""
    tried: set[str] = set()
    groups = [*_proposals_of_less_work(facts), *_proposals_for_gaps(facts, gaps)]
    left = [proposals for _, proposals in sorted(groups, key=lambda group: -group[0])]
    while left:
        for proposals in [*left]:
            proposal = next((x for x in proposals if x.what not in tried), None)
            if proposal is None:
                left.remove(proposals)
            else:
                tried.add(proposal.what)
                yield proposal


def _proposals_of_less_work(facts: Facts) -> Iterator[tuple[float, Iterator[Proposal]]]:
    """Yields the seconds that work takes, and proposals without it."""
    rows = facts.program.measured
    took = dict.fromkeys(range(len(facts.program.sequence)), 0.0)
    for place, ns in zip(facts.event.tolist(), rows["end_ns"] - rows["start_ns"], strict=True):
        took[place] += float(ns) / 1e9
    for proposer in LESS_WORK:
        for proposal in proposer(facts):
            assert proposal.edits is not None  # it changes events
            saved = sum(facts.program.host) - sum(proposal.edits.gaps)
            saved += sum(
                took[place] * _shortened_share(facts.program.sequence[place], event)
                for place, event in proposal.edits.events.items()
            )
            yield saved, iter([proposal])


def _shortened_share(given: Event, event: Event | None) -> float:
    """Returns the share of its time that an event no longer takes if it is changed."""
    if event is None:
        return 1.0
    before, after = getattr(given, "duration", None), getattr(event, "duration", None)
    if isinstance(before, float) and isinstance(after, float) and before:
        return 1 - after / before
    return 0.0


def _proposals_for_gaps(
    facts: Facts, gaps: Iterable[Gap]
) -> Iterator[tuple[float, Iterator[Proposal]]]:
    """Yields the cost of all gaps with one cause, in seconds, and proposals to shorten them."""
    totals: dict[object, float] = {}
    longest: dict[object, tuple[float, int, Cause]] = {}
    for gap in gaps:
        for cause in gap.causes:
            if gap.launch < 0:
                continue
            key: object = (cause.cause, _cause_key(facts, gap.launch, cause))
            cost = cause.seconds * gap.cost / max(gap.end - gap.begin, 1e-12)
            totals[key] = totals.get(key, 0.0) + cost
            if key not in longest or cost > longest[key][0]:
                longest[key] = (cost, gap.launch, cause)
    asked: set[Proposer] = set()
    for key, (_, launch, cause) in longest.items():
        yield totals[key], _proposals_for_cause(facts, launch, cause, asked)


def _cause_key(facts: Facts, launch: int, cause: Cause) -> int | str:
    """Returns what distinguishes causes of one kind: the host's action, or the waiting kernel."""
    if cause.cause == HOST:
        return facts.host_name(cause)
    return facts.program.sequence.launches[launch].name or launch


def _proposals_for_cause(
    facts: Facts, launch: int, cause: Cause, asked: set[Proposer]
) -> Iterator[Proposal]:
    """Yields proposals that might let a waiting launch run. Those of the whole program come once:
    ``asked`` has who proposed them."""
    for proposer in PROPOSERS.get(cause.cause, ()):
        if proposer not in asked:
            if proposer in OF_PROGRAM:
                asked.add(proposer)
            yield from proposer(facts, launch, cause)
