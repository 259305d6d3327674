"""Checks values against the observations of all probes, repairs them, and eliminates more."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence as ListOf
from itertools import islice

from tbsched.calibration.asking.evidence import Evidence
from tbsched.calibration.doubt.other_values import other_values
from tbsched.calibration.draft import draft, with_values
from tbsched.calibration.finding import TOLD, Finding, KnownValues, Values, assumed, choices
from tbsched.hardware.device_fields import FIELDS
from tbsched.hardware.spec import DeviceSpec

_BY_NAME = {field.name: field for field in FIELDS}
_MAX_OF_GROUP = 512  # combinations of a group that are checked
_MAX_COMBINATIONS = 1024  # combinations of all groups that are tried
_MAX_WITH_OTHER_VALUE = 16  # of those, each with a near value of a field in no group
_NAME = "all probes together"


def repair(known: KnownValues, evidence: Evidence) -> bool:
    """Changes assumptions, at most once, until the device explains all observations. Returns
    whether it does.

    A repair chooses other combinations of the groups, or these and one near value of another field.
    """
    spec = draft(known)
    if evidence.explained_by(spec):
        return True
    for values in _changes(spec, known):
        if _explains(spec, values, evidence):
            because = f"with what was assumed first, one of {len(evidence)} sequences was wrong"
            known.prefer(values, because)
            return True
    return False


def eliminate_contradicted(spec: DeviceSpec, known: KnownValues, evidence: Evidence) -> None:
    """Eliminates the combinations of each group that contradict an observation.

    A combination is eliminated only if it does so with every choice of the other groups. A value
    determined by elimination becomes an assumption if another value explains everything as well.
    """
    if not evidence.explained_by(spec):
        return
    _recheck_eliminated(spec, known, evidence)
    for group in known.remaining_groups:
        if len(group) > _MAX_OF_GROUP:
            continue
        other_groups = [
            other_group for other_group in known.remaining_groups if other_group is not group
        ]
        consistent = [
            values for values in group if _is_consistent(spec, values, other_groups, evidence)
        ]
        known.set_remaining(consistent)
        for finding in _determined(consistent, len(evidence)):
            if not known.is_determined(finding.name) and finding.name not in known.partial:
                known.add(finding)
                known.by_elimination.add(finding.name)


def _is_consistent(
    spec: DeviceSpec, values: Values, other_groups: ListOf[tuple[Values, ...]], evidence: Evidence
) -> bool:
    """Returns whether ``values`` and some choice of the other groups explain everything."""
    combinations_of_others = islice(choices(other_groups), _MAX_COMBINATIONS)
    return any(
        _explains(spec, {**combination, **values}, evidence)
        for combination in combinations_of_others
    )


def _changes(spec: DeviceSpec, known: KnownValues) -> Iterator[Values]:
    """Yields other values of fields: first those left in doubt, then values near those of fields
    that were assumed."""
    yield from islice(choices(known.remaining_groups), 1, _MAX_COMBINATIONS)
    grouped = {name for group in known.remaining_groups for name in group[0]}
    for finding in known.findings:
        if finding.kind == TOLD or finding.name in grouped:
            continue
        for value in islice(other_values(spec, finding.path), _MAX_OF_GROUP):
            for values in islice(choices(known.remaining_groups), _MAX_WITH_OTHER_VALUE):
                yield {**values, finding.name: value}


def _explains(spec: DeviceSpec, values: Values, evidence: Evidence) -> bool:
    """Returns whether the device with other values explains all evidence; False, too, if no device
    can have these."""
    try:
        return evidence.explained_by(with_values(spec, **values))
    except ValueError:
        return False


def _recheck_eliminated(spec: DeviceSpec, known: KnownValues, evidence: Evidence) -> None:
    """Checks values again that were determined by elimination.

    Their premises may have been repaired since, and a run that eliminated rivals may have been
    noise.
    """
    for name in known.by_elimination:
        finding = known.finding(name)
        if finding.kind != TOLD:
            continue
        rivals = tuple(
            value
            for value in islice(other_values(spec, finding.path), _MAX_OF_GROUP)
            if _explains(spec, {name: value}, evidence)
        )
        if rivals:
            because = f"the others agree with it on all of {len(evidence)} sequences"
            known.add(assumed(finding.path, finding.value, because, rivals))
            known.forget([name])


def _determined(remaining: list[Values], sequences: int) -> list[Finding]:
    """Returns findings for the fields of which all combinations that remain have one value."""
    findings = []
    because = (
        f"every other value that was left was wrong about at least one of {sequences} sequences"
    )
    for name, value in remaining[0].items():
        if all(values[name] == value for values in remaining):
            field = _BY_NAME[name]
            findings.append(Finding(field.path, value, TOLD, because, (), _NAME))
    return findings
