"""What :func:`tbsched.explain` found."""

from __future__ import annotations

from dataclasses import dataclass

from tbsched.advice.change import Change
from tbsched.program.program import Program
from tbsched.traces.trace import Trace
from tbsched.views import Shown

# The word of ``Trace.waits`` for the loading of a kernel, which may take the host before the call.
FIRST_USE = "first_use"
# Causes beyond those of ``Trace.waits``: what the host did, and what no rule explains.
HOST, SYNCHRONIZE, LONG_CALL, ON_ITS_WAY, UNEXPLAINED = (
    "host", "synchronize", "long_call", "launch", "unexplained",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Cause:
    """Part of a gap, and why the launch at its end did not start sooner.

    Attributes:
        cause: a word of ``waits`` of :class:`tbsched.Trace`, or one of these. ``host``: the host
            had not launched it. ``synchronize``: nor could it, as it waited for the GPU before.
            ``long_call``: the launch call of ``behind``, which may be its own, took long.
            ``first_use``, too: the kernel of ``behind`` was loaded. ``launch``: it was on its way
            to the GPU. ``unexplained``: the model would have run it at that time.
        seconds: how long.
        behind: what it waited for, as in ``waits`` of :class:`tbsched.Trace`.

    Example:
        >>> tb.Cause("stream", 1e-3, behind=0).seconds
        0.001
    """

    cause: str
    seconds: float
    behind: int = -1


@dataclass(frozen=True, slots=True)
class Gap:
    """A time in which the GPU could have done more.

    Attributes:
        kind: ``idle``: no kernel ran. ``stream``: others ran, but none of the stream. ``order``: a
            kernel before it in its stream ran, and left SMs idle.
        launch: the launch that started at its end.
        begin: seconds, on the clock of the profile.
        end: seconds, on the same clock.
        cost: seconds of the whole GPU that were not used, at most ``end - begin``.
        causes: a :class:`Cause` each, the longest first.

    Example:
        >>> gap = tb.Gap("idle", 1, 0.001, 0.003, 0.002, (tb.Cause("host", 0.002),))
        >>> gap.causes[0].cause
        'host'
    """

    kind: str
    launch: int
    begin: float
    end: float
    cost: float
    causes: tuple[Cause, ...]


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Explanation(Shown):
    """Why a program of a profile took so long: its gaps, and changes that would shorten it.

    Attributes:
        program: the profile, with the durations of blocks that were found.
        prediction: the same program as the model runs it.
        gaps: a :class:`Gap` each, the most costly first.
        changes: a :class:`Change` each, the shortest predicted makespan first.
        threshold: seconds; gaps that cost less are not looked at.

    Example:
        >>> explained = tb.explain(tb.load_program("trace.json.gz"), "h200")  # doctest: +SKIP
        >>> explained.gaps[0].causes[0].cause  # doctest: +SKIP
        'synchronize'
    """

    program: Program
    prediction: Trace
    gaps: tuple[Gap, ...]
    changes: tuple[Change, ...]
    threshold: float

    @property
    def makespan(self) -> float:
        """Measured seconds from the start of the first kernel to the end of the last."""
        rows = self.program.measured
        return float(rows["end_ns"].max() - rows["start_ns"].min()) / 1e9

    @property
    def idle(self) -> dict[str, float]:
        """Seconds in which no kernel ran, by cause, the longest first."""
        found: dict[str, float] = {}
        for gap in self.gaps:
            for cause in gap.causes if gap.kind == "idle" else ():
                found[cause.cause] = found.get(cause.cause, 0.0) + cause.seconds
        return dict(sorted(found.items(), key=lambda item: -item[1]))
