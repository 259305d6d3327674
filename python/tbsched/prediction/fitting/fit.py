"""Durations with which predicted kernels take the measured time, found window by window."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tbsched.prediction.fitting.as_measured import AsMeasured, BlockTimes
from tbsched.prediction.fitting.search import Search
from tbsched.prediction.fitting.spans import Spans
from tbsched.program.arrays import Float64Array, Int64Array
from tbsched.progress import bar, each
from tbsched.traces.placement import Placement

# A launch depends on those that started before it, and hardly on later ones. So launches are fitted
# some at a time, in the order of their starts.
WINDOW = 16
MAX_PREDICTIONS = 24  # predictions per window
_MAX_FAILURES = 8  # predictions without an improvement that end a window
# Predicted and measured times are equal if they differ by less than this share, or this time.
_NEAR_SHARE, _NEAR_NS = 1e-3, 20.0
# Error up to which a launch counts as fully determined; it is less so with larger errors.
_KNOWN_SHARE, _KNOWN_NS = 0.01, 500.0
# Blocks that end one after the other cost a prediction 15 times as much as some that end together.
# A launch of more blocks has short ones, and they hardly matter.
_MAX_SPREAD_BLOCKS = 2**15
# Delays of a predicted start beyond which the blocks before it are taken to end unequally.
_LATE_NS, _LATE_SHARE = 1000.0, 0.01


class Fit:
    """Durations of blocks, one for each launch, made better by predictions.

    Args:
        launches: in the order of their starts.
        duration_ns: the first guess.
        waves: number of waves of each launch if it runs alone.
        most_blocks: of all predictions of a window.

    Attributes:
        duration_ns: float64 (launches,), durations of the longest blocks.
        spread_ns: float64 (launches,), how much shorter the shortest blocks run.
        determined: float64 (launches,), how well the durations are determined, 0 to 1.
    """

    def __init__(
        self, launches: AsMeasured, duration_ns: Float64Array, waves: Float64Array, most_blocks: int
    ) -> None:
        self._launches = launches
        self._most_blocks = most_blocks
        self._waves = waves
        self.duration_ns = duration_ns
        self.spread_ns = np.zeros_like(duration_ns)
        self.determined = np.zeros_like(duration_ns)
        self._late_ns = np.zeros_like(duration_ns)
        spans = Spans(launches.start_ns.astype(np.float64), launches.end_ns.astype(np.float64))
        self._tails = spans.tails()
        self._is_alone = ~self._tails.beside(len(duration_ns))
        self._started_alone = np.ones(len(duration_ns), np.bool_)  # no other ran when it started
        self._started_alone[self._tails.second] = False

    def block_times(self, order: Int64Array) -> BlockTimes:
        """Returns the fitted times of the launches in the order of the program. ``order``: the
        number of each launch, by start."""
        duration_ns, spread_ns = np.empty((2, len(order)))
        duration_ns[order], spread_ns[order] = self.duration_ns, self.spread_ns
        return BlockTimes(duration_ns, spread_ns, np.zeros(len(order)), ends_late=False)

    def improve(self, target_ns: Float64Array) -> None:
        """Fits the durations of blocks, from a first guess, so that each kernel takes its target
        time in ns."""
        fitted = 0
        with bar("fitting durations", len(target_ns)) as advance:
            for rows, first in self._windows():
                self._improve_window(rows, first, target_ns, self.duration_ns)
                fitted += len(rows) - first
                advance(fitted)

    def improve_again(self, target_ns: Float64Array) -> None:
        """Fits the durations again, from nearly right ones, with several windows of launches at a
        time."""
        given_ns = self.duration_ns.copy()
        each(
            lambda window: self._improve_window(*window, target_ns, given_ns),
            self._windows(),
            "fitting durations again",
        )

    def _windows(self) -> Iterator[tuple[Int64Array, int]]:
        """Yields windows of launches: their indices, and how many of the first ones are only there
        because they run at the same time. Launches that ran alone have windows of their own: errors
        of others do not concern them."""
        start, end = self._launches.start_ns, self._launches.end_ns
        for launches_ in (np.flatnonzero(self._is_alone), np.flatnonzero(~self._is_alone)):
            running = np.empty(0, np.int64)
            for begin in range(0, len(launches_), WINDOW):
                window_ = launches_[begin : begin + WINDOW]
                running = running[end[running] > start[window_[0]]]
                yield np.append(running, window_), len(running)
                running = np.append(running, window_)

    def _improve_window(
        self, rows: Int64Array, first: int, target_ns: Float64Array, given_ns: Float64Array
    ) -> None:
        """Fits the durations of the launches of a window.

        Args:
            rows: indices of its launches.
            first: how many of the first ones are only there because they run at the same time.
            target_ns: of all launches how long their kernels are to take.
            given_ns: of all launches the durations to begin with.
        """
        launches, target = self._launches.subset(rows), target_ns[rows]
        near_ns = np.maximum(_NEAR_SHARE * target, _NEAR_NS)
        moves = np.arange(len(rows)) >= first
        search = Search(target, self._waves[rows])
        duration_ns, least_error, failures = given_ns[rows], np.inf, 0
        best_ns = best_end_ns = duration_ns
        blocks = sum(launch.blocks for launch in launches.launches)
        for _ in range(min(MAX_PREDICTIONS, max(2, self._most_blocks // blocks))):
            placements = launches.predicted(duration_ns, self.spread_ns[rows])
            late_ns, end_ns = launches.times(placements)
            end_ns = np.where(self._started_alone[rows], end_ns - late_ns, end_ns)
            error_ns = np.abs(end_ns - target)
            is_wrong = error_ns > near_ns
            share = np.minimum(error_ns / np.maximum(target, _NEAR_NS), 1.0)
            total_error = float(np.where(is_wrong, share, 0.0)[first:].sum())
            failures = 0 if total_error < least_error else failures + 1
            if total_error < least_error:
                least_error = total_error
                self.duration_ns[rows[first:]] = duration_ns[first:]
                self._late_ns[rows[first:]] = late_ns[first:]
                best_ns, best_end_ns = duration_ns, end_ns
            if not (is_wrong & moves).any() or failures == _MAX_FAILURES:
                break
            # A kernel starts late where those before it end late, which says nothing of its blocks.
            length_ns = np.where(launches.behind(is_wrong & moves), end_ns - late_ns, end_ns)
            changes = moves & (np.abs(length_ns - target) > near_ns)
            duration_ns = np.where(changes, search.next(duration_ns, length_ns), duration_ns)
        placements = launches.predicted(best_ns, self.spread_ns[rows], each_block=True)
        self._rate_durations(rows, first, target, best_end_ns, placements)

    def _rate_durations(
        self, rows: Int64Array, first: int, target: Float64Array, end_ns: Float64Array,
        placements: tuple[Placement, ...],
    ) -> None:  # fmt: skip
        """Sets how well the durations of a window's launches are determined, 0 to 1: by how near
        the predicted end is, and by how much of the kernel's time its own blocks ran."""
        known_ns = np.maximum(_KNOWN_SHARE * target, _KNOWN_NS)
        near = known_ns / np.maximum(np.abs(end_ns - target), known_ns)
        for place in range(first, len(rows)):
            share = own_share(placements[place], target[place])
            self.determined[rows[place]] = near[place] * share

    def spread(self) -> bool:
        """Finds launches whose blocks end one after the other, and sets by how many ns. Returns
        whether there are any.

        A launch that waited for room started when the first blocks of another one left. If that
        ended later, its blocks did not all run equally long.
        """
        start, end = self._launches.start_ns, self._launches.end_ns
        late = self._late_ns > np.maximum(_LATE_NS, _LATE_SHARE * (end - start))
        few = np.array([launch.blocks <= _MAX_SPREAD_BLOCKS for launch in self._launches.launches])
        first, second, apart_ns = self._tails
        apart_ns = apart_ns + self._launches.spec.exit_latency_ns
        # A launch behind it can enter only once its own last blocks have started.
        is_evidence = late[second] & few[first] & (apart_ns <= self.duration_ns[first])
        self.spread_ns = np.zeros_like(self.spread_ns)
        np.maximum.at(self.spread_ns, first[is_evidence], apart_ns[is_evidence])
        return bool(self.spread_ns.any())


def own_share(placement: Placement, length_ns: float) -> float:
    """Returns the share of a kernel's time, 0 to 1, in which its own blocks ran on the SM that it
    left last.

    The time of a kernel follows its blocks so far. In the rest the launch waited for the blocks of
    others, however long its own run.

    Args:
        placement: of a timed prediction.
        length_ns: the time of the kernel.
    """
    assert placement.start_ns is not None
    assert placement.end_ns is not None
    if length_ns <= 0:
        return 0.0
    there = placement.smid == placement.smid[placement.end_ns.argmax()]
    start, end = placement.start_ns[there], placement.end_ns[there]
    order = np.argsort(start, kind="stable")
    start, end = start[order], end[order]
    until = np.maximum.accumulate(np.append(start[0], end[:-1]))
    ran_ns = np.maximum(end - np.maximum(start, until), 0).sum()
    return min(1.0, float(ran_ns) / length_ns)
