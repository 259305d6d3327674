"""What all pictures share: axes that a notebook shows, titles, and legends of any length."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.transforms import Bbox, TransformedBbox
from matplotlib.typing import ColorType

from tbsched.errors import shown
from tbsched.program.arrays import Float64Array
from tbsched.program.checks import integer, seconds
from tbsched.traces.trace import Trace
from tbsched.views.terminal import visible
from tbsched.views.words import source_words

EMPTY = (0.5, 0.5, 0.5, 0.13)  # what is free, on a light and on a dark background
_SHARPNESS = 2  # pixels of the PNG per pixel of the page, for screens that are that fine
_LINES_PER_INCH, _LETTERS_PER_INCH = 4.5, 15  # of small print
_ROWS_BELOW = 9


class Picture(Axes):
    """Axes that a notebook shows where nobody has set up pyplot, with the whole figure."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        """Returns the picture as PNG, for notebooks."""
        figure = self.get_figure(root=True)
        assert figure is not None
        buffer = io.BytesIO()
        canvas, dpi = figure.canvas, figure.dpi
        try:
            figure.dpi = _SHARPNESS * dpi
            write: Any = FigureCanvasAgg(figure).print_png
            write(buffer)  # savefig would draw twice
        finally:
            figure.dpi = dpi
            figure.set_canvas(canvas)
        width, height = figure.get_size_inches() * dpi
        return buffer.getvalue(), {"width": round(width), "height": round(height)}


def axes_for(function: str, ax: Axes | None, width: float, height: float) -> Axes:
    """Returns the axes that the user gave, or those of a new figure, whose size is in inches.

    Raises:
        TypeError: something else was given.
    """
    if ax is None:
        figure = Figure(figsize=(width, height), layout="constrained")
        return figure.add_subplot(axes_class=Picture)
    if not isinstance(ax, Axes):
        raise TypeError(f"{function}: ax: a matplotlib Axes or None is needed, got {shown(ax)}")
    return ax


def moment(function: str, trace: Trace, at: float | None) -> float | None:
    """Returns the moment that the user named; of a held sequence after how many events.

    Raises:
        TypeError, ValueError: not so many events, or no time of a prediction.
    """
    if at is None:
        return None
    if trace.sequence.timed:
        return seconds(function, "at", at)
    return integer(function, "at", at, 0, len(trace.sequence))


def entitle(ax: Axes, title: str, *notes: str) -> None:
    """Draws a title at the left and, smaller, the notes that a reader needs."""
    text = " ".join(f"{note[0].upper()}{note[1:].removesuffix('.')}." for note in notes if note)
    figure = ax.get_figure(root=True)
    assert figure is not None
    width = figure.get_size_inches()[0] if isinstance(ax, Picture) else inches_of(ax)[0]
    lines = textwrap.wrap(text, max(40, int((width - 1) * _LETTERS_PER_INCH)))
    ax.set_title(
        visible(title), loc="left", fontweight="bold", pad=8 + 13 * len(lines), parse_math=False
    )
    words = ax.annotate(
        "\n".join(lines), (0, 1), (0, 6), xycoords="axes fraction", textcoords="offset points",
        fontsize="small", annotation_clip=False, parse_math=False,
    )  # fmt: skip
    words.set_in_layout(False)  # the title's distance makes room for it


def key(
    ax: Axes,
    rows: Sequence[tuple[ColorType, str]],
    title: str = "",
    *,
    total: int | None = None,
    below: bool = False,
) -> None:
    """Draws a legend with as many rows as are readable; the last one counts the others.

    Args:
        ax: the axes.
        rows: colours and labels, the most important first.
        title: over the rows.
        total: of the rows, where not all are given.
        below: three columns of rows under the axes.
    """
    if not rows:
        return
    max_rows = _ROWS_BELOW if below else max(4, int(inches_of(ax)[1] * _LINES_PER_INCH))
    count = len(rows) if total is None else total
    first = rows if count <= max_rows else rows[: max_rows - 1]
    patches = [Patch(facecolor=colour, label=label) for colour, label in first]
    if len(first) < count:
        patches.append(Patch(facecolor="none", label=f"and {count - len(first):,} more"))
    legend = ax.legend(
        handles=patches,
        loc="upper left",
        bbox_to_anchor=(0, -0.01) if below else (1.01, 1),
        ncols=3 if below else 1,
        borderaxespad=0,
        frameon=False,
        fontsize="small",
        handlelength=1.2,
        title=title,
        title_fontsize="small",
        alignment="left",
    )
    for text in legend.get_texts():
        text.set_parse_math(False)


def add_boxes(
    ax: Axes,
    sides: tuple[Float64Array, Float64Array, Float64Array, Float64Array],
    **style: Any,
) -> None:
    """Draws boxes whose left, right, top and bottom are given, float64 (boxes,) each, in data."""
    left, right, top, bottom = sides
    if len(left):
        corners = [(left, bottom), (right, bottom), (right, top), (left, top)]
        boxes: Any = np.stack([np.stack(corner, axis=-1) for corner in corners], axis=1)
        ax.add_collection(PolyCollection(boxes, **style), autolim=False)


def write_in(ax: Axes, box: Sequence[float], words: str, size: float, colour: ColorType) -> None:
    """Writes into the middle of a box: left, right, top and bottom, in data. It cannot leave it."""
    x_left, right, top, bottom = box
    text = ax.text(
        (x_left + right) / 2, (top + bottom) / 2, words, size=size, color=ink_on(colour),
        ha="center", va="center_baseline", parse_math=False,
    )  # fmt: skip
    text.set_clip_box(TransformedBbox(Bbox([[x_left, top], [right, bottom]]), ax.transData))
    text.set_clip_on(True)
    text.set_in_layout(False)  # to lay out a thousand takes long


def inches_of(ax: Axes, *, laid_out: bool = False) -> tuple[float, float]:
    """Returns the width and height of the axes: about, or once the figure is laid out."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    layout = figure.get_layout_engine()
    if laid_out and layout is not None:
        layout.execute(figure)
    box = ax.get_window_extent()
    return box.width / figure.dpi, box.height / figure.dpi


def time_axis(last_ns: float) -> tuple[float, str]:
    """Returns the unit that suits an axis of so many nanoseconds: how many it has, and its name."""
    for unit, scale in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if last_ns >= scale:
            return scale, unit
    return 1.0, "ns"


def who(trace: Trace) -> str:
    """Returns the device of a trace, and who says what happened on it, in words."""
    policy = trace.device.details.get("policy")
    says = f"predicted by policy {policy}" if policy else source_words(trace.device)
    return f"{trace.device.name}, {says}"


def bare(ax: Axes, *sides: str) -> None:
    """Takes the frame away, but for the sides that are named."""
    for name, side in ax.spines.items():
        side.set_visible(name in sides)


def ink() -> str:
    """The colour of text, which suits the background that the user set up."""
    return str(rcParams["text.color"])


def ink_on(colour: ColorType) -> str:
    """Black or white, whichever is readable on the colour."""
    red, green, blue = to_rgb(colour)
    return "black" if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else "white"
