"""What campaigns found as tables: a row per counterexample."""

from __future__ import annotations

from typing import Any

from tbsched.calibration.results import Calibration
from tbsched.campaigns.results import Counterexample, Report


def report_columns(report: Report) -> dict[str, Any]:
    """A row per counterexample, in the order in which they were found."""
    rows = list(map(_row, report.counterexamples))
    names = (
        "id", "like", "shrunk", "replayed", "events", "launches", "blocks", "level", "launch",
        "name", "different_blocks", "different_sms",
    )  # fmt: skip
    return {name: [row[name] for row in rows] for name in names}


def _row(example: Counterexample) -> dict[str, Any]:
    launches = example.sequence.launches
    first = example.diff.first_divergence
    assert first is not None  # a counterexample differs somewhere
    return {
        **{name: getattr(example, name) for name in ("id", "like", "shrunk", "replayed")},
        "events": len(example.sequence),
        "launches": len(launches),
        "blocks": sum(launch.blocks for launch in launches),
        "level": first.level,
        "launch": first.launch,
        "name": launches[first.launch].name,
        "different_blocks": len(first.blocks),
        "different_sms": len(first.sms),
    }


def calibration_columns(calibration: Calibration) -> dict[str, Any]:
    """A row per value, in the order of finding."""
    rows = calibration.report
    return {
        "field": [finding.path for finding in rows],
        "value": [str(finding.value) for finding in rows],
        "kind": [finding.kind for finding in rows],
        "because": [finding.because for finding in rows],
        "rivals": [", ".join(map(str, finding.rivals)) for finding in rows],
        "probe": [finding.probe or None for finding in rows],
    }
