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
    cut_overlaps,
    gaps,
    joined,
    summed,
    within,
)
from tbsched.advice.account.labels import Labels
from tbsched.program.activity import ANNOTATION, CALL, COPY, FUNCTION, MIGRATION, UNKNOWN, Activity
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
_MAX_EARLY_SHARE = 0.02  # share of work that starts before its call, from which clocks are wrong
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
    calls = np.full(len(rows), UNKNOWN)
    for gpu in np.unique(work["gpu"][rows]).tolist():
        launched = np.flatnonzero((work["gpu"] == gpu) & (work["call"] != UNKNOWN))
        if not len(launched):
            continue
        launched = launched[np.argsort(work["start_ns"][launched], kind="stable")]
        is_of_gpu = work["gpu"][rows] == gpu
        index = np.searchsorted(work["start_ns"][launched], work["start_ns"][rows[is_of_gpu]])
        call = work["call"][launched[np.minimum(index, len(launched) - 1)]]
        is_host = (index == len(launched)) | (host["end_ns"][call] > since_ns[is_of_gpu])
        calls[is_of_gpu] = np.where(is_host, call, UNKNOWN)
    return calls


def without_context(name: str) -> str:
    """Returns what the host did, without the wait before it and the annotation around it."""
    return name.partition(AFTER)[0].partition(WITHIN)[0]


def idle_parts(
    activity: Activity, rows: Int64Array, idle_times: Intervals, others: list[Intervals],
    times: HostTime, labels: Labels,
) -> Idle:  # fmt: skip
    """Returns the idle times of a GPU, each divided into parts, and the cause of each part as a
    label.

    Args:
        activity: the profile.
        rows: the GPU's rows of ``activity.work``.
        idle_times: when none of them ran.
        others: of each other GPU when work ran there.
        times: what the host threads did.
        labels: the causes and their numbers; new ones are added.
    """
    order, next_ = ended_by(activity, rows, idle_times)
    lateness = HostLateness(
        activity, times, labels, idle_times, next_, clocks_differ=clocks_disagree(activity, rows)
    )
    before = _ended_before(activity, order, idle_times)
    ended = np.flatnonzero(next_ == UNKNOWN)
    nothing_more = labels.number(NO_WORK, "nothing more ran") if len(ended) else 0
    after_last = Overlaps(
        idle_times.begin[ended], idle_times.end[ended], ended, np.full(len(ended), nothing_more)
    )
    parts = concatenated([lateness.host_parts(others), lateness.gpu_parts(before), after_last])
    parts = parts.select(np.lexsort([parts.begin, parts.first]))
    return Idle(idle_times, next_, before, parts)


def ended_by(
    activity: Activity, rows: Int64Array, intervals: Intervals
) -> tuple[Int64Array, Int64Array]:
    """Returns a GPU's rows of ``activity.work`` sorted by start; and for each interval the row that
    starts when it ends, int64 (intervals,), ``UNKNOWN``: none does."""
    start = activity.work["start_ns"]
    order = rows[np.lexsort([rows, start[rows]])]
    index = np.searchsorted(start[order], intervals.end, side="left")
    next_ = order[np.minimum(index, len(order) - 1)]
    return order, np.where(start[next_] == intervals.end, next_, UNKNOWN)


def _ended_before(activity: Activity, order: Int64Array, intervals: Intervals) -> Int64Array:
    """Returns the row of work that ended last before each interval begins, int64 (intervals,);
    ``UNKNOWN``: none did."""
    ends = activity.work["end_ns"]
    by_end = order[np.argsort(ends[order], kind="stable")]
    last = np.searchsorted(ends[by_end], intervals.begin, side="right") - 1
    return np.where(last < 0, UNKNOWN, by_end[np.maximum(last, 0)])


class HostLateness:
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
        calls = self._call.copy()
        calls[is_migration] = _calls_around(
            activity, next_[is_migration], intervals.begin[is_migration]
        )
        self.is_known = calls != UNKNOWN
        self._called, self._returned = intervals.begin, intervals.begin
        self._thread = np.full(len(next_), UNKNOWN)
        if len(activity.host):
            called = activity.host[calls]
            begin = np.where(is_migration, intervals.end, called["begin_ns"])
            end = np.where(is_migration, intervals.end, called["end_ns"])
            self._called = np.where(self.is_known, begin, self._called)
            self._returned = np.where(self.is_known, end, self._returned)
            self._thread = np.where(self.is_known, called["thread"].astype(np.int64), UNKNOWN)
        self.is_late = self.is_known & (self._returned > intervals.begin) & (not clocks_differ)
        self.until = np.where(
            self.is_late, np.minimum(self._returned, intervals.end), intervals.begin
        )

    def host_parts(self, others: list[Intervals]) -> Overlaps:
        """Returns the part of each interval until the host had launched the work that ended it,
        with a label for what the host did."""
        late = np.flatnonzero(self.is_late & (self.until > self._intervals.begin))
        if not len(late):
            return NO_OVERLAPS
        activity, host, times = self._activity, self._activity.host, self._times
        begin, end, count = (self._intervals.begin[late], self.until[late], len(late))
        waited = self._last_wait(late)
        cut = np.where(waited == UNKNOWN, end, np.clip(host["end_ns"][waited], begin, end))
        halves = Intervals(np.append(begin, cut), np.append(cut, end), np.tile(late, 2))
        spent = times.spent(np.tile(self._thread[late], 2), halves)
        row, interval = spent.second, halves.owner[spent.first]
        after = np.where(spent.first >= count, waited[spent.first % count], UNKNOWN)
        loads = self._is_loading(row, interval)
        inside = maker(activity, times, row)
        is_own = (row != UNKNOWN) & (row == self._call[interval]) & (inside == UNKNOWN)
        needs_kernel = loads | (row == UNKNOWN) | is_own
        label = self._labels.of_keys(
            self._host_label, _names_of(activity, row), _names_of(activity, inside),
            _names_of(activity, _scope(activity, times, row)), _names_of(activity, after),
            _names_of(activity, maker(activity, times, after)),
            np.where(needs_kernel, activity.work["name"][self._next[interval]], UNKNOWN),
            loads.astype(np.int64),
        )  # fmt: skip
        self._labels.mark_host_actions(label, _names_of(activity, row))
        parts = Overlaps(spent.begin, spent.end, interval, label)
        waits = (row != UNKNOWN) & matching(activity, _WAITS)[row]
        if not waits.any() or not others:
            return parts
        return concatenated(
            [parts.select(~waits), self._split_by_other_gpus(parts.select(waits), others)]
        )

    def _host_label(
        self, row: int, inside: int, scope: int, after: int, after_in: int, kernel: int, loads: int
    ) -> tuple[str, str]:
        """Returns the cause and the name of what the host did before it launched a kernel.

        All arguments but the last are indices of names in the profile; ``UNKNOWN``: there is none.

        Args:
            row, inside: the call or function that the host was in, and what encloses it.
            scope: the annotation around it.
            after, after_in: the last call before it that waited for the GPU, and what encloses
                that.
            kernel: what was launched.
            loads: whether the kernel was loaded meanwhile.
        """
        names = self._activity.names

        def named(name: int, outer: int) -> str:
            """Returns a name of the profile, with the name of what encloses it."""
            return names[name] if outer == UNKNOWN else f"{names[name]} in {names[outer]}"

        if loads:
            what = names[kernel]
            return FIRST_USE, what if row == UNKNOWN else f"{what} ({names[row]})"
        what = f"{NOTHING} before {names[kernel]}" if row == UNKNOWN else named(row, inside)
        if row != UNKNOWN and kernel != UNKNOWN:
            what = f"{what} of {names[kernel]}"
        what = what if scope == UNKNOWN else f"{what}{WITHIN}{names[scope]}"
        return HOST, what if after == UNKNOWN else f"{what}{AFTER}{named(after, after_in)}"

    def _split_by_other_gpus(self, parts: Overlaps, others: list[Intervals]) -> Overlaps:
        """Returns the calls that wait, divided into times in which other GPUs ran and times in
        which none did. The label of the former says that the call waited for another GPU."""
        running = joined(concatenated(others))
        begin, end = int(parts.begin.min()), int(parts.end.max())
        calls = Intervals(parts.begin, parts.end, np.arange(len(parts.begin)))
        split = []
        for times in (running, gaps(running, begin, end)):
            parts_ = within(calls, times)
            label = parts.second[parts_.owner]
            if times is running:
                label = self._labels.of_keys(
                    lambda number: (SYNCHRONIZE, f"{self._labels[number][1]}, for another GPU"),
                    label,
                )
            split.append(Overlaps(parts_.begin, parts_.end, parts.first[parts_.owner], label))
        return concatenated(split)

    def _last_wait(self, indices: Int64Array) -> Int64Array:
        """Returns, for each interval, the row of the last call of the host that waited for the GPU
        and returned in it; ``UNKNOWN``: none did."""
        host = self._activity.host
        rows = np.flatnonzero(matching(self._activity, _WAITS) | blocking_copies(self._activity))
        waits = np.full(len(indices), UNKNOWN)
        for thread in np.unique(self._thread[indices]).tolist():
            calls = rows[host["thread"][rows] == thread]
            if not len(calls):
                continue
            # The outermost of nested calls that return at the same time is sorted last.
            calls = calls[np.lexsort([-calls, -host["begin_ns"][calls], host["end_ns"][calls]])]
            mask = self._thread[indices] == thread
            called = self._called[indices[mask]]
            last = np.searchsorted(host["end_ns"][calls], called, side="right") - 1
            row = calls[np.maximum(last, 0)]
            is_in = (last >= 0) & (host["end_ns"][row] > self._intervals.begin[indices[mask]])
            waits[mask] = np.where(is_in, row, UNKNOWN)
        return waits

    def _is_loading(self, row: Int64Array, interval: Int64Array) -> BoolArray:
        """Returns a mask of the parts in which a kernel was loaded: in a call that loads, or in the
        first launch of a kernel if that took long.

        Args:
            row: of each part the host's row.
            interval: of each part the index of its interval.
        """
        activity, host, work = self._activity, self._activity.host, self._activity.work
        loading = matching(activity, _LOADS)
        launching = np.flatnonzero(matching(activity, _LAUNCHES))
        length = host["end_ns"] - host["begin_ns"]
        first = np.full(len(activity.names), np.iinfo(np.int64).max)
        np.minimum.at(first, work["name"], work["start_ns"])
        next_ = self._next[interval]
        is_first = work["start_ns"][next_] == first[work["name"][next_]]
        is_long = length[row] > _LOADING_NS
        own_call = (row == self._call[interval]) & np.isin(row, launching)
        call = self._call[interval]
        is_recorded = (call != UNKNOWN) & host["loads"][call] & ((row == UNKNOWN) | (row == call))
        is_likely = loading[row] | (own_call & is_first & is_long)
        found: BoolArray = is_recorded | ((row != UNKNOWN) & is_likely)
        return found

    def gpu_parts(self, before: Int64Array) -> Overlaps:
        """Returns the part of each interval after the launch of the next work had returned, with a
        label for why the work waited on the GPU.

        Args:
            before: of each interval the row of ``activity.work`` that ended last before it.
        """
        waiting = np.flatnonzero((self._next != UNKNOWN) & (self.until < self._intervals.end))
        if not len(waiting):
            return NO_OVERLAPS
        functions, rest = self._with_functions(
            Intervals(self.until[waiting], self._intervals.end[waiting], waiting)
        )
        cause = self._causes(waiting, before[waiting])
        index = np.searchsorted(waiting, rest.owner)
        left_ns = summed(index, rest.end - rest.begin, len(waiting))
        is_long = (left_ns > _ON_ITS_WAY_NS) & (cause != _WORDS.index(UNRECORDED))
        # Only a wait for a value is known to take any time.
        waits_for_value = self._waits_in_stream(self._next[waiting], _VALUE_WAITS)
        long = np.where(waits_for_value, _WORDS.index("value"), _WORDS.index(UNEXPLAINED))
        cause = np.where(is_long, long, cause)
        names = self._activity.work["name"][self._next[waiting]]
        label = self._labels.of_keys(self._gpu_label, cause, names)
        others = Overlaps(rest.begin, rest.end, rest.owner, label[index])
        return concatenated([functions, others])

    def _with_functions(self, waits: Intervals) -> tuple[Overlaps, Intervals]:
        """Returns the parts of waits in which a host function held up the next work, labelled, and
        what remains of the waits."""
        activity, functions = self._activity, self._activity.host_functions
        if not len(functions):
            return NO_OVERLAPS, waits
        parts, rest_ = [NO_OVERLAPS], []
        for begin, end, place in zip(*(column.tolist() for column in waits), strict=True):
            work = activity.work[self._next[place]]
            holds = (functions["stream"] == work["stream"]) & (work["stream"] >= 0)
            holds |= (functions["call"] == work["call"]) & (work["call"] != UNKNOWN)
            ended = end - functions["end_ns"]
            holds |= (ended >= 0) & (ended <= _NEXT_NS)
            ran_rows = functions[(functions["gpu"] == work["gpu"]) & holds]
            ran = cut_overlaps(
                Intervals(
                    ran_rows["start_ns"], ran_rows["end_ns"], ran_rows["name"].astype(np.int64)
                )
            )
            meets = within(ran, Intervals(*np.array([[begin], [end], [place]])))
            label = self._labels.numbers(HOST_FUNCTION, meets.owner)
            parts.append(Overlaps(meets.begin, meets.end, np.full(len(label), place), label))
            rest = gaps(meets, begin, end)
            rest_.append(rest._replace(owner=np.full(len(rest.owner), place)))
        return concatenated(parts), concatenated(rest_)

    def _gpu_label(self, cause: int, name: int) -> tuple[str, str]:
        """Returns cause and name of a wait on the GPU; ``cause``: an index in ``_WORDS``."""
        word, what = _WORDS[cause], self._activity.names[name]
        return word, f"{what} on its way to the GPU" if word == HOST else what

    def _causes(self, indices: Int64Array, before: Int64Array) -> Int64Array:
        """Returns why the work that ended each interval waited on the GPU, as an index in
        ``_WORDS``, int64 (indices,)."""
        work, next_ = self._activity.work, self._next[indices]
        is_first = before == UNKNOWN
        same = ~is_first & (work["stream"][before] == work["stream"][next_])
        is_known = self.is_known[indices]
        in_graph = ~is_first & is_known & (work["call"][before] == work["call"][next_])
        is_next = same & (self._intervals.end[indices] - self._intervals.begin[indices] <= _NEXT_NS)
        causes = np.full(len(indices), _WORDS.index(UNEXPLAINED))
        causes[self._waits_in_stream(next_, _EVENT_WAITS)] = _WORDS.index("event")
        causes[self._waits_in_stream(next_, _VALUE_WAITS)] = _WORDS.index("value")
        causes[same] = _WORDS.index("stream")
        causes[in_graph] = _WORDS.index("node")
        causes[self.is_late[indices]] = _WORDS.index(HOST)
        causes[(~is_known & ~is_next) | self._clocks_differ] = _WORDS.index(UNRECORDED)
        return causes

    def _waits_in_stream(self, rows: Int64Array, call: re.Pattern[str]) -> BoolArray:
        """Returns a mask of the work before which its thread has called a wait in a stream, since
        that thread's last launch."""
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
            mask = (own_call != UNKNOWN) & (host["thread"][own_call] == thread)
            call_ns = host["begin_ns"][own_call[mask]]
            since = np.append(np.int64(-(2**62)), launched)[
                np.searchsorted(launched, call_ns, side="left")
            ]
            found[mask] = np.searchsorted(waited, call_ns) > np.searchsorted(waited, since)
        return found


_WORDS = (HOST, "stream", "event", "value", "node", UNRECORDED, UNEXPLAINED)


def _names_of(activity: Activity, rows: Int64Array) -> Int64Array:
    """Returns the index of each host row's name; ``UNKNOWN`` where the row is."""
    return np.where(rows == UNKNOWN, UNKNOWN, activity.host["name"][rows])


def maker(activity: Activity, times: HostTime, rows: Int64Array) -> Int64Array:
    """Returns the row of the host that made each call, int64 (rows,); ``UNKNOWN``: none, or an
    annotation. For a function that is built into Python, it is the function that called it, too."""
    built_in = np.array([name.startswith(_BUILT_IN) for name in activity.names], np.bool_)
    host = activity.host
    is_call = host["kind"][rows] == CALL
    is_call |= (host["kind"][rows] == FUNCTION) & built_in[host["name"][rows]]
    makers = np.where((rows != UNKNOWN) & is_call, times.inside[rows], UNKNOWN)
    is_annotation = (makers != UNKNOWN) & (activity.host["kind"][makers] == ANNOTATION)
    return np.where(is_annotation, UNKNOWN, makers)


def _scope(activity: Activity, times: HostTime, rows: Int64Array) -> Int64Array:
    """Returns the row of the innermost annotation around each row of the host, int64 (rows,);
    ``UNKNOWN``: none."""
    enclosing = np.where(rows == UNKNOWN, UNKNOWN, times.inside[rows])
    while True:
        is_other = (enclosing != UNKNOWN) & (activity.host["kind"][enclosing] != ANNOTATION)
        if not is_other.any():
            return enclosing
        enclosing = np.where(is_other, times.inside[enclosing], enclosing)


def matching(activity: Activity, pattern: re.Pattern[str]) -> BoolArray:
    """Returns a mask of the rows of ``activity.host`` that are calls whose names match a
    pattern.
    """
    names = np.array([pattern.match(name) is not None for name in activity.names], np.bool_)
    host = activity.host
    if not len(host):
        return np.zeros(0, np.bool_)
    is_match: BoolArray = names[host["name"]] & (host["kind"] == CALL)
    return is_match


def blocking_copies(activity: Activity) -> BoolArray:
    """Returns a mask of the rows of ``activity.host`` that are calls of copies and returned only
    after the copy had ended."""
    work = activity.work
    is_blocking = np.zeros(len(activity.host), np.bool_)
    moved = (work["kind"] == COPY) & (work["call"] != UNKNOWN)
    calls = work["call"][moved]
    is_blocking[calls] = True
    is_blocking[calls[activity.host["end_ns"][calls] < work["end_ns"][moved]]] = False
    return is_blocking


def clocks_disagree(activity: Activity, rows: Int64Array) -> bool:
    """Returns whether so many of a GPU's rows start before their launch call that its clock cannot
    fit that of the host."""
    work = activity.work
    call = work["call"][rows]
    known = rows[call != UNKNOWN]
    if not len(known):
        return False
    early = activity.host["begin_ns"][work["call"][known]] > work["start_ns"][known] + _AHEAD_NS
    return bool(early.mean() > _MAX_EARLY_SHARE)
