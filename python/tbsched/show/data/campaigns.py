"""What campaigns found as what JSON can hold."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from tbsched.calibration.results import Calibration
from tbsched.campaigns.results import Counterexample, Report
from tbsched.program.sequence import events_to_data
from tbsched.show.data.differences import diff_data

_NUMBERS = (
    "seed", "predictor", "policy", "level", "examples", "disagreements", "launches", "blocks",
    "occupancy", "exact", "replayed", "unpredicted", "shrinking", "seconds", "ended",
)  # fmt: skip


def report_data(report: Report) -> dict[str, Any]:
    """The numbers of a campaign, and its counterexamples."""
    return {
        **{name: getattr(report, name) for name in _NUMBERS},
        "counterexamples": list(map(counterexample_data, report.counterexamples)),
        "unstable": [
            {"events": events_to_data(found.sequence), "reason": found.reason}
            for found in report.unstable
        ],
        "lost": list(map(asdict, report.lost)),
        "coverage": {
            "ways": dict(report.coverage.ways),
            "refused": dict(report.coverage.refused),
            "decided": dict(report.coverage.decided),
        },
    }


def counterexample_data(found: Counterexample) -> dict[str, Any]:
    """The sequence, where the traces differ, and the test to paste."""
    return {
        **{name: getattr(found, name) for name in ("id", "like", "shrunk", "replayed")},
        "events": events_to_data(found.sequence),
        "diff": diff_data(found.diff),
        "code": found.code,
    }


def calibration_data(calibration: Calibration) -> dict[str, Any]:
    """Each value and how sure it is, the certificate, and what the probes took."""
    certificate = asdict(calibration.certificate)
    certificate["decided"] = dict(calibration.certificate.decided)
    certificate["states"] = [repr(state) for state in calibration.certificate.states]
    campaign = calibration.campaign
    return {
        "device": calibration.spec.title,
        "findings": [_listed(asdict(finding)) for finding in calibration.report],
        "witnesses": [
            {
                "path": witness.path,
                "changes": _listed(dict(witness.changes)),
                "sequences": witness.sequences,
                "telling": None if witness.telling is None else events_to_data(witness.telling),
            }
            for witness in calibration.witnesses
        ],
        "certificate": {**_listed(certificate), "holds": calibration.certificate.holds},
        "not_asked": list(calibration.not_asked),
        "campaign": None if campaign is None else report_data(campaign),
        "steps": [asdict(step) for step in calibration.steps],
        "seconds": calibration.seconds,
    }


def _listed(value: Any) -> Any:
    """With lists in place of tuples, as JSON has them."""
    if isinstance(value, dict):
        return {key: _listed(item) for key, item in value.items()}
    return list(map(_listed, value)) if isinstance(value, tuple | list) else value
