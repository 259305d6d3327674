"""Checks values against the observations of all probes, repairs them, and eliminates more."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence as ListOf
from itertools import islice

from tbsched.calibration.asking.evidence import Evidence
from tbsched.calibration.doubt.other_values import other_values
from tbsched.calibration.draft import draft, with_values
from tbsched.calibration.finding import TOLD, Finding, Found, Values, assumed, choices
from tbsched.hardware.device_fields import FIELDS
from tbsched.hardware.spec import DeviceSpec

_BY_NAME = {field.name: field for field in FIELDS}
_MOST_LEFT = 512  # combinations of a group that are checked
_MOST = 1024  # combinations of all groups that are tried
_MOST_WITH_OTHER_VALUE = 16  # of those, each with a near value of a field in no group
_NAME = "all probes together"


def repair(found: Found, evidence: Evidence) -> bool:
    """Returns whether the assumptions explain all observations, if need be after one repair.

    A repair chooses other combinations of the groups, or these and one near value of another field.
    """
    spec = draft(found)
    if evidence.explained_by(spec):
        return True
    for values in _changes(spec, found):
        if _explains(spec, values, evidence):
            because = f"with what was assumed first, one of {len(evidence)} sequences was wrong"
            found.prefer(values, because)
            return True
    return False


def eliminate_contradicted(spec: DeviceSpec, found: Found, evidence: Evidence) -> None:
    """Eliminates the combinations of each group that contradict an observation.

    A combination is eliminated only if it does so with every choice of the other groups. A value
    determined by elimination becomes an assumption if another value explains everything as well.
    """
    if not evidence.explained_by(spec):
        return
    _recheck_eliminated(spec, found, evidence)
    for group in found.remaining_groups:
        if len(group) > _MOST_LEFT:
            continue
        others = [other for other in found.remaining_groups if other is not group]
        left = [values for values in group if _is_consistent(spec, values, others, evidence)]
        found.set_remaining(left)
        for finding in _determined(left, len(evidence)):
            if not found.is_determined(finding.name) and finding.name not in found.partial:
                found.add(finding)
                found.by_elimination.add(finding.name)


def _is_consistent(
    spec: DeviceSpec, values: Values, others: ListOf[tuple[Values, ...]], evidence: Evidence
) -> bool:
    """Returns whether ``values`` and some choice of the other groups explain everything."""
    some = islice(choices(others), _MOST)
    return any(_explains(spec, {**other, **values}, evidence) for other in some)


def _changes(spec: DeviceSpec, found: Found) -> Iterator[Values]:
    """Yields other values for fields: those left in doubt, then those that no probe asked for."""
    yield from islice(choices(found.remaining_groups), 1, _MOST)
    grouped = {name for group in found.remaining_groups for name in group[0]}
    for finding in found.findings:
        if finding.kind == TOLD or finding.name in grouped:
            continue
        for value in islice(other_values(spec, finding.path), _MOST_LEFT):
            for values in islice(choices(found.remaining_groups), _MOST_WITH_OTHER_VALUE):
                yield {**values, finding.name: value}


def _explains(spec: DeviceSpec, values: Values, evidence: Evidence) -> bool:
    try:
        return evidence.explained_by(with_values(spec, **values))
    except ValueError:
        return False


def _recheck_eliminated(spec: DeviceSpec, found: Found, evidence: Evidence) -> None:
    """Checks values again that were determined by elimination.

    Their premises may have been repaired since, and a run that eliminated rivals may have been
    noise.
    """
    for name in found.by_elimination:
        finding = found.finding(name)
        if finding.kind != TOLD:
            continue
        rivals = tuple(
            value
            for value in islice(other_values(spec, finding.path), _MOST_LEFT)
            if _explains(spec, {name: value}, evidence)
        )
        if rivals:
            because = f"the others agree with it on all of {len(evidence)} sequences"
            found.add(assumed(finding.path, finding.value, because, rivals))
            found.forget([name])


def _determined(left: list[Values], sequences: int) -> list[Finding]:
    """Returns findings for fields on which all values that are left agree."""
    findings = []
    because = (
        f"every other value that was left was wrong about at least one of {sequences} sequences"
    )
    for name, value in left[0].items():
        if all(values[name] == value for values in left):
            field = _BY_NAME[name]
            findings.append(Finding(field.path, value, TOLD, because, (), _NAME))
    return findings
