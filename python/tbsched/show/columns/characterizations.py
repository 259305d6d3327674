"""Measured instructions, as a table."""

from __future__ import annotations

from typing import Any

from tbsched.sm.characterization import Characterization, Figures, Measured


def characterization_columns(found: Characterization) -> dict[str, Any]:
    """A row per opcode. What was not measured is NaN."""
    rows = found.figures
    measured = ("throughput", "all_sms", "scheduling_wait", "dependence_wait")
    plain = ("least_stall", "overhead", "best_even", "best_uneven")
    return {
        "opcode": [row.opcode for row in rows],
        **{name: [_value(getattr(row, name)) for row in rows] for name in measured},
        "spread": [row.throughput.spread if row.throughput else _NAN for row in rows],
        **{name: [_value(getattr(row, name)) for row in rows] for name in plain},
        "least_warps": [
            _value(min((row.least_warps or {}).values(), default=None)) for row in rows
        ],
        **{
            f"{part}_{skew}_skew": [_skew(row, skew, part) for row in rows]
            for skew in ("even", "uneven")
            for part in ("starting", "ending")
        },
        **{name: [getattr(row, name) for row in rows] for name in ("runs", "failed", "misplaced")},
        "reason": [row.reason for row in rows],
    }


_NAN = float("nan")


def _value(found: Measured | float | None) -> float:
    if found is None:
        return _NAN
    return found.value if isinstance(found, Measured) else float(found)


def _skew(row: Figures, which: str, part: str) -> float:
    skew = getattr(row, which)
    return _NAN if skew is None else float(getattr(skew, part))
