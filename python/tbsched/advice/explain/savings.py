"""What a program of several GPUs would save without a cause of lost time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tbsched.advice.account.account import Account
from tbsched.advice.account.idle import FIRST_USE, HOST, SYNCHRONIZE, maker, without_context
from tbsched.advice.account.intervals import Intervals, overlaps, summed
from tbsched.advice.account.peers import SLOWED, TRANSFER
from tbsched.advice.explain.event_graph import EventGraph
from tbsched.advice.explain.roots import ALL, Root, roots
from tbsched.program.activity import COLLECTIVE, COPY, GRAPH, KERNEL, OPERATOR, UNKNOWN
from tbsched.program.arrays import BoolArray, Int64Array

_OF_HOST = (HOST, FIRST_USE, SYNCHRONIZE)
_OF_WORK = ("kernel", "copy", "migration")
_MAX_CAUSES = 16  # causes, those that cost most
_REPLAYS_AT_ONCE = 16  # replays
_MAX_WORK = (
    100_000  # kernels, copies and memsets of a program that is replayed; of more it takes long
)
_TOO_LONG = (
    "What the program would save without a cause is not predicted: {count:,} kernels, copies and "
    "memsets are more than {most:,}; record fewer steps."
)
_CLOCKS_DIFFER = (
    "What the program would save without a cause is not predicted: work starts before its call, so "
    "the clocks of hosts and GPUs do not fit."
)


def roots_with_savings(account: Account) -> tuple[tuple[Root, ...], tuple[str, ...]]:
    """Returns the causes of lost time with the seconds saved without each, and notes."""
    found = roots(account)
    if account.collectives is None or not found:
        return found, ()
    count = len(account.activity.work)
    if count > _MAX_WORK:
        return found, (_TOO_LONG.format(count=count, most=_MAX_WORK),)
    if account.clocks_differ:
        return found, (_CLOCKS_DIFFER,)
    savings, tried = Savings(account), found[:_MAX_CAUSES]
    taken = [savings.removal(*root[:3]) for root in tried]
    on_all = [savings.removal(*root[:3], everywhere=True) for root in tried]
    saved = iter(savings.saved_seconds([each for each in (*taken, *on_all) if each is not None]))
    columns = [[None if each is None else next(saved) for each in some] for some in (taken, on_all)]
    replayed = (
        root._replace(saves=alone, saves_on_all=all_)
        for root, alone, all_ in zip(tried, *columns, strict=True)
    )
    return (*replayed, *found[_MAX_CAUSES:]), ()


class Removal(NamedTuple):
    """What a replay changes to remove a cause.

    Attributes:
        delay_ns: of each point, int64 (points,).
        free: points of hosts that wait for nothing any more, int64.
    """

    delay_ns: Int64Array
    free: Int64Array


class Savings:
    """Replays a recorded program without a cause of lost time.

    With nothing changed, a replay has all times of the profile. A cause is taken out where it is
    known how:

    - What the host did takes no time. So does all that is in it, and calls in it wait for nothing,
      if it is an operator, or a function by itself costs most of what is lost in it.
    - Kernels that are longer than those of the other GPUs. If all launched equally many since the
      collective before, the work of each is that of all, divided evenly; else they take as long as
      kernels of that name do on the others, and no time if there are none. Copies, too, and with
      them the time that their calls lasted meanwhile.
    - Bytes of collectives, which move in no time.

    Args:
        account: of the program; of several GPUs that meet.
    """

    def __init__(self, account: Account) -> None:
        self._account = account
        self._graph = graph = EventGraph.of(account)
        self._end_ns = int(graph.ended(graph.at_ns))
        points = np.concatenate([graph.begun, graph.returned])
        call = np.tile(np.arange(len(graph.calls)), 2)
        since_ns = dict(zip(account.gpus, account.since_ns, strict=True))
        since = np.array([min(since_ns[gpu] for gpu in gpus) for gpus in graph.gpus], np.int64)
        end = graph.at_ns[points]
        begin = np.maximum(end - graph.delay_ns[points], since[graph.group[call]])
        times = Intervals(np.minimum(begin, end), end, points)
        thread = account.activity.host["thread"][graph.calls[call]].astype(np.int64)
        spent = account.times.spent(thread, times)
        self._spent = spent._replace(first=points[spent.first])
        self._group = graph.group[call[spent.first]]
        self._inside = account.times.inside
        self._idle_ns_of = {gpu: self._idle_ns(gpu) for gpu in account.gpus}
        rows = np.unique(spent.second[spent.second != UNKNOWN])
        self._rows_by_name = _host_rows_by_name(account, rows)

    def removal(self, gpu: int, cause: str, by: str, *, everywhere: bool = False) -> Removal | None:
        """Returns how to remove a root, ``everywhere`` on the hosts of all GPUs; None: not known
        how."""
        delay_ns = self._graph.delay_ns.copy()
        if cause in _OF_HOST:
            rows = np.array(self._rows_by_name.get(by, []), np.int64)
            if cause == FIRST_USE:
                rows = self._rows_while_loading(gpu, by)
            return self._remove_host_rows(rows, gpu, everywhere=everywhere) if len(rows) else None
        if cause in (TRANSFER, SLOWED) and gpu == ALL:
            self._remove_transfer_time(delay_ns, cause, by)
        elif cause in _OF_WORK and (shorter := dict(self._evened_work(gpu, cause, by))):
            delay_ns[self._graph.end[[*shorter]]] = [*shorter.values()]
            self._shorten_calls(delay_ns, shorter)
        else:
            return None
        return Removal(delay_ns, np.zeros(0, np.int64))

    def saved_seconds(self, removals: Sequence[Removal]) -> list[float]:
        """Returns the seconds by which the program is shorter, for each of some removals."""
        seconds: list[float] = []
        for first in range(0, len(removals), _REPLAYS_AT_ONCE):
            batch = removals[first : first + _REPLAYS_AT_ONCE]
            free: dict[int, BoolArray] = {}
            for number, removal in enumerate(batch):
                for point in removal.free.tolist():
                    free.setdefault(point, np.zeros(len(batch), np.bool_))[number] = True
            delay_ns = np.stack([removal.delay_ns for removal in batch], axis=1)
            saved = self._end_ns - self._graph.ended(self._graph.replayed(delay_ns, free))
            seconds += (np.maximum(saved, 0) / 1e9).tolist()
        return seconds

    def _rows_while_loading(self, gpu: int, by: str) -> Int64Array:
        """Returns the rows of the host that ran while a kernel was loaded and the GPU idle."""
        account = self._account
        is_cause = np.array(
            [c == FIRST_USE and without_context(b) == by for c, b in account.labels], np.bool_
        )
        index = account.gpus.index(gpu)
        parts = account.parts.select(account.parts.first == index)
        parts = parts.select(is_cause[parts.second])
        lost = Intervals(parts.begin, parts.end, np.arange(len(parts.begin)))
        spent = self._spent.select(self._launches_on(gpu)[self._group])
        meets = overlaps(Intervals(spent.begin, spent.end, spent.second), lost)
        known = meets.first[spent.second[meets.first] != UNKNOWN]
        return np.unique(spent.second[known])

    def _remove_host_rows(self, rows: Int64Array, gpu: int, *, everywhere: bool) -> Removal:
        """Returns the removal of what hosts did in some rows, and of the waits of calls in them."""
        graph, spent = self._graph, self._spent
        is_removed = np.zeros(len(self._inside) + 1, np.bool_)  # the last one: no row
        is_removed[rows] = True
        is_within, outer = is_removed.copy(), self._inside
        while (outer != UNKNOWN).any():
            is_within[:-1] |= is_removed[outer]
            outer = np.where(outer == UNKNOWN, UNKNOWN, self._inside[outer])
        lost_ns = self._idle_ns_of[gpu]
        own_ns = int(lost_ns[is_removed[spent.second]].sum())
        is_operator = bool((self._account.activity.host["kind"][rows] == OPERATOR).any())
        if is_operator or 2 * own_ns >= int(lost_ns[is_within[spent.second]].sum()):
            is_removed = is_within
        groups = self._launches_on(gpu) | everywhere
        chosen = groups[self._group] & is_removed[spent.second]
        delay_ns = graph.delay_ns.copy()
        np.subtract.at(delay_ns, spent.first[chosen], (spent.end - spent.begin)[chosen])
        return Removal(delay_ns, graph.returned[groups[graph.group] & is_removed[graph.calls]])

    def _launches_on(self, gpu: int) -> BoolArray:
        """Returns a mask of the sets of threads that launch on a GPU, bool (sets,)."""
        return np.array([gpu in gpus for gpus in self._graph.gpus], np.bool_)

    def _idle_ns(self, gpu: int) -> Int64Array:
        """Returns for how many ns a GPU was idle during each part of its hosts' time, int64."""
        spent = self._spent
        index = self._account.gpus.index(gpu)
        mine = self._launches_on(gpu)[self._group]
        parts = Intervals(spent.begin, spent.end, np.arange(len(mine))).select(mine)
        meets = overlaps(parts, self._account.idle[index].times)
        return summed(parts.owner[meets.first], meets.end - meets.begin, len(mine))

    def _remove_transfer_time(self, delay_ns: Int64Array, cause: str, by: str) -> None:
        """Removes from delays the time in which bytes of collectives move, or move slowly."""
        met = self._account.collectives
        assert met is not None
        kinds = [number for number, kind in enumerate(met.collectives.kinds) if kind.words == by]
        members = np.flatnonzero(np.isin(met.collectives.of, kinds))
        points = self._graph.end[met.collectives.row[members]]
        slow = (met.end - met.slow)[members]
        left = delay_ns[points] - slow if cause == SLOWED else np.zeros(len(members), np.int64)
        delay_ns[points] = np.maximum(left, 0)

    def _evened_work(self, gpu: int, cause: str, by: str) -> Iterator[tuple[int, int]]:
        """Yields rows of work, and their ns if all GPUs had the same work between collectives."""
        work, names = self._account.activity.work, self._account.activity.names
        took = work["end_ns"] - work["start_ns"]

        def named(rows: list[int]) -> list[int]:
            """Returns the rows whose name is that of the cause."""
            return [row for row in rows if names[work["name"][row]] == by]

        for parts in self._work_between_collectives(cause).values():
            rows_of_gpu = parts.get(gpu, [])
            named_rows = named(rows_of_gpu)
            if not named_rows or len(parts) < 2:
                continue
            if cause == "kernel" and len({len(rows) for rows in parts.values()}) == 1:
                for rows in zip(*parts.values(), strict=True):
                    mean = int(took[list(rows)].mean())
                    yield from ((row, mean) for row in rows)
                continue
            others = [int(took[named(rows)].sum()) for g, rows in parts.items() if g != gpu]
            share = min(1.0, sum(others) / len(others) / max(1, int(took[named_rows].sum())))
            yield from ((row, int(share * took[row])) for row in named_rows)

    def _shorten_calls(self, delay_ns: Int64Array, shorter: Mapping[int, int]) -> None:
        """Shortens the delays of calls that lasted as long as the copies that they made.

        Copies from pageable memory are made by the host, within the call. So what the host did
        while the copy ran is shortened as the copy is.
        """
        graph, activity = self._graph, self._account.activity
        work, host = activity.work, activity.host
        place = dict(zip(graph.calls.tolist(), graph.returned.tolist(), strict=True))
        for row, left_ns in shorter.items():
            call = int(work["call"][row])
            if work["kind"][row] != COPY or call not in place:
                continue
            start, end = int(work["start_ns"][row]), int(work["end_ns"][row])
            both = min(end, int(host["end_ns"][call])) - max(start, int(host["begin_ns"][call]))
            if both > 0:
                point = place[call]
                took = both * (1 - left_ns / (end - start))
                delay_ns[point] = max(0, int(delay_ns[point]) - round(took))

    def _work_between_collectives(self, cause: str) -> dict[int, dict[int, list[int]]]:
        """Returns the rows launched since each collective, by collective and GPU, in order of
        launch."""
        account, met = self._account, self._account.collectives
        assert met is not None
        work, host = account.activity.work, account.activity.host
        number = np.full(len(work), UNKNOWN)
        number[met.collectives.row] = met.collectives.of
        is_counted = np.isin(work["kind"], (KERNEL, GRAPH))
        if cause != "kernel":
            is_counted = ~is_counted & (work["kind"] != COLLECTIVE)
        rows_of: dict[int, dict[int, list[int]]] = defaultdict(dict)
        for gpu in account.gpus:
            rows = np.flatnonzero((work["gpu"] == gpu) & (work["call"] != UNKNOWN))
            last = UNKNOWN
            rows_of[last][gpu] = []
            for row in rows[np.lexsort([rows, host["begin_ns"][work["call"][rows]]])].tolist():
                if number[row] != UNKNOWN:
                    last = int(number[row])
                    rows_of[last].setdefault(gpu, [])
                elif is_counted[row]:
                    rows_of[last][gpu].append(row)
        return rows_of


def _host_rows_by_name(account: Account, rows: Int64Array) -> dict[str, list[int]]:
    """Returns rows of the host by the name that the account gives them."""
    activity = account.activity
    names, host, work = activity.names, activity.host, activity.work
    kernel = dict(zip(work["call"].tolist(), work["name"].tolist(), strict=True))
    rows_of: dict[str, list[int]] = defaultdict(list)
    inside = maker(activity, account.times, rows).tolist()
    for row, outer in zip(rows.tolist(), inside, strict=True):
        name = names[host["name"][row]]
        if outer != UNKNOWN:
            name = f"{name} in {names[host['name'][outer]]}"
        elif row in kernel:
            name = f"{name} of {names[kernel[row]]}"
        rows_of[name].append(row)
    return rows_of
