"""What SMs hold, as what JSON can hold."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from tbsched.show.data.traces import info_data, rows_data
from tbsched.traces.residents import Residents


def residents_data(held: Residents) -> dict[str, Any]:
    """What every SM holds at one moment."""
    arrays = ("configured", "turn", "registers_per_warp", "shared_memory")
    return {
        "device": info_data(held.device),
        "at": held.at,
        "names": list(held.names),
        "limits": asdict(held.limits),
        "rows": rows_data(held.rows),
        "pieces": rows_data(held.pieces),
        **{name: getattr(held, name).tolist() for name in arrays},
    }
