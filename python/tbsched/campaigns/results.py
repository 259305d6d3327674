"""What a campaign found."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from tbsched.campaigns.order import Pair
from tbsched.campaigns.space.coverage import Coverage
from tbsched.comparison.compare import Diff
from tbsched.program.sequence import Sequence
from tbsched.shown import Shown
from tbsched.traces.trace import Trace

SO_FAR = "The campaign so far: "  # before the report in a note of an error


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Counterexample(Shown):
    """A sequence on which prediction and observation differ, seen at least twice.

    Attributes:
        sequence: minimal, if ``shrunk``.
        prediction: the predicted trace.
        observation: the trace that differs from it.
        diff: their comparison; prints an explanation.
        code: a test function with the sequence, to paste.
        shrunk: False if the campaign was interrupted while it shrank.
        replayed: it was in the corpus when the campaign began.
        like: the ``id`` of an earlier counterexample that differs in the same way, and most
            likely has the same cause; None: it is the first of its kind.
        pairs: of a program that a GPU has run, the launches whose order the prediction does not
            explain (:func:`order_differs`).

    Example:
        >>> report = tb.fuzz(("xavier", "first_fit"), "xavier", seed=1, progress=False)
        >>> found = report.counterexamples[0]
        >>> found.shrunk, found.diff.occupancy, found.id[:3]
        (True, False, 'ce-')
    """

    sequence: Sequence
    prediction: Trace
    observation: Trace
    diff: Diff
    code: str
    shrunk: bool
    replayed: bool
    like: str | None = None
    pairs: tuple[Pair, ...] = ()

    @property
    def id(self) -> str:
        """The name of its trace in the corpus."""
        return case_id(self.sequence)


@dataclass(frozen=True, slots=True)
class Unstable:
    """A sequence on which the oracle did not agree with itself, or took too long.

    Attributes:
        sequence: what ran.
        reason: what happened, in words.

    Example:
        >>> report = tb.fuzz("gpu", "h200", max_seconds=60)  # doctest: +SKIP
        >>> [found.reason for found in report.unstable]  # doctest: +SKIP
        []
    """

    sequence: Sequence
    reason: str


@dataclass(frozen=True, slots=True)
class Lost:
    """Sequences of which nothing is known: each time, the process that ran them died.

    A campaign with the same seed, ``begin`` and ``max_examples=count`` draws them again.

    Attributes:
        begin: the number of the first.
        count: how many they are.
        reason: what happened, in words.

    Example:
        >>> from tbsched.campaigns import Workers
        >>> with Workers(2) as workers:  # doctest: +SKIP
        ...     print(tb.fuzz("h200", "h200", executor=workers).lost)
        ()
    """

    begin: int
    count: int
    reason: str


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Report(Shown):
    """What a campaign or a recording did; ``print(report)`` explains it.

    Attributes:
        seed: repeats it, with the same arguments and version of Hypothesis.
        predictor: the device that predicted.
        policy: the policy that predicted.
        level: how closely traces were compared.
        examples: number of sequences drawn and compared, without those tried while shrinking.
        disagreements: how many of them differed.
        launches: how many there are in those sequences.
        blocks: how many there are in those sequences.
        occupancy: number of launches with the same number of blocks on each SM.
        exact: number of launches with every block on the same SM; at level ``occupancy`` from one
            latent state only.
        counterexamples: distinct ones, each a :class:`Counterexample`, in the order of finding.
        unstable: sequences that showed nothing, because the oracle disagreed with itself.
        replayed: number of sequences of the corpus that were tried again.
        unpredicted: number of sequences that were only recorded: the model cannot predict them.
        shrinking: number of sequences tried while shrinking.
        seconds: how long it took.
        coverage: what bound the launches that were drawn, and which mechanisms decided anything.
        ended: why: ``examples``, ``counterexamples``, ``seconds``, ``exhausted`` (there are no more
            sequences to draw), ``another process`` (its turns interrupted a run on the GPU) or
            ``interrupted``.
        lost: parts of a campaign with an executor that no process came back from.

    Example:
        >>> report = tb.fuzz("xavier", "xavier", max_examples=20, seed=1, progress=False)
        >>> report.examples, report.disagreements, report.ended
        (20, 0, 'examples')
    """

    seed: int
    predictor: str
    policy: str
    level: str
    examples: int
    disagreements: int
    launches: int
    blocks: int
    occupancy: int
    exact: int
    counterexamples: tuple[Counterexample, ...]
    unstable: tuple[Unstable, ...]
    replayed: int
    unpredicted: int
    shrinking: int
    seconds: float
    coverage: Coverage
    ended: str
    lost: tuple[Lost, ...] = ()


def case_id(sequence: Sequence) -> str:
    """Returns a name that depends on the sequence alone."""
    return "ce-" + hashlib.sha256(sequence.to_json().encode()).hexdigest()[:12]
