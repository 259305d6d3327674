"""A drawn sequence is a trial: predicted, observed and compared by others, counted here."""

from __future__ import annotations

from dataclasses import dataclass

from tbsched.campaigns.findings import Findings
from tbsched.campaigns.judge import UNCUT_EVERY, Comparison, Judge
from tbsched.campaigns.keeping import Recording
from tbsched.campaigns.results import Unstable
from tbsched.campaigns.space.coverage import Covering
from tbsched.campaigns.tally import Tally
from tbsched.campaigns.terminal.interrupts import Interrupts
from tbsched.campaigns.terminal.progress import Progress
from tbsched.program.sequence import Sequence
from tbsched.traces.annotations import unstable_reason
from tbsched.traces.trace import Trace

# Ablations predict one in this many sequences, if they are predicted one by one.
ABLATED_EVERY = 8


@dataclass(frozen=True, slots=True)
class Trials:
    """Budget and counts of a campaign, as its drawers use them.

    Attributes:
        begin: the number of the first.
        most: sequences drawn at most.
        max_seconds: no sequence is drawn after so long; None: there is no limit.
    """

    judge: Judge
    tally: Tally
    findings: Findings
    recording: Recording
    progress: Progress
    interrupts: Interrupts
    coverage: Covering
    begin: int
    most: int
    max_seconds: float | None

    @property
    def number(self) -> int:
        """Number of the sequence that is drawn next."""
        return self.begin + self.tally.examples

    @property
    def left(self) -> int:
        """How many sequences may still be drawn."""
        return self.most - self.tally.examples

    @property
    def over(self) -> bool:
        """Whether the time for drawing is, or another process has come."""
        late = self.max_seconds is not None and self.tally.seconds > self.max_seconds
        return late or self.findings.shared

    @property
    def ended(self) -> str:
        """Why nothing more is drawn."""
        if self.findings.shared:
            return "another process"
        return "examples" if self.left <= 0 else "seconds"

    def count(self, examples: int = 1) -> None:
        """Counts sequences that have been drawn and compared.

        Raises:
            KeyboardInterrupt: Ctrl-C was pressed.
        """
        self.interrupts.check()
        self.tally.examples += examples
        self.progress.update(self.tally, "fuzz")

    def predict(self, drawn: Sequence, sequence_number: int) -> Trace | None:
        """Returns the prediction; None where the model has none and the recording alone counts.

        Args:
            drawn: a sequence.
            sequence_number: of the sequence in the campaign.

        Raises:
            ValueError: the model has none, and the campaign is for comparing.
        """
        keeps_waiting = self.judge.past_refusal is None and sequence_number % UNCUT_EVERY == 0
        try:
            prediction = self.judge.predict(drawn, whole=keeps_waiting)
            self.coverage.look_at(
                prediction, self.judge.states[0],
                asks_ablations=keeps_waiting or sequence_number % ABLATED_EVERY == 0,
            )  # fmt: skip
            return prediction
        except ValueError:
            if not (self.recording and self.findings.most == 0):
                raise
        with self.tally.counting_unstable(drawn):
            self.recording.keep(self.judge.oracle.observe(drawn), self.number)
            self.tally.unpredicted += 1
        return None

    def is_news(self, comparison: Comparison) -> bool:
        """Counts and keeps a comparison. Returns whether it is a disagreement that is to be
        shrunk.
        """
        self.recording.keep(comparison.observation, self.number)
        reason = unstable_reason(comparison.observation.extra)
        if reason is not None:
            self.tally.unstable.append(Unstable(comparison.sequence, reason))
            return False
        self.tally.count(comparison)
        return not comparison.agrees and self.findings.wants(comparison.sequence)
