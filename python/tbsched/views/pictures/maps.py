"""The SMs of a GPU by TPC and GPC, with what sits on them, or with which ones are preferred."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba, to_rgba_array
from matplotlib.typing import ColorType

from tbsched.counting import counted
from tbsched.errors import shown
from tbsched.hardware.spec import DeviceSpec
from tbsched.program.arrays import Float64Array
from tbsched.program.checks import instance, integer, items
from tbsched.program.partition import Partition
from tbsched.traces.trace import Trace
from tbsched.views.layout.colours import PALETTE
from tbsched.views.layout.names import label
from tbsched.views.layout.sms import Standing, standing
from tbsched.views.layout.topology import Topology, topology_of
from tbsched.views.pictures.canvas import (
    EMPTY,
    add_boxes,
    axes_for,
    bare,
    entitle,
    inches_of,
    ink,
    ink_on,
    key,
    moment,
    who,
)
from tbsched.views.pictures.kernels import colour_table, key_of_kernels

_WIDTH, _TALLEST = 12.0, 8.0  # inches, of the map
_TITLE, _LEGEND = 0.75, 2.4  # inches, of the titles of rows and of the legend
_BOX = 0.6  # inches, the height of an SM if there are few
_INSIDE = 0.92  # of the distance of two SMs, what the box takes
_STRIP = 0.24  # of that the numbers of SMs, where they fit
_GAP = 0.12  # between TPCs, in widths of an SM
_NUMBER = 0.16  # inches, what the number of an SM takes
_WAITING_NAMED = 3


@dataclass(frozen=True, slots=True)
class _Grid:
    """Where each SM is drawn.

    Attributes:
        left, top: float64 (sms,), in widths of an SM and in rows.
        titles: of the rows: left end, row, text.
        numbered: SMs whose numbers there is room for.
        width, height: of all.
        box: inches that an SM is wide.
        inches: the height of all.
    """

    left: Float64Array
    top: Float64Array
    titles: list[tuple[float, float, str]]
    numbered: list[int]
    width: float
    height: float
    box: float
    inches: float


def sm_map(
    what: Trace | DeviceSpec,
    *,
    at: float | None = None,
    partitions: Iterable[Partition] = (),
    ax: Axes | None = None,
) -> Axes:
    """Draws the SMs by TPC and GPC: what sits on each at a moment, or which ones are preferred.

    For a trace, a bar for each SM shows the blocks on it. It has full height on the SMs that hold
    most at that moment. For a device, the SMs that are preferred are darker; or the SMs of each
    partition have a colour.

    Example:
        >>> import tbsched as tb
        >>> seq = tb.Sequence([tb.Launch(41, 512, 32), tb.Launch(100, 256, 32)])
        >>> ax = tb.show.sm_map(tb.predict(seq, "rtx3090"), at=1)
        >>> groups, rest = tb.split_sms("h200", min_sms=32)
        >>> ax = tb.show.sm_map(tb.device("h200"), partitions=[*groups, rest])

    Args:
        what: a prediction, an observation, or a device.
        at: the moment of a trace. In a held sequence it is after so many events, or after all of
            them for None. In a timed one it is a time in seconds on the clock of the trace, or for
            None when most blocks are resident.
        partitions: of a device, to be shown in its map. Of an SM of several the last one is shown.
        ax: the axes to draw into; None makes a figure.

    Returns:
        The axes. A notebook shows them; ``ax.figure.savefig("out.png")`` writes the figure.

    Raises:
        ImportError: matplotlib is missing (``pip install matplotlib``).
        TypeError: neither a trace nor a device; a moment of a device; partitions of a trace.
        ValueError: no such moment; a partition with an SM that the device does not have.
    """
    shown_too = tuple(items("sm_map", "partitions", partitions))
    if isinstance(what, DeviceSpec):
        if at is not None:
            raise TypeError(f"sm_map: at: a device has no moments, got {shown(at)}")
        return _partitions(what, shown_too, ax) if shown_too else _device(what, ax)
    if not isinstance(what, Trace):
        raise TypeError(f"sm_map: what: a Trace or a DeviceSpec is needed, got {shown(what)}")
    if shown_too:
        raise TypeError("sm_map: partitions: they are shown in the map of a DeviceSpec")
    return _trace(what, at, ax)


def _device(spec: DeviceSpec, ax: Axes | None) -> Axes:
    """Draws the map of a device, stronger colours for SMs that are preferred."""
    topology = topology_of(spec)
    grid = _grid(topology, spec.sms, _axes_width(ax, _WIDTH))
    ax = axes_for("sm_map", ax, _WIDTH, grid.inches)
    shades = 0.25 + 0.7 * np.array(topology.rank) / spec.sms
    colours = colormaps["viridis"](shades)
    _boxes(ax, grid, colours)
    _numbers(ax, grid, [ink_on(tuple(colour)) for colour in colours], _INSIDE / 2)
    note = "the darker, the sooner among equally suitable SMs"
    _finish(ax, grid, f"{spec.title}: SMs by TPC and GPC", note, topology.source)
    return ax


def _partitions(spec: DeviceSpec, partitions: Sequence[Partition], ax: Axes | None) -> Axes:
    """Draws the map of a device with the SMs of each partition."""
    topology = topology_of(spec)
    grid = _grid(topology, spec.sms, _axes_width(ax, _WIDTH - _LEGEND))
    ax = axes_for("sm_map", ax, _WIDTH, grid.inches)
    colours = np.tile(to_rgba_array(EMPTY), (spec.sms, 1))
    inks, rows = [ink()] * spec.sms, list[tuple[ColorType, str]]()
    for index, partition in enumerate(partitions):
        instance("sm_map", f"partitions[{index}]", partition, Partition)
        colour = PALETTE[index % len(PALETTE)]
        for sm in partition.sms:
            integer("sm_map", f"partitions[{index}].sms", sm, 0, spec.sms - 1)
            colours[sm], inks[sm] = to_rgba(colour), ink_on(colour)
        group = "left over" if partition.split and partition.group is None else str(index)
        rows.append((colour, f"{group}: {counted(len(partition), 'SM')}"))
    _boxes(ax, grid, colours)
    _numbers(ax, grid, inks, _INSIDE / 2)
    _finish(ax, grid, f"{spec.title}: partitions", topology.source)
    key(ax, rows, "partition", total=len(rows))
    return ax


def _trace(trace: Trace, at: float | None, ax: Axes | None) -> Axes:
    """Draws the map of a GPU with the blocks on each SM at a moment."""
    topology = topology_of(trace.device)
    residents = standing(trace, moment("sm_map", trace, at))
    grid = _grid(topology, trace.device.sms, _axes_width(ax, _WIDTH - _LEGEND))
    ax = axes_for("sm_map", ax, _WIDTH, grid.inches + 0.1)
    max_blocks = max(1, int(residents.blocks_per_sm.max(initial=0)))
    _boxes(ax, grid, EMPTY)
    colours = colour_table(trace.sequence.launches)
    share = residents.blocks / max_blocks * (_INSIDE - _STRIP)
    # Launches of an SM stand on each other, the earliest at the bottom.
    above = share.cumsum()
    floor = above - share
    base = floor[np.searchsorted(residents.sm, residents.sm)]
    left, bottom = grid.left[residents.sm], grid.top[residents.sm] + _INSIDE
    sides = (left, left + _INSIDE, bottom - (above - base), bottom - (floor - base))
    add_boxes(ax, sides, facecolors=colours[residents.launch], linewidths=0)
    _numbers(ax, grid, [ink()] * trace.device.sms, _STRIP / 2)
    height = f"a bar of full height is {counted(max_blocks, 'block')}"
    notes = (residents.when, height, _waiting(trace, residents), residents.note, topology.source)
    _finish(ax, grid, f"{who(trace)}: what sits on each SM", *notes)
    blocks = np.bincount(residents.launch, residents.blocks, len(trace))
    key_of_kernels(ax, trace.sequence.launches, blocks.astype(np.float64))
    return ax


def _axes_width(ax: Axes | None, inches: float) -> float:
    """The width of the axes that the user gave, if any."""
    return inches_of(ax)[0] if isinstance(ax, Axes) else inches


def _grid(topology: Topology, sms: int, box_width: float) -> _Grid:
    """Returns the rows of the map in as many columns as make its boxes nearly squares."""
    widest = max(len(row.tpcs) * _GAP + sum(map(len, row.tpcs)) for row in topology.rows) - _GAP
    rows = len(topology.rows)

    def box(columns: int) -> tuple[float, float]:
        """How wide and tall an SM's box is, in inches."""
        return (box_width / columns - _TITLE) / widest, min(_BOX, _TALLEST / -(-rows // columns))

    columns = min(range(1, 7), key=lambda n: abs(np.log(max(box(n)[0], 0.01) / box(n)[1])))
    across, height = box(columns)
    step, row_width = widest + _TITLE / across, -(-rows // columns)
    left, top = np.zeros(sms), np.zeros(sms)
    titles, numbered = [], []
    every = max(1, int(np.ceil(_NUMBER / max(across, 1e-3))))
    for index, row in enumerate(topology.rows):
        column, y = divmod(index, row_width)
        x = column * step
        titles.append((x, float(y), row.title))
        numbered += [sm for tpc in row.tpcs for sm in tpc][::every]
        for tpc in row.tpcs:
            for sm in tpc:
                left[sm], top[sm] = x, y
                x += 1
            x += _GAP
    width = (columns - 1) * step + widest
    return _Grid(left, top, titles, numbered, width, row_width, across, 1.1 + height * row_width)


def _boxes(ax: Axes, grid: _Grid, colours: ColorType | Float64Array) -> None:
    sides = (grid.left, grid.left + _INSIDE, grid.top, grid.top + _INSIDE)
    add_boxes(ax, sides, facecolors=colours, linewidths=0)


def _numbers(ax: Axes, grid: _Grid, inks: list[str], height: float) -> None:
    """Draws the numbers of SMs in their boxes, at a height from the top."""
    size = min(8.0, max(grid.box * 22, 3.5))
    for sm in grid.numbered:
        text = ax.text(
            grid.left[sm] + _INSIDE / 2, grid.top[sm] + height, str(sm), size=size, color=inks[sm],
            ha="center", va="center_baseline",
        )  # fmt: skip
        text.set_in_layout(False)  # to lay out a thousand takes long


def _finish(ax: Axes, grid: _Grid, title: str, *notes: str) -> None:
    """Draws the titles of rows, and sets the limits of the axes."""
    for left, row, text in grid.titles:
        ax.text(left - 0.15, row + _INSIDE / 2, text, ha="right", va="center", size="small")
    ax.set_xlim(-0.05, grid.width)
    ax.set_ylim(grid.height, -0.05)
    ax.set_xticks([])
    ax.set_yticks([])
    bare(ax)
    entitle(ax, title, *notes)


def _waiting(trace: Trace, residents: Standing) -> str:
    """Returns which launches wait, and how many of their blocks."""
    rows = residents.waiting.tolist()
    names = [
        f"{label(trace.sequence.launches[launch], 24)} ({blocks:,})"
        for launch, blocks in rows[:_WAITING_NAMED]
    ]
    if len(rows) > _WAITING_NAMED:
        names.append(f"{counted(len(rows) - _WAITING_NAMED, 'launch', 'launches')} more")
    return f"blocks of {', '.join(names)} wait" if names else ""
