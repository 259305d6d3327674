"""Why nothing ran on a GPU: who was late with the work that ended each such time."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from tbsched.advice.account.host_time import HostTime
from tbsched.advice.account.intervals import (
    NO_OVERLAPS,
    Intervals,
    Overlaps,
    concatenated,
    first_come,
    gaps,
    joined,
    summed,
    within,
)
from tbsched.advice.account.labels import Labels
from tbsched.program.activity import (
    ANNOTATION,
    CALL,
    COPY,
    FUNCTION,
    MIGRATION,
    UNKNOWN,
    Activity,
)
from tbsched.program.arrays import BoolArray, Int64Array

# Between what the host did and the annotation that it did it in, and the wait before it.
WITHIN, AFTER = ", within ", ", after "
NOTHING = "nothing recorded"  # begins what the host did, where the profile does not say
# Causes of the host, and those beyond the words of Trace.waits.
HOST, SYNCHRONIZE, FIRST_USE = "host", "synchronize", "first_use"
HOST_FUNCTION = "host_function"  # of cudaLaunchHostFunc, in the order of a stream
UNRECORDED, UNEXPLAINED, NO_WORK = "unrecorded", "unexplained", "no_work"
# On an idle GPU a kernel starts 1.1 to 2.7 us after its call returned, 65 us after it was idle for
# 60 ms (H100, torch.profiler), and what waits for other work up to 6 us after that has ended; a
# graph of many nodes, or a GPU with a slow host, takes longer. What takes longer than this has
# another reason, which the file does not say.
_ON_ITS_WAY_NS = 100_000
_NEXT_NS = 10_000  # work of an unknown call, so soon after that before it, had been called before
_AHEAD_NS = 1_000  # tolerated difference of the clocks of host and GPU
_DISAGREE = 0.02  # share of work that starts before its call, from which clocks are wrong
_WAITS = re.compile(r"(cuda|cu)(Stream|Event|Device|Ctx|Thread)Synchronize")
_LOADS = re.compile(
    r"cuModule(Load|GetFunction)|cu(da)?Library(Load|GetKernel)|cuKernelGetFunction|"
    r"cudaFuncGetAttributes|cuLink"
)
_BUILT_IN = "<built-in "
_LAUNCHES = re.compile(r"cu(da)?(LaunchKernel|LaunchCooperative|Launch\b)")
_EVENT_WAITS = re.compile(r"cu(da)?StreamWaitEvent")
_VALUE_WAITS = re.compile(r"cuStreamWaitValue")
_LOADING_NS = 100_000  # a first launch call that takes longer, on an idle GPU, loads its kernel


class Idle(NamedTuple):
    """Times in which nothing ran on a GPU.

    Attributes:
        times: disjoint and sorted.
        next: of each the row of ``activity.work`` that ended it; ``UNKNOWN``: nothing came.
        before: of each the row that ended last before it; ``UNKNOWN``: none did.
        parts: of the times, with their causes: ``first`` is a place among them, ``second`` the
            number of a label. By place, then by time.
    """

    times: Intervals
    next: Int64Array
    before: Int64Array
    parts: Overlaps


def _calls_around(activity: Activity, rows: Int64Array, since_ns: Int64Array) -> Int64Array:
    """Returns calls of the threads that an idle GPU waits for while pages of memory migrate.

    No call launches a migration: the host touches a page, on its way to the next launch. After the
    last launch it is on no way, but it was the host all the same.

    Args:
        activity: of the profile.
        rows: migrations that ended the times in which the GPU was idle.
        since_ns: when these began.

    Returns:
        Of each the call of the next launch, if it returns later than that; of the last one, if none
        follows; else ``UNKNOWN``: what was launched already waits for something else.
    """
    work, host = activity.work, activity.host
    found = np.full(len(rows), UNKNOWN)
    for gpu in np.unique(work["gpu"][rows]).tolist():
        launched = np.flatnonzero((work["gpu"] == gpu) & (work["call"] != UNKNOWN))
        if not len(launched):
            continue
        launched = launched[np.argsort(work["start_ns"][launched], kind="stable")]
        mine = work["gpu"][rows] == gpu
        place = np.searchsorted(work["start_ns"][launched], work["start_ns"][rows[mine]])
        call = work["call"][launched[np.minimum(place, len(launched) - 1)]]
        is_host = (place == len(launched)) | (host["end_ns"][call] > since_ns[mine])
        found[mine] = np.where(is_host, call, UNKNOWN)
    return found


def bare(by: str) -> str:
    """What the host did, without the wait before it and the annotation that it was in."""
    return by.partition(AFTER)[0].partition(WITHIN)[0]


def idle_parts(
    activity: Activity,
    rows: Int64Array,
    nothing: Intervals,
    others: list[Intervals],
    times: HostTime,
    labels: Labels,
) -> Idle:
    """Returns why a GPU was idle.

    Args:
        activity, rows: of the profile, and the work of the GPU in it.
        nothing: when none of it ran.
        others: when work ran on other GPUs.
        times, labels: what host threads did, and numbers of causes.
    """
    order, next_ = ended_by(activity, rows, nothing)
    late = Late(
        activity, times, labels, nothing, next_, clocks_differ=clocks_disagree(activity, rows)
    )
    before = _ended_before(activity, order, nothing)
    ended = np.flatnonzero(next_ == UNKNOWN)
    nothing_more = labels.number(NO_WORK, "nothing more ran") if len(ended) else 0
    after_last = Overlaps(
        nothing.begin[ended], nothing.end[ended], ended, np.full(len(ended), nothing_more)
    )
    found = concatenated([late.of_host(others), late.on_gpu(before), after_last])
    found = found.some(np.lexsort([found.begin, found.first]))
    return Idle(nothing, next_, before, found)


def ended_by(
    activity: Activity, rows: Int64Array, nothing: Intervals
) -> tuple[Int64Array, Int64Array]:
    """Returns, for each interval, the row that started at its end; ``UNKNOWN`` without one."""
    start = activity.work["start_ns"]
    order = rows[np.lexsort([rows, start[rows]])]
    place = np.searchsorted(start[order], nothing.end, side="left")
    next_ = order[np.minimum(place, len(order) - 1)]
    return order, np.where(start[next_] == nothing.end, next_, UNKNOWN)


def _ended_before(activity: Activity, order: Int64Array, nothing: Intervals) -> Int64Array:
    """Returns the work that ended last before each interval; ``UNKNOWN``: none did."""
    ends = activity.work["end_ns"]
    by_end = order[np.argsort(ends[order], kind="stable")]
    last = np.searchsorted(ends[by_end], nothing.begin, side="right") - 1
    return np.where(last < 0, UNKNOWN, by_end[np.maximum(last, 0)])


class Late:
    """Lateness of the host with work that ended intervals in which it could have run.

    Args:
        activity, times, labels: of the profile, what host threads did, and numbers of causes.
        intervals: any.
        next_: of each the row of ``activity.work`` that ended it, or ``UNKNOWN``.
        clocks_differ: whether the clocks of the host and the GPU do not fit.
    """

    def __init__(
        self, activity: Activity, times: HostTime, labels: Labels, intervals: Intervals,
        next_: Int64Array, *, clocks_differ: bool,
    ) -> None:  # fmt: skip
        self._activity = activity
        self._times = times
        self._labels = labels
        self._intervals = intervals
        self._next = next_
        self._clocks_differ = clocks_differ
        self._call = np.where(next_ == UNKNOWN, UNKNOWN, activity.work["call"][next_])
        is_migration = (next_ != UNKNOWN) & (self._call == UNKNOWN)
        is_migration &= activity.work["kind"][next_] == MIGRATION
        own = self._call.copy()
        own[is_migration] = _calls_around(
            activity, next_[is_migration], intervals.begin[is_migration]
        )
        self.is_known = own != UNKNOWN
        self._called, self._returned = intervals.begin, intervals.begin
        self._thread = np.full(len(next_), UNKNOWN)
        if len(activity.host):
            called = activity.host[own]
            begin = np.where(is_migration, intervals.end, called["begin_ns"])
            end = np.where(is_migration, intervals.end, called["end_ns"])
            self._called = np.where(self.is_known, begin, self._called)
            self._returned = np.where(self.is_known, end, self._returned)
            self._thread = np.where(self.is_known, called["thread"].astype(np.int64), UNKNOWN)
        self.is_late = self.is_known & (self._returned > intervals.begin) & (not clocks_differ)
        self.until = np.where(
            self.is_late, np.minimum(self._returned, intervals.end), intervals.begin
        )

    def of_host(self, others: list[Intervals]) -> Overlaps:
        """Returns what the host did until it had launched the work; last is the launch call.

        ``others``: when work ran on other GPUs.
        """
        place = np.flatnonzero(self.is_late & (self.until > self._intervals.begin))
        if not len(place):
            return NO_OVERLAPS
        activity, host, times = self._activity, self._activity.host, self._times
        begin, end, count = self._intervals.begin[place], self.until[place], len(place)
        waited = self._waited(place)
        cut = np.where(waited == UNKNOWN, end, np.clip(host["end_ns"][waited], begin, end))
        halves = Intervals(np.append(begin, cut), np.append(cut, end), np.tile(place, 2))
        spent = times.spent(np.tile(self._thread[place], 2), halves)
        row, of = spent.second, halves.of[spent.first]
        after = np.where(spent.first >= count, waited[spent.first % count], UNKNOWN)
        loads = self._loads(row, of)
        inside = maker(activity, times, row)
        is_own = (row != UNKNOWN) & (row == self._call[of]) & (inside == UNKNOWN)
        needs_kernel = loads | (row == UNKNOWN) | is_own
        label = self._labels.of_keys(
            self._host_words,
            _named(activity, row),
            _named(activity, inside),
            _named(activity, _scope(activity, times, row)),
            _named(activity, after),
            _named(activity, maker(activity, times, after)),
            np.where(needs_kernel, activity.work["name"][self._next[of]], UNKNOWN),
            loads.astype(np.int64),
        )
        self._labels.of_host(label, _named(activity, row))
        found = Overlaps(spent.begin, spent.end, of, label)
        waits = (row != UNKNOWN) & matching(activity, _WAITS)[row]
        if not waits.any() or not others:
            return found
        return concatenated([found.some(~waits), self._waiting(found.some(waits), others)])

    def _host_words(
        self, row: int, inside: int, scope: int, after: int, after_in: int, kernel: int, loads: int
    ) -> tuple[str, str]:
        """Returns the cause and the words for what the host did before a kernel was launched."""
        names = self._activity.names

        def named(name: int, place: int) -> str:
            return names[name] if place == UNKNOWN else f"{names[name]} in {names[place]}"

        if loads:
            what = names[kernel]
            return FIRST_USE, what if row == UNKNOWN else f"{what} ({names[row]})"
        what = f"{NOTHING} before {names[kernel]}" if row == UNKNOWN else named(row, inside)
        if row != UNKNOWN and kernel != UNKNOWN:
            what = f"{what} of {names[kernel]}"
        what = what if scope == UNKNOWN else f"{what}{WITHIN}{names[scope]}"
        return HOST, what if after == UNKNOWN else f"{what}{AFTER}{named(after, after_in)}"

    def _waiting(self, parts: Overlaps, others: list[Intervals]) -> Overlaps:
        """Returns calls that wait, which wait for another GPU while that runs."""
        running = joined(concatenated(others))
        begin, end = int(parts.begin.min()), int(parts.end.max())
        some = Intervals(parts.begin, parts.end, np.arange(len(parts.begin)))
        found = []
        for times in (running, gaps(running, begin, end)):
            own = within(some, times)
            label = parts.second[own.of]
            if times is running:
                label = self._labels.of_keys(
                    lambda number: (SYNCHRONIZE, f"{self._labels[number][1]}, for another GPU"),
                    label,
                )
            found.append(Overlaps(own.begin, own.end, parts.first[own.of], label))
        return concatenated(found)

    def _waited(self, place: Int64Array) -> Int64Array:
        """Returns the last call of the thread that waited and ended while idle, or ``UNKNOWN``."""
        host = self._activity.host
        rows = np.flatnonzero(matching(self._activity, _WAITS) | blocking_copies(self._activity))
        found = np.full(len(place), UNKNOWN)
        for thread in np.unique(self._thread[place]).tolist():
            own = rows[host["thread"][rows] == thread]
            if not len(own):
                continue
            # The outermost of nested calls that return at the same time is sorted last.
            own = own[np.lexsort([-own, -host["begin_ns"][own], host["end_ns"][own]])]
            mine = self._thread[place] == thread
            last = np.searchsorted(host["end_ns"][own], self._called[place[mine]], side="right") - 1
            row = own[np.maximum(last, 0)]
            is_in = (last >= 0) & (host["end_ns"][row] > self._intervals.begin[place[mine]])
            found[mine] = np.where(is_in, row, UNKNOWN)
        return found

    def _loads(self, row: Int64Array, of: Int64Array) -> BoolArray:
        """Returns in which parts a kernel was loaded: a call that loads, or a long first launch."""
        activity, host, work = self._activity, self._activity.host, self._activity.work
        loading = matching(activity, _LOADS)
        launching = np.flatnonzero(matching(activity, _LAUNCHES))
        length = host["end_ns"] - host["begin_ns"]
        first = np.full(len(activity.names), np.iinfo(np.int64).max)
        np.minimum.at(first, work["name"], work["start_ns"])
        next_ = self._next[of]
        is_first = work["start_ns"][next_] == first[work["name"][next_]]
        is_long = length[row] > _LOADING_NS
        own_call = (row == self._call[of]) & np.isin(row, launching)
        call = self._call[of]
        is_said = (call != UNKNOWN) & host["loads"][call] & ((row == UNKNOWN) | (row == call))
        seems = loading[row] | (own_call & is_first & is_long)
        found: BoolArray = is_said | ((row != UNKNOWN) & seems)
        return found

    def on_gpu(self, before: Int64Array) -> Overlaps:
        """Returns why launched work waited since its call returned; or always, if that is unknown.

        Args:
            before: of each interval the row of ``activity.work`` that ended last before it.
        """
        place = np.flatnonzero((self._next != UNKNOWN) & (self.until < self._intervals.end))
        if not len(place):
            return NO_OVERLAPS
        functions, rest = self._with_functions(
            Intervals(self.until[place], self._intervals.end[place], place)
        )
        cause = self._causes(place, before[place])
        own = np.searchsorted(place, rest.of)
        left_ns = summed(own, rest.end - rest.begin, len(place))
        is_long = (left_ns > _ON_ITS_WAY_NS) & (cause != _WORDS.index(UNRECORDED))
        # Only a wait for a value is known to take any time.
        is_awaited = self._waits_in_stream(self._next[place], _VALUE_WAITS)
        long = np.where(is_awaited, _WORDS.index("value"), _WORDS.index(UNEXPLAINED))
        cause = np.where(is_long, long, cause)
        names = self._activity.work["name"][self._next[place]]
        label = self._labels.of_keys(self._words, cause, names)
        others = Overlaps(rest.begin, rest.end, rest.of, label[own])
        return concatenated([functions, others])

    def _with_functions(self, waits: Intervals) -> tuple[Overlaps, Intervals]:
        """Parts of waits in which host functions held up the next work, and what is left.

        A function is of the stream, or the graph, of that work; or the work starts right after it.
        """
        activity, functions = self._activity, self._activity.host_functions
        if not len(functions):
            return NO_OVERLAPS, waits
        held, left = [NO_OVERLAPS], []
        for begin, end, place in zip(*(column.tolist() for column in waits), strict=True):
            work = activity.work[self._next[place]]
            is_own = (functions["stream"] == work["stream"]) & (work["stream"] >= 0)
            is_own |= (functions["call"] == work["call"]) & (work["call"] != UNKNOWN)
            ended = end - functions["end_ns"]
            is_own |= (ended >= 0) & (ended <= _NEXT_NS)
            own = functions[(functions["gpu"] == work["gpu"]) & is_own]
            ran = first_come(
                Intervals(own["start_ns"], own["end_ns"], own["name"].astype(np.int64))
            )
            meets = within(ran, Intervals(*np.array([[begin], [end], [place]])))
            label = self._labels.of_keys(self._function_words, meets.of)
            held.append(Overlaps(meets.begin, meets.end, np.full(len(label), place), label))
            rest = gaps(meets, begin, end)
            left.append(rest._replace(of=np.full(len(rest.of), place)))
        return concatenated(held), concatenated(left)

    def _function_words(self, name: int) -> tuple[str, str]:
        return HOST_FUNCTION, self._activity.names[name]

    def _words(self, cause: int, name: int) -> tuple[str, str]:
        word, what = _WORDS[cause], self._activity.names[name]
        return word, f"{what} on its way to the GPU" if word == HOST else what

    def _causes(self, place: Int64Array, before: Int64Array) -> Int64Array:
        """Returns the cause of each idle time, as a place among ``_WORDS``."""
        work, next_ = self._activity.work, self._next[place]
        is_first = before == UNKNOWN
        same = ~is_first & (work["stream"][before] == work["stream"][next_])
        is_known = self.is_known[place]
        in_graph = ~is_first & is_known & (work["call"][before] == work["call"][next_])
        is_next = same & (self._intervals.end[place] - self._intervals.begin[place] <= _NEXT_NS)
        found = np.full(len(place), _WORDS.index(UNEXPLAINED))
        found[self._waits_in_stream(next_, _EVENT_WAITS)] = _WORDS.index("event")
        found[self._waits_in_stream(next_, _VALUE_WAITS)] = _WORDS.index("value")
        found[same] = _WORDS.index("stream")
        found[in_graph] = _WORDS.index("node")
        found[self.is_late[place]] = _WORDS.index(HOST)
        found[(~is_known & ~is_next) | self._clocks_differ] = _WORDS.index(UNRECORDED)
        return found

    def _waits_in_stream(self, rows: Int64Array, call: re.Pattern[str]) -> BoolArray:
        """Returns whether a thread made a stream wait since its launch before each of these."""
        host, work = self._activity.host, self._activity.work
        waits = np.flatnonzero(matching(self._activity, call))
        found = np.zeros(len(rows), np.bool_)
        if not len(waits):
            return found
        calls = np.unique(work["call"][work["call"] != UNKNOWN])
        own_call = work["call"][rows]
        for thread in np.unique(host["thread"][waits]).tolist():
            waited = np.sort(host["begin_ns"][waits[host["thread"][waits] == thread]])
            launched = np.sort(host["begin_ns"][calls[host["thread"][calls] == thread]])
            mine = (own_call != UNKNOWN) & (host["thread"][own_call] == thread)
            at = host["begin_ns"][own_call[mine]]
            since = np.append(np.int64(-(2**62)), launched)[
                np.searchsorted(launched, at, side="left")
            ]
            found[mine] = np.searchsorted(waited, at) > np.searchsorted(waited, since)
        return found


_WORDS = (HOST, "stream", "event", "value", "node", UNRECORDED, UNEXPLAINED)


def _named(activity: Activity, rows: Int64Array) -> Int64Array:
    """Returns the names of rows of the host; ``UNKNOWN`` of those."""
    return np.where(rows == UNKNOWN, UNKNOWN, activity.host["name"][rows])


def maker(activity: Activity, times: HostTime, rows: Int64Array) -> Int64Array:
    """Returns what made calls: the row that encloses each, unless it is an annotation.

    A function that is built into Python says little, so who called it is told, too.
    """
    built_in = np.array([name.startswith(_BUILT_IN) for name in activity.names], np.bool_)
    host = activity.host
    is_call = host["kind"][rows] == CALL
    is_call |= (host["kind"][rows] == FUNCTION) & built_in[host["name"][rows]]
    found = np.where((rows != UNKNOWN) & is_call, times.inside[rows], UNKNOWN)
    is_annotation = (found != UNKNOWN) & (activity.host["kind"][found] == ANNOTATION)
    return np.where(is_annotation, UNKNOWN, found)


def _scope(activity: Activity, times: HostTime, rows: Int64Array) -> Int64Array:
    """Returns the innermost annotation that rows of the host were made in; else ``UNKNOWN``."""
    found = np.where(rows == UNKNOWN, UNKNOWN, times.inside[rows])
    while True:
        is_other = (found != UNKNOWN) & (activity.host["kind"][found] != ANNOTATION)
        if not is_other.any():
            return found
        found = np.where(is_other, times.inside[found], found)


def matching(activity: Activity, pattern: re.Pattern[str]) -> BoolArray:
    """Returns a mask of the rows of the host that are calls with such a name."""
    names = np.array([pattern.match(name) is not None for name in activity.names], np.bool_)
    host = activity.host
    if not len(host):
        return np.zeros(0, np.bool_)
    found: BoolArray = names[host["name"]] & (host["kind"] == CALL)
    return found


def blocking_copies(activity: Activity) -> BoolArray:
    """Returns a mask of the calls of copies that returned after the copies had ended."""
    work = activity.work
    found = np.zeros(len(activity.host), np.bool_)
    moved = (work["kind"] == COPY) & (work["call"] != UNKNOWN)
    calls = work["call"][moved]
    found[calls] = True
    found[calls[activity.host["end_ns"][calls] < work["end_ns"][moved]]] = False
    return found


def clocks_disagree(activity: Activity, rows: Int64Array) -> bool:
    """Returns whether work started before it was launched, more often than chance."""
    work = activity.work
    call = work["call"][rows]
    known = rows[call != UNKNOWN]
    if not len(known):
        return False
    early = activity.host["begin_ns"][work["call"][known]] > work["start_ns"][known] + _AHEAD_NS
    return bool(early.mean() > _DISAGREE)
