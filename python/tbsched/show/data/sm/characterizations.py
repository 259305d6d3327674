"""Measured instructions, as what JSON can hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from tbsched.sm.characterization import Characterization
from tbsched.sm.characterization.figures import Point


def characterization_data(found: Characterization) -> dict[str, Any]:
    """The GPU, and the figures of each opcode."""
    return {
        "device": dict(found.device),
        "figures": [
            {
                **asdict(each),
                "least_warps": [
                    {"mode": mode, "distance": distance, "warps": warps}
                    for (mode, distance), warps in (each.least_warps or {}).items()
                ],
                "ends": _ends(each.ends or {}),
            }
            for each in found.figures
        ],
    }


def _ends(ends: Mapping[Point, int]) -> list[dict[str, Any]]:
    """A row per loop, with the clocks of 1, 2 and more warps; None: not measured."""
    found: dict[tuple[str, int], dict[int, int]] = {}
    for point, clocks in ends.items():
        found.setdefault((point.mode, point.distance), {})[point.warps] = clocks
    return [
        {
            "mode": mode,
            "distance": distance,
            "clocks": [row.get(warps) for warps in range(1, max(row) + 1)],
        }
        for (mode, distance), row in found.items()
    ]
