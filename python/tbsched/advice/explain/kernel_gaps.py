"""The times in which no kernel ran on a GPU, and why, from the profile alone."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tbsched.advice.account.account import Account, of_same_host, running_on
from tbsched.advice.account.idle import Late, clocks_disagree, ended_by
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

_MOST = 1000  # gaps of a GPU, the longest ones
_COPIES = ("copy", "migration")


def kernel_gaps(program: Program, account: Account, labels: Labels) -> list[Gap]:
    """Returns the longest gaps of each GPU; ``labels`` has those of the account, and takes others.

    Until a kernel was launched the cause is with the host, even if copies ran meanwhile. From then
    on it is a copy while one ran, and what the account has while nothing did.
    """
    numbers = _numbers(program)
    return [
        gap
        for place in range(len(account.gpus))
        for gap in _of_gpu(account, labels, place, numbers)
    ]


def _of_gpu(account: Account, labels: Labels, place: int, numbers: dict[int, int]) -> Iterator[Gap]:
    """Yields the longest gaps of one GPU."""
    activity = account.activity
    work, gpu = activity.work, account.gpus[place]
    rows = np.flatnonzero((work["gpu"] == gpu) & np.isin(work["kind"], (KERNEL, GRAPH, COLLECTIVE)))
    ran = joined(numbered(work["start_ns"][rows], work["end_ns"][rows]))
    if not len(ran.begin):
        return
    nothing = gaps(ran, account.since_ns[place], int(ran.end[-1]))
    chosen = np.sort(np.argsort(nothing.begin - nothing.end, kind="stable")[:_MOST])
    nothing = nothing.some(chosen)
    _, next_ = ended_by(activity, rows, nothing)
    late = Late(
        activity, account.times, labels, nothing, next_,
        clocks_differ=clocks_disagree(activity, rows),
    )  # fmt: skip
    running = of_same_host(
        activity, {other: running_on(activity, other) for other in account.gpus}, gpu
    )
    left = Intervals(late.until, nothing.end, np.arange(len(next_)))
    mine = account.parts.some(account.parts.first == place)
    meets = overlaps(left, Intervals(mine.begin, mine.end, mine.second))
    meets = meets._replace(second=mine.second[meets.second])
    parts = concatenated([late.of_host(running), meets])
    parts = parts.some(np.lexsort([parts.begin, parts.first]))
    edges = np.searchsorted(parts.first, np.arange(len(next_) + 1))
    moved = _moved(account, place, nothing)
    for each in range(len(next_)):
        own = parts.some(np.arange(edges[each], edges[each + 1]))
        row = int(next_[each])
        begin, end = int(nothing.begin[each]), int(nothing.end[each])
        yield Gap(
            "copies" if moved[each] else "idle", numbers.get(row, UNKNOWN), begin / 1e9, end / 1e9,
            (end - begin) / 1e9, _causes(labels, own), activity.names[work["name"][row]], gpu,
        )  # fmt: skip


def _causes(labels: Labels, parts: Overlaps) -> tuple[Cause, ...]:
    """Returns the causes of one gap, the longest first."""
    ns: dict[tuple[str, str], int] = {}
    for label, length in zip(
        parts.second.tolist(), (parts.end - parts.begin).tolist(), strict=True
    ):
        pair = labels[label]
        ns[pair] = ns.get(pair, 0) + length
    found = [Cause(cause, length / 1e9, by=by) for (cause, by), length in ns.items()]
    return tuple(sorted(found, key=lambda cause: -cause.seconds))


def _moved(account: Account, place: int, nothing: Intervals) -> Int64Array:
    """Returns how long copies ran in each time without a kernel, ns."""
    mine = account.parts.some(account.parts.first == place)
    is_copy = np.array([cause in _COPIES for cause, _ in account.labels], np.bool_)[mine.second]
    copies = Intervals(mine.begin, mine.end, mine.second).some(is_copy)
    meets = overlaps(Intervals(nothing.begin, nothing.end, np.arange(len(nothing.begin))), copies)
    return summed(meets.first, meets.end - meets.begin, len(nothing.begin))


def _numbers(program: Program) -> dict[int, int]:
    """Returns, by row of the activity, its launch's number, or -2 - k for transfer k."""
    launches = program.measured["work"].tolist()
    found = {row: number for number, row in enumerate(launches) if row >= 0}
    transfers = program.transfers["work"].tolist()
    return found | {row: -2 - number for number, row in enumerate(transfers) if row >= 0}
