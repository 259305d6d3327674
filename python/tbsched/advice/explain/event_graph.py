"""A recorded program as a graph of points in time, which can be replayed with other delays."""

from __future__ import annotations

import functools
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tbsched.advice.account.account import Account
from tbsched.advice.account.idle import blocking_copies, matching
from tbsched.program.activity import COLLECTIVE, UNKNOWN, Activity
from tbsched.program.arrays import BoolArray, Int64Array
from tbsched.program.collectives import SYNCHRONIZING

_RECORDS = re.compile(r"cu(da)?EventRecord")
_STREAM_WAITS = re.compile(r"cu(da)?StreamWaitEvent")
_STREAM_SYNC = re.compile(r"cu(da)?StreamSynchronize")
_EVENT_SYNC = re.compile(r"cu(da)?EventSynchronize")
# Calls that wait for all work of a GPU.
_DEVICE_SYNC = re.compile(
    r"cuda(Device|Thread)Synchronize|cuCtxSynchronize|cudaFree$|cudaFreeHost$|cudaHostUnregister$|"
    r"cuMemFree$"
)
# Work that starts later than this after all that is known to hold it up has waited for something
# else. That ended so long before at most.
_STARTS_NS, _WAKES_NS = 4_000, 6_000
_NEVER = -(2**62)
_MAX_CANDIDATES = 64  # works of a stream among which the awaited one is, the last ones issued


@dataclass(frozen=True, slots=True)
class EventGraph:
    """Points in time of a recorded program: begins and ends of calls, starts and ends of work.

    A point comes its delay after the last of the points that it waits for. With the delays as
    recorded all points are when they were. A point that waits for none stays where it was.

    Attributes:
        at_ns: when each point was, ascending, int64 (points,).
        delay_ns: of each point, int64 (points,).
        awaited: of each point those that it waits for, all before it, and how long after each it
            comes at the soonest, in ns. The first one of a host's point is the host itself.
        start, end: of each row of ``activity.work`` its points, int64.
        calls: rows of ``activity.host`` that launched work or waited for it, by time, int64
            (calls,).
        begun, returned: of each call its points, int64 (calls,).
        group: of each call the number of its set of threads: those that launch on one GPU.
        gpus: of each such set the GPUs on which it launches.
    """

    at_ns: Int64Array
    delay_ns: Int64Array
    awaited: tuple[tuple[tuple[int, int], ...], ...]
    start: Int64Array
    end: Int64Array
    calls: Int64Array
    begun: Int64Array
    returned: Int64Array
    group: Int64Array
    gpus: tuple[frozenset[int], ...]

    @classmethod
    def of(cls, account: Account) -> EventGraph:
        """Returns the graph of the calls and work that an account is of."""
        return _GraphBuilder(account).build()

    def replayed(self, delay_ns: Int64Array, free: Mapping[int, BoolArray]) -> Int64Array:
        """Returns when each point comes with other delays, int64 ns (points, replays).

        Args:
            delay_ns: of each point in each replay, int64 (points, replays).
            free: points of hosts that wait for nothing but the host itself, and in which replays,
                bool (replays,).
        """
        times = np.empty_like(delay_ns)
        for point, awaited in enumerate(self.awaited):
            if not awaited:
                times[point] = delay_ns[point]
                continue
            (before, ahead), *others = awaited
            host_ready = times[before] + ahead
            ready = host_ready
            for before, ahead in others:
                ready = np.maximum(ready, times[before] + ahead)
            if point in free:
                ready = np.where(free[point], host_ready, ready)
            np.add(ready, delay_ns[point], out=times[point])
        return times

    def ended(self, times: Int64Array) -> Int64Array:
        """Returns when the last work ends, given the times of points, int64 ns (replays,)."""
        ends: Int64Array = times[self.end].max(axis=0)
        return ends


class _GraphBuilder:
    """Builds the graph: finds what each point waited for."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._activity = activity = account.activity
        host, work = activity.host, activity.work
        group_of, self._gpus = _groups(activity)
        syncs = np.zeros(len(host), np.bool_)
        for pattern in (_STREAM_SYNC, _EVENT_SYNC, _DEVICE_SYNC):
            syncs |= matching(activity, pattern)
        syncs &= (group_of[host["thread"]] != UNKNOWN) & account.times.is_outermost
        launching = np.unique(work["call"][work["call"] != UNKNOWN])
        calls = np.union1d(launching, np.flatnonzero(syncs))
        self._calls = calls[np.argsort(host["begin_ns"][calls], kind="stable")]
        self._group = group_of[host["thread"][self._calls]]
        self._call_index = {row: place for place, row in enumerate(self._calls.tolist())}
        self._order_points()
        self._awaited: list[list[tuple[int, int]]] = [[] for _ in self._times]

    def _order_points(self) -> None:
        """Orders all points by time; at one time what ends comes before what begins."""
        work, host, met = self._activity.work, self._activity.host, self._account.collectives
        begin, end = host["begin_ns"][self._calls], host["end_ns"][self._calls]
        together = np.zeros(0, np.int64)
        if met is not None:
            together = np.maximum.reduceat(met.begin, met.collectives.edges[:-1])
        columns = work["end_ns"], end, begin, work["start_ns"], together
        is_short = work["end_ns"] == work["start_ns"], end == begin
        rank = [np.where(each, 3, 0) for each in is_short]
        rank += [np.full(len(column), 1) for column in columns[2:4]] + [np.full(len(together), 2)]
        times = np.concatenate(columns).astype(np.int64)
        order = np.lexsort([np.arange(len(times)), np.concatenate(rank), times])
        point = np.empty(len(times), np.int64)
        point[order] = np.arange(len(times))
        cuts = np.cumsum([len(column) for column in columns])[:-1]
        self._end, self._returned, self._begun, self._start, self._together = np.split(point, cuts)
        self._at_ns = times[order]
        self._times = self._at_ns.tolist()

    def build(self) -> EventGraph:
        """Returns the graph."""
        self._add_host_edges()
        self._add_stream_edges()
        self._add_launch_edges()
        self._add_event_edges()
        self._add_late_edges()
        self._add_synchronisation_edges()
        self._add_collective_edges()
        since = [
            max((self._times[before] + ahead for before, ahead in own), default=0)
            for own in self._awaited
        ]
        delay = self._at_ns - np.array(since, np.int64)
        return EventGraph(
            self._at_ns, delay, tuple(map(tuple, self._awaited)), self._start, self._end,
            self._calls, self._begun, self._returned, self._group, self._gpus,
        )  # fmt: skip

    def _add_edge(self, point: int, cause: int, ahead: int = 0) -> None:
        """Makes a point wait until ``ahead`` ns after another, if the recorded times allow it."""
        if cause < point and self._times[cause] + ahead <= self._times[point]:
            self._awaited[point].append((cause, ahead))

    def _known_ready_ns(self, point: int) -> int:
        """Returns when all that a point is known to wait for was done, in ns."""
        return max(
            (self._times[before] + ahead for before, ahead in self._awaited[point]), default=_NEVER
        )

    def _add_host_edges(self) -> None:
        """Adds edges: a call follows its threads' last one, and ends after what it contains.

        Threads that launch on one GPU hand over to each other, as the forward pass and the
        backward pass of PyTorch do.
        """
        thread = self._activity.host["thread"][self._calls].tolist()
        group = self._group.tolist()
        points = np.concatenate([self._begun, self._returned])
        count = len(self._calls)
        of_group: dict[int, int] = {}
        of_thread: dict[int, int] = {}
        for place in np.argsort(points, kind="stable").tolist():
            call, point = place % count, int(points[place])
            before = of_group.get(group[call]) if place < count else of_thread.get(thread[call])
            if before is not None:
                self._add_edge(point, before)
            of_group[group[call]] = of_thread[thread[call]] = point

    def _add_stream_edges(self) -> None:
        """Adds edges: work follows the work before it in its stream."""
        work = self._activity.work
        last: dict[tuple[int, int], int] = {}
        columns = [work[name].tolist() for name in ("gpu", "stream")]
        for row in np.argsort(self._start, kind="stable").tolist():
            key = columns[0][row], columns[1][row]
            before = last.get(key)
            point = int(self._start[row])
            if before is not None:
                has_ended = self._end[before] < point
                self._add_edge(point, int((self._end if has_ended else self._start)[before]))
            last[key] = row
            if self._activity.work["kind"][row] != COLLECTIVE:
                self._add_edge(int(self._end[row]), point)

    def _add_launch_edges(self) -> None:
        """Adds edges: work starts no sooner after its call than on an idle GPU."""
        work, host = self._activity.work, self._activity.host
        for gpu, idle in zip(self._account.gpus, self._account.idle, strict=True):
            rows = np.flatnonzero((work["gpu"] == gpu) & (work["call"] != UNKNOWN))
            if not len(rows):
                continue
            took = work["start_ns"] - host["begin_ns"][work["call"]]
            first = idle.next[idle.next != UNKNOWN]
            called = host["begin_ns"][work["call"][first]]
            alone = first[
                (work["call"][first] != UNKNOWN) & (took[first] >= 0)
                & (called >= idle.times.begin[idle.next != UNKNOWN])
            ]  # fmt: skip
            usual = int(np.median(took[alone])) if len(alone) else 0
            for row in rows.tolist():
                call = self._call_index[int(work["call"][row])]
                ahead = min(usual, max(int(took[row]), 0))
                self._add_edge(int(self._start[row]), int(self._begun[call]), ahead)

    @functools.cached_property
    def _issued_by_stream(self) -> dict[tuple[int, int], tuple[list[int], list[int]]]:
        """Call times in ns, and the rows of work that they launched, by GPU and stream."""
        work = self._activity.work
        rows = np.flatnonzero(work["call"] != UNKNOWN)
        begin = self._activity.host["begin_ns"][work["call"][rows]]
        issued: dict[tuple[int, int], tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
        for place in np.lexsort([rows, begin]).tolist():
            row = int(rows[place])
            times, own = issued[int(work["gpu"][row]), int(work["stream"][row])]
            times.append(int(begin[place]))
            own.append(row)
        return issued

    def _last_ended(
        self, issued: tuple[list[int], list[int]], before_ns: int, ended_ns: int
    ) -> int:
        """Returns the last row issued before a time that had ended by another; or ``UNKNOWN``."""
        times, rows = issued
        place = bisect_right(times, before_ns) - 1
        for row in reversed(rows[max(0, place + 1 - _MAX_CANDIDATES) : place + 1]):
            if self._activity.work["end_ns"][row] <= ended_ns:
                return row
        return UNKNOWN

    def _add_event_edges(self) -> None:
        """Adds edges: streams wait for events of other streams, which PyTorch does not name.

        A stream that is not the main one forks from it. The main one joins others: those whose work
        issued by then ended last, as many as calls make it wait. A call makes the next launch of
        its thread wait. Unless the event before it was recorded in the main stream, it may also be
        for the next launch into that.
        """
        activity = self._activity
        work, host, main = activity.work, activity.host, _main_streams(activity)
        launched = self._work_of_call
        records, waits = matching(activity, _RECORDS), matching(activity, _STREAM_WAITS)
        rows = np.union1d(np.flatnonzero(records | waits), self._calls)
        for thread in np.unique(host["thread"][rows]).tolist():
            own = rows[host["thread"][rows] == thread]
            made = joins = pending = 0  # calls since the last launch; joins of them, and before it
            in_main, forks = True, False
            for call in own[np.argsort(host["begin_ns"][own], kind="stable")].tolist():
                if waits[call]:
                    made += 1
                    joins += not forks
                for row in launched.get(call, ()):
                    in_main = main.get(int(work["gpu"][row])) == work["stream"][row]
                    self._join_streams(row, call, made + pending if in_main else min(made, 1), main)
                    pending = 0 if in_main else pending + joins
                    made = joins = 0
                forks = bool(records[call]) and in_main

    def _join_streams(self, row: int, call: int, count: int, main: Mapping[int, int]) -> None:
        """Makes work wait for the last work of other streams of its GPU, of ``count`` of them."""
        work, begin_ns = self._activity.work, int(self._activity.host["begin_ns"][call])
        gpu, stream = int(work["gpu"][row]), int(work["stream"][row])
        candidates = [
            last
            for (other, stream_), own in (self._issued_by_stream.items() if count else ())
            if other == gpu and stream_ != stream and main.get(gpu) in (stream, stream_)
            if (last := self._last_ended(own, begin_ns, int(work["start_ns"][row]))) != UNKNOWN
        ]
        for last in sorted(candidates, key=lambda each: -int(self._end[each]))[:count]:
            self._add_edge(int(self._start[row]), int(self._end[last]))

    @functools.cached_property
    def _work_of_call(self) -> dict[int, list[int]]:
        """Rows of work that each row of the host launched."""
        rows_of: dict[int, list[int]] = defaultdict(list)
        for row, call in enumerate(self._activity.work["call"].tolist()):
            if call != UNKNOWN:
                rows_of[call].append(row)
        return rows_of

    def _add_late_edges(self) -> None:
        """Adds edges: work that starts late waits for other work of its GPU. It follows the end of
        what ended just before; else the start of what ran."""
        work = self._activity.work
        for gpu in self._account.gpus:
            rows = np.flatnonzero(work["gpu"] == gpu)
            by_start = rows[np.argsort(self._start[rows], kind="stable")]
            ends, starts = np.sort(self._end[rows]), self._start[by_start]
            for index, point in enumerate(starts.tolist()):
                known_ns = self._known_ready_ns(point)
                if known_ns == _NEVER or known_ns >= self._times[point] - _STARTS_NS:
                    continue
                last = int(np.searchsorted(ends, point)) - 1
                if last >= 0 and self._times[point] - self._times[int(ends[last])] <= _WAKES_NS:
                    self._add_edge(point, int(ends[last]))
                elif index and self._end[by_start[index - 1]] > point:
                    self._add_edge(point, int(starts[index - 1]))

    def _add_synchronisation_edges(self) -> None:
        """Adds edges: calls end after the work that they wait for."""
        activity = self._activity
        host, work = activity.host, activity.work
        issued = self._issued_by_stream
        kinds = {
            kind: matching(activity, pattern)
            for kind, pattern in
            (("device", _DEVICE_SYNC), ("stream", _STREAM_SYNC), ("event", _EVENT_SYNC))
        }  # fmt: skip
        copies = blocking_copies(activity)
        launched = self._work_of_call
        last_of: dict[int, tuple[int, int]] = {}
        for place, call in enumerate(self._calls.tolist()):
            begin, end = int(host["begin_ns"][call]), int(host["end_ns"][call])
            point, thread = int(self._returned[place]), int(host["thread"][call])
            if call in launched:
                row = launched[call][-1]
                last_of[thread] = int(work["gpu"][row]), int(work["stream"][row])
                if copies[call]:
                    for row in launched[call]:
                        self._add_edge(point, int(self._end[row]))
                continue
            gpus = self._gpus[int(self._group[place])]
            ended = [
                each for key, own in issued.items() if key[0] in gpus
                if (each := self._last_ended(own, begin, end)) != UNKNOWN
            ]  # fmt: skip
            if kinds["stream"][call] and thread in last_of:
                times, rows = issued[last_of[thread]]
                last = bisect_right(times, begin) - 1
                if last >= 0 and work["end_ns"][rows[last]] <= end:
                    ended = [rows[last]]
            if not kinds["device"][call] and len(ended) > 1:
                ended = [row for row in ended if work["end_ns"][row] > begin]
                ended = [max(ended, key=lambda row: int(self._end[row]))] if ended else []
            for row in ended:
                self._add_edge(point, int(self._end[row]))

    def _add_collective_edges(self) -> None:
        """Adds edges: bytes of collectives move once all ranks have started."""
        met, work = self._account.collectives, self._activity.work
        if met is not None:
            edges = met.collectives.edges.tolist()
            for number, kind in enumerate(met.collectives.kinds):
                all_there = int(self._together[number])
                for member in range(edges[number], edges[number + 1]):
                    row = int(met.collectives.row[member])
                    self._add_edge(all_there, int(self._start[row]))
                    self._add_edge(int(self._end[row]), int(self._start[row]))
                    if kind.op in SYNCHRONIZING or self._end[row] > all_there:
                        self._add_edge(int(self._end[row]), all_there)
        for row in np.flatnonzero(work["kind"] == COLLECTIVE).tolist():
            if not self._awaited[int(self._end[row])]:
                self._add_edge(int(self._end[row]), int(self._start[row]))


def _groups(activity: Activity) -> tuple[Int64Array, tuple[frozenset[int], ...]]:
    """Returns each thread's set, or ``UNKNOWN``, and each set's GPUs; a set shares a GPU."""
    work, host = activity.work, activity.host
    rows = np.flatnonzero(work["call"] != UNKNOWN)
    pairs = np.stack([host["thread"][work["call"][rows]].astype(np.int64), work["gpu"][rows]])
    sets: list[tuple[set[int], set[int]]] = []
    for thread, gpu in np.unique(pairs, axis=1).T.tolist():
        process = activity.processes[thread]
        joined = [
            set_ for set_ in sets
            if thread in set_[0]
            or (gpu in set_[1] and process == activity.processes[min(set_[0])])
        ]  # fmt: skip
        sets = [set_ for set_ in sets if set_ not in joined]
        threads, gpus = zip(({thread}, {gpu}), *joined, strict=True)
        sets.append((set().union(*threads), set().union(*gpus)))
    set_of = np.full(len(activity.processes), UNKNOWN, np.int64)
    for number, (threads, _) in enumerate(sets):
        set_of[sorted(threads)] = number
    return set_of, tuple(frozenset(gpus) for _, gpus in sets)


def _main_streams(activity: Activity) -> dict[int, int]:
    """Returns the stream of each GPU with the most work other than collectives."""
    work = activity.work
    main: dict[int, int] = {}
    work_ = work[work["kind"] != COLLECTIVE]
    for gpu in np.unique(work_["gpu"]).tolist():
        streams, count = np.unique(work_["stream"][work_["gpu"] == gpu], return_counts=True)
        main[gpu] = int(streams[count.argmax()])
    return main
