"""Pictures of traces, of any number of blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tbsched.compare import Diff
from tbsched.report import launch_words
from tbsched.trace import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plot(what: Trace | Diff) -> Figure:
    """Draws blocks per SM for each launch; for a comparison also the difference b - a.

    Args:
        what: a trace, or what :func:`tbsched.compare` returned.

    Returns:
        A matplotlib figure; ``figure.savefig("out.png")`` writes it.

    Raises:
        ImportError: matplotlib is missing (``pip install tbsched[plot]``).
        TypeError: neither a trace nor a comparison.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install 'tbsched[plot]'") from error
    if isinstance(what, Trace):
        panels = [(f"{what.device.name}: blocks per SM", _blocks(what), "viridis")]
        trace = what
    elif isinstance(what, Diff):
        a, b = _blocks(what.a), _blocks(what.b)
        trace = what.a
        panels = [
            (f"a: {what.a.device.name}", a, "viridis"),
            (f"b: {what.b.device.name}", b, "viridis"),
            ("b - a", b - a, "coolwarm"),
        ]
    else:
        raise TypeError(f"plot: a Trace or a Diff is needed, got {what!r}")
    height = 1.2 + 0.28 * max(1, len(trace)) + 0.3
    figure = Figure(figsize=(12, height * len(panels)), layout="constrained")
    for axes, (title, blocks, colours) in zip(
        figure.subplots(len(panels), squeeze=False)[:, 0], panels, strict=True
    ):
        _panel(axes, title, blocks, colours, trace)
    return figure


def _blocks(trace: Trace) -> np.typing.NDArray[np.int64]:
    sms = trace.device.sms
    return np.array([p.occupancy(sms) for p in trace], np.int64).reshape(len(trace), sms)


def _panel(
    axes: Axes, title: str, blocks: np.typing.NDArray[np.int64], colours: str, trace: Trace
) -> None:
    most = max(1, int(np.abs(blocks).max(initial=0)))
    lowest = -most if colours == "coolwarm" else 0
    image = axes.imshow(
        blocks, aspect="auto", interpolation="nearest", cmap=colours, vmin=lowest, vmax=most
    )
    axes.set_title(title, loc="left")
    axes.set_xlabel("SM")
    if len(trace) <= 40:
        names = [launch.name or launch_words(launch) for launch in trace.sequence.launches]
        axes.set_yticks(range(len(trace)), [f"{k}: {name}" for k, name in enumerate(names)])
    else:
        axes.set_ylabel("launch")
    colour_bar = axes.figure.colorbar(image, ax=axes)
    colour_bar.set_label("blocks")
