"""Priorities: how many levels there are, and whether each differs from the next."""

from __future__ import annotations

from collections.abc import Sequence as ListOf
from dataclasses import replace

from tbsched.calibration.asking.lab import Lab, small
from tbsched.calibration.draft import draft, with_values
from tbsched.calibration.finding import Finding, KnownValues, assumed, determined
from tbsched.calibration.probes.preference import whole_sm
from tbsched.prediction.predict import predict_many
from tbsched.program.sequence import Sequence
from tbsched.traces.trace import Trace

_PATH = "scheduler.priority_levels"
_MAX_LEVELS = 8  # levels that are looked for where the oracle refuses no priority


def ask(lab: Lab, known: KnownValues) -> list[Finding]:
    """Counts the priority levels: issues a small launch, as urgent or more so, behind one that
    waits for a whole SM. Returns findings.

    It enters if it is more urgent than the launch that waits. Where the oracle refuses no priority,
    as CUDA clamps them, those that make no difference are the same.
    """
    levels = known.notes["levels"]
    if levels is None:
        return [_clamped(lab, known)]
    spec = draft(known)
    full, waits = whole_sm(known, lab.sms), whole_sm(known)
    sequences = [
        Sequence([full, replace(waits, priority=-level), replace(small(), priority=-urgent)])
        for level in range(levels)
        for urgent in (level, level + 1)
        if urgent < levels
    ]
    predicted = list(map(_entered, predict_many(sequences, spec)))
    return [read(levels, list(map(_entered, lab.run(sequences))), predicted)]


def _entered(trace: Trace) -> bool:
    return trace[-1].placed == 1


def read(levels: int, observed: ListOf[bool], predicted: ListOf[bool]) -> Finding:
    """Returns the finding from which small launches entered, observed and predicted."""
    if list(observed) == list(predicted):
        return determined(
            _PATH, levels, f"{-levels} is refused; each level showed, as far as any does"
        )
    wrong = sum(a != b for a, b in zip(observed, predicted, strict=True))
    because = f"{-levels} is refused; {wrong} of {len(observed)} launches entered otherwise"
    return assumed(_PATH, levels, because, tuple(range(levels - 1, 0, -1)))


def _clamped(lab: Lab, known: KnownValues) -> Finding:
    """Returns the finding at which priority the GPU clamps."""
    spec = draft(known)
    full, waits = whole_sm(known, lab.sms), whole_sm(known)
    sequences = [
        Sequence([full, replace(waits, priority=-level), replace(small(), priority=-level - 1)])
        for level in range(_MAX_LEVELS)
    ]
    observed = list(map(_entered, lab.run(sequences)))
    fitting = [
        levels
        for levels in range(1, _MAX_LEVELS + 1)
        if list(map(_entered, predict_many(sequences, with_values(spec, priority_levels=levels))))
        == observed
    ]
    if len(fitting) == 1 and fitting[0] < _MAX_LEVELS:
        return determined(
            _PATH, fitting[0], f"priority {-fitting[0]} is as urgent as {1 - fitting[0]}"
        )
    because = "no number of levels explains which launches entered" if not fitting else (
        "priorities made no difference" if len(fitting) > 1 else f"{_MAX_LEVELS} levels differ"
    )  # fmt: skip
    rivals = tuple(levels for levels in fitting if levels != spec.priority_levels)
    return assumed(_PATH, spec.priority_levels, because, rivals)
