"""What is left of values after all probes: some of it contradicts what another probe observed."""

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
_MOST_LEFT = 512  # of a group, each of which is tried beside the others
_MOST = 1024  # combinations of what is left
_MOST_BESIDE = 16  # of them, beside another value of which nobody knows what is left
_NAME = "all probes together"


def mended(found: Found, evidence: Evidence) -> bool:
    """Whether what is assumed explains all that was observed, if need be after a change of it.

    A change is another choice among all that is left of values, or one near value beside it.
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


def strike_out(spec: DeviceSpec, found: Found, evidence: Evidence) -> None:
    """Strikes out, of each group of values, those that contradict something that was tried.

    One is struck out only if it does so whatever is left of the other groups. What was told by
    elimination is only assumed if another value explains everything, too.
    """
    if not evidence.explained_by(spec):
        return
    _doubt(spec, found, evidence)
    for group in found.left_together:
        if len(group) > _MOST_LEFT:
            continue
        others = [other for other in found.left_together if other is not group]
        left = [values for values in group if _fits(spec, values, others, evidence)]
        found.leave(left)
        for finding in _told(left, len(evidence)):
            if not found.is_told(finding.name) and finding.name not in found.partial:
                found.add(finding)
                found.eliminated.add(finding.name)


def _fits(
    spec: DeviceSpec, values: Values, others: ListOf[tuple[Values, ...]], evidence: Evidence
) -> bool:
    """Whether some choice among what is left of all others explains everything with it."""
    some = islice(choices(others), _MOST)
    return any(_explains(spec, {**other, **values}, evidence) for other in some)


def _changes(spec: DeviceSpec, found: Found) -> Iterator[Values]:
    yield from islice(choices(found.left_together), 1, _MOST)
    grouped = {name for group in found.left_together for name in group[0]}
    for finding in found.findings:
        if finding.kind == TOLD or finding.name in grouped:
            continue
        for value in islice(other_values(spec, finding.path), _MOST_LEFT):
            for values in islice(choices(found.left_together), _MOST_BESIDE):
                yield {**values, finding.name: value}


def _explains(spec: DeviceSpec, values: Values, evidence: Evidence) -> bool:
    try:
        return evidence.explained_by(with_values(spec, **values))
    except ValueError:
        return False


def _doubt(spec: DeviceSpec, found: Found, evidence: Evidence) -> None:
    """Looks again at what was told by elimination.

    What that took for granted may be assumed otherwise since, and a run that struck out the other
    values may have been noise.
    """
    for name in found.eliminated:
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


def _told(left: list[Values], sequences: int) -> list[Finding]:
    findings = []
    because = (
        f"every other value that was left was wrong about at least one of {sequences} sequences"
    )
    for name, value in left[0].items():
        if all(values[name] == value for values in left):
            field = _BY_NAME[name]
            findings.append(Finding(field.path, value, TOLD, because, (), _NAME))
    return findings
