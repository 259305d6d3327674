"""A simulated kernel in a Perfetto trace. This imports perfetto, which is optional."""

from __future__ import annotations

from typing import BinaryIO

import numpy as np

from tbsched.show.files.tracks import TrackWriter
from tbsched.show.layout.simulated import Stays, blocks_on_cores, open_rows, warps_of
from tbsched.show.text.sm.simulations import simulation_short
from tbsched.sm.results import Simulation

_AWAKE = "A slice: the warp can issue. Else it waits for memory, for room, or at a barrier."
_OPEN = "A slice: the row is open."


def write_simulation(found: Simulation, file: BinaryIO) -> None:
    """Writes blocks by core, and as far as they were kept, warps by core and open DRAM rows."""
    out = TrackWriter(file)
    gpu = out.track(None, simulation_short(found))
    _add(out, out.track(gpu, "cores"), "core", "block", blocks_on_cores(found))
    for core in range(int(found.config["cores"])):
        if len((stays := warps_of(found, core)).what):
            _add(out, out.track(gpu, f"warps of core {core}", _AWAKE), "warp", "warp", stays)
    for number in range(int(found.config["controllers"])):
        if len((stays := open_rows(found, number)).what):
            title = f"DRAM banks of controller {number}"
            _add(out, out.track(gpu, title, _OPEN), "bank", "row", stays)
    out.end()


def _add(out: TrackWriter, group: int, row: str, what: str, stays: Stays) -> None:
    """A row for each place, and a slice for each stay."""
    titles = [f"{row} {number}" for number in range(int(stays.place.max(initial=0)) + 1)]
    end_ns = np.maximum(stays.end_ns, stays.begin_ns + 1)
    track = out.in_rows(group, titles, stays.place, stays.begin_ns, end_ns)
    names = out.names.numbers(f"{what} {number}" for number in stays.what.tolist())
    out.slice(stays.begin_ns, end_ns, track, name=names)
