"""Communication that no kernel ran beside, and what kept kernels from it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tbsched.advice.account.account import Account, of_same_host, running_on
from tbsched.advice.account.idle import (
    NO_WORK,
    UNEXPLAINED,
    UNRECORDED,
    HostLateness,
    clocks_disagree,
)
from tbsched.advice.account.intervals import Intervals, Overlaps, concatenated, summed
from tbsched.advice.account.labels import Labels
from tbsched.advice.account.peers import SLOWED, TRANSFER
from tbsched.program.activity import COLLECTIVE, GRAPH, KERNEL, UNKNOWN
from tbsched.program.arrays import BoolArray, Int64Array

NEEDS = "needs"  # the next kernel had been launched, and started when the collective had ended
_NEXT_NS = 10_000  # within which a kernel starts that waited for the end of a collective


class Exposed(NamedTuple):
    """Time in which a GPU moved bytes of collectives, and ran no kernel.

    Attributes:
        gpu: as the profile numbers it.
        collective: what it does, as in the account.
        cause: what kept the next kernel from running beside it. ``host``: it had not been launched.
            ``needs``: it had been, and started once the collective had ended: its stream, or an
            event, makes it wait. ``no_work``: there was none. ``unrecorded``: the profile does not
            say when it was launched. Else nobody knows: ``unexplained``.
        by: what the host did, or the kernel.
        seconds: how long.

    Example:
        >>> tb.Exposed(0, "all_reduce of 4,096 bytes", "needs", "sgd_step", 2e-5).cause
        'needs'
    """

    gpu: int
    collective: str
    cause: str
    by: str
    seconds: float


def exposed(account: Account, labels: Labels) -> tuple[Exposed, ...]:
    """Returns the communication beside which no kernel ran, of all GPUs, the longest first.

    ``labels`` has those of the account, and takes others.
    """
    if account.collectives is None:
        return ()
    is_moving = np.array([cause in (TRANSFER, SLOWED) for cause, _ in account.labels], np.bool_)
    ns: dict[tuple[int, int, int], int] = {}
    for index, gpu in enumerate(account.gpus):
        moving = account.parts.select(account.parts.first == index)
        moving = moving.select(is_moving[moving.second])
        if not len(moving.begin):
            continue
        reasons = _why_no_kernel(
            account, labels, gpu, Intervals(moving.begin, moving.end, moving.second)
        )
        keys = np.stack([moving.second[reasons.first], reasons.second])
        distinct, which = np.unique(keys, axis=1, return_inverse=True)
        total = summed(which.ravel(), reasons.end - reasons.begin, distinct.shape[1])
        for (what, why), length in zip(distinct.T.tolist(), total.tolist(), strict=True):
            ns[gpu, what, why] = length
    rows = (
        Exposed(gpu, labels[what][1], *labels[why], length / 1e9)
        for (gpu, what, why), length in ns.items()
    )
    return tuple(sorted(rows, key=lambda row: (-row.seconds, row.gpu, row.collective, row.by)))


def _why_no_kernel(account: Account, labels: Labels, gpu: int, alone: Intervals) -> Overlaps:
    """Returns parts of times, each with the label of what kept the next kernel from running."""
    activity = account.activity
    work = activity.work
    rows = np.flatnonzero((work["gpu"] == gpu) & np.isin(work["kind"], (KERNEL, GRAPH)))
    rows = rows[np.argsort(work["start_ns"][rows], kind="stable")]
    place = np.searchsorted(work["start_ns"][rows], alone.begin, side="left")
    next_ = np.append(rows, UNKNOWN)[place]
    differ = clocks_disagree(activity, np.flatnonzero(work["gpu"] == gpu))
    late = HostLateness(activity, account.times, labels, alone, next_, clocks_differ=differ)
    running = {other: running_on(activity, other) for other in account.gpus}
    of_host = late.host_parts(of_same_host(activity, running, gpu))
    left = np.flatnonzero(late.until < alone.end)
    starts = np.where(next_ == UNKNOWN, 0, work["start_ns"][next_])[left]
    cause = np.full(len(left), _CAUSES.index(UNEXPLAINED))
    cause[_starts_after_collective(account, gpu, starts)] = _CAUSES.index(NEEDS)
    cause[~late.is_known[left] | differ] = _CAUSES.index(UNRECORDED)
    cause[next_[left] == UNKNOWN] = _CAUSES.index(NO_WORK)
    name = np.where(next_[left] == UNKNOWN, UNKNOWN, work["name"][next_[left]])

    def words(cause: int, name: int) -> tuple[str, str]:
        """Returns the label of a cause's index and a kernel's name."""
        return _CAUSES[cause], "nothing more ran" if name == UNKNOWN else activity.names[name]

    label = labels.of_keys(words, cause, name)
    return concatenated([of_host, Overlaps(late.until[left], alone.end[left], left, label)])


_CAUSES = (NEEDS, NO_WORK, UNRECORDED, UNEXPLAINED)


def _starts_after_collective(account: Account, gpu: int, times: Int64Array) -> BoolArray:
    """Returns which times have work that started as soon as the collective before had ended."""
    assert account.collectives is not None
    work = account.activity.work
    ends = np.sort(account.collectives.end[account.collectives.gpu == gpu])
    ended = np.append(-_FAR, ends)[np.searchsorted(ends, times, side="right")]
    is_work = (work["gpu"] == gpu) & (work["kind"] != COLLECTIVE)
    starts = np.sort(work["start_ns"][is_work])
    first = np.append(starts, _FAR)[np.searchsorted(starts, ended, side="left")]
    is_next: BoolArray = first - ended <= _NEXT_NS
    return is_next


_FAR = np.int64(2**61)
