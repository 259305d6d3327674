"""What :func:`tbsched.explain` found."""

from __future__ import annotations

from dataclasses import dataclass

from tbsched.advice.account.account import BUSY, Account, AccountRow
from tbsched.advice.change import Change
from tbsched.advice.explain.exposed import Exposed
from tbsched.advice.explain.roots import Root
from tbsched.program.program import Program
from tbsched.shown import Shown
from tbsched.traces.trace import Trace

COPY = "copy"  # the cause of a gap beyond those of the account and of ``Trace.waits``


@dataclass(frozen=True, slots=True)
class Cause:
    """Part of a gap, and why the launch at its end did not start sooner.

    Attributes:
        cause: a word of ``waits`` of :class:`tbsched.Trace`, or one of these. ``host``: the host
            had not launched it. ``synchronize``: a call waited for another GPU. ``first_use``,
            too: its kernel was loaded. ``copy``: it waited for a copy. ``unrecorded``: the profile
            does not say when it was launched. ``unexplained``: nothing that is known kept it.
        seconds: how long.
        behind: what it waited for, as in ``waits`` of :class:`tbsched.Trace`.
        by: the call, operator or function of the host, or the kernel or copy; empty: ``behind``
            says it.

    Example:
        >>> tb.Cause("stream", 1e-3, behind=0).seconds
        0.001
    """

    cause: str
    seconds: float
    behind: int = -1
    by: str = ""


@dataclass(frozen=True, slots=True)
class Gap:
    """A time in which the GPU could have done more.

    Attributes:
        kind: ``idle``: nothing ran. ``copies``: copies ran, but no kernel. ``stream``: others ran,
            but none of the stream. ``order``: a kernel before it in its stream ran, and left SMs
            idle.
        launch: the launch that started at its end; -1: one that is not predicted.
        begin: seconds, on the clock of the profile. What is printed counts from its first work, at
            ``begin`` of the :class:`Explanation`.
        end: seconds, on the same clock.
        cost: seconds of the whole GPU that were not used, at most ``end - begin``. Of several gaps
            at one time each has its share.
        causes: a :class:`Cause` each, the longest first.
        name: of the kernel that started at its end.
        gpu: as the profile numbers it.

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
    name: str = ""
    gpu: int = 0

    @property
    def alike(self) -> tuple[object, ...]:
        """Key of gaps with the same meaning."""
        first = self.causes[0] if self.causes else Cause("", 0.0)
        return self.gpu, self.kind, self.name, first.cause, first.by


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Explanation(Shown):
    """Why a program of a profile took so long: its account, and changes that would shorten it.

    Attributes:
        program: the profile, with the durations of blocks that were found.
        accounted: where its time went, with all parts.
        prediction: the same program as the model runs it; None: it was not predicted, and
            ``notes`` says why.
        gaps: a :class:`Gap` each, the most costly first.
        changes: a :class:`Change` each, the shortest predicted makespan first, then bounds.
        threshold: seconds; gaps that cost less are not among ``gaps``.
        notes: what is not said, and why.
        filled: of the time in which predicted kernels ran, how much of the GPU their blocks filled,
            0 to 1; None: it was not predicted.
        exposed: of several GPUs an :class:`Exposed` each, the longest first.
        roots: what kept GPUs from working, wherever the time was lost, a :class:`Root` each, what
            cost most first. A rank that is late costs its own time, and that of the ranks that
            wait for it.

    Example:
        >>> explained = tb.explain(tb.load_program("trace.json.gz"))  # doctest: +SKIP
        >>> explained.account[0]  # doctest: +SKIP
        AccountRow(gpu=0, cause='host', by='cudaMalloc in aten::empty', seconds=0.012)
    """

    program: Program
    accounted: Account
    prediction: Trace | None
    gaps: tuple[Gap, ...]
    changes: tuple[Change, ...]
    threshold: float
    notes: tuple[str, ...] = ()
    filled: float | None = None
    exposed: tuple[Exposed, ...] = ()
    roots: tuple[Root, ...] = ()

    @property
    def assumed_rules(self) -> tuple[str, ...]:
        """Which rules the prediction rests on that are assumed for the GPU, in words."""
        return () if self.prediction is None else self.prediction.assumed_rules or ()

    @property
    def makespan(self) -> float:
        """Measured seconds from the start of the first predicted kernel to the end of the last."""
        rows = self.program.measured
        return float(rows["end_ns"].max() - rows["start_ns"].min()) / 1e9 if len(rows) else 0.0

    @property
    def begin(self) -> float:
        """Returns seconds on the clock of the profile at which its first work on a GPU started.

        Times that are printed count from there, as ``--from`` and ``--to`` do. The clock is 0 at
        the first call or work that was read. So of a part of a profile it may be below 0.
        """
        first_ns = self.program.first_ns
        return (self.accounted.begin_ns if first_ns is None else first_ns) / 1e9

    @property
    def span(self) -> float:
        """Seconds from the first work of the profile to the last, on any GPU."""
        return self.accounted.span_ns / 1e9

    @property
    def account(self) -> tuple[AccountRow, ...]:
        """Returns where the time went, in rows that add up to ``span`` for each GPU.

        Busy time has the causes ``kernel``, ``collective``, ``copy`` and ``migration``; where
        several things ran at once, the first of these, and of two kernels the one that started
        first.
        """
        return self.accounted.rows()

    @property
    def idle(self) -> dict[str, float]:
        """Returns seconds in which nothing ran, by cause, the longest first; of all GPUs together.

        Waiting for a peer in a collective is one of them: its kernel is resident, and does nothing.
        """
        seconds_by_cause: dict[str, float] = {}
        for row in self.account:
            if row.cause not in BUSY:
                seconds_by_cause[row.cause] = seconds_by_cause.get(row.cause, 0.0) + row.seconds
        return dict(sorted(seconds_by_cause.items(), key=lambda item: -item[1]))
