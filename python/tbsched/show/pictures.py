"""Pictures of traces, of any number of blocks."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

import numpy as np

from tbsched.comparison.compare import Diff
from tbsched.errors import missing, shown
from tbsched.hardware.spec import DeviceSpec
from tbsched.program.arrays import Int64Array, StructuredArray
from tbsched.show.words import launch_words
from tbsched.traces.trace import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plot(what: Trace | Diff | DeviceSpec) -> Figure:
    """Draws blocks per SM for each launch; for a comparison also the difference b - a.

    Of a timed sequence it draws when each block ran on which SM instead; of a device its map: the
    SMs of each TPC, TPCs by GPC, coloured by the order in which equal SMs are preferred.

    Args:
        what: a trace, what :func:`tbsched.compare` returned, or a device.

    Returns:
        A matplotlib figure; ``figure.savefig("out.png")`` writes it, and a notebook shows it.

    Raises:
        ImportError: matplotlib is missing (``pip install matplotlib``).
        TypeError: none of these.
    """
    try:
        from tbsched.show.figure import Picture
    except ImportError as error:
        raise missing("plots", "matplotlib", "matplotlib") from error
    if isinstance(what, DeviceSpec):
        return _map(what)
    if isinstance(what, Trace) and what.sequence.timed:
        return _gantt(what)
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
        raise TypeError(f"plot: a Trace, a Diff or a DeviceSpec is needed, got {shown(what)}")
    height = 1.2 + 0.28 * max(1, len(trace)) + 0.3
    figure = Picture(figsize=(12, height * len(panels)), layout="constrained")
    for axes, (title, blocks, colours) in zip(
        figure.subplots(len(panels), squeeze=False)[:, 0], panels, strict=True
    ):
        _panel(axes, title, blocks, colours, trace)
    return figure


def _map(spec: DeviceSpec) -> Figure:
    """A row per GPC, a box per SM; the TPCs of no GPC are the last row."""
    from matplotlib import colormaps
    from matplotlib.patches import Rectangle

    from tbsched.show.figure import Picture

    in_gpcs = {tpc for gpc in spec.gpcs for tpc in gpc}
    outside = tuple(tpc for tpc in range(spec.tpcs) if tpc not in in_gpcs)
    rows = [(f"GPC {number}", gpc) for number, gpc in enumerate(spec.gpcs)]
    if outside:
        rows.append(("no GPC" if rows else "GPC unknown", outside))
    rank = np.argsort(spec.sm_preference)
    widest = max(len(tpcs) for _, tpcs in rows)
    size = (2 + 0.45 * spec.sms_per_tpc * widest, 1 + 0.4 * len(rows))
    figure = Picture(figsize=size, layout="constrained")
    axes = figure.subplots()
    for row, (_, tpcs) in enumerate(rows):
        for column, tpc in enumerate(tpcs):
            for k in range(spec.sms_per_tpc):
                sm = tpc * spec.sms_per_tpc + k
                left, width = column + k * 0.9 / spec.sms_per_tpc, 0.9 / spec.sms_per_tpc
                colour = colormaps["viridis"](0.35 + 0.65 * rank[sm] / spec.sms)
                axes.add_patch(Rectangle((left, row), width, 0.8, facecolor=colour, edgecolor="w"))
                axes.text(left + width / 2, row + 0.4, str(sm), ha="center", va="center", size=7)
    axes.set_xlim(-0.1, widest)
    axes.set_ylim(len(rows), -0.2)
    axes.set_yticks([row + 0.4 for row in range(len(rows))], [name for name, _ in rows])
    axes.set_xticks([])
    axes.set_title(f"{spec.title}: SMs by TPC and GPC, the preferred ones dark", loc="left")
    for side in axes.spines.values():
        side.set_visible(False)
    return figure


def _gantt(trace: Trace) -> Figure:
    """SMs from bottom to top, time from left to right, a colour per launch."""
    from matplotlib import colormaps
    from matplotlib.collections import PolyCollection
    from matplotlib.patches import Patch

    from tbsched.show.figure import Picture

    rows = trace.timeline
    rows = rows[rows["sm"] >= 0]
    zero = rows["start_ns"].min() if len(rows) else 0
    left, right = (rows["start_ns"] - zero) / 1e6, (rows["end_ns"] - zero) / 1e6
    lane, lanes = _lanes(rows, trace.device.sms)
    bottom, height = rows["sm"] + lane / lanes[rows["sm"]] - 0.5, 1 / lanes[rows["sm"]]
    corners = [(left, bottom), (right, bottom), (right, bottom + height), (left, bottom + height)]
    colours = colormaps["tab20"](np.arange(len(trace)) % 20)
    figure = Picture(figsize=(12, 2 + min(10, 0.15 * trace.device.sms)), layout="constrained")
    axes = figure.subplots()
    axes.add_collection(
        PolyCollection(
            list(np.stack([np.stack(corner, axis=-1) for corner in corners], axis=1)),
            facecolors=colours[rows["launch"]],
            edgecolors="white",
            linewidths=0.2,
        )
    )
    axes.set_xlim(0, max(right.max(initial=0), 1e-6))
    axes.set_ylim(-0.5, trace.device.sms - 0.5)
    axes.set_title(f"{trace.device.name}: blocks over time", loc="left")
    axes.set_xlabel("ms")
    axes.set_ylabel("SM")
    if len(trace) <= 20:
        names = [launch.name or launch_words(launch) for launch in trace.sequence.launches]
        keys = [Patch(color=colours[k], label=f"{k}: {name}") for k, name in enumerate(names)]
        figure.legend(handles=keys, loc="outside lower left", ncols=2, fontsize="small")
    return figure


def _lanes(rows: StructuredArray, sms: int) -> tuple[Int64Array, Int64Array]:
    """A lane per block within its SM's row, so that none hides another; and lanes per SM."""
    lane = np.zeros(len(rows), np.int64)
    busy: list[list[tuple[int, int]]] = [[] for _ in range(sms)]  # per SM a heap: end, lane
    free: list[list[int]] = [[] for _ in range(sms)]
    lanes = np.ones(sms, np.int64)
    for k in np.argsort(rows["start_ns"], kind="stable"):
        sm, start, end = (int(rows[name][k]) for name in ("sm", "start_ns", "end_ns"))
        while busy[sm] and busy[sm][0][0] <= start:
            heapq.heappush(free[sm], heapq.heappop(busy[sm])[1])
        lane[k] = heapq.heappop(free[sm]) if free[sm] else len(busy[sm])
        heapq.heappush(busy[sm], (end, int(lane[k])))
        lanes[sm] = max(lanes[sm], lane[k] + 1)
    return lane, lanes


def _blocks(trace: Trace) -> Int64Array:
    sms = trace.device.sms
    return np.array([p.occupancy(sms) for p in trace], np.int64).reshape(len(trace), sms)


def _panel(axes: Axes, title: str, blocks: Int64Array, colours: str, trace: Trace) -> None:
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
