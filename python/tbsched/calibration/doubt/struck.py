"""What is left of values after all probes: some of it contradicts what another probe observed."""

from __future__ import annotations

from tbsched.calibration.asking.evidence import Evidence
from tbsched.calibration.draft import with_values
from tbsched.calibration.finding import TOLD, Finding, Found, Values
from tbsched.hardware.device_fields import FIELDS
from tbsched.hardware.spec import DeviceSpec

_BY_NAME = {field.name: field for field in FIELDS}
_MOST = 16  # of a group, each of which is tried beside each of the others
_NAME = "all probes together"


def strike_out(spec: DeviceSpec, found: Found, evidence: Evidence) -> None:
    """Strikes out, of each group of values, those that contradict something that was tried.

    One is struck out only if it does so whatever is left of one other group.
    """
    if not evidence.explained_by(spec):
        return
    for group in found.left_together:
        others = [other for other in found.left_together if other is not group]
        if not 1 < len(group) <= _MOST:
            continue
        left = [values for values in group if _explains(spec, values, others, evidence)]
        if 0 < len(left) < len(group):
            found.leave(left)
            for finding in _told(left, len(evidence)):
                name = finding.path.rpartition(".")[2]
                if not found.is_told(name):
                    found.add(finding)
                    found.eliminated.add(name)


def _explains(
    spec: DeviceSpec, values: Values, others: list[tuple[Values, ...]], evidence: Evidence
) -> bool:
    beside: list[Values] = [{}, *(other for group in others for other in group[:_MOST])]
    for other in beside:
        try:
            device = with_values(spec, **{**other, **values})
        except ValueError:
            continue
        if evidence.explained_by(device):
            return True
    return False


def _told(left: list[Values], sequences: int) -> list[Finding]:
    findings = []
    because = f"every other value that was left was wrong about one of {sequences} sequences"
    for name, value in left[0].items():
        if all(values[name] == value for values in left):
            field = _BY_NAME[name]
            findings.append(Finding(field.path, value, TOLD, because, (), _NAME))
    return findings
