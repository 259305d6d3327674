"""What a program of several GPUs would save without a cause of lost time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tbsched.advice.account.account import Account
from tbsched.advice.account.idle import FIRST_USE, HOST, SYNCHRONIZE, bare, maker
from tbsched.advice.account.intervals import Intervals, overlaps, summed
from tbsched.advice.account.peers import SLOWED, TRANSFER
from tbsched.advice.explain.event_graph import EventGraph
from tbsched.advice.explain.roots import ALL, Root, roots
from tbsched.program.activity import COLLECTIVE, COPY, GRAPH, KERNEL, OPERATOR, UNKNOWN
from tbsched.program.arrays import BoolArray, Int64Array

_OF_HOST = (HOST, FIRST_USE, SYNCHRONIZE)
_OF_WORK = ("kernel", "copy", "migration")
_REPLAYED = 16  # causes, those that cost most
_AT_ONCE = 16  # replays
_MOST = 100_000  # kernels, copies and memsets of a program that is replayed; of more it takes long
_TOO_LONG = (
    "What the program would save without a cause is not predicted: {count:,} kernels, copies and "
    "memsets are more than {most:,}; record fewer steps."
)
_CLOCKS_DIFFER = (
    "What the program would save without a cause is not predicted: work starts before its call, so "
    "the clocks of hosts and GPUs do not fit."
)


def roots_with_savings(account: Account) -> tuple[tuple[Root, ...], tuple[str, ...]]:
    """Returns the causes of lost time with what is saved without each, and what is not told."""
    found = roots(account)
    if account.met is None or not found:
        return found, ()
    count = len(account.activity.work)
    if count > _MOST:
        return found, (_TOO_LONG.format(count=count, most=_MOST),)
    if account.clocks_differ:
        return found, (_CLOCKS_DIFFER,)
    savings, tried = Savings(account), found[:_REPLAYED]
    taken = [savings.taken(*root[:3]) for root in tried]
    on_all = [savings.taken(*root[:3], everywhere=True) for root in tried]
    saved = iter(savings.saved([each for each in (*taken, *on_all) if each is not None]))
    columns = [[None if each is None else next(saved) for each in some] for some in (taken, on_all)]
    replayed = (
        root._replace(saves=alone, saves_on_all=all_)
        for root, alone, all_ in zip(tried, *columns, strict=True)
    )
    return (*replayed, *found[_REPLAYED:]), ()


class Taken(NamedTuple):
    """What is changed where a cause is taken out.

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
        self._ended = int(graph.ended(graph.at_ns))
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
        self._lost_ns = {gpu: self._lost(gpu) for gpu in account.gpus}
        rows = np.unique(spent.second[spent.second != UNKNOWN])
        self._rows_by_name = _rows_by_name(account, rows)

    def taken(self, gpu: int, cause: str, by: str, *, everywhere: bool = False) -> Taken | None:
        """Takes a root out, ``everywhere`` of the hosts of all GPUs; None: it is not known how."""
        delay_ns = self._graph.delay_ns.copy()
        if cause in _OF_HOST:
            rows = np.array(self._rows_by_name.get(by, []), np.int64)
            if cause == FIRST_USE:
                rows = self._loading(gpu, by)
            return self._without_host(rows, gpu, everywhere=everywhere) if len(rows) else None
        if cause in (TRANSFER, SLOWED) and gpu == ALL:
            self._without_bytes(delay_ns, cause, by)
        elif cause in _OF_WORK and (shorter := dict(self._shorter(gpu, cause, by))):
            delay_ns[self._graph.end[[*shorter]]] = [*shorter.values()]
            self._shorten_calls(delay_ns, shorter)
        else:
            return None
        return Taken(delay_ns, np.zeros(0, np.int64))

    def saved(self, taken: Sequence[Taken]) -> list[float]:
        """Returns the seconds that the program takes less, for each of some changes."""
        found: list[float] = []
        for first in range(0, len(taken), _AT_ONCE):
            some = taken[first : first + _AT_ONCE]
            free: dict[int, BoolArray] = {}
            for number, each in enumerate(some):
                for point in each.free.tolist():
                    free.setdefault(point, np.zeros(len(some), np.bool_))[number] = True
            delay_ns = np.stack([each.delay_ns for each in some], axis=1)
            saved = self._ended - self._graph.ended(self._graph.replayed(delay_ns, free))
            found += (np.maximum(saved, 0) / 1e9).tolist()
        return found

    def _loading(self, gpu: int, by: str) -> Int64Array:
        """Returns what the host was in while a kernel was loaded and the GPU idle."""
        account = self._account
        is_it = np.array([c == FIRST_USE and bare(b) == by for c, b in account.labels], np.bool_)
        place = account.gpus.index(gpu)
        parts = account.parts.some(account.parts.first == place)
        parts = parts.some(is_it[parts.second])
        lost = Intervals(parts.begin, parts.end, np.arange(len(parts.begin)))
        spent = self._spent.some(self._of_gpu(gpu)[self._group])
        met = overlaps(Intervals(spent.begin, spent.end, spent.second), lost)
        known = met.first[spent.second[met.first] != UNKNOWN]
        return np.unique(spent.second[known])

    def _without_host(self, rows: Int64Array, gpu: int, *, everywhere: bool) -> Taken:
        """Takes out what hosts did, and the waits of calls in it."""
        graph, spent = self._graph, self._spent
        is_it = np.zeros(len(self._inside) + 1, np.bool_)  # the last one: no row
        is_it[rows] = True
        is_within, outer = is_it.copy(), self._inside
        while (outer != UNKNOWN).any():
            is_within[:-1] |= is_it[outer]
            outer = np.where(outer == UNKNOWN, UNKNOWN, self._inside[outer])
        lost_ns = self._lost_ns[gpu]
        own = int(lost_ns[is_it[spent.second]].sum())
        is_operator = bool((self._account.activity.host["kind"][rows] == OPERATOR).any())
        if is_operator or 2 * own >= int(lost_ns[is_within[spent.second]].sum()):
            is_it = is_within
        mine = self._of_gpu(gpu) | everywhere
        taken = mine[self._group] & is_it[spent.second]
        delay_ns = graph.delay_ns.copy()
        np.subtract.at(delay_ns, spent.first[taken], (spent.end - spent.begin)[taken])
        return Taken(delay_ns, graph.returned[mine[graph.group] & is_it[graph.calls]])

    def _of_gpu(self, gpu: int) -> BoolArray:
        """Returns which sets of threads launch on a GPU, bool (sets,)."""
        return np.array([gpu in gpus for gpus in self._graph.gpus], np.bool_)

    def _lost(self, gpu: int) -> Int64Array:
        """Returns how long a GPU was idle during each part of the time of its hosts, int64 ns."""
        spent = self._spent
        place = self._account.gpus.index(gpu)
        mine = self._of_gpu(gpu)[self._group]
        parts = Intervals(spent.begin, spent.end, np.arange(len(mine))).some(mine)
        met = overlaps(parts, self._account.idle[place].times)
        return summed(parts.of[met.first], met.end - met.begin, len(mine))

    def _without_bytes(self, delay_ns: Int64Array, cause: str, by: str) -> None:
        """Takes the time in which bytes move, or that in which they move slowly, out of delays."""
        met = self._account.met
        assert met is not None
        kinds = [number for number, kind in enumerate(met.found.kinds) if kind.words == by]
        members = np.flatnonzero(np.isin(met.found.of, kinds))
        points = self._graph.end[met.found.row[members]]
        slow = (met.end - met.slow)[members]
        left = delay_ns[points] - slow if cause == SLOWED else np.zeros(len(members), np.int64)
        delay_ns[points] = np.maximum(left, 0)

    def _shorter(self, gpu: int, cause: str, by: str) -> Iterator[tuple[int, int]]:
        """Yields rows of work, and how long they take without what is uneven, in ns."""
        work, names = self._account.activity.work, self._account.activity.names
        took = work["end_ns"] - work["start_ns"]

        def named(rows: list[int]) -> list[int]:
            return [row for row in rows if names[work["name"][row]] == by]

        for parts in self._between(cause).values():
            mine = parts.get(gpu, [])
            own = named(mine)
            if not own or len(parts) < 2:
                continue
            if cause == "kernel" and len({len(rows) for rows in parts.values()}) == 1:
                for rows in zip(*parts.values(), strict=True):
                    mean = int(took[list(rows)].mean())
                    yield from ((row, mean) for row in rows)
                continue
            others = [int(took[named(rows)].sum()) for g, rows in parts.items() if g != gpu]
            share = min(1.0, sum(others) / len(others) / max(1, int(took[own].sum())))
            yield from ((row, int(share * took[row])) for row in own)

    def _shorten_calls(self, delay_ns: Int64Array, shorter: Mapping[int, int]) -> None:
        """Shortens calls that lasted as long as the copies that they made.

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

    def _between(self, cause: str) -> dict[int, dict[int, list[int]]]:
        """Returns by the last collective that was launched, and by GPU, what was launched since.

        In the order of launches; what comes before the first collective is together, too.
        """
        account, met = self._account, self._account.met
        assert met is not None
        work, host = account.activity.work, account.activity.host
        number = np.full(len(work), UNKNOWN)
        number[met.found.row] = met.found.of
        is_it = np.isin(work["kind"], (KERNEL, GRAPH))
        if cause != "kernel":
            is_it = ~is_it & (work["kind"] != COLLECTIVE)
        found: dict[int, dict[int, list[int]]] = defaultdict(dict)
        for gpu in account.gpus:
            rows = np.flatnonzero((work["gpu"] == gpu) & (work["call"] != UNKNOWN))
            last = UNKNOWN
            found[last][gpu] = []
            for row in rows[np.lexsort([rows, host["begin_ns"][work["call"][rows]]])].tolist():
                if number[row] != UNKNOWN:
                    last = int(number[row])
                    found[last].setdefault(gpu, [])
                elif is_it[row]:
                    found[last][gpu].append(row)
        return found


def _rows_by_name(account: Account, rows: Int64Array) -> dict[str, list[int]]:
    """Returns rows of the host by what the account calls them, without where they were."""
    activity = account.activity
    names, host, work = activity.names, activity.host, activity.work
    kernel = dict(zip(work["call"].tolist(), work["name"].tolist(), strict=True))
    found: dict[str, list[int]] = defaultdict(list)
    inside = maker(activity, account.times, rows).tolist()
    for row, outer in zip(rows.tolist(), inside, strict=True):
        name = names[host["name"][row]]
        if outer != UNKNOWN:
            name = f"{name} in {names[host['name'][outer]]}"
        elif row in kernel:
            name = f"{name} of {names[kernel[row]]}"
        found[name].append(row)
    return found
