"""What all pictures share: axes that a notebook shows, titles, and legends of any length."""

from __future__ import annotations

import io
from collections.abc import Sequence

from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from tbsched.errors import shown
from tbsched.show.words import counted
from tbsched.traces.trace import Trace

Colour = str | tuple[float, ...]

_SHARPNESS = 2  # pixels of the PNG per pixel of the page, for screens that are that fine
_LINES_PER_INCH = 4.5  # of a legend in small print


class Picture(Axes):
    """Axes that a notebook shows where nobody has set up pyplot, with the whole figure."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        figure = self.get_figure(root=True)
        assert figure is not None
        out = io.BytesIO()
        figure.savefig(out, format="png", dpi=_SHARPNESS * figure.dpi)
        width, height = figure.get_size_inches() * figure.dpi
        return out.getvalue(), {"width": round(width), "height": round(height)}


def axes_for(function: str, ax: Axes | None, width: float, height: float) -> Axes:
    """The axes that the user gave, or those of a new figure, whose size is in inches.

    Raises:
        TypeError: something else was given.
    """
    if ax is None:
        figure = Figure(figsize=(width, height), layout="constrained")
        return figure.add_subplot(axes_class=Picture)
    if not isinstance(ax, Axes):
        raise TypeError(f"{function}: ax: a matplotlib Axes or None is needed, got {shown(ax)}")
    return ax


def entitle(ax: Axes, title: str, note: str = "") -> None:
    """A title at the left; under it, smaller, what a reader must know to read the picture."""
    ax.set_title(title, loc="left", fontweight="bold", pad=20 if note else 6)
    if note:
        place = {"xy": (0, 1), "xytext": (0, 6), "textcoords": "offset points"}
        ax.annotate(note, **place, xycoords="axes fraction", fontsize="small", annotation_clip=False)


def key(ax: Axes, rows: Sequence[tuple[Colour, str]], what: str = "kernel") -> None:
    """A legend at the right, of as many rows as are readable; the last one counts the others.

    Args:
        ax: the axes.
        rows: colours and labels, the most important first.
        what: a word for what the rows are.
    """
    most = max(4, int(ax.get_window_extent().height / ax.get_figure(root=True).dpi * _LINES_PER_INCH))
    first = rows if len(rows) <= most else rows[: most - 1]
    patches = [Patch(facecolor=colour, label=label) for colour, label in first]
    if len(first) < len(rows):
        words = f"and {counted(len(rows) - len(first), f'{what} more', f'{what}s more')}"
        patches.append(Patch(facecolor="none", label=words))
    ax.legend(
        handles=patches,
        loc="upper left",
        bbox_to_anchor=(1.01, 1),
        borderaxespad=0,
        frameon=False,
        fontsize="small",
        handlelength=1.2,
    )


def time_axis(last_ns: float) -> tuple[float, str]:
    """The unit that suits an axis of so many nanoseconds: how many it has, and its name."""
    for unit, scale in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if last_ns >= scale:
            return scale, unit
    return 1.0, "ns"


def who(trace: Trace) -> str:
    """The device, and which policy predicted, or that it was observed."""
    policy = trace.device.details.get("policy")
    return f"{trace.device.name}, {f'policy {policy}' if policy else 'observed'}"


def bare(ax: Axes, *sides: str) -> None:
    """Takes the frame away, but for the sides that are named."""
    for name, side in ax.spines.items():
        side.set_visible(name in sides)


def ink() -> str:
    """The colour of text, which suits the background that the user set up."""
    return str(rcParams["text.color"])


def ink_on(colour: Colour) -> str:
    """Black or white, whichever is readable on the colour."""
    red, green, blue = to_rgb(colour)
    return "black" if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else "white"
