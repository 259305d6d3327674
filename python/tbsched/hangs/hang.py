"""What a program that hangs waits for, with the proof and what to change."""

from __future__ import annotations

from dataclasses import dataclass

from tbsched.advice.together.limits import Limit
from tbsched.hangs.calls import HostCall
from tbsched.shown import Shown
from tbsched.traces.placement import DeviceInfo

ROOM, QUEUE, LEGACY, LOADING = "room", "queue", "legacy_stream", "loading"
RANKS, HOST, INSIDE, NOT_HANGING = "order_of_ranks", "host", "inside_kernel", "not_hanging"
NOT_KNOWN = "not_known"
KINDS = (ROOM, QUEUE, LEGACY, LOADING, RANKS, HOST, INSIDE, NOT_HANGING, NOT_KNOWN)


@dataclass(frozen=True, slots=True)
class OnGpu:
    """A kernel with blocks on the GPU.

    Attributes:
        name: of the kernel.
        running: how many blocks are on the GPU.
        started: how many have started, those that have ended among them.
        blocks: of the whole grid.
        sms: int per SM that holds some: its number and how many; empty if nobody knows.
        does: ``spins``, ``computes``, ``waits`` (for other threads of the block) or ``unknown``.
        counters: at how many instructions its threads are; 0: unknown.
        line: of the source, where a thread was seen; empty: unknown.
        seen: ``debugger``, or ``model``: where the model says that it is.

    Example:
        >>> row = tb.OnGpu("spin", 2, 2, 2, ((124, 1), (126, 1)), "spins", 3, "", "debugger")
        >>> row.running, dict(row.sms)[124]
        (2, 1)
    """

    name: str
    running: int
    started: int
    blocks: int
    sms: tuple[tuple[int, int], ...]
    does: str
    counters: int
    line: str
    seen: str


@dataclass(frozen=True, slots=True)
class NeverStarts:
    """A launch of which blocks never start.

    Attributes:
        name: of the kernel.
        missing: how many blocks never start.
        blocks: of the whole grid.
        cause: what they wait for: a resource of an SM (as of ``Placement.limiter``),
            ``hardware_queue``, ``legacy_stream``, ``stream``, ``event``, ``value``, ``loading`` or
            ``unknown``.
        behind: the operation that holds them up; None: no single one.
        limits: of each class of SMs what refuses one block more.

    Example:
        >>> row = tb.NeverStarts("set_flag", 1, 1, "hardware_queue", "gemm")
        >>> row.missing, row.behind
        (1, 'gemm')
    """

    name: str
    missing: int
    blocks: int
    cause: str
    behind: str | None
    limits: tuple[Limit, ...] = ()


@dataclass(frozen=True, slots=True)
class HangFix:
    """A change after which, by the model, nothing waits for ever.

    Attributes:
        kind: ``connections``, ``order``, ``non_blocking``, ``loading``, or a kind of
            ``tbsched.Fix``.
        text: what to do, in words of CUDA and PyTorch.

    Example:
        >>> tb.HangFix("order", "launch set_flag before gemm").text
        'launch set_flag before gemm'
    """

    kind: str
    text: str


@dataclass(frozen=True, slots=True, repr=False)
class HangReport(Shown):
    """Why a program hangs; prints the answer, what is on the GPU, what never starts, and fixes.

    Attributes:
        kind: ``room`` (blocks find no room), ``queue`` (behind another launch in a hardware
            queue), ``legacy_stream``, ``loading`` (a kernel is loaded behind one that waits),
            ``order_of_ranks``, ``host`` (the host waits for the GPU, and the GPU for the host; or a
            rank has not issued a collective in which others wait),
            ``inside_kernel`` (all blocks are on the GPU), ``not_hanging``, or ``not_known``: what
            was seen fits several of these.
        reason: the answer, in one sentence.
        resident: the kernels on the GPU, an :class:`OnGpu` each.
        stranded: launches of which blocks never start, a :class:`NeverStarts` each; the one that
            decides first.
        calls: calls of the driver that host threads are in.
        fixes: changes, each checked by the model.
        proof: sentences: what the answer rests on.
        unseen: sentences: what could not be seen, and what is assumed instead.
        device: the GPU; None: unknown.
        process: its number; None: unknown.
        may_be: the kinds that fit, if ``kind`` is ``not_known``; else empty.

    Example:
        >>> with open("run.jsonl", "w") as file:  # a capture of a program that has ended
        ...     _ = file.write('{"tbsched_capture":1,"notes_issued":true}\\n{"end":9}')
        >>> found = tb.hang("run.jsonl")
        >>> found.kind, found.hangs, found.reason
        ('not_hanging', False, 'the program has ended by itself')
    """

    kind: str
    reason: str
    resident: tuple[OnGpu, ...]
    stranded: tuple[NeverStarts, ...]
    calls: tuple[HostCall, ...]
    fixes: tuple[HangFix, ...]
    proof: tuple[str, ...]
    unseen: tuple[str, ...]
    device: DeviceInfo | None = None
    process: int | None = None
    may_be: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The whole answer as plain text."""
        return str(self)

    @property
    def hangs(self) -> bool:
        """Whether it hangs, or nobody knows."""
        return self.kind != NOT_HANGING

    @property
    def may_be_slow(self) -> bool:
        """Whether it is not known if it hangs: it may only be slow."""
        return NOT_HANGING in self.may_be
