"""What SMs hold as a table: a row per launch, SM and placing."""

from __future__ import annotations

from typing import Any

from tbsched.program.arrays import objects
from tbsched.traces.residents import Residents


def residents_columns(held: Residents) -> dict[str, Any]:
    """The blocks and warps that are there, and the registers and the memory that they take."""
    rows = held.rows
    launch, blocks = rows["launch"].copy(), rows["blocks"].copy()
    warps = rows["warps"].sum(axis=1)
    return {
        "launch": launch,
        "name": objects(held.names)[launch],
        "sm": rows["sm"].copy(),
        "blocks": blocks,
        "warps": warps,
        "registers": warps * held.registers_per_warp[launch],
        "shared_memory": blocks * held.shared_memory[launch],
    }
