"""Programs out of profiles as a table: a row per launch."""

from __future__ import annotations

from typing import Any

import numpy as np

from tbsched.program.program import Program

_OF_LAUNCH = ("blocks", "threads", "registers", "shared_memory", "cluster", "priority", "host")


def program_columns(program: Program) -> dict[str, Any]:
    """What was launched, when it was called, when it ran, and how long its blocks run."""
    launches = program.sequence.launches
    measured = program.measured
    durations = [launch.block_durations() for launch in launches]
    return {
        "launch": np.arange(len(launches)),
        **{name: measured[name].copy() for name in measured.dtype.names or ()},
        **{name: [getattr(launch, name) for launch in launches] for name in _OF_LAUNCH},
        "duration": [None if each is None else float(each.mean()) for each in durations],
        "fitted": list(program.fitted) or [None] * len(launches),
    }
