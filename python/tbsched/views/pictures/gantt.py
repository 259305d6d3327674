"""When blocks ran on each SM, or launches in each stream."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from matplotlib import rcParams
from matplotlib.axes import Axes

from tbsched.advice.periodic import Periodic
from tbsched.errors import did_you_mean, shown
from tbsched.program.arrays import Float64Array, StructuredArray
from tbsched.program.checks import instance
from tbsched.program.events.launch import Launch
from tbsched.program.program import Program
from tbsched.program.sequence import Sequence
from tbsched.traces.trace import Trace
from tbsched.views.layout.lanes import (
    Spans,
    blocks_that_ran,
    spans_by_sm,
    spans_by_stream,
    spans_measured,
)
from tbsched.views.layout.names import cut, span_names
from tbsched.views.pictures.canvas import (
    add_boxes,
    axes_for,
    bare,
    entitle,
    inches_of,
    time_axis,
    who,
    write_in,
)
from tbsched.views.pictures.jobs import MARKS, Jobs
from tbsched.views.pictures.kernels import colour_table, key_of_kernels, time_of

_ROWS_OF: dict[str, Callable[..., Spans]] = {"sm": spans_by_sm, "stream": spans_by_stream}
_MAX_SPANS, _MAX_ROWS = 12_000, 1024
_COLUMNS = 500  # of bins; of few blocks there are twice as many
_FEW = 200_000
_MAX_LABELS, _LANES_PER_INCH = 400, 60
_SM_INCHES, _STREAM_INCHES = 0.055, 0.32  # of a row
_MIN_INCHES = 0.01  # of a rectangle: a pixel of most screens
_CUT_FROM = 4  # pixels; a line between narrower rectangles would cover them
_LETTER = 0.6  # width of a letter, of the size of the print


def gantt(
    trace: Trace | Program,
    *,
    by: str | None = None,
    tasks: Periodic | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draws when each block ran on which SM, or when each launch ran in which stream.

    Of a profile it draws when the profile says that each launch ran; :func:`tbsched.predict` gives
    what the model says of it. A colour is a kernel. Copies and memsets are in the rows of streams,
    in grey. Blocks that ran on an SM at the same time are in lanes of their own. If there are too
    many for that, it shows which launch took most of each moment, and says so. What is shorter than
    a pixel is drawn as a pixel.

    Example:
        >>> import tbsched as tb
        >>> seq = tb.Sequence([tb.Launch(66, 512, 32, stream=s, duration=1e-3) for s in (0, 1)])
        >>> ax = tb.show.gantt(tb.predict(seq, "h200"), by="stream")

    Args:
        trace: a prediction or an observation, with times, or a profile.
        by: ``sm``, a row per SM, or ``stream``, a row per stream. None: by SM; of a profile, which
            has no blocks, or with ``tasks``, by stream.
        tasks: a task set of :func:`tbsched.periodic`, of which the trace is a prediction. A colour
            is a task then, and rows by stream have its name, its releases and its deadlines.
        ax: the axes to draw into; None makes a figure.

    Returns:
        The axes. A notebook shows them; ``ax.figure.savefig("out.png")`` writes the figure.

    Raises:
        ImportError: matplotlib is missing (``pip install matplotlib``).
        TypeError: something else than a trace or a profile.
        ValueError: nobody recorded when blocks ran; a profile without launches, such as one of
            several ranks; another word for ``by``; tasks of another sequence.
    """
    if by is not None and (not isinstance(by, str) or by not in _ROWS_OF):
        known = ", ".join(_ROWS_OF)
        raise ValueError(
            f"gantt: by: {shown(by)} is not one of {known}{did_you_mean(by, _ROWS_OF)}"
        )
    if isinstance(trace, Program):
        if tasks is not None:
            raise ValueError("gantt: tasks: they have predictions, and this is a profile")
        return _measured(trace, by, ax)
    instance("gantt", "trace", trace, Trace)
    jobs = None if tasks is None else Jobs(trace, tasks)
    by = by or ("sm" if jobs is None else "stream")
    ran = blocks_that_ran(trace)
    spans, ax = _laid_out(trace, by, ran, ax)
    content = (
        "blocks on each SM" if by == "sm" else f"launches in each {'task' if jobs else 'stream'}"
    )
    title, took = f"{who(trace)}: {content} over time", time_of(ran, len(trace))
    if jobs is None:
        return _drawn(ax, spans, by, title, trace.sequence, took)
    if by == "sm":
        return _drawn(ax, spans, by, title, trace.sequence, took, jobs.launches())
    spans = jobs.from_start(spans)
    labelled = jobs.labelled()
    ax = _drawn(ax, spans, by, title, labelled, took, jobs.launches(), MARKS)
    jobs.mark(ax, spans, time_axis(spans.length_ns)[0])
    return ax


def _measured(program: Program, by: str | None, ax: Axes | None) -> Axes:
    """Returns when a profile says that launches, copies and memsets ran."""
    if by == "sm":
        raise ValueError(
            "gantt: by: a profile does not say on which SM blocks ran; by='stream' draws what it "
            "says, and gantt(predict(...)) what the model says"
        )
    if not len(program.measured) and not len(program.transfers):
        raise ValueError(
            "gantt: trace: the profile has no launch that can be drawn; of several ranks, the page "
            "of tbsched explain --html draws what each GPU did"
        )
    spans = spans_measured(program)
    ax = axes_for("gantt", ax, 12, 1.6 + min(max(_STREAM_INCHES * _rows_tall(spans), 1), 7))
    title = f"{program.device or program.format}, measured: launches in each stream over time"
    took = (program.measured["end_ns"] - program.measured["start_ns"]).astype(np.float64)
    return _drawn(ax, spans, "stream", title, program.sequence, took)


def _drawn(
    ax: Axes,
    spans: Spans,
    by: str,
    title: str,
    sequence: Sequence,
    weights: Float64Array,
    coloured: tuple[Launch, ...] | None = None,
    note: str = "",
) -> Axes:
    """Returns the rows, their time axis, a title and a legend of the kernels, the heaviest first.

    Args:
        ax: the axes.
        spans: what is drawn.
        by: what rows are.
        title: of the picture.
        sequence: the names of spans.
        weights: how important each launch is in the legend.
        coloured: the launches with names that have a colour each; None: those of the sequence.
        note: below the title.
    """
    launches = sequence.launches if coloured is None else coloured
    rows = len(spans.titles)
    scale, unit = time_axis(spans.length_ns)
    ax.set_xlim(0, spans.length_ns / scale)
    ax.set_ylim(rows - 0.5, -0.5)
    ax.set_xlabel(unit)
    _row_ticks(ax, spans, by)
    bare(ax, "bottom", "left")
    entitle(ax, title, spans.note, note)
    key_of_kernels(ax, launches, weights, "kernel" if coloured is None else "task")
    colours = colour_table(launches, len(sequence.transfers))
    (_image if spans.note else _rectangles)(ax, spans, colours, scale, sequence)
    return ax


def _rows_tall(spans: Spans) -> float:
    """How many rows the picture is tall: lanes need less."""
    return max(len(spans.titles), int(spans.lanes.sum()) / 4)


def _laid_out(trace: Trace, by: str, ran: StructuredArray, ax: Axes | None) -> tuple[Spans, Axes]:
    """Returns the spans to draw and the axes; in bins where lanes would be too thin."""
    columns = _COLUMNS if len(ran) > _FEW else 2 * _COLUMNS
    spans = _ROWS_OF[by](trace, _MAX_SPANS, _MAX_ROWS, ran=ran, columns=columns)
    lanes, rows = int(spans.lanes.sum()), len(spans.titles)
    tall = (_SM_INCHES if by == "sm" else _STREAM_INCHES) * _rows_tall(spans)
    ax = axes_for("gantt", ax, 12, 1.6 + min(max(tall, 1), 7))
    if lanes > rows and lanes > _LANES_PER_INCH * inches_of(ax)[1]:
        spans = _ROWS_OF[by](trace, 0, _MAX_ROWS, ran=ran, columns=columns)
    return spans, ax


def _rectangles(
    ax: Axes, spans: Spans, colours: Float64Array, scale: float, sequence: Sequence
) -> None:
    """Draws one for each span, a pixel wide at least, with its name where that fits."""
    height = 0.92 / spans.lanes[spans.row]
    top = spans.row - 0.46 + spans.lane * height
    across, inches_high = inches_of(ax, laid_out=True)
    figure = ax.get_figure(root=True)
    assert figure is not None
    pixel_ns = spans.length_ns / across * max(_MIN_INCHES, 1 / figure.dpi)
    until_ns = spans.drawn_until_ns(pixel_ns)
    left, right = ((time - spans.zero_ns) / scale for time in (spans.begin_ns, until_ns))
    sides = (left, right, top, top + height)
    ax.set_xlim(0, max(spans.length_ns / scale, right.max(initial=0)))
    width = until_ns - spans.begin_ns
    line = min(0.6, 4 * inches_high / max(int(spans.lanes.sum()), 1))
    add_boxes(
        ax,
        sides,
        facecolors=colours[spans.launch],
        edgecolors=rcParams["axes.facecolor"],
        linewidths=np.where(width < _CUT_FROM * pixel_ns, 0, line),
        snap=None if width.min(initial=pixel_ns) >= pixel_ns else False,  # lest some be lost
    )
    _names(ax, spans, sides, colours, sequence, (across, inches_high))


def _names(
    ax: Axes,
    spans: Spans,
    sides: tuple[Float64Array, ...],
    colours: Float64Array,
    sequence: Sequence,
    inches: tuple[float, float],
) -> None:
    """Draws names of launches in the longest rectangles, where they fit."""
    across, height = inches
    tall = height / len(spans.titles) / spans.lanes[spans.row] * 72 * 0.92
    width = (spans.end_ns - spans.begin_ns) / spans.length_ns * across * 72
    size = np.minimum(8, 0.75 * tall)
    letters = (width / (_LETTER * size) - 1).astype(int)
    fits = np.flatnonzero((size >= 5) & (letters >= 3))
    launches, names = sequence.launches, span_names(sequence)
    for k in fits[np.argsort(-width[fits], kind="stable")][:_MAX_LABELS].tolist():
        launch = int(spans.launch[k])
        is_named = launch >= len(launches) or launches[launch].name is not None
        name = names(launch)
        if len(name) > letters[k]:
            if not is_named or letters[k] < 6:
                continue
            name = cut(name, int(letters[k]))
        colour = tuple(colours[spans.launch[k]])
        write_in(ax, [side[k] for side in sides], name, float(size[k]), colour)


def _image(ax: Axes, spans: Spans, colours: Float64Array, scale: float, sequence: Sequence) -> None:
    """Draws what ran most in each bin; bins in which nothing ran are left out."""
    columns = 2 * _COLUMNS  # of pixels
    begin, end = (
        np.rint((time - spans.zero_ns) * (columns / spans.length_ns)).astype(np.int64)
        for time in (spans.begin_ns, spans.end_ns)
    )
    width = end - begin
    first = spans.row * columns + begin
    cells = np.arange(width.sum()) + np.repeat(first - (width.cumsum() - width), width)
    pixels = np.zeros((len(spans.titles) * columns, 4), np.uint8)
    pixels[cells] = (255 * colours).astype(np.uint8)[np.repeat(spans.launch, width)]
    rows = len(spans.titles)
    ax.imshow(
        pixels.reshape(rows, columns, 4),
        aspect="auto",
        interpolation="nearest",
        extent=(0, spans.length_ns / scale, rows - 0.5, -0.5),
    )


def _row_ticks(ax: Axes, spans: Spans, by: str) -> None:
    """Draws a name at each row, or at so many that they can be read."""
    rows = len(spans.titles)
    room = max(2, int(inches_of(ax)[1] * 5))
    if by == "stream":
        step = max(-(-rows // room), 1)
        ax.set_yticks(range(0, rows, step), spans.titles[::step])
        return
    ax.set_ylabel("SM")
    steps = (1, 2, 4, 8, 10, 20, 50, 100, 200, 500)
    step = next((step for step in steps if rows / step <= room), 1000)
    ax.set_yticks(
        range(0, rows, step), [title.removeprefix("SM ") for title in spans.titles[::step]]
    )
