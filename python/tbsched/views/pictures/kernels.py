"""The kernels of a trace: launches of one name together, and the legend of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba_array
from matplotlib.typing import ColorType

from tbsched.program.arrays import Float64Array, Int64Array, StructuredArray
from tbsched.program.events.launch import Launch
from tbsched.views.layout.colours import TRANSFER_COLOUR, colours_of
from tbsched.views.layout.names import kernels_of, label
from tbsched.views.pictures.canvas import key

_LETTERS = 30  # of a name
_MAX_ROWS = 100  # rows, of which even the tallest legend shows the first ones only


def colour_table(launches: tuple[Launch, ...], transfers: int = 0) -> Float64Array:
    """Returns a colour per launch, then per transfer, float64 (launches + transfers, 4).

    The columns are red, green, blue and opacity.
    """
    colours = colours_of(launches) + [TRANSFER_COLOUR] * transfers
    names, colour_index = np.unique(np.array(colours, "U7"), return_inverse=True)
    return to_rgba_array(names.tolist())[colour_index]


def time_of(ran: StructuredArray, launches: int) -> Float64Array:
    """How long the blocks of each launch ran together, float64 (launches,), in nanoseconds."""
    ns = (ran["end_ns"] - ran["start_ns"]).astype(np.float64)
    return np.bincount(ran["launch"], ns, launches).astype(np.float64)


def names_of(
    launches: tuple[Launch, ...], launches_chosen: Sequence[int], count: Int64Array, longest: int
) -> list[str]:
    """Returns a label for each kernel: its name, and behind it in brackets how many launches it
    has.

    A kernel without a name, or whose cut name another one has too, has the number of its first
    launch before it.

    Args:
        launches: all launches.
        launches_chosen: the number of each kernel's first launch.
        count: how many launches a kernel has, by that number.
        longest: characters to which names are cut.
    """
    labels = [label(launches[number], longest) for number in launches_chosen]
    alike = Counter(labels)
    names = []
    for number, name in zip(launches_chosen, labels, strict=True):
        has_unique_name = launches[number].name is not None and alike[name] == 1
        count_words = f" ({count[number]:,})" if count[number] > 1 else ""
        names.append(f"{'' if has_unique_name else f'{number}: '}{name}{count_words}")
    return names


def key_of_kernels(
    ax: Axes, launches: tuple[Launch, ...], weights: Float64Array, content: str = "kernel"
) -> None:
    """Draws a legend with a row per kernel name; launches without a name have a row each.

    Args:
        ax: the axes.
        launches: of a sequence.
        weights: of each launch, how important it is. Kernels without weight are left out.
        content: launches of one name are.
    """
    kernel = kernels_of(launches)
    weight, count = np.bincount(kernel, weights, len(launches)), np.bincount(kernel)
    order = np.argsort(-weight, kind="stable")[: np.count_nonzero(weight)]
    colours = colours_of(launches)
    launches_shown = order[:_MAX_ROWS].tolist()
    names = names_of(launches, launches_shown, count, _LETTERS)
    rows: list[tuple[ColorType, str]] = [
        (colours[number], name) for number, name in zip(launches_shown, names, strict=True)
    ]
    title = f"{content} (launches)" if (count > 1).any() else ""
    key(ax, rows, title, total=len(order))
