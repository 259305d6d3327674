"""The times in which no kernel ran on a GPU, and why, from the profile alone."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tbsched.advice.account.account import Account, of_same_host, running_on
from tbsched.advice.account.idle import HostLateness, clocks_disagree, ended_by
from tbsched.advice.account.intervals import (
    Intervals,
    Overlaps,
    concatenated,
    gaps,
    joined,
    numbered,
    overlaps,
    summed,
)
from tbsched.advice.account.labels import Labels
from tbsched.advice.explain.explanation import Cause, Gap
from tbsched.program.activity import COLLECTIVE, GRAPH, KERNEL, UNKNOWN
from tbsched.program.arrays import Int64Array
from tbsched.program.program import Program

_MAX_GAPS = 1000  # gaps of a GPU, the longest ones
_COPIES = ("copy", "migration")


def kernel_gaps(program: Program, account: Account, labels: Labels) -> list[Gap]:
    """Returns the longest times without a kernel on each GPU; new labels are added to ``labels``.

    Until a kernel was launched the cause is with the host, even if copies ran meanwhile. From then
    on it is a copy while one ran, and what the account has while nothing did.
    """
    numbers = _launch_numbers(program)
    return [
        gap
        for place in range(len(account.gpus))
        for gap in _gaps_of_gpu(account, labels, place, numbers)
    ]


def _gaps_of_gpu(
    account: Account, labels: Labels, gpu_index: int, numbers: dict[int, int]
) -> Iterator[Gap]:
    """Yields the longest gaps of one GPU, with their causes."""
    activity = account.activity
    work, gpu = activity.work, account.gpus[gpu_index]
    rows = np.flatnonzero((work["gpu"] == gpu) & np.isin(work["kind"], (KERNEL, GRAPH, COLLECTIVE)))
    ran = joined(numbered(work["start_ns"][rows], work["end_ns"][rows]))
    if not len(ran.begin):
        return
    between = gaps(ran, account.since_ns[gpu_index], int(ran.end[-1]))
    chosen = np.sort(np.argsort(between.begin - between.end, kind="stable")[:_MAX_GAPS])
    between = between.select(chosen)
    _, next_ = ended_by(activity, rows, between)
    late = HostLateness(
        activity, account.times, labels, between, next_,
        clocks_differ=clocks_disagree(activity, rows),
    )  # fmt: skip
    running = of_same_host(
        activity, {other: running_on(activity, other) for other in account.gpus}, gpu
    )
    left = Intervals(late.until, between.end, np.arange(len(next_)))
    parts_of_gpu = account.parts.select(account.parts.first == gpu_index)
    meets = overlaps(left, Intervals(parts_of_gpu.begin, parts_of_gpu.end, parts_of_gpu.second))
    meets = meets._replace(second=parts_of_gpu.second[meets.second])
    parts = concatenated([late.host_parts(running), meets])
    parts = parts.select(np.lexsort([parts.begin, parts.first]))
    edges = np.searchsorted(parts.first, np.arange(len(next_) + 1))
    moved = _copy_ns(account, gpu_index, between)
    for k in range(len(next_)):
        parts_ = parts.select(np.arange(edges[k], edges[k + 1]))
        row = int(next_[k])
        begin, end = int(between.begin[k]), int(between.end[k])
        yield Gap(
            "copies" if moved[k] else "idle", numbers.get(row, UNKNOWN), begin / 1e9, end / 1e9,
            (end - begin) / 1e9, _causes(labels, parts_), activity.names[work["name"][row]], gpu,
        )  # fmt: skip


def _causes(labels: Labels, parts: Overlaps) -> tuple[Cause, ...]:
    """Returns the causes of one gap's parts, the longest first."""
    ns: dict[tuple[str, str], int] = {}
    for label, length in zip(
        parts.second.tolist(), (parts.end - parts.begin).tolist(), strict=True
    ):
        pair = labels[label]
        ns[pair] = ns.get(pair, 0) + length
    causes = [Cause(cause, length / 1e9, by=by) for (cause, by), length in ns.items()]
    return tuple(sorted(causes, key=lambda cause: -cause.seconds))


def _copy_ns(account: Account, gpu_index: int, between: Intervals) -> Int64Array:
    """Returns for how many ns copies ran in each time without a kernel, int64."""
    parts = account.parts.select(account.parts.first == gpu_index)
    is_copy = np.array([cause in _COPIES for cause, _ in account.labels], np.bool_)[parts.second]
    copies = Intervals(parts.begin, parts.end, parts.second).select(is_copy)
    meets = overlaps(Intervals(between.begin, between.end, np.arange(len(between.begin))), copies)
    return summed(meets.first, meets.end - meets.begin, len(between.begin))


def _launch_numbers(program: Program) -> dict[int, int]:
    """Returns the launch, or -2 - k for transfer k, of each row of ``activity.work``."""
    launches = program.measured["work"].tolist()
    numbers = {row: number for number, row in enumerate(launches) if row >= 0}
    transfers = program.transfers["work"].tolist()
    return numbers | {row: -2 - number for number, row in enumerate(transfers) if row >= 0}
