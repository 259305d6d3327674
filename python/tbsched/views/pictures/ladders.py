"""How often predictors agree with what was recorded, from the weakest to the strongest."""

from __future__ import annotations

from collections.abc import Iterable

from matplotlib.axes import Axes

from tbsched.comparison.verify import Score
from tbsched.counting import counted
from tbsched.program.checks import instance, items
from tbsched.views.pictures.canvas import axes_for, bare, entitle, key
from tbsched.views.words import percent_words

_LEVELS = (
    ("occupancy", "#4477aa", "blocks per SM alike"),
    ("exact", "#ccbb44", "every block alike"),
)
_BAR = 0.38  # of the distance of two rows


def ladder(scores: Iterable[Score], *, ax: Axes | None = None) -> Axes:
    """Draws how many launches each predictor places right, the weakest predictor first.

    Example:
        >>> import tbsched as tb
        >>> traces = [tb.predict(tb.Sequence([tb.Launch(41, 512, 32)]), "rtx3090")]
        >>> rows = ("round_robin", "ampere")
        >>> ax = tb.show.ladder(tb.verify(traces, "rtx3090", row) for row in rows)

    Args:
        scores: what :func:`tbsched.verify` returned for each predictor.
        ax: the axes to draw into; None makes a figure.

    Returns:
        The axes. A notebook shows them; ``ax.figure.savefig("out.png")`` writes the figure.

    Raises:
        ImportError: matplotlib is missing (``pip install matplotlib``).
        TypeError, ValueError: something else than scores, or none.
    """
    listed = list(items("ladder", "scores", scores))
    for score in listed:
        instance("ladder", "scores", score, Score)
    if not listed:
        raise ValueError("ladder: scores: none are given; verify() returns one per predictor")
    rows = sorted(listed, key=_strength)
    ax = axes_for("ladder", ax, 8, 1.4 + 0.5 * len(rows))
    for step, score in enumerate(rows):
        for (level, colour, _), offset in zip(_LEVELS, (-_BAR / 2, _BAR / 2), strict=True):
            share = getattr(score, level) / max(score.launches, 1)
            ax.barh(step + offset, 100 * share, _BAR, color=colour)
            words = percent_words(getattr(score, level), score.launches)
            ax.annotate(
                words, (100 * share, step + offset), (4, 0), textcoords="offset points",
                va="center", fontsize="small",
            )  # fmt: skip
    devices = {score.device for score in rows}
    names = [s.policy if len(devices) == 1 else f"{s.device}/{s.policy}" for s in rows]
    ax.set_yticks(range(len(rows)), names)
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set_xlim(0, 108)
    ax.set_xlabel("% of launches")
    ax.tick_params(axis="y", length=0)
    bare(ax, "bottom")
    entitle(ax, "Predictors against recorded traces", _note(rows))
    key(ax, [(colour, words) for _, colour, words in _LEVELS])
    return ax


def _strength(score: Score) -> tuple[float, float]:
    launches = max(score.launches, 1)
    return score.occupancy / launches, score.exact / launches


def _note(rows: list[Score]) -> str:
    """Returns how much was compared, in words."""
    launches, sequences = (sorted({getattr(s, n) for s in rows}) for n in ("launches", "sequences"))
    words = f"{_range(launches)} launches of {_range(sequences)} sequences"
    skipped = sum(len(score.skipped) for score in rows)
    if skipped:
        words += f"; {counted(skipped, 'prediction was', 'predictions were')} refused"
    return words


def _range(values: list[int]) -> str:
    return f"{values[0]:,}" + (f" to {values[-1]:,}" if len(values) > 1 else "")
