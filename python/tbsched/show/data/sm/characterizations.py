"""Measured instructions, as what JSON can hold."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from tbsched.sm.characterization import Characterization


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
            }
            for each in found.figures
        ],
    }
