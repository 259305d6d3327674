"""Comparisons as what JSON can hold."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from tbsched.comparison.compare import Diff
from tbsched.comparison.times import TimeDiff
from tbsched.comparison.verify import Score
from tbsched.show.data.traces import info_data


def diff_data(diff: Diff) -> dict[str, Any]:
    """How closely two traces agree, and where they first do not."""
    names = [launch.name for launch in diff.a.sequence.launches]
    return {
        "id": diff.b.id,
        "a": info_data(diff.a.device),
        "b": info_data(diff.b.device),
        "occupancy": diff.occupancy,
        "exact": diff.exact,
        "launches": [
            {"launch": number, "name": name, **asdict(launch)}
            for number, (name, launch) in enumerate(zip(names, diff.launches, strict=True))
        ],
        "first_divergence": _divergence(diff),
    }


def _divergence(diff: Diff) -> dict[str, Any] | None:
    found = diff.first_divergence
    if found is None:
        return None
    capacity = found.capacity
    return {
        "launch": found.launch,
        "name": diff.a.sequence.launches[found.launch].name,
        "level": found.level,
        "blocks": found.blocks.tolist(),
        "sms": found.sms.tolist(),
        "a_blocks": found.a_blocks.tolist(),
        "b_blocks": found.b_blocks.tolist(),
        "room": None if capacity is None else capacity.blocks.tolist(),
        "bound_by": None if capacity is None else list(capacity.limiter),
    }


def time_diff_data(diff: TimeDiff) -> dict[str, Any]:
    """How far a timed prediction is from what ran."""
    rows = [{"launch": number, **asdict(row)} for number, row in enumerate(diff.launches)]
    return {**asdict(diff), "launches": rows}


def score_data(score: Score) -> dict[str, Any]:
    """How often a predictor agrees with traces."""
    counts = ("sequences", "launches", "occupancy", "exact", "whole")
    return {
        "device": score.device,
        "policy": score.policy,
        **{name: getattr(score, name) for name in counts},
        "agrees": score.agrees,
        "skipped": [{"id": name, "reason": reason} for name, reason in score.skipped],
        "misses": [diff.b.id for diff in score.misses],
    }
