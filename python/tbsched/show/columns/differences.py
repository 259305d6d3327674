"""Comparisons as tables: a row per launch."""

from __future__ import annotations

from typing import Any

import numpy as np

from tbsched.comparison.compare import Diff
from tbsched.comparison.times import TimeDiff


def diff_columns(diff: Diff) -> dict[str, Any]:
    """How closely the two traces agree on each launch."""
    launches = diff.a.sequence.launches
    placements = list(zip(diff.a, diff.b, strict=True))
    sms = diff.a.device.sms
    return {
        "launch": list(range(len(launches))),
        "name": [launch.name for launch in launches],
        "blocks": [launch.blocks for launch in launches],
        "occupancy": [launch.occupancy for launch in diff.launches],
        "exact": [launch.exact for launch in diff.launches],
        "a_placed": [a.placed for a, _ in placements],
        "b_placed": [b.placed for _, b in placements],
        "a_limiter": [a.limiter for a, _ in placements],
        "b_limiter": [b.limiter for _, b in placements],
        "different_blocks": [int(np.count_nonzero(a.smid != b.smid)) for a, b in placements],
        "different_sms": [
            0 if same.occupancy else int(np.count_nonzero(a.occupancy(sms) != b.occupancy(sms)))
            for same, (a, b) in zip(diff.launches, placements, strict=True)
        ],
    }


def time_diff_columns(diff: TimeDiff) -> dict[str, Any]:
    """How far each launch ran from when it was predicted to."""
    names = ("start_error", "end_error", "starts")
    found = {name: [getattr(launch, name) for launch in diff.launches] for name in names}
    return {"launch": list(range(len(diff.launches))), **found}
