"""Time in collectives, told apart: waiting for a peer, moving bytes, slowed by neighbours."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from tbsched.advice.account.idle import UNEXPLAINED, without_context
from tbsched.advice.account.intervals import (
    Intervals,
    Overlaps,
    concatenated,
    joined,
    numbered,
    overlaps,
    summed,
)
from tbsched.advice.account.labels import Labels
from tbsched.program.activity import GRAPH, KERNEL, UNKNOWN, Activity
from tbsched.program.arrays import BoolArray, Float64Array, Int64Array
from tbsched.program.collectives import SYNCHRONIZING, Collectives, Kind, gpu_word

# A GPU waited in a collective for another one to start it; all had started, and bytes moved; they
# moved for longer than the same collective took without kernels beside it.
PEER, TRANSFER, SLOWED = "peer", "transfer", "neighbours"
COLLECTIVE = "collective"  # a wait or a transfer, nobody knows which
_MAX_END_SPREAD_NS = 100_000  # within which kernels of a collective end that brings GPUs together
_JITTER_NS = 2_000  # within which collectives that nothing holds up start
_MIN_SAMPLES = 3  # collectives without kernels beside them, at least, that tell how long one takes
_MAX_REASONS = 12  # reasons of a wait that are told, those that took longest
_MANY_REASONS = "many things, none of them long"


class CollectiveTimes(NamedTuple):
    """When kernels of collectives waited and moved bytes, int64 ns (kernels,) each.

    Attributes:
        collectives: which kernels are one collective.
        gpu: on which each ran.
        begin, end: when.
        until: until when it waited for the last one to start; ``begin``: it did not, or not for
            longer than their clocks are uncertain.
        peer: the GPU that it waited for; -1: for none.
        slow: from when on it is slower than without kernels beside it; ``end``: it is not.
        unknown: from when on it is not known whether it waits or moves bytes; ``end``: never.
    """

    collectives: Collectives
    gpu: Int64Array
    begin: Int64Array
    end: Int64Array
    until: Int64Array
    peer: Int64Array
    slow: Int64Array
    unknown: Int64Array

    @classmethod
    def of(cls, activity: Activity, collectives: Collectives) -> CollectiveTimes:
        """Returns when the kernels of matched collectives of an activity waited."""
        work, row, collective = activity.work, collectives.row, collectives.of
        gpu, begin, end = (
            work[name][row].astype(np.int64) for name in ("gpu", "start_ns", "end_ns")
        )
        edges = collectives.edges
        last_start = np.maximum.reduceat(begin, edges[:-1])[collective]
        is_last = begin == last_start
        last_gpu = np.maximum.reduceat(np.where(is_last, gpu, UNKNOWN), edges[:-1])[collective]
        waits = np.array([kind.op in SYNCHRONIZING for kind in collectives.kinds], np.bool_)
        waits = waits[collective]
        # In the others one may be done before the last one starts: then it had not to wait for it.
        last_start, last_gpu = _buffer_waits(
            collectives, gpu, end, last_start, last_gpu, ~waits & (end <= last_start)
        )
        error_ns, last_error_ns = (
            np.array([activity.uncertain_ns.get(number, 0) for number in each.tolist()], np.int64)
            for each in (gpu, last_gpu)
        )
        certain = last_start - begin > np.maximum(_JITTER_NS, error_ns + last_error_ns)
        waited = (last_gpu != gpu) & certain & (waits | (end > last_start))
        until = np.where(waited, np.minimum(last_start, end), begin)
        absent = collectives.absent[collective] > 0
        unknown = np.where(absent, until, end)
        moves = np.maximum(until, np.minimum(last_start, end))
        slow = _slow_since(activity, collectives, gpu, moves, end)
        slow = np.where(unknown < end, end, slow)
        peer = np.where(waited, last_gpu, UNKNOWN)
        return cls(collectives, gpu, begin, end, until, peer, slow, unknown)

    def parts(self, alone: Intervals, activity: Activity, labels: Labels) -> Intervals:
        """Returns the labelled parts of collectives; a label -1 - q means waiting for GPU q.
        ``alone``: when collectives ran and no kernel did; ``owner``: rows of ``activity.work``."""
        place = np.full(len(activity.work), UNKNOWN)
        place[self.collectives.row] = np.arange(len(self.collectives.row))
        kernel = place[alone.owner]
        is_known = kernel != UNKNOWN
        others, known, kernel = alone.select(~is_known), alone.select(is_known), kernel[is_known]
        names = labels.numbers(COLLECTIVE, activity.work["name"][others.owner])
        parts = [Intervals(others.begin, others.end, names)]
        if len(kernel):
            kinds = self.collectives.of[kernel]
            words = [kind.words for kind in self.collectives.kinds]
            moving, slowed = (
                labels.of_keys(lambda k, cause=cause: (cause, words[k]), _first_equal(words)[kinds])
                for cause in (TRANSFER, SLOWED)
            )
            unknown = labels.numbers(COLLECTIVE, activity.work["name"][known.owner])
            for begin, end, label_ in (
                (known.begin, self.until[kernel], -1 - self.peer[kernel]),
                (self.until[kernel], np.minimum(self.slow[kernel], self.unknown[kernel]), moving),
                (self.slow[kernel], self.end[kernel], slowed),
                (self.unknown[kernel], self.end[kernel], unknown),
            ):
                begin, end = np.maximum(begin, known.begin), np.minimum(end, known.end)
                parts.append(Intervals(begin, end, label_))
        all_parts = concatenated(parts)
        return all_parts.select(all_parts.end > all_parts.begin)


def _first_equal(values: Iterable[Hashable]) -> Int64Array:
    """Returns for each value the index of the first equal one, int64."""
    first: dict[Hashable, int] = {}
    return np.array([first.setdefault(key, k) for k, key in enumerate(values)], np.int64)


def _buffer_waits(
    collectives: Collectives, gpu: Int64Array, end: Int64Array, last: Int64Array,
    late_gpu: Int64Array, early: BoolArray,
) -> tuple[Int64Array, Int64Array]:  # fmt: skip
    """Returns, for each kernel of a collective, the latest start of a peer for which it may have
    waited, int64 ns; and the GPU of that peer, int64.

    A kernel that is done early leaves its bytes in buffers. If these were full, it waited until an
    earlier collective of the same GPUs made room: the last of those that all had started by then.
    """
    candidates = np.flatnonzero(early)
    if not len(candidates):
        return last, late_gpu
    last, late_gpu, first = last.copy(), late_gpu.copy(), collectives.edges[:-1]
    groups: dict[tuple[object, ...], list[int]] = {}
    for number, (kind, begin, end_) in enumerate(
        zip(collectives.kinds, first.tolist(), collectives.edges[1:].tolist(), strict=True)
    ):
        members = tuple(gpu[begin:end_].tolist())
        groups.setdefault((kind.group, kind.pair, members), []).append(number)
    starts, start_gpu = last[first], late_gpu[first]
    for numbers in groups.values():
        by_start = np.array(numbers)
        by_start = by_start[np.argsort(starts[by_start], kind="stable")]
        rows = candidates[np.isin(collectives.of[candidates], by_start)]
        index = np.searchsorted(starts[by_start], end[rows]) - 1
        rows, index = rows[index >= 0], index[index >= 0]
        last[rows], late_gpu[rows] = starts[by_start[index]], start_gpu[by_start[index]]
    return last, late_gpu


def kernels_on(activity: Activity, gpu: int) -> Intervals:
    """Returns when kernels other than collectives ran on a GPU, disjoint and sorted."""
    work = activity.work
    kernels = work[(work["gpu"] == gpu) & np.isin(work["kind"], (KERNEL, GRAPH))]
    return joined(numbered(kernels["start_ns"], kernels["end_ns"]))


def _slow_since(
    activity: Activity, kernels: Collectives, gpu: Int64Array, begin: Int64Array, end: Int64Array
) -> Int64Array:
    """Returns since when each kernel of a collective has been slowed down by other kernels of its
    GPU, int64 ns; its end if it was not."""
    beside = np.zeros(len(gpu), np.bool_)
    for number in np.unique(gpu).tolist():
        rows = np.flatnonzero(gpu == number)
        meets = overlaps(Intervals(begin[rows], end[rows], rows), kernels_on(activity, number))
        beside[rows[meets.first]] = True
    edges, of = kernels.edges, kernels.of
    is_beside = np.logical_or.reduceat(beside, edges[:-1])
    moves = np.maximum.reduceat(end - begin, edges[:-1])
    usual: dict[Kind, list[int]] = {}
    for kind, ns, other in zip(kernels.kinds, moves.tolist(), is_beside.tolist(), strict=True):
        if not other and kind.bytes != UNKNOWN:
            usual.setdefault(kind, []).append(ns)
    # The longest one: what is beyond it, no chance explains.
    usual_max = {kind: max(ns) for kind, ns in usual.items() if len(ns) >= _MIN_SAMPLES}
    longest = np.array([usual_max.get(kind, UNKNOWN) for kind in kernels.kinds], np.int64)[of]
    known = (longest != UNKNOWN) & is_beside[of]
    return np.where(known, np.maximum(begin, end - np.maximum(end - begin - longest, 0)), end)


class Origin(NamedTuple):
    """Why a GPU was late on which others waited; ``cause`` and ``by`` as in its own account."""

    gpu: int
    cause: str
    by: str


def explain_waits(
    parts: Overlaps, times: CollectiveTimes, activity: Activity, gpus: Sequence[int], labels: Labels
) -> tuple[Overlaps, dict[int, Origin]]:
    """Returns the parts with each wait for another GPU divided by the reasons why that GPU was
    late; and for each such label where the reason lies.

    Between two moments at which a pair of GPUs had nothing to do but the same collective, both
    spent the same time. What one waited, the other one did more of: the difference of their
    accounts in that time is the reason. A wait is divided in proportion, if there are several.

    ``parts`` are by GPU and time: ``first`` is a place of ``gpus``, ``second`` a label, or as of
    ``Met.parts``.
    """
    reasons: dict[tuple[int, int], _Reasons] = {}
    place_of = {gpu: index for index, gpu in enumerate(gpus)}
    # Labels are alike whatever their place in the program.
    alike = _first_equal((cause, without_context(by)) for cause, by in labels)
    causes = _causes(labels)
    known = np.append(alike, 0)[np.maximum(parts.second, 0)]
    reduced = parts._replace(second=np.where(parts.second < 0, parts.second, known))
    of_gpu = [reduced.select(reduced.first == index) for index in range(len(gpus))]
    moments = _moments(times, activity, gpus)
    new_parts = [parts.select(parts.second >= 0)]
    origins: dict[int, Origin] = {}
    pairs = []
    for index, mine_ in enumerate(of_gpu):
        for code in np.unique(mine_.second[mine_.second < 0]).tolist():
            peer = place_of[-1 - code]
            waits = mine_.select(mine_.second == code)
            cuts = _common_moments(moments, index, peer)
            reasons[index, peer] = _reasons(waits, mine_, of_gpu[peer], cuts, causes, gpus[index])
            pairs.append((index, peer, waits))
    for index, peer, waits in pairs:
        pair_reasons = reasons[index, peer]
        origin = {
            label: _origin(label, reasons, peer, gpus, labels, causes)
            for label in np.unique(pair_reasons.label).tolist()
        }
        number = {}
        for label, origin_ in origin.items():
            who = gpu_word(origin_.gpu, activity.ranks)
            number[label] = labels.number(PEER, f"{who}: {origin_.cause}, {origin_.by}")
            origins[number[label]] = origin_
        named = np.array([number[label] for label in pair_reasons.label.tolist()], np.int64)
        new_parts.append(_divide_waits(waits, pair_reasons._replace(label=named)))
    whole = concatenated(new_parts)
    return whole.select(np.lexsort([whole.begin, whole.first])), origins


class _Reasons(NamedTuple):
    """Why a GPU waited for another one: shares of each time between two common moments.

    Attributes:
        cuts: the common moments, on the clock of the one that waits.
        window: of each share the number of moments before it, ascending, int64.
        label: what the other one did, as its parts have it; int64.
        share: of the wait; those of a window add up to 1.
        ns: how long was waited for it, in all.
    """

    cuts: Int64Array
    window: Int64Array
    label: Int64Array
    share: Float64Array
    ns: Float64Array


def _moments(
    times: CollectiveTimes, activity: Activity, gpus: Sequence[int]
) -> list[tuple[Int64Array, Int64Array]]:
    """Returns, for each GPU, the collectives that ended while no other kernel ran there: their
    numbers and their ends in ns."""
    moments = []
    for gpu in gpus:
        kernels = np.flatnonzero(times.gpu == gpu)
        running = kernels_on(activity, gpu)
        last = np.searchsorted(running.begin, times.end[kernels], side="right") - 1
        runs = np.zeros(len(kernels), np.bool_)
        if len(running.begin):
            runs = (last >= 0) & (running.end[np.maximum(last, 0)] > times.end[kernels])
        moments.append((times.collectives.of[kernels[~runs]], times.end[kernels[~runs]]))
    return moments


def _common_moments(
    moments: list[tuple[Int64Array, Int64Array]], gpu_a: int, gpu_b: int
) -> tuple[Int64Array, Int64Array]:
    """Returns when the collectives ended that are moments of both GPUs, sorted, int64 ns: by the
    clock of the first, and of the second."""
    (number_a, end_a), (number_b, end_b) = moments[gpu_a], moments[gpu_b]
    _, place_a, place_b = np.intersect1d(number_a, number_b, return_indices=True)
    end_a, end_b = end_a[place_a], end_b[place_b]
    together = np.abs(end_a - end_b) <= _MAX_END_SPREAD_NS  # not a send long before its receive
    return np.sort(end_a[together]), np.sort(end_b[together])


def _reasons(
    waits: Overlaps, mine_: Overlaps, theirs_: Overlaps, cuts: tuple[Int64Array, Int64Array],
    causes: _Causes, gpu: int,
) -> _Reasons:  # fmt: skip
    """Returns why a GPU waited for another one: for each time between two common moments, what the
    other one did more of.

    Args:
        waits: those of this GPU for the other one.
        mine_, theirs_: all parts of both GPUs.
        cuts: the common moments, by the clock of each.
        causes: of the labels.
        gpu: this GPU.
    """
    of_wait = np.searchsorted(cuts[0], waits.begin, side="right")
    windows = np.unique(of_wait)
    mine = _time_by_window(mine_, cuts[0], windows)
    theirs = _time_by_window(theirs_, cuts[1], windows)
    count = len(causes.of)
    # Waits for each other are no reasons for each other.
    least = min(int(mine_.second.min(initial=0)), int(theirs_.second.min(initial=0)))
    window = np.concatenate([theirs[0], mine[0]])
    label = np.concatenate([theirs[1], mine[1]])
    ns = np.concatenate([theirs[2], -mine[2]])
    is_wait = np.concatenate([theirs[1] == -1 - gpu, mine[1] < 0])
    key = (window * (count - least) + label - least)[~is_wait]
    distinct, more = _sum_by_key(key, ns[~is_wait])
    window, label = distinct // (count - least), distinct % (count - least) + least
    cause = np.where(label < 0, 0, np.append(causes.of, 0)[label])
    by_cause = _group_numbers(window * (cause.max(initial=0) + 1) + cause)
    total = np.maximum(_group_sums(more, by_cause), 0)
    positive = np.maximum(more, 0)
    within = _group_sums(positive, by_cause)
    weight = total * positive / np.maximum(within, 1)
    return _shares(cuts[0], window, label, _NO_REASON - cause, weight, windows, waits, of_wait)


def _shares(
    cuts: Int64Array, window: Int64Array, label: Int64Array, rest: Int64Array,
    weight: Float64Array, windows: Int64Array, waits: Overlaps, of_wait: Int64Array,
) -> _Reasons:  # fmt: skip
    """Returns the reasons of each window, as shares that add up to 1.

    Only the largest ones are kept; the others count together under ``rest``. ``window``, ``label``,
    ``rest`` and ``weight`` are of each reason; ``windows`` are those with waits; ``of_wait`` is the
    window of each wait.
    """
    kept = weight > 0
    window, label, rest, weight = window[kept], label[kept], rest[kept], weight[kept]
    empty = np.setdiff1d(windows, window)  # in which the other one did no more of anything
    window = np.append(window, empty)
    label = np.append(label, np.full(len(empty), _NO_REASON))
    rest = np.append(rest, np.full(len(empty), _NO_REASON))
    weight = np.append(weight, np.ones(len(empty)))
    order = np.lexsort([-weight, window])
    window, label, rest, weight = window[order], label[order], rest[order], weight[order]
    starts = np.searchsorted(window, window, side="left")
    is_rest = np.arange(len(window)) - starts >= _MAX_REASONS
    label = np.where(is_rest, rest, label)
    share = weight / np.maximum(_group_sums(weight, _group_numbers(window)), 1e-300)
    waited = np.zeros(int(windows.max(initial=0)) + 1)
    np.add.at(waited, of_wait, waits.end - waits.begin)
    return _Reasons(cuts, window, label, share, share * waited[window])


_NO_REASON = np.iinfo(np.int64).max


def _time_by_window(
    parts: Overlaps, cuts: Int64Array, windows: Int64Array
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Returns how long each label lasts in each window, a row for each pair that occurs: three
    arrays with the window, the label, and the ns."""
    infinity = np.int64(2**62)
    edges = np.concatenate([[-infinity], cuts, [infinity]])
    chosen = Intervals(edges[windows], edges[windows + 1], windows)
    chosen = chosen.select(chosen.end > chosen.begin)
    meets = overlaps(Intervals(parts.begin, parts.end, parts.second), chosen)
    window, label = chosen.owner[meets.second], parts.second[meets.first]
    min_label = int(label.min(initial=0))
    span = int(label.max(initial=0)) - min_label + 1
    distinct, ns = _sum_by_key(window * span + label - min_label, meets.end - meets.begin)
    return distinct // span, distinct % span + min_label, ns


def _sum_by_key(keys: Int64Array, ns: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Returns the distinct keys, ascending, and the sum of the ns of each; int64 both."""
    distinct, inverse = np.unique(keys, return_inverse=True)
    return distinct, summed(inverse, ns, len(distinct))


class _Causes(NamedTuple):
    """Causes of labels, numbered from 1; 0 is waiting for a third GPU."""

    of: Int64Array
    names: tuple[str, ...]


def _causes(labels: Labels) -> _Causes:
    """Returns the distinct causes of labels, and the number of the cause of each label."""
    numbers = {PEER: 0}
    of = [numbers.setdefault(cause, len(numbers)) for cause, _ in labels]
    return _Causes(np.array(of, np.int64), tuple(numbers))


def _group_numbers(key: Int64Array) -> Int64Array:
    """Returns for each key its rank among the distinct keys, int64 (keys,)."""
    return np.unique(key, return_inverse=True)[1]


def _group_sums(values: np.typing.NDArray[np.generic], group: Int64Array) -> Float64Array:
    """Returns for each value the sum of all values of its group, float64 (values,). ``group``: the
    group of each."""
    sums = np.zeros(int(group.max(initial=-1)) + 1)
    np.add.at(sums, group, values)
    return sums[group]


def _origin(
    label: int, reasons_of_pairs: dict[tuple[int, int], _Reasons], peer: int, gpus: Sequence[int],
    labels: Labels, causes: _Causes,
) -> Origin:  # fmt: skip
    """Returns which GPU was at fault, and why: the peer itself, or a third GPU for which the peer
    waited."""
    if label > _NO_REASON - len(causes.names):
        cause = causes.names[_NO_REASON - label] if label < _NO_REASON else UNEXPLAINED
        return Origin(gpus[peer], cause, _MANY_REASONS)
    if label >= 0:
        cause, by = labels[label]
        return Origin(gpus[peer], cause, without_context(by))
    third = -1 - label
    reasons = reasons_of_pairs.get((peer, list(gpus).index(third)))
    if reasons is not None:
        known = (reasons.label >= 0) & (reasons.label < len(labels))
        if known.any():
            cause, by = labels[int(reasons.label[known][reasons.ns[known].argmax()])]
            return Origin(third, cause, without_context(by))
    return Origin(third, UNEXPLAINED, _MANY_REASONS)


def _divide_waits(waits: Overlaps, reasons: _Reasons) -> Overlaps:
    """Returns the waits, each divided among the reasons of its window by their shares; each part
    has the label of its reason. They add up to the wait to the nanosecond."""
    window = np.searchsorted(reasons.cuts, waits.begin, side="right")
    low = np.searchsorted(reasons.window, window, side="left")
    high = np.searchsorted(reasons.window, window, side="right")
    count = high - low
    owner = np.repeat(np.arange(len(count)), count)
    share = np.arange(len(owner)) - np.repeat(count.cumsum() - count, count) + low[owner]
    whole = np.cumsum(reasons.share)
    before = np.append(0.0, whole)[low[owner]]
    share_until = whole[share] - before
    length = (waits.end - waits.begin)[owner]
    until = np.minimum(np.floor(length * share_until).astype(np.int64), length)
    is_last: BoolArray = share == high[owner] - 1
    until = np.where(is_last, length, until)
    since = np.where(share == low[owner], 0, np.append(0, until)[:-1])
    parts = Overlaps(
        waits.begin[owner] + since, waits.begin[owner] + until, waits.first[owner],
        reasons.label[share],
    )  # fmt: skip
    return parts.select(parts.end > parts.begin)
