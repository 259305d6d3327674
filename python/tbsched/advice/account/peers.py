"""Time in collectives, told apart: waiting for a peer, moving bytes, slowed by neighbours."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from tbsched.advice.account.idle import UNEXPLAINED, bare
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
_TOGETHER_NS = 100_000  # within which kernels of a collective end that brings GPUs together
_JITTER_NS = 2_000  # within which collectives that nothing holds up start
_SAMPLES = 3  # collectives without kernels beside them, at least, that tell how long one takes
_MOST = 12  # reasons of a wait that are told, those that took longest
_REST = "many things, none of them long"


class Met(NamedTuple):
    """The kernels of collectives, int64 (kernels,) each; times in ns.

    Attributes:
        found: which kernels are one collective.
        gpu: on which each ran.
        begin, end: when.
        until: until when it waited for the last one to start; ``begin``: it did not, or not for
            longer than their clocks are uncertain.
        peer: the GPU that it waited for; -1: for none.
        slow: from when on it is slower than without kernels beside it; ``end``: it is not.
        unknown: from when on it is not known whether it waits or moves bytes; ``end``: never.
    """

    found: Collectives
    gpu: Int64Array
    begin: Int64Array
    end: Int64Array
    until: Int64Array
    peer: Int64Array
    slow: Int64Array
    unknown: Int64Array

    @classmethod
    def of(cls, activity: Activity, found: Collectives) -> Met:
        """Returns when the kernels of matched collectives of an activity waited."""
        work, row, of = activity.work, found.row, found.of
        gpu, begin, end = (
            work[name][row].astype(np.int64) for name in ("gpu", "start_ns", "end_ns")
        )
        edges = found.edges
        last = np.maximum.reduceat(begin, edges[:-1])[of]
        late_gpu = np.maximum.reduceat(np.where(begin == last, gpu, UNKNOWN), edges[:-1])[of]
        waits = np.array([kind.op in SYNCHRONIZING for kind in found.kinds], np.bool_)[of]
        # In the others one may be done before the last one starts: then it had not to wait for it.
        last, late_gpu = _room(found, gpu, end, last, late_gpu, ~waits & (end <= last))
        off, late_off = (
            np.array([activity.uncertain_ns.get(number, 0) for number in each.tolist()], np.int64)
            for each in (gpu, late_gpu)
        )
        certain = last - begin > np.maximum(_JITTER_NS, off + late_off)
        held = (late_gpu != gpu) & certain & (waits | (end > last))
        until = np.where(held, np.minimum(last, end), begin)
        absent = found.absent[of] > 0
        unknown = np.where(absent, until, end)
        slow = _slowed(activity, found, gpu, np.maximum(until, np.minimum(last, end)), end)
        slow = np.where(unknown < end, end, slow)
        return cls(found, gpu, begin, end, until, np.where(held, late_gpu, UNKNOWN), slow, unknown)

    def parts(self, alone: Intervals, activity: Activity, labels: Labels) -> Intervals:
        """Returns parts of collectives with their labels; -1 - q: waiting for GPU q.

        ``alone``: when collectives ran and no kernel did; ``of``: rows of ``activity.work``.
        """
        place = np.full(len(activity.work), UNKNOWN)
        place[self.found.row] = np.arange(len(self.found.row))
        own = place[alone.of]
        is_met = own != UNKNOWN
        others, met, own = alone.some(~is_met), alone.some(is_met), own[is_met]
        names = labels.numbers(COLLECTIVE, activity.work["name"][others.of])
        found = [Intervals(others.begin, others.end, names)]
        if len(own):
            kinds = self.found.of[own]
            words = [kind.words for kind in self.found.kinds]
            moving, slowed = (
                labels.of_keys(lambda k, cause=cause: (cause, words[k]), _distinct(words)[kinds])
                for cause in (TRANSFER, SLOWED)
            )
            unknown = labels.numbers(COLLECTIVE, activity.work["name"][met.of])
            for begin, end, of in (
                (met.begin, self.until[own], -1 - self.peer[own]),
                (self.until[own], np.minimum(self.slow[own], self.unknown[own]), moving),
                (self.slow[own], self.end[own], slowed),
                (self.unknown[own], self.end[own], unknown),
            ):
                found.append(Intervals(np.maximum(begin, met.begin), np.minimum(end, met.end), of))
        every = concatenated(found)
        return every.some(every.end > every.begin)


def _distinct(values: Iterable[Hashable]) -> Int64Array:
    """Returns for each value the place of the first equal one, int64."""
    first: dict[Hashable, int] = {}
    return np.array([first.setdefault(own, place) for place, own in enumerate(values)], np.int64)


def _room(
    found: Collectives, gpu: Int64Array, end: Int64Array, last: Int64Array, late_gpu: Int64Array,
    early: BoolArray,
) -> tuple[Int64Array, Int64Array]:  # fmt: skip
    """Returns the last start that each kernel may wait for, in ns, and the GPU that made it.

    A kernel that is done early leaves its bytes in buffers. If these were full, it waited until an
    earlier collective of the same GPUs made room: the last of those that all had started by then.
    """
    candidates = np.flatnonzero(early)
    if not len(candidates):
        return last, late_gpu
    last, late_gpu, first = last.copy(), late_gpu.copy(), found.edges[:-1]
    groups: dict[tuple[object, ...], list[int]] = {}
    for number, (kind, begin, end_) in enumerate(
        zip(found.kinds, first.tolist(), found.edges[1:].tolist(), strict=True)
    ):
        members = tuple(gpu[begin:end_].tolist())
        groups.setdefault((kind.group, kind.pair, members), []).append(number)
    starts, of_gpu = last[first], late_gpu[first]
    for numbers in groups.values():
        own = np.array(numbers)
        own = own[np.argsort(starts[own], kind="stable")]
        rows = candidates[np.isin(found.of[candidates], own)]
        place = np.searchsorted(starts[own], end[rows]) - 1
        rows, place = rows[place >= 0], place[place >= 0]
        last[rows], late_gpu[rows] = starts[own[place]], of_gpu[own[place]]
    return last, late_gpu


def kernels_on(activity: Activity, gpu: int) -> Intervals:
    """Returns when kernels that are no collectives ran on a GPU, disjoint and sorted."""
    work = activity.work
    own = work[(work["gpu"] == gpu) & np.isin(work["kind"], (KERNEL, GRAPH))]
    return joined(numbered(own["start_ns"], own["end_ns"]))


def _slowed(
    activity: Activity, found: Collectives, gpu: Int64Array, begin: Int64Array, end: Int64Array
) -> Int64Array:
    """Returns since when each kernel is slowed down by kernels beside it, in ns; else its end.

    Known only where the same collective also ran without any kernel beside it, some times.
    """
    beside = np.zeros(len(gpu), np.bool_)
    for number in np.unique(gpu).tolist():
        mine = np.flatnonzero(gpu == number)
        meets = overlaps(Intervals(begin[mine], end[mine], mine), kernels_on(activity, number))
        beside[mine[meets.first]] = True
    edges, of = found.edges, found.of
    is_beside = np.logical_or.reduceat(beside, edges[:-1])
    moves = np.maximum.reduceat(end - begin, edges[:-1])
    usual: dict[Kind, list[int]] = {}
    for kind, ns, other in zip(found.kinds, moves.tolist(), is_beside.tolist(), strict=True):
        if not other and kind.bytes != UNKNOWN:
            usual.setdefault(kind, []).append(ns)
    # The longest one: what is beyond it, no chance explains.
    most = {kind: max(ns) for kind, ns in usual.items() if len(ns) >= _SAMPLES}
    longest = np.array([most.get(kind, UNKNOWN) for kind in found.kinds], np.int64)[of]
    known = (longest != UNKNOWN) & is_beside[of]
    return np.where(known, np.maximum(begin, end - np.maximum(end - begin - longest, 0)), end)


class Origin(NamedTuple):
    """Why a GPU was late, on which others waited; ``cause`` and ``by`` as in its own account."""

    gpu: int
    cause: str
    by: str


def resolved(
    parts: Overlaps, met: Met, activity: Activity, gpus: Sequence[int], labels: Labels
) -> tuple[Overlaps, dict[int, Origin]]:
    """Returns parts in which each wait for a peer has the reason why that one was late.

    Also returns, by the label of such a part, where the reason lies.

    Between two moments at which a pair of GPUs had nothing to do but the same collective, both
    spent the same time. What one waited, the other one did more of: the difference of their
    accounts in that time is the reason. A wait is divided in proportion, if there are several.

    ``parts`` are by GPU and time: ``first`` is a place of ``gpus``, ``second`` a label, or as of
    ``Met.parts``.
    """
    reasons: dict[tuple[int, int], _Reasons] = {}
    place_of = {gpu: place for place, gpu in enumerate(gpus)}
    # Labels are alike whatever their place in the program.
    alike = _distinct((cause, bare(by)) for cause, by in labels)
    causes = _causes(labels)
    known = np.append(alike, 0)[np.maximum(parts.second, 0)]
    reduced = parts._replace(second=np.where(parts.second < 0, parts.second, known))
    of_gpu = [reduced.some(reduced.first == place) for place in range(len(gpus))]
    moments = _moments(met, activity, gpus)
    found = [parts.some(parts.second >= 0)]
    origins: dict[int, Origin] = {}
    pairs = []
    for place, own in enumerate(of_gpu):
        for code in np.unique(own.second[own.second < 0]).tolist():
            peer = place_of[-1 - code]
            waits = own.some(own.second == code)
            cuts = _common(moments, place, peer)
            reasons[place, peer] = _reasons(waits, own, of_gpu[peer], cuts, causes, gpus[place])
            pairs.append((place, peer, waits))
    for place, peer, waits in pairs:
        mine = reasons[place, peer]
        origin = {
            label: _origin(label, reasons, peer, gpus, labels, causes)
            for label in np.unique(mine.label).tolist()
        }
        number = {}
        for label, each in origin.items():
            who = gpu_word(each.gpu, activity.ranks)
            number[label] = labels.number(PEER, f"{who}: {each.cause}, {each.by}")
            origins[number[label]] = each
        named = np.array([number[label] for label in mine.label.tolist()], np.int64)
        found.append(_divided(waits, mine._replace(label=named)))
    whole = concatenated(found)
    return whole.some(np.lexsort([whole.begin, whole.first])), origins


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
    met: Met, activity: Activity, gpus: Sequence[int]
) -> list[tuple[Int64Array, Int64Array]]:
    """Returns for each GPU the collectives that ended while nothing else ran, and their ends."""
    found = []
    for gpu in gpus:
        own = np.flatnonzero(met.gpu == gpu)
        ran = kernels_on(activity, gpu)
        last = np.searchsorted(ran.begin, met.end[own], side="right") - 1
        runs = np.zeros(len(own), np.bool_)
        if len(ran.begin):
            runs = (last >= 0) & (ran.end[np.maximum(last, 0)] > met.end[own])
        found.append((met.found.of[own[~runs]], met.end[own[~runs]]))
    return found


def _common(
    moments: list[tuple[Int64Array, Int64Array]], one: int, other: int
) -> tuple[Int64Array, Int64Array]:
    """Returns the moments that two GPUs have in common, on the clock of each."""
    (number_a, end_a), (number_b, end_b) = moments[one], moments[other]
    _, place_a, place_b = np.intersect1d(number_a, number_b, return_indices=True)
    end_a, end_b = end_a[place_a], end_b[place_b]
    together = np.abs(end_a - end_b) <= _TOGETHER_NS  # not a send long before its receive
    return np.sort(end_a[together]), np.sort(end_b[together])


def _reasons(
    waits: Overlaps, own: Overlaps, others: Overlaps, cuts: tuple[Int64Array, Int64Array],
    causes: _Causes, gpu: int,
) -> _Reasons:  # fmt: skip
    """Divides the waits of a GPU by what the other one did more of."""
    of_wait = np.searchsorted(cuts[0], waits.begin, side="right")
    windows = np.unique(of_wait)
    mine = _sums(own, cuts[0], windows)
    theirs = _sums(others, cuts[1], windows)
    count = len(causes.of)
    # Waits for each other are no reasons for each other.
    least = min(int(own.second.min(initial=0)), int(others.second.min(initial=0)))
    window = np.concatenate([theirs[0], mine[0]])
    label = np.concatenate([theirs[1], mine[1]])
    ns = np.concatenate([theirs[2], -mine[2]])
    is_wait = np.concatenate([theirs[1] == -1 - gpu, mine[1] < 0])
    key = (window * (count - least) + label - least)[~is_wait]
    distinct, more = _sums_of(key, ns[~is_wait])
    window, label = distinct // (count - least), distinct % (count - least) + least
    cause = np.where(label < 0, 0, np.append(causes.of, 0)[label])
    by_cause = _grouped(window * (cause.max(initial=0) + 1) + cause)
    total = np.maximum(_added(more, by_cause), 0)
    positive = np.maximum(more, 0)
    within = _added(positive, by_cause)
    weight = total * positive / np.maximum(within, 1)
    return _shares(cuts[0], window, label, _NO_REASON - cause, weight, windows, waits, of_wait)


def _shares(
    cuts: Int64Array, window: Int64Array, label: Int64Array, rest: Int64Array,
    weight: Float64Array, windows: Int64Array, waits: Overlaps, of_wait: Int64Array,
) -> _Reasons:  # fmt: skip
    """Keeps the largest weights of each window, and makes shares of them; ``rest``: the others."""
    kept = weight > 0
    window, label, rest, weight = window[kept], label[kept], rest[kept], weight[kept]
    bare = np.setdiff1d(windows, window)  # in which the other one did no more of anything
    window = np.append(window, bare)
    label = np.append(label, np.full(len(bare), _NO_REASON))
    rest = np.append(rest, np.full(len(bare), _NO_REASON))
    weight = np.append(weight, np.ones(len(bare)))
    order = np.lexsort([-weight, window])
    window, label, rest, weight = window[order], label[order], rest[order], weight[order]
    starts = np.searchsorted(window, window, side="left")
    is_rest = np.arange(len(window)) - starts >= _MOST
    label = np.where(is_rest, rest, label)
    share = weight / np.maximum(_added(weight, _grouped(window)), 1e-300)
    waited = np.zeros(int(windows.max(initial=0)) + 1)
    np.add.at(waited, of_wait, waits.end - waits.begin)
    return _Reasons(cuts, window, label, share, share * waited[window])


_NO_REASON = np.iinfo(np.int64).max


def _sums(
    parts: Overlaps, cuts: Int64Array, windows: Int64Array
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Returns how long each label lasts in some of the times between moments: window, label, ns."""
    far = np.int64(2**62)
    edges = np.concatenate([[-far], cuts, [far]])
    chosen = Intervals(edges[windows], edges[windows + 1], windows)
    chosen = chosen.some(chosen.end > chosen.begin)
    meets = overlaps(Intervals(parts.begin, parts.end, parts.second), chosen)
    window, label = chosen.of[meets.second], parts.second[meets.first]
    least = int(label.min(initial=0))
    span = int(label.max(initial=0)) - least + 1
    distinct, ns = _sums_of(window * span + label - least, meets.end - meets.begin)
    return distinct // span, distinct % span + least, ns


def _sums_of(keys: Int64Array, ns: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Returns the distinct keys, and the sum of the times of each."""
    distinct, which = np.unique(keys, return_inverse=True)
    return distinct, summed(which, ns, len(distinct))


class _Causes(NamedTuple):
    """Causes of labels by their numbers from 1; 0 is waiting for a third GPU."""

    of: Int64Array
    names: tuple[str, ...]


def _causes(labels: Labels) -> _Causes:
    numbers = {PEER: 0}
    of = [numbers.setdefault(cause, len(numbers)) for cause, _ in labels]
    return _Causes(np.array(of, np.int64), tuple(numbers))


def _grouped(key: Int64Array) -> Int64Array:
    return np.unique(key, return_inverse=True)[1]


def _added(values: np.typing.NDArray[np.generic], group: Int64Array) -> Float64Array:
    """Returns for each value the sum of its group."""
    sums = np.zeros(int(group.max(initial=-1)) + 1)
    np.add.at(sums, group, values)
    return sums[group]


def _origin(
    label: int, every: dict[tuple[int, int], _Reasons], peer: int, gpus: Sequence[int],
    labels: Labels, causes: _Causes,
) -> Origin:  # fmt: skip
    """Returns the GPU at fault: the one waited for, or a third one for which that waited."""
    if label > _NO_REASON - len(causes.names):
        cause = causes.names[_NO_REASON - label] if label < _NO_REASON else UNEXPLAINED
        return Origin(gpus[peer], cause, _REST)
    if label >= 0:
        cause, by = labels[label]
        return Origin(gpus[peer], cause, bare(by))
    third = -1 - label
    reasons = every.get((peer, list(gpus).index(third)))
    if reasons is not None:
        known = (reasons.label >= 0) & (reasons.label < len(labels))
        if known.any():
            cause, by = labels[int(reasons.label[known][reasons.ns[known].argmax()])]
            return Origin(third, cause, bare(by))
    return Origin(third, UNEXPLAINED, _REST)


def _divided(waits: Overlaps, reasons: _Reasons) -> Overlaps:
    """Divides waits by the shares of their windows, to the nanosecond."""
    window = np.searchsorted(reasons.cuts, waits.begin, side="right")
    low = np.searchsorted(reasons.window, window, side="left")
    high = np.searchsorted(reasons.window, window, side="right")
    count = high - low
    of = np.repeat(np.arange(len(count)), count)
    share = np.arange(len(of)) - np.repeat(count.cumsum() - count, count) + low[of]
    whole = np.cumsum(reasons.share)
    before = np.append(0.0, whole)[low[of]]
    upto = whole[share] - before
    length = (waits.end - waits.begin)[of]
    until = np.minimum(np.floor(length * upto).astype(np.int64), length)
    is_last: BoolArray = share == high[of] - 1
    until = np.where(is_last, length, until)
    since = np.where(share == low[of], 0, np.append(0, until)[:-1])
    found = Overlaps(
        waits.begin[of] + since, waits.begin[of] + until, waits.first[of], reasons.label[share]
    )
    return found.some(found.end > found.begin)
