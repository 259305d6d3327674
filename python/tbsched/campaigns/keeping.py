"""Files of a campaign: counterexamples in a corpus, observations in a recording."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeAlias

from tbsched.campaigns.judge import Comparison
from tbsched.campaigns.results import case_id
from tbsched.program.sequence import Sequence
from tbsched.traces.annotations import Origin
from tbsched.traces.files import load_traces
from tbsched.traces.growing_file import TraceFile
from tbsched.traces.records import record_line
from tbsched.traces.trace import Trace

# Traces that a power failure may cost.
CORPUS_SYNC, RECORDING_SYNC = 1, 100
_Key: TypeAlias = "tuple[str, str, Origin] | bytes"


class Growing(Protocol):
    """A file, or a list that goes to whoever has the file."""

    def append(self, trace: Trace, /) -> None:
        """Keeps one more."""


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
        unresolved: counterexamples of earlier campaigns, to begin with.
        known: what it holds already, and is not appended again.
    """

    file: Growing | None
    unresolved: tuple[Unresolved, ...] = ()
    known: set[_Key] = field(default_factory=set)

    @classmethod
    def of(cls, file: TraceFile | None) -> Corpus:
        """Returns the corpus of a file, with its entries."""
        traces = () if file is None else file.traces
        return cls(file, _unresolved(traces), set(map(_key, traces)))

    def keep_found(self, comparison: Comparison, origin: Origin) -> None:
        """Stores a disagreement as it was drawn."""
        self._keep(comparison, origin)

    def keep_shrunk(self, comparison: Comparison, drawn: Comparison, origin: Origin) -> None:
        """Stores the smallest sequence to which the disagreement ``drawn`` was shrunk."""
        self._keep(comparison, replace(origin, shrunk=True, found_as=case_id(drawn.sequence)))

    def append(self, trace: Trace) -> bool:
        """Appends a trace of another corpus. Returns whether it was new."""
        key = _key(trace)
        if self.file is None or key in self.known:
            return False
        self.file.append(trace)
        self.known.add(key)
        return True

    def _keep(self, comparison: Comparison, origin: Origin) -> None:
        """Appends the observation of a comparison to the corpus, with where it came from."""
        observation = comparison.observation
        self.append(
            replace(
                observation,
                id=case_id(comparison.sequence),
                extra=origin.added_to(observation.extra),
            )
        )


def _unresolved(corpus: Iterable[Trace]) -> tuple[Unresolved, ...]:
    """Returns the entries of a corpus: minimal sequences, and those with unfinished shrinking."""
    entries = [
        (trace, origin) for trace in corpus if (origin := Origin.read(trace.extra)) is not None
    ]
    shrunk_from = {origin.found_as for _, origin in entries}
    wanted = {
        trace.sequence: Unresolved(trace.sequence, origin.shrunk)
        for trace, origin in entries
        if origin.shrunk or trace.id not in shrunk_from
    }
    return tuple(wanted.values())


def merge_corpora(into: str | os.PathLike[str], *others: str | os.PathLike[str]) -> int:
    """Appends to one corpus what others hold and it does not.

    Two counterexamples are the same if sequence, kind of GPU, predictor, policy and level are, and
    both are as drawn, or were shrunk from the same. The seed does not matter.

    Args:
        into: a ``.jsonl`` trace file, made if it is not there.
        others: trace files, or folders of them.

    Returns:
        How many traces were appended.

    Raises:
        FileNotFoundError, ValueError: as :func:`tbsched.load_traces`; or ``into`` is in use.

    Example:
        >>> from tbsched.campaigns import merge_corpora
        >>> wrong = {"predictor": "xavier", "policy": "first_fit", "progress": False}
        >>> for seed in (1, 2):
        ...     report = tb.fuzz("xavier", **wrong, seed=seed, corpus=f"{seed}.jsonl")
        >>> merge_corpora("all.jsonl", "1.jsonl", "2.jsonl"), merge_corpora("all.jsonl", "1.jsonl")
        (4, 0)
    """
    with TraceFile(into, sync_every=RECORDING_SYNC) as file:
        corpus = Corpus.of(file)
        return sum(corpus.append(trace) for other in others for trace in load_traces(other))


def _key(trace: Trace) -> _Key:
    """Returns a key of a trace: equal for counterexamples that are the same but for the seed."""
    origin = Origin.read(trace.extra)
    if origin is None:
        return record_line(trace)  # no counterexample: the same only if all of it is
    return trace.id, trace.device.name, replace(origin, seed=0)


@dataclass(frozen=True, slots=True)
class Recording:
    """Every observation of a campaign.

    Attributes:
        file: None keeps nothing.
    """

    file: Growing | None
    seed: int

    def __bool__(self) -> bool:
        return self.file is not None

    def keep(self, observation: Trace, sequence_number: int) -> None:
        """Writes it down under the number of the drawn sequence, the first being 1."""
        if self.file is not None:
            self.file.append(replace(observation, id=f"s{self.seed}_{sequence_number}"))
