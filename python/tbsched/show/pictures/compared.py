"""A prediction compared with an observation: where blocks are, or when kernels ran."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from tbsched.comparison.compare import Diff
from tbsched.comparison.compare import compare as compare_traces
from tbsched.errors import shown
from tbsched.program.arrays import Int64Array
from tbsched.program.checks import instance
from tbsched.show.pictures.blocks import MOST_ROWS, Rows, heat_map
from tbsched.show.pictures.canvas import ink, who
from tbsched.show.pictures.profiles import profiles
from tbsched.show.words import counted
from tbsched.traces.trace import Trace

_SMS_NAMED = 4


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


def _pair(given: Diff | Trace, observation: Trace | None) -> tuple[Trace, Trace]:
    if isinstance(given, Diff):
        if observation is not None:
            raise TypeError(
                f"compared: observation: a Diff holds both traces, got {shown(observation)} too"
            )
        return given.a, given.b
    if not isinstance(given, Trace):
        raise TypeError(
            "compared: diff: what compare() returned, or a prediction and an observation, is "
            f"needed, got {shown(given)}"
        )
    other = instance("compared", "observation", observation, Trace)
    if given.sequence != other.sequence:
        raise ValueError("compared: observation: the traces are of different sequences")
    return given, other


def _held(diff: Diff, ax: Axes | None) -> Axes:
    found = diff.first_divergence
    level = "occupancy" if found is None else found.level
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
    if found is not None:
        row = list(chosen).index(found.launch)
        frame = Rectangle((-0.5, row - 0.5), sms, 1, fill=False, edgecolor=ink(), linewidth=1.2)
        frame.set_clip_on(False)
        frame.set_zorder(5)
        axes.add_patch(frame)
    return axes


def _difference(diff: Diff, launch: int, level: str) -> Int64Array:
    sms = diff.a.device.sms
    a, b = diff.a[launch], diff.b[launch]
    if level == "occupancy":
        return b.occupancy(sms) - a.occupancy(sms)
    elsewhere = a.smid[(a.smid != b.smid) & (a.smid >= 0)]
    return np.bincount(elsewhere, minlength=sms)


def _notes(diff: Diff, level: str, differing: int, chosen: int) -> list[str]:
    found = diff.first_divergence
    total = counted(len(diff.launches), "launch", "launches")
    if found is None:
        return [f"every block of {total} is on the same SM in both"]
    what = "blocks per SM differ" if level == "occupancy" else "only the order of blocks differs"
    sms = found.sms if level == "occupancy" else np.unique(diff.a[found.launch].smid[found.blocks])
    few = ", ".join(map(str, sms[:_SMS_NAMED].tolist()))
    few += ", ..." if len(sms) > _SMS_NAMED else ""
    notes = [
        f"{what} in {differing:,} of {total}",
        f"the first, framed, is launch {found.launch}, on SM {few}",
    ]
    return notes if chosen == len(diff.launches) else [*notes, f"{chosen:,} of them are shown"]
