"""Blocks per launch and SM as a heat map, of one trace or as the difference of two."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import BoundaryNorm, Colormap, ListedColormap, Normalize
from matplotlib.ticker import MaxNLocator

from tbsched.program.arrays import Int64Array
from tbsched.program.checks import instance
from tbsched.traces.trace import Trace
from tbsched.views.layout.names import label
from tbsched.views.pictures.canvas import axes_for, bare, entitle

_NAMED_ROWS = 40  # launches whose names fit next to the rows
_LETTERS = 40  # of a name
MOST_ROWS = 400  # more are not told apart
_STEPS = 12  # numbers with a colour of their own; more make a scale


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a heat map.

    Attributes:
        cells: int64 (rows, sms).
        launches: the first launch of each row.
        each: how many launches are in a row.
    """

    cells: Int64Array
    launches: Int64Array
    each: int = 1


def blocks(trace: Trace, *, ax: Axes | None = None) -> Axes:
    """Draws how many blocks of each launch are on each SM: a row per launch, a column per SM.

    In a held sequence it counts the blocks that were placed before the next event. If there are
    more than 400 launches, several share a row, and the picture says so.

    Example:
        >>> import tbsched as tb
        >>> seq = tb.Sequence([tb.Launch(41, 512, 32), tb.Launch(100, 256, 32)])
        >>> ax = tb.show.blocks(tb.predict(seq, "rtx3090"))

    Args:
        trace: a prediction or an observation.
        ax: the axes to draw into; None makes a figure.

    Returns:
        The axes. A notebook shows them; ``ax.figure.savefig("out.png")`` writes the figure.

    Raises:
        ImportError: matplotlib is missing (``pip install matplotlib``).
        TypeError: something else than a trace.
    """
    instance("blocks", "trace", trace, Trace)
    rows = counted_blocks(trace)
    note = "before the next event" if not trace.sequence.timed else "all that ran"
    shared = f"each row is the sum of {rows.each:,} launches in order" if rows.each > 1 else ""
    title = f"{trace.device.name}: blocks of each launch on each SM"
    return heat_map("blocks", rows, trace, ax, (title, note, shared), "blocks")


def counted_blocks(trace: Trace) -> Rows:
    """Returns blocks per launch and SM, the launches together where there are too many."""
    launches_per_row = -(-len(trace) // MOST_ROWS) or 1
    height, sms = -(-len(trace) // launches_per_row), trace.device.sms
    smid = [placement.smid for placement in trace]
    flat = np.concatenate(smid) if smid else np.empty(0, np.int32)
    row = np.repeat(np.arange(len(trace)) // launches_per_row, [len(part) for part in smid])
    is_placed = flat >= 0
    cells = np.bincount(row[is_placed] * sms + flat[is_placed], minlength=height * sms)
    return Rows(cells.reshape(height, sms), np.arange(height) * launches_per_row, launches_per_row)


def heat_map(
    function: str,
    rows: Rows,
    trace: Trace,
    ax: Axes | None,
    title: tuple[str, ...],
    unit: str,
    *,
    signed: bool = False,
) -> Axes:
    """Draws the rows; cells that are zero have the colour of the background."""
    height, sms = rows.cells.shape
    ax = axes_for(function, ax, 12, 1.6 + min(6.5, max(0.28 * max(1, height), 0.8)))
    max_value = max(1, int(np.abs(rows.cells).max(initial=0)))
    colours, norm, ticks = _signed(max_value) if signed else _unsigned(max_value)
    image = ax.imshow(
        np.ma.masked_equal(rows.cells, 0),
        aspect="auto",
        interpolation="nearest",
        cmap=colours,
        norm=norm,
        extent=(-0.5, sms - 0.5, max(height, 1) - 0.5, -0.5),
    )
    entitle(ax, *title)
    ax.set_xlabel("SM")
    ax.xaxis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 4, 8, 10]))
    if height <= _NAMED_ROWS and rows.each == 1:
        ax.set_yticks(range(height), [_launch_title(trace, k) for k in rows.launches.tolist()])
    else:
        some = np.unique(np.linspace(0, height - 1, 9).astype(int))
        ax.set_yticks(some, [f"{rows.launches[row]:,}" for row in some])
        ax.set_ylabel("launch")
    bare(ax, "left", "bottom")
    _lines(ax, height)
    figure = ax.get_figure()
    assert figure is not None
    bar = figure.colorbar(image, ax=ax, pad=0.01, aspect=30 if height > 10 else 10, ticks=ticks)
    bar.minorticks_off()
    bar.set_label(unit)
    return ax


def _launch_title(trace: Trace, launch: int) -> str:
    """Returns what a launch is called, and how many of its blocks were not placed before the next
    event."""
    waiting = trace.sequence.launches[launch].blocks - trace[launch].placed
    name = f"{launch}: {label(trace.sequence.launches[launch], _LETTERS)}"
    return name + (f" ({waiting:,} wait)" if waiting else "")


def _lines(ax: Axes, height: int) -> None:
    """Draws thin lines between the rows, where there are few."""
    if height <= _NAMED_ROWS:
        ax.set_yticks(np.arange(height - 1) + 0.5, minor=True)
        ax.grid(axis="y", which="minor", linewidth=0.5, alpha=0.5)
        ax.tick_params(which="minor", length=0)


def _unsigned(max_value: int) -> tuple[Colormap, Normalize, list[int]]:
    """Returns colours, their scale and the ticks for numbers from 1 to the most, without the
    colours that vanish on a light or dark background."""
    shades = (
        np.linspace(0.2, 0.9, 256 if max_value > _STEPS else max_value) if max_value > 1 else [0.45]
    )
    colours = ListedColormap(colormaps["viridis"](shades))
    if max_value > _STEPS:
        return colours, Normalize(1, max_value), _round_numbers(1, max_value)
    return (
        colours,
        BoundaryNorm(np.arange(0.5, max_value + 1), max_value),
        list(range(1, max_value + 1)),
    )


def _signed(max_value: int) -> tuple[Colormap, Normalize, list[int]]:
    """Returns colours, their scale and the ticks for differences: less in purple, more in orange,
    and near zero too unlike the background."""
    few = max_value <= _STEPS // 2
    steps = max_value if few else 128
    less = np.linspace(0.05, 0.33, steps) if steps > 1 else np.array([0.15])
    shades = colormaps["PuOr_r"](np.concatenate([less, 1 - less[::-1]]))
    if not few:
        return (
            ListedColormap(shades),
            Normalize(-max_value, max_value),
            _round_numbers(-max_value, max_value),
        )
    ticks = [*range(-max_value, 0), *range(1, max_value + 1)]
    bounds = [*np.arange(-max_value, 0) - 0.5, 0.0, *np.arange(1, max_value + 1) + 0.5]
    return ListedColormap(shades), BoundaryNorm(bounds, len(ticks)), ticks


def _round_numbers(low: int, high: int) -> list[int]:
    ticks = MaxNLocator(6, integer=True).tick_values(low, high)
    return [int(tick) for tick in ticks if low <= tick <= high]
