"""Measured instructions, as a table."""

from __future__ import annotations

from typing import Any

from tbsched.sm.characterization import Characterization, Figures, Measured


def characterization_columns(found: Characterization) -> dict[str, Any]:
    """A row per opcode. What was not measured is None."""
    rows = found.figures
    measured = ("throughput", "all_sms", "scheduling_wait", "dependence_wait")
    plain = ("least_stall", "overhead", "best_even", "best_uneven")
    return {
        "opcode": [row.opcode for row in rows],
        **{name: [_value(getattr(row, name)) for row in rows] for name in measured},
        "spread": [row.throughput.spread if row.throughput else None for row in rows],
        **{name: [getattr(row, name) for row in rows] for name in plain},
        "least_warps": [min((row.least_warps or {}).values(), default=None) for row in rows],
        **{
            f"{part}_{skew}_skew": [_skew(row, skew, part) for row in rows]
            for skew in ("even", "uneven")
            for part in ("starting", "ending")
        },
        **{name: [getattr(row, name) for row in rows] for name in ("runs", "failed", "misplaced")},
        "reason": [row.reason for row in rows],
    }


def _value(found: Measured | None) -> float | None:
    return None if found is None else found.value


def _skew(row: Figures, which: str, part: str) -> int | None:
    skew = getattr(row, which)
    return None if skew is None else getattr(skew, part)
