"""When blocks ran on each SM, or launches in each stream."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection

from tbsched.errors import did_you_mean, shown
from tbsched.program.arrays import Float64Array
from tbsched.program.checks import instance
from tbsched.show.layout.lanes import Spans, blocks_that_ran, spans_by_sm, spans_by_stream
from tbsched.show.layout.names import cut, label
from tbsched.show.pictures.canvas import (
    axes_for,
    bare,
    entitle,
    inches_of,
    time_axis,
    who,
    write_in,
)
from tbsched.show.pictures.kernels import colour_table, key_of_kernels, time_of
from tbsched.traces.trace import Trace

_ROWS_OF: dict[str, Callable[..., Spans]] = {"sm": spans_by_sm, "stream": spans_by_stream}
_MOST_SPANS, _MOST_ROWS, _COLUMNS = 12_000, 1024, 1000
_MOST_LABELS = 400
_LETTER = 0.6  # width of a letter, of the size of the print


def gantt(trace: Trace, *, by: str = "sm", ax: Axes | None = None) -> Axes:
    """Draws when each block ran on which SM, or when each launch ran in which stream.

    A colour is a kernel. Blocks that ran on an SM at the same time are beside each other. Of more
    than 12,000 blocks (or launches) it shows which launch took most of a moment; the picture says
    so.

    Example:
        >>> import tbsched as tb
        >>> seq = tb.Sequence([tb.Launch(66, 512, 32, stream=s, duration=1e-3) for s in (0, 1)])
        >>> ax = tb.show.gantt(tb.predict(seq, "h200"), by="stream")

    Args:
        trace: a prediction or an observation, with times.
        by: ``sm``, a row per SM, or ``stream``, a row per stream.
        ax: the axes to draw into; None makes a figure.

    Returns:
        The axes. A notebook shows them; ``ax.figure.savefig("out.png")`` writes the figure.

    Raises:
        ImportError: matplotlib is missing (``pip install matplotlib``).
        TypeError: something else than a trace.
        ValueError: nobody recorded when blocks ran; another word for ``by``.
    """
    instance("gantt", "trace", trace, Trace)
    if not isinstance(by, str) or by not in _ROWS_OF:
        known = ", ".join(_ROWS_OF)
        raise ValueError(
            f"gantt: by: {shown(by)} is not one of {known}{did_you_mean(by, _ROWS_OF)}"
        )
    ran = blocks_that_ran(trace)
    spans = _ROWS_OF[by](trace, _MOST_SPANS, _MOST_ROWS, ran=ran, columns=_COLUMNS)
    rows = len(spans.titles)
    each = 0.055 if by == "sm" else 0.32
    ax = axes_for(
        "gantt", ax, 12, 1.6 + np.clip(each * max(rows, int(spans.lanes.sum()) / 4), 1, 7)
    )
    scale, unit = time_axis(spans.length_ns)
    ax.set_xlim(0, spans.length_ns / scale)
    ax.set_ylim(rows - 0.5, -0.5)
    ax.set_xlabel(unit)
    _row_ticks(ax, spans, by)
    bare(ax, "bottom", "left")
    what = "blocks on each SM" if by == "sm" else "launches in each stream"
    entitle(ax, f"{who(trace)}: {what} over time", spans.note)
    key_of_kernels(ax, trace, time_of(ran, len(trace)))
    colours = colour_table(trace.sequence.launches)
    (_image if spans.note else _rectangles)(ax, spans, colours, scale, trace)
    return ax


def _rectangles(ax: Axes, spans: Spans, colours: Float64Array, scale: float, trace: Trace) -> None:
    """One for each span, with its name where that fits."""
    left, right = ((time - spans.zero_ns) / scale for time in (spans.begin_ns, spans.end_ns))
    height = 0.92 / spans.lanes[spans.row]
    top = spans.row - 0.46 + spans.lane * height
    corners = [(left, top), (right, top), (right, top + height), (left, top + height)]
    across, down = inches_of(ax, laid_out=True)
    ax.add_collection(
        PolyCollection(
            list(np.stack([np.stack(corner, axis=-1) for corner in corners], axis=1)),
            facecolors=colours[spans.launch],
            edgecolors=rcParams["axes.facecolor"],
            linewidths=min(0.6, 4 * down / max(int(spans.lanes.sum()), 1)),
        ),
        autolim=False,
    )
    _names(ax, spans, colours, trace, across, down)


def _names(
    ax: Axes, spans: Spans, colours: Float64Array, trace: Trace, across: float, down: float
) -> None:
    """The names of launches in the longest rectangles, where they fit; the axes are in inches."""
    tall = down / len(spans.titles) / spans.lanes[spans.row] * 72 * 0.92
    wide = (spans.end_ns - spans.begin_ns) / spans.length_ns * across * 72
    size = np.minimum(8, 0.75 * tall)
    letters = (wide / (_LETTER * size) - 1).astype(int)
    fits = np.flatnonzero((size >= 5) & (letters >= 3))
    launches = trace.sequence.launches
    scale, _ = time_axis(spans.length_ns)
    for k in fits[np.argsort(-wide[fits], kind="stable")][:_MOST_LABELS].tolist():
        launch = launches[spans.launch[k]]
        name = label(launch)
        if len(name) > letters[k]:
            if launch.name is None or letters[k] < 6:
                continue
            name = cut(name, int(letters[k]))
        left, right = ((ns - spans.zero_ns) / scale for ns in (spans.begin_ns[k], spans.end_ns[k]))
        height = 0.92 / spans.lanes[spans.row[k]]
        top = spans.row[k] - 0.46 + spans.lane[k] * height
        colour = tuple(colours[spans.launch[k]])
        write_in(ax, (left, right, top, top + height), name, float(size[k]), colour)


def _image(ax: Axes, spans: Spans, colours: Float64Array, scale: float, trace: Trace) -> None:
    """What ran most in each bin; bins in which nothing ran are left out."""
    begin, end = (
        np.rint((time - spans.zero_ns) * (_COLUMNS / spans.length_ns)).astype(np.int64)
        for time in (spans.begin_ns, spans.end_ns)
    )
    width = end - begin
    first = spans.row * _COLUMNS + begin
    cells = np.arange(width.sum()) + np.repeat(first - (width.cumsum() - width), width)
    pixels = np.zeros((len(spans.titles) * _COLUMNS, 4))
    pixels[cells] = colours[np.repeat(spans.launch, width)]
    rows = len(spans.titles)
    ax.imshow(
        pixels.reshape(rows, _COLUMNS, 4),
        aspect="auto",
        interpolation="nearest",
        extent=(0, spans.length_ns / scale, rows - 0.5, -0.5),
    )


def _row_ticks(ax: Axes, spans: Spans, by: str) -> None:
    """A name at each row, or at so many that they can be read."""
    rows = len(spans.titles)
    room = max(2, int(inches_of(ax)[1] * 5))
    if by == "stream":
        step = -(-rows // room)
        ax.set_yticks(range(0, rows, step), spans.titles[::step])
        return
    ax.set_ylabel("SM")
    steps = (1, 2, 4, 8, 10, 20, 50, 100, 200, 500)
    step = next((step for step in steps if rows / step <= room), 1000)
    ax.set_yticks(
        range(0, rows, step), [title.removeprefix("SM ") for title in spans.titles[::step]]
    )
