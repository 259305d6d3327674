"""What a campaign found."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from typing import assert_never

from tbsched.campaigns.oracles import ModelGpu, OracleLike
from tbsched.campaigns.space.coverage import Coverage
from tbsched.comparison.compare import Diff
from tbsched.hardware.spec import DeviceSpec
from tbsched.program.duration import Drawn
from tbsched.program.sequence import Event, Launch, RecordEvent, Release, Sequence, WaitEvent
from tbsched.traces.trace import Trace
from tbsched.views import Shown


@dataclass(frozen=True, eq=False, slots=True)
class Counterexample(Shown):
    """A sequence on which prediction and observation differ, seen at least twice.

    Attributes:
        sequence: minimal, if ``shrunk``.
        prediction, observation: its traces.
        diff: their comparison; prints an explanation.
        code: a test function with the sequence, to paste.
        shrunk: False if the campaign was interrupted while it shrank.
        replayed: it was in the corpus when the campaign began.
    """

    sequence: Sequence
    prediction: Trace
    observation: Trace
    diff: Diff
    code: str
    shrunk: bool
    replayed: bool

    @property
    def id(self) -> str:
        """The name of its trace in the corpus."""
        return case_id(self.sequence)


@dataclass(frozen=True, slots=True)
class Unstable:
    """A sequence on which the oracle did not agree with itself, or took too long."""

    sequence: Sequence
    reason: str


@dataclass(frozen=True, eq=False, slots=True)
class Report(Shown):
    """What a campaign or a recording did.

    Attributes:
        seed: repeats it, with the same arguments and version of Hypothesis.
        predictor, policy, level: what was compared, and how closely.
        examples: sequences drawn and compared, without those tried while shrinking.
        disagreements: how many of them differed.
        launches, blocks: in those sequences.
        occupancy: launches with the same number of blocks on each SM.
        exact: launches with every block on the same SM; at level ``occupancy`` from one latent
            state only.
        counterexamples: distinct ones, as they were found.
        unstable: sequences that showed nothing, because the oracle disagreed with itself.
        replayed: sequences of the corpus that were tried again.
        unpredicted: sequences that the model cannot predict, recorded only.
        shrinking: sequences tried while shrinking.
        seconds: how long it took.
        coverage: what bound the launches that were drawn, and which mechanisms decided anything.
        ended: ``examples``, ``counterexamples``, ``seconds``, ``exhausted`` (there are no more
            sequences to draw) or ``interrupted``.
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


def case_id(sequence: Sequence) -> str:
    """A name that depends on the sequence alone."""
    return "ce-" + hashlib.sha256(sequence.to_json().encode()).hexdigest()[:12]


def code_of(
    diff: Diff, level: str, predictor: str, policy: str | None, observed: str | None
) -> str:
    """A pytest function that fails as long as the predictor is wrong.

    Args:
        diff: of prediction and observation.
        level: how closely they are compared.
        predictor, policy: of the prediction.
        observed: an expression that observes ``seq``; None writes the observation out.
    """
    sequence = diff.a.sequence
    predicted = model_code(predictor, policy)
    used = {"Sequence", "predict", *(name for event in sequence for name in _names_in(event))}
    if observed is not None:
        used |= {"compare", observed.partition("(")[0]}
        check = [f"assert compare({predicted}, {observed}).{level}"]
    else:
        rows = [placement.smid.tolist() for placement in diff.b]
        blocks = "p.smid.tolist()"
        if level == "occupancy":
            rows, blocks = [sorted(row) for row in rows], f"sorted({blocks})"
        check = [f"seen = {rows}", f"assert [{blocks} for p in {predicted}] == seen"]
    name = "".join(c if c.isalnum() else "_" for c in predictor)
    return "\n    ".join(
        [
            f"def test_{name}_{case_id(sequence)[3:]}():",
            f"from tbsched import {', '.join(sorted(used))}\n",
            "seq = " + repr(sequence).replace("\n", "\n    "),
            *check,
        ]
    )


def _names_in(event: Event) -> tuple[str, ...]:
    """What the event's ``repr`` needs imported.

    Raises:
        AssertionError: an event of an unknown kind.
    """
    match event:
        case Launch():
            return ("Launch", "Drawn") if isinstance(event.duration, Drawn) else ("Launch",)
        case Release() | RecordEvent() | WaitEvent():
            return (type(event).__name__,)
        case _:
            assert_never(event)


def model_code(device: str, policy: str | None) -> str:
    """The expression with which a pasted test asks a model about ``seq``."""
    arguments = json.dumps(device) + (f", policy={json.dumps(policy)}" if policy else "")
    return f"predict(seq, {arguments})"


def observing_code(oracle: OracleLike) -> str | None:
    """The expression with which a pasted test observes ``seq``; None: it must hold the result."""
    if oracle == "gpu" or type(oracle).__name__ == "Gpu":
        return "observe(seq)"
    if isinstance(oracle, ModelGpu):
        is_usual = oracle.initial_state is None
        return model_code(oracle.spec.name, oracle.policy) if is_usual else None
    device, policy = oracle if isinstance(oracle, tuple) else (oracle, None)
    if isinstance(device, DeviceSpec):
        device = device.name
    return model_code(os.fspath(device), policy) if isinstance(device, str | os.PathLike) else None
