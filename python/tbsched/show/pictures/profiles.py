"""Resident blocks of each kernel over time, in a prediction and in an observation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes

from tbsched.program.arrays import Float64Array, Int64Array, StructuredArray
from tbsched.show.layout.colours import colours_of
from tbsched.show.layout.lanes import blocks_that_ran
from tbsched.show.layout.names import kernels_of, label
from tbsched.show.pictures.canvas import axes_for, bare, entitle, ink, time_axis
from tbsched.show.pictures.kernels import names_of, time_of
from tbsched.show.words import seconds_words, source_words
from tbsched.traces.trace import Trace

_BINS = 800  # of the time axis
_MOST_ROWS = 24
_LETTERS = 40  # of a name
_HOW = ("filled", "line")
_OTHERS = "#888888"
_TALLEST = 0.88  # of the distance of two rows


@dataclass(frozen=True, slots=True)
class _Groups:
    """Launches that share rows.

    Attributes:
        labels: of the rows.
        row_of: int64 (launches,).
        colours: of the rows.
    """

    labels: list[str]
    row_of: Int64Array
    colours: list[str]


def profiles(a: Trace, b: Trace, ax: Axes | None) -> Axes:
    """Draws a row per launch, or per kernel where there are many launches."""
    timelines = [_from_zero(trace) for trace in (a, b)]
    ends = [int(rows["end_ns"].max(initial=1)) for rows in timelines]
    last = max(ends)
    groups = _grouped(a, timelines[0])
    ax = axes_for("compared", ax, 12, 1.8 + 0.42 * len(groups.labels))
    edges = np.linspace(0, last, _BINS + 1)
    predicted, observed = (_resident(rows, groups, edges) for rows in timelines)
    scale, unit = time_axis(last)
    peaks = np.maximum(np.maximum(predicted, observed).max(axis=1), 1e-9)
    for row, (peak, colour) in enumerate(zip(peaks, groups.colours, strict=True)):
        floor = row + _TALLEST / 2
        heights = (floor - _TALLEST * part[row] / peak for part in (predicted, observed))
        filled, line = (np.append(height, height[-1]) for height in heights)
        ax.fill_between(
            edges / scale, floor, filled, step="post", color=colour, alpha=0.75, linewidth=0
        )
        ax.step(edges / scale, line, where="post", color=ink(), linewidth=0.9)
        ax.axhline(floor, color=ink(), linewidth=0.4, alpha=0.4)
        ax.annotate(
            f"{peak:,.0f}", (1, row), (4, 0), xycoords=("axes fraction", "data"),
            textcoords="offset points", va="center", fontsize="small",
        )  # fmt: skip
    ax.set_yticks(range(len(groups.labels)), groups.labels)
    ax.tick_params(axis="y", length=0)
    ax.set_xlim(0, last / scale)
    ax.set_ylim(len(groups.labels) - 0.5, -0.5)
    ax.set_xlabel(f"{unit} (at the right: the most blocks at a time)")
    bare(ax, "bottom")
    words = [f"{seconds_words(end / 1e9)} {how}" for end, how in zip(ends, _HOW, strict=True)]
    error = round(100 * (ends[0] / ends[1] - 1), 2) + 0.0  # no negative zero
    names = " and ".join(dict.fromkeys(trace.device.name for trace in (a, b)))
    whose = [f"{source_words(x.device)} ({how})" for x, how in zip((a, b), _HOW, strict=True)]
    title = f"{names}: resident blocks, {' and '.join(whose)}"
    entitle(ax, title, f"makespan {' and '.join(words)}: {error:+.2f} %")
    return ax


def _from_zero(trace: Trace) -> StructuredArray:
    """The blocks that ran, with times from the first start on."""
    ran = blocks_that_ran(trace).copy()
    if len(ran):
        zero = ran["start_ns"].min()
        ran["start_ns"] -= zero
        ran["end_ns"] -= zero
    return ran


def _grouped(trace: Trace, ran: StructuredArray) -> _Groups:
    """A row per launch if these are few; else one per kernel, those of least time together."""
    launches = trace.sequence.launches
    colours = colours_of(launches)
    kernel = np.arange(len(launches)) if len(launches) <= _MOST_ROWS else kernels_of(launches)
    count = np.bincount(kernel)
    kernels = np.flatnonzero(count)
    most = _MOST_ROWS - (len(kernels) > _MOST_ROWS)
    time = np.bincount(kernel, time_of(ran, len(launches)), len(launches))
    # Of the kernels that took most time, those that came first are at the top.
    chosen = np.sort(kernels[np.argsort(-time[kernels], kind="stable")[:most]])
    numbers = chosen.tolist()
    if len(launches) <= _MOST_ROWS:
        labels = [f"{k}: {label(launches[k], _LETTERS)}" for k in numbers]
    else:
        labels = names_of(launches, numbers, count, _LETTERS)
    row_of = np.full(len(launches), most)
    row_of[chosen] = np.arange(len(chosen))
    shades = [colours[k] for k in numbers]
    if len(kernels) > most:
        labels.append(f"{len(kernels) - most:,} kernels more")
        shades.append(_OTHERS)
    return _Groups(labels, row_of[kernel], shades)


def _resident(rows: StructuredArray, groups: _Groups, edges: Float64Array) -> Float64Array:
    """Mean number of resident blocks, float64 (groups, bins)."""
    row = groups.row_of[rows["launch"]]
    found = np.empty((len(groups.labels), len(edges) - 1))
    for group in range(len(groups.labels)):
        own = rows[row == group]
        time = _since(own["start_ns"], edges) - _since(own["end_ns"], edges)
        found[group] = np.diff(time) / np.diff(edges)
    return found


def _since(times_ns: Int64Array, edges: Float64Array) -> Float64Array:
    """For each edge the time since each of the times, where that is past, in sum."""
    ordered = np.sort(times_ns).astype(np.float64)
    before = ordered.searchsorted(edges)
    found: Float64Array = before * edges - np.append(0, ordered.cumsum())[before]
    return found
