"""Where the time of a profile went: every nanosecond once, by cause, from the file alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from tbsched.advice.account.host_time import HostTime
from tbsched.advice.account.idle import UNRECORDED, Idle, clocks_disagree, idle_parts
from tbsched.advice.account.intervals import (
    NO_INTERVALS,
    Intervals,
    Overlaps,
    concatenated,
    cut_overlaps,
    gaps,
    joined,
    numbered,
    overlaps,
    summed,
    within,
)
from tbsched.advice.account.labels import Labels
from tbsched.advice.account.peers import SLOWED, TRANSFER, CollectiveTimes, Origin, explain_waits
from tbsched.advice.account.steps import Steps, named_alike, steps_of
from tbsched.program.activity import (
    COLLECTIVE,
    COPY,
    GRAPH,
    KERNEL,
    MEMSET,
    MIGRATION,
    UNKNOWN,
    Activity,
)
from tbsched.program.arrays import Int64Array, read_only
from tbsched.program.collectives import matched

# Kinds of running work; the first one counts, as nothing waits for a copy during a kernel.
_LAYERS = (
    ("kernel", (KERNEL, GRAPH)),
    ("collective", (COLLECTIVE,)),
    ("copy", (COPY, MEMSET)),
    ("migration", (MIGRATION,)),
)
NO_PROFILE = "before its profile begins"  # why nobody knows what a GPU did
# A GPU that waits in a collective for another one does nothing, so that is not among them.
BUSY = (*(cause for cause, _ in _LAYERS), TRANSFER, SLOWED)


class AccountRow(NamedTuple):
    """Time of a GPU that has one cause.

    Attributes:
        gpu: as the profile numbers it.
        cause: what ran (``kernel``, ``collective``, ``copy``, ``migration``), or why nothing did.
            Of several GPUs a collective is ``peer`` while it waited for another one to start it,
            ``transfer`` while bytes moved, ``neighbours`` while they moved for longer than without
            kernels beside it, and ``collective`` where nobody knows.
        by: the kernel, the copy, the call, operator or function of the host. Of ``peer``: the rank
            that was waited for, and what it did, as its own rows have it.
        seconds: how long.

    Example:
        >>> tb.AccountRow(0, "host", "cudaMalloc in aten::empty", 1e-3).cause
        'host'
    """

    gpu: int
    cause: str
    by: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Account:
    """Where the time went, from the first work of the profile to the last.

    Attributes:
        activity: what is accounted for; marked steps have one name.
        begin_ns: when the first work of all GPUs started.
        end_ns: when the last one ended.
        gpus: those on which something ran, ascending.
        parts: the time of each GPU in parts that follow each other: ``first`` is the place of the
            GPU, ``second`` the number of a label. They add up to the span, to the nanosecond.
        labels: what the numbers mean: a cause, and what it is by.
        times: what host threads did.
        idle: of each GPU the times in which nothing ran, and what ended them.
        steps: iterations of the program, if the profile marks any, or its work repeats.
        since_ns: of each GPU since when its profile tells anything: of several ranks, one may have
            begun to record before others.
        collectives: the collectives of several GPUs; None: there are none, or of one GPU only.
        origins: by the number of a label of waiting for a peer, why that one was late.
        notes: of which collectives nobody knows how long they waited, and why, in sentences.
    """

    activity: Activity
    begin_ns: int
    end_ns: int
    gpus: tuple[int, ...]
    parts: Overlaps
    labels: tuple[tuple[str, str], ...]
    times: HostTime
    idle: tuple[Idle, ...]
    steps: Steps
    since_ns: tuple[int, ...]
    collectives: CollectiveTimes | None = None
    origins: Mapping[int, Origin] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the activity alone: a copy makes its arrays anew, read-only like these."""
        return account_of, (self.activity,)

    @property
    def clocks_differ(self) -> tuple[int, ...]:
        """GPUs whose clock does not fit that of the host, by their index."""
        gpu = self.activity.work["gpu"]
        rows = ((k, np.flatnonzero(gpu == k)) for k in self.gpus)
        return tuple(k for k, work_ in rows if clocks_disagree(self.activity, work_))

    @property
    def span_ns(self) -> int:
        """Nanoseconds from the start of the first work to the end of the last."""
        return self.end_ns - self.begin_ns

    def rows(self) -> tuple[AccountRow, ...]:
        """Returns a row per GPU, cause and name, by GPU, those that took longest first."""
        parts, labels = self.parts, len(self.labels)
        key = parts.first * labels + parts.second
        ns = summed(key, parts.end - parts.begin, labels * len(self.gpus))
        rows = []
        for key_ in np.flatnonzero(ns).tolist():
            gpu, label = divmod(key_, labels)
            cause, by = self.labels[label]
            rows.append(AccountRow(self.gpus[gpu], cause, by, int(ns[key_]) / 1e9))
        return tuple(sorted(rows, key=lambda row: (row.gpu, -row.seconds, row.cause, row.by)))

    def per_step(self) -> dict[tuple[int, str], Int64Array]:
        """Returns the time of each GPU and cause in each step, int64 ns (steps,)."""
        count = len(self.steps.times.begin)
        if not count:
            return {}
        in_steps = overlaps(
            Intervals(*self.parts[:2], np.arange(len(self.parts.begin))), self.steps.times
        )
        causes = sorted({cause for cause, _ in self.labels})
        cause_of = np.array([causes.index(cause) for cause, _ in self.labels], np.int64)
        gpu, label = self.parts.first[in_steps.first], self.parts.second[in_steps.first]
        key = (gpu * len(causes) + cause_of[label]) * count + in_steps.second
        ns = summed(key, in_steps.end - in_steps.begin, len(self.gpus) * len(causes) * count)
        table = ns.reshape(len(self.gpus), len(causes), count)
        return {
            (self.gpus[gpu], cause): table[gpu, place]
            for gpu in range(len(self.gpus))
            for place, cause in enumerate(causes)
            if table[gpu, place].any()
        }


def account_of(activity: Activity) -> Account:
    """Returns the account of what a profile has. Raises ValueError: nothing ran on a GPU."""
    work = activity.work
    if not len(work):
        raise ValueError("nothing ran on a GPU, so there is no time to account for")
    begin_ns, end_ns = int(work["start_ns"].min()), int(work["end_ns"].max())
    steps = steps_of(activity)
    activity = named_alike(activity, steps)
    labels = Labels(activity.names)
    gpus = np.unique(work["gpu"])
    columns: list[Overlaps] = []
    idle: list[Idle] = []
    times = HostTime.of(activity)
    running = {gpu: running_on(activity, gpu) for gpu in gpus.tolist()}
    collectives = matched(activity)
    met = CollectiveTimes.of(activity, collectives) if len(collectives.row) else None
    since_ns = [max(begin_ns, _recorded_since(activity, gpu)) for gpu in gpus.tolist()]
    for index, gpu in enumerate(gpus.tolist()):
        rows = np.flatnonzero(work["gpu"] == gpu)
        others = of_same_host(activity, running, gpu)
        busy = _busy(activity, rows, labels, met)
        nothing = gaps(running[gpu], since_ns[index], end_ns)
        idle.append(idle_parts(activity, rows, nothing, others, times, labels))
        parts = idle[-1].parts
        columns += [
            Overlaps(own.begin, own.end, np.full(len(own.begin), index), own.owner)
            for own in (*busy, Intervals(parts.begin, parts.end, parts.second))
        ]
        if since_ns[index] > begin_ns:
            label = labels.number(UNRECORDED, NO_PROFILE)
            edge = np.array([[begin_ns], [since_ns[index]], [index], [label]], np.int64)
            columns.append(Overlaps(*edge))
    parts_of_all = concatenated(columns)
    parts_of_all = parts_of_all.select(np.lexsort([parts_of_all.begin, parts_of_all.first]))
    origins: dict[int, Origin] = {}
    if met is not None:
        parts_of_all, origins = explain_waits(parts_of_all, met, activity, gpus.tolist(), labels)
    _freeze((parts_of_all, times, idle, steps, met))
    account = Account(
        activity, begin_ns, end_ns, tuple(gpus.tolist()), parts_of_all, tuple(labels), times,
        tuple(idle), steps, tuple(since_ns), met, origins, (*collectives.wrong, *collectives.notes),
    )  # fmt: skip
    _check(account)
    return account


def _freeze(value: object) -> None:
    """Makes all arrays in a value read-only."""
    if isinstance(value, np.ndarray):
        read_only(value)
    elif isinstance(value, tuple | list):
        for part in value:
            _freeze(part)
    elif isinstance(value, HostTime):
        _freeze((value.inside, value.is_outermost, value.is_open, *value.lines.values()))


def running_on(activity: Activity, gpu: int) -> Intervals:
    """Returns when anything ran on a GPU, disjoint and sorted."""
    own = activity.work[activity.work["gpu"] == gpu]
    return joined(numbered(own["start_ns"], own["end_ns"]))


def _recorded_since(activity: Activity, gpu: int) -> int:
    """Returns when the profile of a GPU's rank begins, in ns; without ranks, the earliest time."""
    if gpu not in activity.ranks:
        return activity.first_ns
    work, host, processes = activity.work, activity.host, _processes(activity, gpu)
    first = int(work["start_ns"][work["gpu"] == gpu].min())
    threads = [thread for thread, process in enumerate(activity.processes) if process in processes]
    begins_ns = host["begin_ns"][np.isin(host["thread"], threads)]
    return min(first, int(begins_ns.min())) if len(begins_ns) else first


def of_same_host(activity: Activity, running: Mapping[int, Intervals], gpu: int) -> list[Intervals]:
    """Returns when each other GPU ran that the same processes use; when all others ran if it is not
    known which processes use them."""
    processes = _processes(activity, gpu)
    return [
        intervals
        for other, intervals in running.items()
        if other != gpu and (not processes or not processes.isdisjoint(_processes(activity, other)))
    ]


def _processes(activity: Activity, gpu: int) -> set[int]:
    """Returns the processes that launched work on a GPU; empty: unknown."""
    work = activity.work
    calls = work["call"][(work["gpu"] == gpu) & (work["call"] != UNKNOWN)]
    threads = np.unique(activity.host["thread"][calls]).tolist() if len(calls) else []
    return {activity.processes[thread] for thread in threads}


def _busy(
    activity: Activity, rows: Int64Array, labels: Labels, met: CollectiveTimes | None
) -> list[Intervals]:
    """Returns what ran on a GPU, in disjoint parts; ``owner``: the number of a label."""
    work = activity.work
    parts: list[Intervals] = []
    covered = NO_INTERVALS
    begin, end = int(work["start_ns"].min()), int(work["end_ns"].max())
    for cause, kinds in _LAYERS:
        rows_of_kind = rows[np.isin(work["kind"][rows], kinds)]
        if not len(rows_of_kind):
            continue
        ran = Intervals(work["start_ns"][rows_of_kind], work["end_ns"][rows_of_kind], rows_of_kind)
        alone = within(cut_overlaps(ran), gaps(covered, begin, end))
        if met is not None and COLLECTIVE in kinds:
            parts.append(met.parts(alone, activity, labels))
        else:
            parts.append(alone._replace(owner=labels.numbers(cause, work["name"][alone.owner])))
        covered = joined(
            Intervals(
                np.append(covered.begin, ran.begin), np.append(covered.end, ran.end),
                np.zeros(len(covered.begin) + len(rows_of_kind), np.int64),
            )
        )  # fmt: skip
    return parts


def _check(account: Account) -> None:
    """Asserts that the parts of each GPU cover the time from the first work to the last."""
    parts = account.parts
    for index in range(len(account.gpus)):
        own_ = parts.select(parts.first == index)
        edges = (np.append(own_.begin, account.end_ns), np.append(account.begin_ns, own_.end))
        assert np.array_equal(*edges), "the account does not add up"
