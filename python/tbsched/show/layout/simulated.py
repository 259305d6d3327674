"""When a simulated GPU did what: blocks on its cores, warps of them, and open rows of its DRAM."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tbsched.program.arrays import HoldsArrays, Int64Array, StructuredArray
from tbsched.sm.results import Simulation

_ACTIVATE, _PRECHARGE = 0, 3  # of the kinds of commands


@dataclass(frozen=True, eq=False, slots=True)
class Stays(HoldsArrays):
    """What was where, and for how long, int64 (rows,) each.

    Attributes:
        place: a core, a warp of it, or a bank.
        what: a block, a warp, or a DRAM row.
        begin_ns, end_ns: from the start of the kernel on.
    """

    place: Int64Array
    what: Int64Array
    begin_ns: Int64Array
    end_ns: Int64Array


def blocks_on_cores(found: Simulation) -> Stays:
    """The blocks of each core."""
    core = found.core.astype(np.int64)
    return _stays(core, np.arange(len(core)), found.start, found.end, found.config["core_mhz"])


def warps_of(found: Simulation, core: int) -> Stays:
    """When each warp of a core could issue; nothing if nobody asked for it."""
    if found.warps is None:
        nothing = np.empty(0, np.int64)
        return Stays(nothing, nothing, nothing, nothing)
    own = found.warps[found.warps["core"] == core]
    warp = own["warp"].astype(np.int64)
    return _stays(warp, warp, own["begin"], own["end"], found.config["core_mhz"])


def open_rows(found: Simulation, controller: int) -> Stays:
    """From each activate of a bank to its next activate or precharge; nothing if nobody asked."""
    if found.commands is None:
        nothing = np.empty(0, np.int64)
        return Stays(nothing, nothing, nothing, nothing)
    own = found.commands[found.commands["controller"] == controller]
    return _stays(*_open_rows(own), found.config["dram_mhz"])


def _stays(
    place: Int64Array, what: Int64Array, begin: Int64Array, end: Int64Array, clock_mhz: float
) -> Stays:
    times = (np.asarray(np.round(cycles * (1000 / clock_mhz)), np.int64) for cycles in (begin, end))
    return Stays(place, what, *times)


def _open_rows(commands: StructuredArray) -> tuple[Int64Array, Int64Array, Int64Array, Int64Array]:
    """Bank, row, begin and end in cycles of the DRAM clock."""
    kind = commands["kind"]
    moves = commands[(kind == _ACTIVATE) | (kind == _PRECHARGE)]
    moves = moves[np.argsort(moves["bank"], kind="stable")]
    bank, cycle = moves["bank"].astype(np.int64), moves["cycle"].astype(np.int64)
    last = int(commands["cycle"].max(initial=0))
    end = np.append(cycle[1:], last)
    end[:-1][bank[1:] != bank[:-1]] = last
    opened = moves["kind"] == _ACTIVATE
    return bank[opened], moves["row"].astype(np.int64)[opened], cycle[opened], end[opened]
