"""When the kernels of a program ran, and how far that is from another such run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tbsched.prediction.fitting.as_measured import BoolArray
from tbsched.program.arrays import Float64Array, Int64Array
from tbsched.traces.timeline import span_of
from tbsched.traces.trace import Trace

# Kernels run together if they do so for this share of the shorter one, as in tb.compare_times.
_TOLERANCE = 0.05
_MAKESPAN_WEIGHT = 2.0  # weight of an error of the makespan, relative to the mean error of times


def kernel_times(trace: Trace) -> tuple[Float64Array, Float64Array]:
    """Returns when each kernel of a prediction started and ended, in ns by its own clock."""
    start, end = np.array([span_of(*each) for each in enumerate(trace)], np.float64).T
    return start, end


class Tails(NamedTuple):
    """Launches that started while others ran, int64 and float64 (starts,).

    Attributes:
        first: of the others, the one that ended first.
        second: the launch that started.
        apart_ns: how much later the first one ended.
    """

    first: Int64Array
    second: Int64Array
    apart_ns: Float64Array

    def beside(self, launches: int) -> BoolArray:
        """Returns a mask of the launches that overlapped with another launch, bool (launches,).

        Args:
            launches: how many launches there are.
        """
        overlaps = np.zeros(launches, np.bool_)
        overlaps[self.first] = overlaps[self.second] = True
        return overlaps


@dataclass(frozen=True, slots=True)
class Spans:
    """Starts and ends, float64 ns (launches,), from the first start on."""

    start: Float64Array
    end: Float64Array

    @classmethod
    def of(cls, start: Float64Array, end: Float64Array) -> Spans:
        """Returns spans from times of any clock: the first start becomes 0."""
        return cls(start - start.min(), end - start.min())

    @property
    def length(self) -> Float64Array:
        """Duration of each kernel, float64 ns (launches,)."""
        return self.end - self.start

    @property
    def makespan(self) -> float:
        """Time from the first start to the last end, in ns."""
        return float(self.end.max())

    def together(self) -> Int64Array:
        """Returns the pairs of launches that overlap, as first * launches + second, ascending,
        int64 (pairs,)."""
        order = np.argsort(self.start, kind="stable")
        start, end, count = self.start[order], self.end[order], len(order)
        later = np.maximum(start.searchsorted(end) - np.arange(count) - 1, 0)
        first = np.repeat(np.arange(count), later)
        second = first + 1 + np.arange(len(first)) - np.repeat(later.cumsum() - later, later)
        overlap_ns = np.minimum(end[first], end[second]) - start[second]
        length = end - start
        enough = overlap_ns > _TOLERANCE * np.minimum(length[first], length[second])
        first_, second_ = order[first[enough]], order[second[enough]]
        return np.sort(np.minimum(first_, second_) * count + np.maximum(first_, second_))

    def distance(self, other: Spans) -> float:
        """Returns how much another run of the program differs: in which launches overlap, in their
        times, and in the makespan; 0: in nothing."""
        mine, theirs = self.together(), other.together()
        either = len(np.union1d(mine, theirs))
        pairs = 1 - len(np.intersect1d(mine, theirs)) / either if either else 0.0
        error_ns = (np.abs(self.start - other.start) + np.abs(self.end - other.end)).mean()
        makespan_error_ns = abs(other.makespan - self.makespan)
        return float(
            pairs + (error_ns + _MAKESPAN_WEIGHT * makespan_error_ns) / max(self.makespan, 1.0)
        )

    def tails(self) -> Tails:
        """Returns, for each launch that started while others ran, the one of those that ended last,
        and the ns from the start to that end."""
        pairs: list[tuple[int, int]] = []
        running: list[int] = []
        for number in np.argsort(self.start, kind="stable").tolist():
            running = [k for k in running if self.end[k] > self.start[number]]
            if running:
                pairs.append((min(running, key=self.end.__getitem__), number))
            running.append(number)
        first, second = np.array(pairs, np.int64).reshape(-1, 2).T
        return Tails(first, second, self.end[first] - self.start[second])
