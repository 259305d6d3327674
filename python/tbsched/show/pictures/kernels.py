"""The legend of a trace: its kernels, those that took most first."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from tbsched.program.arrays import Int64Array
from tbsched.show.layout.colours import colours_of
from tbsched.show.layout.names import label
from tbsched.show.pictures.canvas import key
from tbsched.traces.trace import Trace

_LETTERS = 30  # of a name


def key_of_kernels(ax: Axes, trace: Trace, weights: Int64Array | None = None) -> None:
    """A legend with a row per kernel name; launches without a name have a row each.

    Args:
        ax: the axes.
        trace: whose launches they are.
        weights: of each launch, how important it is; None takes the time of its blocks, else their
            number. Those without weight are left out.
    """
    given = _weights(trace) if weights is None else weights
    rows: dict[str, list[int]] = {}
    for number, launch in enumerate(trace.sequence.launches):
        if given[number]:
            name = label(launch, _LETTERS) if launch.name else f"{number}: {label(launch, _LETTERS)}"
            rows.setdefault(name, []).append(number)
    colours = colours_of(trace.sequence.launches)
    order = sorted(rows, key=lambda name: -int(given[rows[name]].sum()))
    several = {name: f"{name} ({len(rows[name]):,})" for name in order if len(rows[name]) > 1}
    title = "kernel (launches)" if several else ""
    key(ax, [(colours[rows[name][0]], several.get(name, name)) for name in order], title)


def _weights(trace: Trace) -> Int64Array:
    blocks = np.array([launch.blocks for launch in trace.sequence.launches], np.int64)
    if any(placement.end_ns is None for placement in trace):
        return blocks
    rows = trace.timeline
    time = np.where(rows["sm"] >= 0, np.maximum(rows["end_ns"] - rows["start_ns"], 1), 0)
    return np.bincount(rows["launch"], time, len(trace)).astype(np.int64)
