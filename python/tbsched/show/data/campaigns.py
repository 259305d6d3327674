"""What campaigns found as what JSON can hold."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

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
