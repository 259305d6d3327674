"""What a campaign leaves on disk: counterexamples in a corpus, observations in a recording."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tbsched.campaigns.judge import Comparison
from tbsched.campaigns.results import case_id
from tbsched.program.sequence import Sequence
from tbsched.traces.annotations import Origin
from tbsched.traces.growing_file import TraceFile
from tbsched.traces.trace import Trace

# Traces that a power failure may cost.
CORPUS_SYNC, RECORDING_SYNC = 1, 100


@dataclass(frozen=True, slots=True)
class Unresolved:
    """A counterexample of an earlier campaign; ``shrunk`` unless that was cut short."""

    sequence: Sequence
    shrunk: bool


@dataclass(frozen=True, slots=True)
class Corpus:
    """Counterexamples, written down as they are found and again when they are shrunk.

    Attributes:
        file: None keeps nothing.
        origin: of all that this campaign finds.
    """

    file: TraceFile | None
    origin: Origin

    def unresolved(self) -> tuple[Unresolved, ...]:
        """What was in the file: minimal sequences, and those whose shrinking was cut short."""
        if self.file is None:
            return ()
        entries = [
            (trace, origin)
            for trace in self.file.traces
            if (origin := Origin.read(trace.extra)) is not None
        ]
        shrunk_from = {origin.found_as for _, origin in entries}
        wanted = {
            trace.sequence: Unresolved(trace.sequence, origin.shrunk)
            for trace, origin in entries
            if origin.shrunk or trace.id not in shrunk_from
        }
        return tuple(wanted.values())

    def keep_found(self, comparison: Comparison) -> None:
        """A disagreement as it was drawn."""
        self._append(comparison, self.origin)

    def keep_shrunk(self, comparison: Comparison, found: Comparison) -> None:
        """The smallest that the disagreement ``found`` was shrunk to."""
        found_as = case_id(found.sequence)
        self._append(comparison, replace(self.origin, shrunk=True, found_as=found_as))

    def _append(self, comparison: Comparison, origin: Origin) -> None:
        if self.file is None:
            return
        observation = comparison.observation
        self.file.append(
            replace(
                observation,
                id=case_id(comparison.sequence),
                extra=origin.added_to(observation.extra),
            )
        )


@dataclass(frozen=True, slots=True)
class Recording:
    """Every observation of a campaign.

    Attributes:
        file: None keeps nothing.
    """

    file: TraceFile | None
    seed: int

    def __bool__(self) -> bool:
        return self.file is not None

    def keep(self, observation: Trace, example: int) -> None:
        """Writes it down under the number of the drawn sequence."""
        if self.file is not None:
            self.file.append(replace(observation, id=f"s{self.seed}_{example}"))
