"""Witnesses: devices with another value of an undetermined field that explain all runs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from collections.abc import Sequence as ListOf
from dataclasses import dataclass
from itertools import islice
from typing import Any

from tbsched.calibration.asking.evidence import Evidence
from tbsched.calibration.doubt.other_values import other_values
from tbsched.calibration.draft import with_values
from tbsched.calibration.finding import TOLD, Finding, KnownValues, choices
from tbsched.campaigns.space.draws import Draws
from tbsched.campaigns.space.options import SequenceOptions
from tbsched.hardware.device_fields import FIELDS
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import matching_state, predict
from tbsched.program.sequence import Sequence
from tbsched.traces.trace import Trace

_BY_PATH = {field.path: field for field in FIELDS}
_DRAWN = 128
_MAX_CANDIDATES = 256  # candidates per field
_MAX_COMBINATIONS = 1024  # combinations from which candidates are taken
# Where nothing sets another size, there is none, or sizes do not matter.
_TOGETHER = ("mechanisms.shared_memory_configuration", "allocation.shared_memory_configurations")


@dataclass(frozen=True, slots=True)
class Witness:
    """Another device with another value, which explains all that was tried as well.

    Attributes:
        path: the value that it differs in, such as ``mechanisms.warp_skip``.
        device: the other device, for :func:`tbsched.predict`.
        changes: all values that it differs in, and what they are there.
        sequences: how many were run. For each, both devices have every block where it was observed,
            and both refuse what was refused.
        telling: a sequence on which the two differ, if one is known; probes do not draw such ones.

    Example:
        >>> calibration = tb.calibrate("xavier", seconds=60, sequences=0, progress=False)
        >>> witness = calibration.witness("topology.gpcs")
        >>> witness.sequences > 100
        True
    """

    path: str
    device: DeviceSpec
    changes: tuple[tuple[str, Any], ...]
    sequences: int
    telling: Sequence | None


def witnesses(spec: DeviceSpec, known: KnownValues, evidence: Evidence) -> tuple[Witness, ...]:
    """Returns a witness for each undetermined value for which one is known.

    Args:
        spec: the calibrated device.
        known: the findings of the probes.
        evidence: all observations.
    """
    witnessed: list[Witness] = []
    if not evidence.explained_by(spec):
        return ()
    drawn = _predicted([draw.sequence for draw in islice(_everything(spec), _DRAWN)], spec)
    for finding in known.findings:
        if finding.kind == TOLD:
            continue
        for index, other in enumerate(_other_devices(spec, finding, known)):
            if index == _MAX_CANDIDATES:
                break
            if evidence.explained_by(other) and evidence.times_explained_by(other):
                changes = tuple(
                    (field.path, field.of(other))
                    for field in FIELDS
                    if field.section and field.of(other) != field.of(spec)
                )
                telling = _telling(other, drawn)
                witnessed.append(Witness(finding.path, other, changes, len(evidence), telling))
                break
    return tuple(witnessed)


def _everything(spec: DeviceSpec) -> Draws:
    """Returns draws of all kinds of held sequences, also of those that calibration leaves out."""
    return Draws(spec, SequenceOptions.everything(spec), seed=10)


def _predicted(sequences: ListOf[Sequence], spec: DeviceSpec) -> list[Trace]:
    """Returns predictions of the sequences that the device accepts, shortest first."""
    traces = []
    for sequence in sorted(sequences, key=len):
        with contextlib.suppress(ValueError):
            traces.append(predict(sequence, spec))
    return traces


def _telling(device: DeviceSpec, traces: ListOf[Trace]) -> Sequence | None:
    """Returns the shortest sequence whose prediction no latent state of another device gives; None:
    there is none."""
    states = list(device.initial_states())
    for trace in traces:
        with contextlib.suppress(ValueError):  # it refuses the sequence
            if matching_state(trace, device, None, states) is None:
                return trace.sequence
    return None


def _other_devices(spec: DeviceSpec, finding: Finding, known: KnownValues) -> Iterator[DeviceSpec]:
    """Yields devices with another value of one field: values that remain, rivals, and near ones."""
    field = _BY_PATH[finding.path]
    changes: list[dict[str, Any]] = [
        dict(values)
        for values in islice(choices(known.remaining_groups), _MAX_COMBINATIONS)
        if values.get(field.name, field.of(spec)) != field.of(spec)
    ]
    changes += [
        dict(values)
        for values in known.notes.get("others", ())
        if values.get(field.name, field.of(spec)) != field.of(spec)
    ]
    changes += [{field.name: rival} for rival in finding.rivals]
    changes += [{field.name: other} for other in other_values(spec, finding.path)]
    if finding.path in _TOGETHER:
        largest = spec.shared_memory_configurations[-1:]
        acts = spec.mechanisms.shared_memory_configuration
        changes.append(
            {
                "shared_memory_configuration": not acts,
                "shared_memory_configurations": (largest[0] // 2048 * 1024, *largest),
            }
        )
    tried = []
    for values in changes:
        if values in tried:
            continue
        tried.append(values)
        try:
            yield with_values(spec, **{**values, "name": f"{spec.name}-other-{len(tried)}"})
        except ValueError:
            continue
