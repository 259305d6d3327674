"""Intervals of time as arrays: what covers them, and what is left."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from tbsched.program.arrays import BoolArray, Int64Array


class Intervals(NamedTuple):
    """Intervals of time, int64 ns (intervals,) each; ``owner``: what each belongs to."""

    begin: Int64Array
    end: Int64Array
    owner: Int64Array

    @property
    def length(self) -> int:
        """Sum of their lengths in ns."""
        return int((self.end - self.begin).sum())

    def select(self, chosen: Int64Array | BoolArray) -> Intervals:
        """Returns the intervals at some indices, or where a mask is True."""
        return Intervals(self.begin[chosen], self.end[chosen], self.owner[chosen])


NO_INTERVALS = Intervals(*np.zeros((3, 0), np.int64))


def numbered(begin: Int64Array, end: Int64Array) -> Intervals:
    """Returns intervals that each belong to their own index."""
    return Intervals(begin.astype(np.int64), end.astype(np.int64), np.arange(len(begin)))


def cut_overlaps(intervals: Intervals) -> Intervals:
    """Returns disjoint intervals, by begin: where some overlap, the time belongs to the one that
    began first."""
    order = np.lexsort([intervals.end, intervals.begin])
    begin, end, of = intervals.select(order)
    if not len(begin):
        return NO_INTERVALS
    until = np.maximum.accumulate(end)
    begin[1:] = np.maximum(begin[1:], until[:-1])
    return Intervals(begin, end, of).select(end > begin)


def joined(intervals: Intervals) -> Intervals:
    """Returns the fewest disjoint intervals that cover the same time, by begin. ``owner``: the
    index of each."""
    begin, end, _ = cut_overlaps(intervals)
    if not len(begin):
        return NO_INTERVALS
    starts = np.flatnonzero(np.append(True, begin[1:] > end[:-1]))
    return numbered(begin[starts], end[np.append(starts[1:] - 1, len(end) - 1)])


def gaps(covered: Intervals, begin: int, end: int) -> Intervals:
    """Returns the parts of [begin, end) that disjoint sorted intervals do not cover. ``owner``: how
    many of the intervals are before."""
    begins = np.maximum(np.append(begin, covered.end), begin)
    ends = np.minimum(np.append(covered.begin, end), end)
    between = Intervals(begins, np.maximum(ends, begins), np.arange(len(begins)))
    return between.select(ends > begins)


class Overlaps(NamedTuple):
    """Where intervals overlap others, a row per pair: times, and the index of each of the two."""

    begin: Int64Array
    end: Int64Array
    first: Int64Array
    second: Int64Array

    def select(self, chosen: Int64Array | BoolArray) -> Overlaps:
        """Returns the rows at some indices, or where a mask is True."""
        return Overlaps(*(column[chosen] for column in self))


Rows = TypeVar("Rows", bound=tuple[Any, ...])  # named columns
NO_OVERLAPS = Overlaps(*np.zeros((4, 0), np.int64))


def concatenated(parts: Iterable[Rows]) -> Rows:
    """Returns one table with the rows of several, one after the other. ``parts``: at least one
    table of columns, such as Intervals."""
    tables = [*parts]
    made: Callable[..., Rows] = type(tables[0])
    return made(*map(np.concatenate, zip(*tables, strict=True)))


def summed(keys: Int64Array, values: Int64Array, count: int) -> Int64Array:
    """Returns the exact sum of the values of each key, int64 (count,). Keys are 0 to ``count`` -
    1.
    """
    sums = np.zeros(count, np.int64)
    np.add.at(sums, keys, values)
    return sums


def overlaps(intervals: Intervals, others: Intervals) -> Overlaps:
    """Returns where intervals overlap others: a row for each such pair, with the time that both
    have. ``others`` are disjoint and sorted."""
    low = np.searchsorted(others.end, intervals.begin, side="right")
    high = np.searchsorted(others.begin, intervals.end, side="left")
    count = np.maximum(high - low, 0)
    first = np.repeat(np.arange(len(count)), count)
    second = np.arange(len(first)) - np.repeat(count.cumsum() - count, count) + low[first]
    begin = np.maximum(intervals.begin[first], others.begin[second])
    end = np.minimum(intervals.end[first], others.end[second])
    is_overlap = end > begin
    return Overlaps(*(column[is_overlap] for column in (begin, end, first, second)))


def within(intervals: Intervals, others: Intervals) -> Intervals:
    """Returns the parts of intervals that lie in others, which are disjoint and sorted."""
    inside = overlaps(intervals, others)
    return Intervals(inside.begin, inside.end, intervals.owner[inside.first])
