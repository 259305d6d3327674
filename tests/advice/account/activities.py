"""Random records of profiles, small and not always sane, as plain records and as an activity."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pytest
from hypothesis import strategies as st

from advice.account.reference import Host, Reference, Rules, Work
from tbsched.advice.account import host_time, idle
from tbsched.program.activity import (
    ANNOTATION,
    CALL,
    COLLECTIVE,
    COPY,
    FUNCTION,
    GRAPH,
    KERNEL,
    MEMSET,
    MIGRATION,
    OPERATOR,
    STEP,
    Activity,
    ActivityBuilder,
)

# What is long here, so that some tens of nanoseconds have all that happens in a profile.
SHORT = Rules(on_its_way=9, next=5, ahead=2, loading=6, disagree=0.3, asked=2)
LONGEST = 25
_NAMES = {
    KERNEL: ("gemm", "add", "nvjet"), GRAPH: ("graph",),
    COLLECTIVE: ("ncclDevKernel_AllReduce", "nvshmem_put"),
    COPY: ("h2d pinned", "d2h pageable", "d2d"), MEMSET: ("memset",), MIGRATION: ("to the GPU",),
}  # fmt: skip
_LAUNCHING = (
    "cudaLaunchKernel", "cuLaunchKernelEx", "cudaMemcpy", "cudaMemcpyAsync", "cudaGraphLaunch",
)  # fmt: skip
_WAITING = ("cudaDeviceSynchronize", "cudaStreamSynchronize", "cuStreamSynchronize")
_OTHER_CALLS = (
    "cuModuleLoadData", "cudaFuncGetAttributes", "cudaMalloc", "cudaLaunchHostFunc",
)  # fmt: skip
_LAUNCH, _WAIT, _STREAM_WAIT, _OTHER = range(-4, 0)  # kinds of calls
_HOST = {
    OPERATOR: ("aten::linear", "aten::addmm", "autograd::engine::evaluate_function: MulBackward0"),
    ANNOTATION: ("forward", "cudaFree"),
    FUNCTION: ("train.py(3): step", "loader.py(9): next", "<built-in method run_backward>"),
    STEP: ("ProfilerStep#1",),
}  # fmt: skip


@dataclass(frozen=True)
class Records:
    """What a profiler recorded, in this order."""

    work: list[Work]
    host: list[Host]

    @property
    def reference(self) -> Reference:
        """Their account."""
        return Reference(self.work, self.host, SHORT)

    @property
    def activity(self) -> Activity:
        """The same as the package holds it."""
        builder = ActivityBuilder()
        for row in self.host:
            given = row.name, row.process, row.thread, row.begin, row.end
            if row.kind == CALL:
                builder.add_call(*given, row.correlation)
            else:
                builder.add_host(ANNOTATION if row.kind == STEP else row.kind, *given)
        for row in self.host:
            if row.loads:
                builder.loaded(row.correlation)
        for work in self.work:
            kind = KERNEL if work.kind == COLLECTIVE else work.kind
            builder.add_work(
                work.gpu, kind, work.name, work.stream, work.start, work.end, work.correlation,
                node=work.node,
            )  # fmt: skip
        return builder.built()[0]


@contextmanager
def short_rules() -> Iterator[None]:
    """A context in which the package, too, takes ``SHORT`` for long."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(idle, "_ON_ITS_WAY_NS", SHORT.on_its_way)
        patch.setattr(idle, "_NEXT_NS", SHORT.next)
        patch.setattr(idle, "_AHEAD_NS", SHORT.ahead)
        patch.setattr(idle, "_LOADING_NS", SHORT.loading)
        patch.setattr(idle, "_MAX_EARLY_SHARE", SHORT.disagree)
        patch.setattr(host_time, "_MAX_OTHER_THREADS", SHORT.asked)
        yield


@st.composite
def records(draw: st.DrawFn) -> Records:
    """Some work and some calls, of which each may lie beside, in or across any other."""
    host = draw(_hosts())
    calls = [row for row in host if row.kind == CALL and row.correlation >= 0]
    gpus = draw(st.integers(1, 3))
    work: list[Work] = []
    for _ in range(draw(st.integers(1, 7))):
        call = draw(st.sampled_from([None, *calls, *calls, *calls]))
        work.append(draw(_works(call, gpus)))
        if draw(st.integers(0, 9)) == 0:
            work.append(draw(st.sampled_from(work)))
    return Records(work, host)


@st.composite
def _works(draw: st.DrawFn, call: Host | None, gpus: int) -> Work:
    """Something that a call launched, mostly after it began."""
    kind = draw(st.sampled_from([KERNEL, KERNEL, KERNEL, *_NAMES]))
    start = draw(st.integers(0, 70))
    if call is not None and draw(st.integers(0, 11)):
        start = call.begin + draw(st.integers(-3, 2 * LONGEST))
    return Work(
        draw(st.integers(0, gpus - 1)), kind, draw(st.sampled_from(_NAMES[kind])),
        draw(st.sampled_from([7, 13])), start, start + draw(st.integers(0, 12)),
        -1 if call is None else call.correlation, draw(st.integers(0, 1)),
    )  # fmt: skip


@st.composite
def _hosts(draw: st.DrawFn) -> list[Host]:
    """Mostly one thing after the other, in each of some threads."""
    threads = [(0, 0), (0, 1), (1, 0), (0, 2)][: draw(st.integers(1, 4))]
    last = dict.fromkeys(threads, 0)
    found: list[Host] = []
    for number in range(draw(st.integers(0, 9))):
        kind = draw(
            st.sampled_from([*_HOST, _LAUNCH, _LAUNCH, _LAUNCH, _WAIT, _STREAM_WAIT, _OTHER])
        )
        of = draw(st.sampled_from(threads))
        begin = draw(st.integers(0, 60))
        if draw(st.integers(0, 3)):
            begin = last[of] + draw(st.integers(0, 5))
        end = begin + draw(st.integers(0, LONGEST))
        if kind not in (OPERATOR, ANNOTATION, FUNCTION, STEP) or draw(st.booleans()):
            last[of] = end
        found.append(draw(_one(number, kind, of, begin, end)))
    if draw(st.booleans()):
        found = draw(st.permutations(found))
    return [replace(row, number=number) for number, row in enumerate(found)]


@st.composite
def _one(
    draw: st.DrawFn, number: int, kind: int, of: tuple[int, int], begin: int, end: int
) -> Host:
    if kind in _HOST:
        return Host(number, kind, draw(st.sampled_from(_HOST[kind])), *of, begin, end)
    if kind == _LAUNCH:
        correlation = draw(st.sampled_from([number, number, draw(st.integers(0, 9))]))
        loads = draw(st.integers(0, 7)) == 0
        name = draw(st.sampled_from(_LAUNCHING))
        return Host(number, CALL, name, *of, begin, end, correlation, loads)
    names = {
        _WAIT: _WAITING, _OTHER: _OTHER_CALLS,
        _STREAM_WAIT: ("cudaStreamWaitEvent", "cuStreamWaitValue32"),
    }[kind]  # fmt: skip
    return Host(number, CALL, draw(st.sampled_from(names)), *of, begin, end)
