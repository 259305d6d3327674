"""The counterexamples of a campaign so far."""

from __future__ import annotations

import collections
from dataclasses import dataclass, replace

from tbsched.campaigns.judge import Comparison, Judge
from tbsched.campaigns.oracles import Device, OracleLike
from tbsched.campaigns.results import Counterexample
from tbsched.campaigns.shrinking.pasted import code_of, observing, order_code_of, predicting
from tbsched.campaigns.tally import Tally
from tbsched.campaigns.terminal.progress import Progress
from tbsched.comparison.compare import Diff
from tbsched.program.sequence import Sequence


@dataclass(frozen=True, slots=True)
class Findings:
    """Adds counterexamples to the tally, and says each once.

    Attributes:
        predictor: as the user named it.
        oracle: likewise; where a pasted test cannot name it, that holds the result.
        most: how many are wanted; None: all, 0: none, and nothing is shrunk.
    """

    judge: Judge
    tally: Tally
    progress: Progress
    predictor: Device
    oracle: OracleLike
    most: int | None

    @property
    def shared(self) -> bool:
        """Whether another process was noticed on the GPU: from then on nothing counts."""
        return self.tally.shared or self.judge.company.was_noticed

    @property
    def enough(self) -> bool:
        """Whether the campaign has what it wanted."""
        return self.most is not None and len(self.tally.counterexamples) >= self.most

    def wants(self, sequence: Sequence) -> bool:
        """Returns whether a disagreement on the sequence is worth shrinking."""
        return self.most != 0 and sequence not in self.tally.counterexamples

    def add(self, comparison: Comparison, *, shrunk: bool, replayed: bool = False) -> None:
        """Adds a disagreement that has shown twice, unless its sequence is known.

        Nothing, once another process was noticed on the GPU: it may be that one's doing. The corpus
        keeps what was found for the next campaign.
        """
        sequence, diff, judge = comparison.sequence, comparison.diff, self.judge
        if sequence in self.tally.counterexamples or self.shared:
            return
        # One of several, in which the GPU was, or the campaign began.
        usual, *other_states = judge.spec.initial_states(judge.policy)
        depends_on_state = other_states and (judge.level == "exact" or comparison.state != usual)
        model = predicting(
            self.predictor, judge.policy, comparison.state if depends_on_state else None
        )
        if comparison.pairs:
            code = order_code_of(sequence, self.predictor, judge.policy, judge.spec.name)
        else:
            code = code_of(diff, judge.level, model, observing(self.oracle), judge.spec.name)
        counterexample = Counterexample(
            sequence=sequence,
            prediction=comparison.prediction,
            observation=comparison.observation,
            diff=diff,
            code=code,
            shrunk=shrunk,
            replayed=replayed,
            pairs=comparison.pairs,
        )
        add_counterexample(counterexample, self.tally, self.progress)


def add_counterexample(counterexample: Counterexample, tally: Tally, progress: Progress) -> None:
    """Adds it to those of a campaign, unless its sequence is known, and says it."""
    if counterexample.sequence in tally.counterexamples:
        return
    kind = _kind(counterexample.diff)
    known = tally.counterexamples.values()
    like = next((earlier.id for earlier in known if _kind(earlier.diff) == kind), None)
    tally.counterexamples[counterexample.sequence] = replace(counterexample, like=like)
    progress.say(f"\n{counterexample.code}\n")


def _kind(diff: Diff) -> tuple[object, ...]:
    """Returns a key that is equal for counterexamples of one cause: how they differ, and which
    fields of launches vary."""
    first = diff.first_divergence
    if diff.b.sequence.timed or first is None:
        return ("order", *sorted({type(event).__name__ for event in diff.b.sequence}))
    bound_by: str | None = None
    if diff.a.capacities is not None and len(first.sms):
        limiters = diff.a.capacities()[first.launch].limiter
        bound_by = collections.Counter(limiters[sm] for sm in first.sms).most_common(1)[0][0]
    launches = diff.a.sequence.launches
    varied = [
        name
        for name in ("local_memory", "carveout", "cluster", "priority")
        if len({getattr(launch, name) for launch in launches}) > 1
    ]
    return (first.level, bound_by, *varied)
