"""The search for the durations of some launches, for each by itself."""

from __future__ import annotations

import numpy as np

from tbsched.program.arrays import Float64Array

# In one step a duration changes at most by this factor, or grows by this time.
_FACTOR, _STEP_NS = 4.0, 1000.0
# Bounds of the growth of a kernel's time with the duration of its blocks, per wave of the launch
# alone: others delay it, or leave it fewer SMs.
_MIN_SLOPE, _MAX_SLOPE = 0.3, 10.0


class Search:
    """Search for the durations of launches, each by itself.

    The time of a kernel grows with the duration of its blocks, by jumps where a block finds room
    elsewhere. As the neighbours of a launch change too, no bound is trusted for good: a secant
    through the last two tries comes first, and the middle of two bounds where it says nothing.

    Args:
        target_ns: how long each kernel takes.
        waves: of each launch, in how many its blocks run if it is alone.
    """

    def __init__(self, target_ns: Float64Array, waves: Float64Array) -> None:
        self._target = target_ns
        self._waves = waves
        # Durations, and the times of kernels that they gave.
        self._last = np.full((2, len(target_ns)), np.nan)
        self._short = np.zeros(len(target_ns))
        self._long = np.full(len(target_ns), np.inf)

    def next(self, duration_ns: Float64Array, length_ns: Float64Array) -> Float64Array:
        """Returns the duration of blocks to try next for each launch, float64 ns (launches,), given
        the last ones and how long the kernels took with them."""
        off = self._target - length_ns
        with np.errstate(invalid="ignore", divide="ignore"):
            slope = (length_ns - self._last[1]) / (duration_ns - self._last[0])
        self._last = np.stack([duration_ns, length_ns])
        self._short = np.where(off > 0, duration_ns, self._short)
        self._long = np.where(off < 0, duration_ns, self._long)
        crossed = self._short >= self._long
        self._short = np.where(crossed & (off < 0), 0.0, self._short)
        self._long = np.where(crossed & (off > 0), np.inf, self._long)
        says = (slope > _MIN_SLOPE * self._waves) & (slope < _MAX_SLOPE * self._waves)
        is_between = ~says & np.isfinite(slope) & np.isfinite(self._long)
        stepped = duration_ns + off / np.where(says, slope, self._waves)
        wanted = np.where(is_between, (self._short + self._long) / 2, stepped)
        return np.clip(wanted, duration_ns / _FACTOR, duration_ns * _FACTOR + _STEP_NS)
