"""What holds of every explanation, of random records and of random traces of torch.profiler."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tbsched as tb
from advice.account.activities import Records, records, short_rules
from helpers import examples
from importers.written import call, kernel, kineto, move
from tbsched.advice.account.account import BUSY
from tbsched.advice.account.peers import PEER
from tbsched.program.activity import (
    CALL,
    COLLECTIVE,
    COPY,
    FUNCTION,
    GRAPH,
    KERNEL,
    MEMSET,
    OPERATOR,
    Activity,
)
from tbsched.program.program import MEASURED, TRANSFERS

_KERNELS = (KERNEL, GRAPH, COLLECTIVE)
_NS = 1.5e-9  # seconds of float64 are rounded
_EVENTS = {KERNEL: "k", COPY: "Memcpy HtoD (Pageable -> Device)", MEMSET: "Memset (Device)"}


def times_of(activity: Activity, gpu: int, kinds: tuple[int, ...]) -> list[tuple[int, int]]:
    rows = activity.work[(activity.work["gpu"] == gpu) & np.isin(activity.work["kind"], kinds)]
    return sorted(zip(rows["start_ns"].tolist(), rows["end_ns"].tolist(), strict=True))


def union(times: list[tuple[int, int]]) -> int:
    """How long at least one of them lasts."""
    found, until = 0, -(2**62)
    for start, end in times:
        found += max(0, end - max(start, until))
        until = max(until, end)
    return found


def check_account(found: tb.Explanation) -> None:
    """Each GPU's rows add up to the span, and what is idle is what no work covers."""
    activity = found.accounted.activity
    for gpu in found.accounted.gpus:
        rows = [row for row in found.account if row.gpu == gpu]
        assert sum(row.seconds for row in rows) == pytest.approx(found.span, abs=1e-9)
        ran = union(times_of(activity, gpu, tuple(range(6))))
        idle = sum(row.seconds for row in rows if row.cause not in (*BUSY, PEER))
        assert idle == pytest.approx(found.span - ran / 1e9, abs=1e-9)
    idle = sum(row.seconds for row in found.account if row.cause not in BUSY)
    assert sum(found.idle.values()) == pytest.approx(idle, abs=1e-9)


def check_gaps(found: tb.Explanation) -> None:
    """A gap ends when its launch starts, lies beside what ran, and its causes explain it."""
    for gap in found.gaps:
        length = gap.end - gap.begin
        assert gap.causes
        assert 0 <= gap.cost <= length + _NS
        told = sum(cause.seconds for cause in gap.causes)
        assert told <= length + _NS
        if gap.kind in ("idle", "copies"):
            assert told == pytest.approx(length, abs=_NS)
            assert gap.cost == pytest.approx(length, abs=_NS)
            check_beside(found.accounted.activity, gap)
        else:
            check_in_stream(found.program, gap)
    for gpu in found.accounted.gpus:
        costs = [gap.cost for gap in found.gaps if gap.gpu == gpu]
        assert sum(costs) <= found.span + _NS * (1 + len(costs))


def check_beside(activity: Activity, gap: tb.Gap) -> None:
    """No kernel ran in the gap, no copy did if it was idle, and its kernel ended it."""
    begin, end = round(gap.begin * 1e9), round(gap.end * 1e9)
    kinds = _KERNELS if gap.kind == "copies" else (*_KERNELS, COPY, MEMSET)
    assert not any(
        start < end and begin < ended and start < ended
        for start, ended in times_of(activity, gap.gpu, kinds)
    )
    work = activity.work[(activity.work["gpu"] == gap.gpu) & (activity.work["start_ns"] == end)]
    kernels = work["name"][np.isin(work["kind"], _KERNELS)]
    assert gap.name in [activity.names[name] for name in kernels.tolist()]


def check_in_stream(program: tb.Program, gap: tb.Gap) -> None:
    """It ends before its launch starts, and begins once what its stream had before has ended."""
    rows = program.measured
    end = round(gap.end * 1e9)
    assert end <= rows["start_ns"][gap.launch] + 1
    launches = [
        (place, getattr(event, "stream", None))
        for place, event in enumerate(program.sequence)
        for _ in event.launches
    ]
    place, stream = launches[gap.launch]
    if gap.kind == "stream":
        before = [
            int(rows["end_ns"][number])
            for number, (other, of) in enumerate(launches)
            if other < place and of == stream
        ]
        assert round(gap.begin * 1e9) >= max(before, default=0) - 1


def check(found: tb.Explanation) -> None:
    check_account(found)
    check_gaps(found)
    assert str(found)


def accounted(activity: Activity) -> tb.Explanation:
    """The explanation of a profile of which nothing is predicted."""
    program = tb.Program(
        tb.Sequence([]), (), np.zeros(0, MEASURED), np.zeros(0, TRANSFERS), activity=activity
    )
    return tb.explain(program, threshold=0.0)


@settings(max_examples=examples(200), deadline=None)
@given(records())
def test_random_records(given_records: Records) -> None:
    with short_rules():
        check(accounted(given_records.activity))


def written(given_records: Records) -> Iterator[dict[str, Any]]:
    """As a trace of torch.profiler, a microsecond for each nanosecond."""
    for row in given_records.host:
        if row.kind == CALL:
            event = call(max(row.correlation, 0) + 1, row.begin, row.end - row.begin, row.name)
        else:
            event = call(0, row.begin, row.end - row.begin, row.name)
            event["cat"] = {OPERATOR: "cpu_op", FUNCTION: "python_function"}.get(
                row.kind, "user_annotation"
            )
        yield event | {"pid": 5 + row.process, "tid": row.thread}
    for work in given_records.work:
        given = work.correlation + 1, work.start, work.end - work.start, work.stream
        event = kernel(*given, name=work.name)
        if work.kind in _EVENTS:
            event = event if work.kind == KERNEL else move(*given, name=_EVENTS[work.kind])
        event["args"]["device"] = work.gpu
        yield event


@settings(max_examples=examples(40), deadline=None)
@given(given_records=records())
def test_random_traces(given_records: Records, tmp_path_factory: pytest.TempPathFactory) -> None:
    place = tmp_path_factory.mktemp("traces") / "trace.json"
    program = tb.load_program(kineto(place, *written(given_records)), fit=False)
    check(tb.explain(program, threshold=0.0))


@st.composite
def traces(draw: st.DrawFn) -> list[dict[str, Any]]:
    """A program as it could have run: work waits for its stream, and calls for the work."""
    found: list[dict[str, Any]] = []
    now = [0.0] * draw(st.integers(1, 2))  # us, of each host thread
    free: dict[tuple[int, int], float] = {}  # of each GPU and stream when its work ends
    for correlation in range(1, draw(st.integers(2, 14))):
        thread = draw(st.integers(0, len(now) - 1))
        pause = draw(st.sampled_from([0, 0, 1, 20, 300]))
        if pause and draw(st.booleans()):
            operator = call(0, now[thread] + 0.5, pause - 0.5, "aten::linear", thread)
            found.append(operator | {"cat": "cpu_op"})
        begin = now[thread] + pause
        gpu, stream = draw(st.sampled_from([(0, 7), (0, 7), (0, 13), (0, 20), (1, 7)]))
        start = max(begin + draw(st.sampled_from([6, 8.5, 40])), free.get((gpu, stream), 0.0))
        dur = draw(st.sampled_from([1, 2.5, 30, 400]))
        what = draw(st.sampled_from(["kernel", "kernel", "kernel", "copy", "blocking", "wait"]))
        now[thread] = begin + draw(st.sampled_from([3, 5, 150]))
        if what == "wait":
            now[thread] = max(now[thread], *free.values(), 0.0)
            found.append(_called(correlation, begin, now[thread], "cudaDeviceSynchronize", thread))
            continue
        free[gpu, stream] = start + dur
        if what == "kernel":
            name, grid = draw(st.sampled_from([("few", 4), ("full", 132 * 8), ("many", 5000)]))
            ran = kernel(correlation, start, dur, stream, name=name, grid=[grid, 1, 1])
            made = "cudaLaunchKernel"
        else:
            ran = move(correlation, start, dur, stream, "Memcpy HtoD (Pageable -> Device)")
            made = "cudaMemcpyAsync" if what == "copy" else "cudaMemcpy"
        if what == "blocking":
            now[thread] = max(now[thread], start + dur + 1)
        ran["args"]["device"] = gpu
        found += [_called(correlation, begin, now[thread], made, thread), ran]
    return found


def _called(correlation: int, begin: float, end: float, name: str, thread: int) -> dict[str, Any]:
    return call(correlation, begin, end - begin, name, thread)


@settings(max_examples=examples(40), deadline=None)
@given(events=traces())
def test_traces_of_programs_that_could_have_run(
    events: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    if not any(event["cat"].startswith(("kernel", "gpu_")) for event in events):
        return
    place = tmp_path_factory.mktemp("traces") / "trace.json"
    found = tb.explain(tb.load_program(kineto(place, *events), fit=False), threshold=0.0)
    check(found)
    assert not found.accounted.clocks_differ


@pytest.mark.parametrize(("name", "grid"), [("few", 4), ("full", 132 * 8)])
def test_an_idle_stream_beside_a_full_gpu_costs_nothing(
    tmp_path: Path, name: str, grid: int
) -> None:
    events = [
        call(1, 0, 5), kernel(1, 10, 10_000, 13, name=name, grid=[grid, 1, 1]),
        call(2, 10, 5), kernel(2, 5_000, 10_000, 20, name="late", grid=[grid, 1, 1]),
    ]  # fmt: skip
    place = kineto(tmp_path / "trace.json", *events)
    found = tb.explain(tb.load_program(place, fit=False), threshold=0.0)
    check(found)
    cost = sum(gap.cost for gap in found.gaps)
    assert cost == 0 if name == "full" else 4e-3 < cost < 5e-3
