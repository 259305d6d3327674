"""Intervals of time as arrays: what covers them, and what is left."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from tbsched.program.arrays import BoolArray, Int64Array


class Intervals(NamedTuple):
    """Intervals, int64 (intervals,) each; ``of``: what each belongs to."""

    begin: Int64Array
    end: Int64Array
    of: Int64Array

    @property
    def length(self) -> int:
        """The sum of their lengths."""
        return int((self.end - self.begin).sum())

    def some(self, chosen: Int64Array | BoolArray) -> Intervals:
        """Returns the rows at some places, or where a mask is True."""
        return Intervals(self.begin[chosen], self.end[chosen], self.of[chosen])


NO_INTERVALS = Intervals(*np.zeros((3, 0), np.int64))


def numbered(begin: Int64Array, end: Int64Array) -> Intervals:
    """Intervals that belong to their own numbers."""
    return Intervals(begin.astype(np.int64), end.astype(np.int64), np.arange(len(begin)))


def first_come(intervals: Intervals) -> Intervals:
    """Returns disjoint intervals; each moment belongs to the interval that began first."""
    order = np.lexsort([intervals.end, intervals.begin])
    begin, end, of = intervals.some(order)
    if not len(begin):
        return NO_INTERVALS
    until = np.maximum.accumulate(end)
    begin[1:] = np.maximum(begin[1:], until[:-1])
    return Intervals(begin, end, of).some(end > begin)


def joined(intervals: Intervals) -> Intervals:
    """Returns the fewest disjoint intervals that cover the same; ``of`` numbers them."""
    begin, end, _ = first_come(intervals)
    if not len(begin):
        return NO_INTERVALS
    starts = np.flatnonzero(np.append(True, begin[1:] > end[:-1]))
    return numbered(begin[starts], end[np.append(starts[1:] - 1, len(end) - 1)])


def gaps(covered: Intervals, begin: int, end: int) -> Intervals:
    """Returns the gaps between disjoint sorted intervals; ``of``: how many end before each."""
    begins = np.maximum(np.append(begin, covered.end), begin)
    ends = np.minimum(np.append(covered.begin, end), end)
    found = Intervals(begins, np.maximum(ends, begins), np.arange(len(begins)))
    return found.some(ends > begins)


class Overlaps(NamedTuple):
    """Where intervals meet others: a row per pair, int64 (pairs,) each."""

    begin: Int64Array
    end: Int64Array
    first: Int64Array
    second: Int64Array

    def some(self, chosen: Int64Array | BoolArray) -> Overlaps:
        """Returns the rows at some places, or where a mask is True."""
        return Overlaps(*(column[chosen] for column in self))


Rows = TypeVar("Rows", bound=tuple[Any, ...])  # named columns
NO_OVERLAPS = Overlaps(*np.zeros((4, 0), np.int64))


def concatenated(parts: Iterable[Rows]) -> Rows:
    """All parts in one; at least one is needed."""
    every = [*parts]
    made: Callable[..., Rows] = type(every[0])
    return made(*map(np.concatenate, zip(*every, strict=True)))


def summed(keys: Int64Array, values: Int64Array, count: int) -> Int64Array:
    """Returns the sums of the values of each key up to ``count``, int64 (count,), exactly."""
    found = np.zeros(count, np.int64)
    np.add.at(found, keys, values)
    return found


def overlaps(some: Intervals, others: Intervals) -> Overlaps:
    """Returns the parts of intervals that lie in others, disjoint and sorted, by places of both."""
    low = np.searchsorted(others.end, some.begin, side="right")
    high = np.searchsorted(others.begin, some.end, side="left")
    count = np.maximum(high - low, 0)
    first = np.repeat(np.arange(len(count)), count)
    second = np.arange(len(first)) - np.repeat(count.cumsum() - count, count) + low[first]
    begin = np.maximum(some.begin[first], others.begin[second])
    end = np.minimum(some.end[first], others.end[second])
    is_there = end > begin
    return Overlaps(*(column[is_there] for column in (begin, end, first, second)))


def within(some: Intervals, others: Intervals) -> Intervals:
    """Returns the parts of intervals that lie in others, which are disjoint and sorted."""
    found = overlaps(some, others)
    return Intervals(found.begin, found.end, some.of[found.first])
