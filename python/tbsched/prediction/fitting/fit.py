"""The search for durations with which predicted kernels take the measured time."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from tbsched.prediction.fitting.as_measured import AsMeasured
from tbsched.program.arrays import Float64Array
from tbsched.traces.placement import Placement

MOST_PREDICTIONS = 20  # of one search
# A predicted time is the measured one if it is nearer than this share of it, or than the time.
_SHARE, _NEAR_NS = 1e-3, 20.0
# So far from its time, as a share of it, a kernel may be at the mean.
_WRONG = 1e-4
# After so many predictions that are not better by this factor, none will be.
_VAIN, _BETTER = 4, 0.98
# In one step a duration changes at most by this factor, or grows by this time.
_FACTOR, _STEP_NS = 4.0, 1000.0
# Of the waves of a launch alone, how much its kernel's time follows the duration at least and at
# most: others keep it up, or leave it fewer SMs.
_LEAST_SLOPE, _MOST_SLOPE = 0.3, 10.0
_DETERMINED = 0.5  # what own_share() is at least of a launch that tells others their duration
_FITS = 0.05  # so far from the measured time a kernel may be with a duration of others


class _Search:
    """For each launch by itself the duration to try next.

    The time of a kernel grows with the duration of its blocks, by jumps where a block finds room
    elsewhere. As the neighbours of a launch change too, no bound is trusted for good: a secant
    through the last two tries comes first, and the middle of two bounds where it says nothing.
    """

    def __init__(self, target_ns: Float64Array, waves: Float64Array) -> None:
        self._target = target_ns
        self._waves = waves
        # Durations, and the times of kernels that they gave.
        self._last = np.full((2, len(target_ns)), np.nan)
        self._short = np.zeros(len(target_ns))
        self._long = np.full(len(target_ns), np.inf)

    def next(self, duration_ns: Float64Array, length_ns: Float64Array) -> Float64Array:
        """Durations to try next, once these gave kernels of these times."""
        off = self._target - length_ns
        with np.errstate(invalid="ignore", divide="ignore"):
            slope = (length_ns - self._last[1]) / (duration_ns - self._last[0])
        self._last = np.stack([duration_ns, length_ns])
        self._short = np.where(off > 0, duration_ns, self._short)
        self._long = np.where(off < 0, duration_ns, self._long)
        crossed = self._short >= self._long
        self._short = np.where(crossed & (off < 0), 0.0, self._short)
        self._long = np.where(crossed & (off > 0), np.inf, self._long)
        says = (slope > _LEAST_SLOPE * self._waves) & (slope < _MOST_SLOPE * self._waves)
        is_between = ~says & np.isfinite(slope) & np.isfinite(self._long)
        stepped = duration_ns + off / np.where(says, slope, self._waves)
        wanted = np.where(is_between, (self._short + self._long) / 2, stepped)
        return np.clip(wanted, duration_ns / _FACTOR, duration_ns * _FACTOR + _STEP_NS)


class Fit:
    """Durations of blocks, one for each launch, made better by predictions.

    Args:
        launches: as they started.
        duration_ns: the first guess.
        waves: of each launch, in how many its blocks run if it is alone.

    Attributes:
        duration_ns: float64 (launches,), how long the blocks of each run.
        determined: float64 (launches,), how well that is known, 0 to 1.
    """

    def __init__(
        self, launches: AsMeasured, duration_ns: Float64Array, waves: Float64Array
    ) -> None:
        self._launches = launches
        self._waves = waves
        self._target_ns = self._near_ns = duration_ns
        self._least_wrong = np.inf
        self.duration_ns = duration_ns
        self.determined = np.zeros_like(duration_ns)

    def _tried(self, duration_ns: Float64Array) -> Float64Array:
        """The time of each kernel; the durations are kept if none were better before."""
        placements = self._launches.predicted(np.rint(duration_ns) / 1e9)
        length_ns = self._launches.lengths(placements).astype(np.float64)
        off = np.abs(length_ns - self._target_ns)
        share_off = np.minimum(off / np.maximum(self._target_ns, _NEAR_NS), 1.0)
        wrong = float(np.where(off > self._near_ns, share_off, 0.0).sum())
        if wrong < self._least_wrong:
            self._least_wrong = wrong
            self.duration_ns = duration_ns
            near = np.where(off > self._near_ns, self._near_ns / np.maximum(off, 1.0), 1.0)
            self.determined = near * self._own_shares(placements, length_ns)
        # A kernel starts late where those before it end late, which says nothing of its own blocks.
        from_first_ns = self._launches.lengths(placements, True).astype(np.float64)
        return np.where(self._launches.behind(off > self._near_ns), from_first_ns, length_ns)

    def _own_shares(
        self, placements: tuple[Placement, ...], length_ns: Float64Array
    ) -> Float64Array:
        found = np.zeros_like(length_ns)
        for number, placement in zip(self._launches.number.tolist(), placements, strict=True):
            found[number] = own_share(placement, length_ns[number])
        return found

    def improve(self, target_ns: Float64Array) -> None:
        """Looks for durations with which each kernel takes this time, from the ones so far on."""
        self._target_ns = target_ns
        self._near_ns = np.maximum(_SHARE * target_ns, _NEAR_NS)
        self._least_wrong = np.inf
        search = _Search(target_ns, self._waves)
        duration_ns = self.duration_ns
        least, vain = np.inf, 0
        for _ in range(MOST_PREDICTIONS):
            length_ns = self._tried(duration_ns)
            vain = 0 if self._least_wrong < _BETTER * least else vain + 1
            if self._least_wrong <= _WRONG * len(target_ns) or vain == _VAIN:
                return
            least = min(least, self._least_wrong) if vain else self._least_wrong
            wrong = np.abs(target_ns - length_ns) > self._near_ns
            duration_ns = np.where(wrong, search.next(duration_ns, length_ns), duration_ns)

    def share(self, kernels: list[Hashable]) -> None:
        """Gives launches that say little the median of those of their kernel that say more.

        Args:
            kernels: of each launch; None: nobody knows.
        """
        told, sure = self.duration_ns.copy(), self.determined.copy()
        says_more = self.determined >= _DETERMINED
        members: dict[Hashable, list[int]] = {}
        for number, kernel in enumerate(kernels):
            if kernel is not None:
                members.setdefault(kernel, []).append(number)
        for group in members.values():
            rows = np.array(group)
            known, others = rows[says_more[rows]], rows[~says_more[rows]]
            if len(known) and len(others):
                told[others] = np.median(self.duration_ns[known])
                # Of two sources that do not know each other, neither is the whole truth.
                sure[others] = np.maximum(sure[others], np.median(self.determined[known]) / 2)
        if (told == self.duration_ns).all():
            return
        placements = self._launches.predicted(told / 1e9)
        off = np.abs(self._launches.lengths(placements) - self._target_ns)
        fits = off <= np.maximum(_FITS * self._target_ns, self._near_ns)
        self.duration_ns = np.where(fits, told, self.duration_ns)
        self.determined = np.where(fits, sure, self.determined)


def own_share(placement: Placement, length_ns: float) -> float:
    """Of the time of a kernel the share in which its own blocks ran, on the SM that it left last.

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
