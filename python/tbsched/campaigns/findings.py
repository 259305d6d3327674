"""The counterexamples of a campaign so far."""

from __future__ import annotations

from dataclasses import dataclass

from tbsched.campaigns.judge import Comparison, Judge
from tbsched.campaigns.results import Counterexample, code_of
from tbsched.campaigns.tally import Tally
from tbsched.campaigns.terminal.progress import Progress
from tbsched.program.sequence import Sequence


@dataclass(frozen=True, slots=True)
class Findings:
    """Adds counterexamples to the tally, and says each once.

    Attributes:
        observing: the expression with which a pasted test observes; None: it holds the result.
        most: how many are wanted; None: all, 0: none, and nothing is shrunk.
    """

    judge: Judge
    tally: Tally
    progress: Progress
    observing: str | None
    most: int | None

    @property
    def enough(self) -> bool:
        """Whether the campaign has what it wanted."""
        return self.most is not None and len(self.tally.counterexamples) >= self.most

    def wants(self, sequence: Sequence) -> bool:
        """Whether a disagreement on the sequence is worth shrinking."""
        return self.most != 0 and sequence not in self.tally.counterexamples

    def add(self, comparison: Comparison, *, shrunk: bool, replayed: bool = False) -> None:
        """Adds a disagreement that has shown twice, unless its sequence is known."""
        sequence, diff, judge = comparison.sequence, comparison.diff, self.judge
        if sequence in self.tally.counterexamples:
            return
        code = code_of(diff, judge.level, judge.spec.name, judge.policy, self.observing)
        self.tally.counterexamples[sequence] = Counterexample(
            sequence=sequence,
            prediction=comparison.prediction,
            observation=comparison.observation,
            diff=diff,
            code=code,
            shrunk=shrunk,
            replayed=replayed,
        )
        self.progress.say(f"\n{code}\n")
