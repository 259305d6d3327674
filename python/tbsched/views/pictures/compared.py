"""A prediction compared with an observation: where blocks are, or when kernels ran."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from tbsched.comparison.compare import Diff
from tbsched.comparison.compare import compare as compare_traces
from tbsched.counting import counted
from tbsched.errors import shown
from tbsched.program.arrays import Float64Array, Int64Array, StructuredArray
from tbsched.program.checks import instance
from tbsched.traces.trace import Trace
from tbsched.views.layout.colours import colours_of
from tbsched.views.layout.lanes import blocks_that_ran
from tbsched.views.layout.names import kernels_of, label
from tbsched.views.pictures.blocks import MOST_ROWS, Rows, heat_map
from tbsched.views.pictures.canvas import axes_for, bare, entitle, ink, time_axis, who
from tbsched.views.pictures.kernels import names_of, time_of
from tbsched.views.words import few_words, seconds_words, source_words

_BINS = 800  # of the time axis
_MAX_ROWS = 24
_LETTERS = 40  # of a name
_HOW = ("filled", "line")
_OTHERS = "#888888"
_TALLEST = 0.88  # of the distance of two rows


def compared(
    diff: Diff | Trace, observation: Trace | None = None, *, ax: Axes | None = None
) -> Axes:
    """Draws where two traces of one sequence differ, usually a prediction and an observation.

    For a held sequence it draws ``b - a``, the difference in blocks per launch and SM, with a frame
    around the first launch that differs. If only the order of blocks differs, it draws how many
    blocks of each SM are elsewhere in ``b``. For a timed sequence it draws how many blocks of each
    kernel were resident over time: the prediction filled, the observation as a line.

    Example:
        >>> import tbsched as tb
        >>> seq = tb.Sequence([tb.Launch(41, 512, 32), tb.Launch(42, 256, 32)])
        >>> a, b = (tb.predict(seq, "rtx3090", policy) for policy in ("round_robin", "ampere"))
        >>> ax = tb.show.compared(tb.compare(a, b))

    Args:
        diff: what :func:`tbsched.compare` returned, or a prediction.
        observation: the other trace, if the first argument is one.
        ax: the axes to draw into; None makes a figure.

    Returns:
        The axes. A notebook shows them; ``ax.figure.savefig("out.png")`` writes the figure.

    Raises:
        ImportError: matplotlib is missing (``pip install matplotlib``).
        TypeError: no comparison, or not two traces.
        ValueError: traces of different sequences, or of different numbers of SMs.
    """
    a, b = _pair(diff, observation)
    if a.sequence.timed:
        return profiles(a, b, ax)
    return _held(diff if isinstance(diff, Diff) else compare_traces(a, b), ax)


def _pair(diff: Diff | Trace, observation: Trace | None) -> tuple[Trace, Trace]:
    """Returns the two traces to compare."""
    if isinstance(diff, Diff):
        if observation is not None:
            raise TypeError(
                f"compared: observation: a Diff holds both traces, got {shown(observation)} too"
            )
        return diff.a, diff.b
    if not isinstance(diff, Trace):
        raise TypeError(
            "compared: diff: what compare() returned, or a prediction and an observation, is "
            f"needed, got {shown(diff)}"
        )
    observed = instance("compared", "observation", observation, Trace)
    if diff.sequence != observed.sequence:
        raise ValueError("compared: observation: the traces are of different sequences")
    return diff, observed


def _held(diff: Diff, ax: Axes | None) -> Axes:
    """Draws where two held traces differ."""
    divergence = diff.first_divergence
    level = "occupancy" if divergence is None else divergence.level
    differing = [k for k, launch in enumerate(diff.launches) if not getattr(launch, level)]
    chosen = range(len(diff.launches)) if len(diff.launches) <= MOST_ROWS else differing[:MOST_ROWS]
    cells = [_difference(diff, k, level) for k in chosen]
    sms = diff.a.device.sms
    rows = Rows(np.array(cells, np.int64).reshape(len(chosen), sms), np.array(chosen, np.int64))
    title = f"a: {who(diff.a)}, b: {who(diff.b)}"
    notes = _notes(diff, level, len(differing), len(chosen))
    unit = "blocks, b - a" if level == "occupancy" else "blocks elsewhere in b"
    titles, signed = (title, *notes), level == "occupancy"
    axes = heat_map("compared", rows, diff.a, ax, titles, unit, signed=signed)
    if divergence is not None:
        row = list(chosen).index(divergence.launch)
        frame = Rectangle((-0.5, row - 0.5), sms, 1, fill=False, edgecolor=ink(), linewidth=1.2)
        frame.set_clip_on(False)
        frame.set_zorder(5)
        axes.add_patch(frame)
    return axes


def _difference(diff: Diff, launch: int, level: str) -> Int64Array:
    """Returns by how many blocks two traces differ on each SM."""
    sms = diff.a.device.sms
    a, b = diff.a[launch], diff.b[launch]
    if level == "occupancy":
        return b.occupancy(sms) - a.occupancy(sms)
    elsewhere = a.smid[(a.smid != b.smid) & (a.smid >= 0)]
    return np.bincount(elsewhere, minlength=sms)


def _notes(diff: Diff, level: str, differing: int, chosen: int) -> list[str]:
    """Returns notes: how many launches differ, and at which level."""
    divergence = diff.first_divergence
    total = counted(len(diff.launches), "launch", "launches")
    if divergence is None:
        return [f"every block of {total} is on the same SM in both"]
    difference = (
        "blocks per SM differ" if level == "occupancy" else "only the order of blocks differs"
    )
    sms = (
        divergence.sms
        if level == "occupancy"
        else np.unique(diff.a[divergence.launch].smid[divergence.blocks])
    )
    notes = [
        f"{difference} in {differing:,} of {total}",
        f"the first, framed, is launch {divergence.launch}, on SM {few_words(sms.tolist())}",
    ]
    return notes if chosen == len(diff.launches) else [*notes, f"{chosen:,} of them are shown"]


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
    """Returns the blocks that ran, with times from the first start on."""
    ran = blocks_that_ran(trace).copy()
    if len(ran):
        zero = ran["start_ns"].min()
        ran["start_ns"] -= zero
        ran["end_ns"] -= zero
    return ran


def _grouped(trace: Trace, ran: StructuredArray) -> _Groups:
    """Returns a row per launch if there are few, else per kernel; the briefest are one row."""
    launches = trace.sequence.launches
    colours = colours_of(launches)
    kernel = np.arange(len(launches)) if len(launches) <= _MAX_ROWS else kernels_of(launches)
    count = np.bincount(kernel)
    kernels = np.flatnonzero(count)
    max_kernels = _MAX_ROWS - (len(kernels) > _MAX_ROWS)
    time = np.bincount(kernel, time_of(ran, len(launches)), len(launches))
    # The kernels that took most time; those that came first are at the top.
    chosen = np.sort(kernels[np.argsort(-time[kernels], kind="stable")[:max_kernels]])
    chosen_launches = chosen.tolist()
    if len(launches) <= _MAX_ROWS:
        labels = [f"{k}: {label(launches[k], _LETTERS)}" for k in chosen_launches]
    else:
        labels = names_of(launches, chosen_launches, count, _LETTERS)
    row_of_launch = np.full(len(launches), max_kernels)
    row_of_launch[chosen] = np.arange(len(chosen))
    shades = [colours[k] for k in chosen_launches]
    if len(kernels) > max_kernels:
        labels.append(f"{len(kernels) - max_kernels:,} kernels more")
        shades.append(_OTHERS)
    return _Groups(labels, row_of_launch[kernel], shades)


def _resident(rows: StructuredArray, groups: _Groups, edges: Float64Array) -> Float64Array:
    """Returns mean number of resident blocks, float64 (groups, bins)."""
    row = groups.row_of[rows["launch"]]
    mean_blocks = np.empty((len(groups.labels), len(edges) - 1))
    for group in range(len(groups.labels)):
        group_rows = rows[row == group]
        time = _since(group_rows["start_ns"], edges) - _since(group_rows["end_ns"], edges)
        mean_blocks[group] = np.diff(time) / np.diff(edges)
    return mean_blocks


def _since(times_ns: Int64Array, edges: Float64Array) -> Float64Array:
    """Returns for each edge the sum of ``edge - time`` over all times before it, float64
    (edges,).
    """
    ordered = np.sort(times_ns).astype(np.float64)
    before = ordered.searchsorted(edges)
    sums: Float64Array = before * edges - np.append(0, ordered.cumsum())[before]
    return sums
