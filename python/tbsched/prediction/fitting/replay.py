"""Durations made better by predictions of the whole program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.fitting.as_measured import BoolArray
from tbsched.prediction.fitting.merged import merged
from tbsched.prediction.fitting.spans import Spans, Tails
from tbsched.prediction.predict import predict
from tbsched.program.arrays import Float64Array
from tbsched.program.program import Program

_MOST_PREDICTIONS = 24
# Blocks of all of them together: so many take some seconds. A launch takes as long as some blocks.
_MOST_BLOCKS, _LAUNCH_BLOCKS = 2**23, 128
_VAIN = 6  # predictions that were not better than one before
_NEAR = 1e-3  # a distance that needs no more of them
# In one step a duration changes by this power of how wrong the kernel's time is: its neighbours
# change as well. After steps in vain it is half as much.
_POWER, _MOST_FACTOR = 0.6, 2.0
_KNOWN_SHARE, _KNOWN_NS = 0.003, 200.0  # a kernel's time so near is right
_SPREAD_GAIN = 0.7  # of the time by which a launch starts too early before the end of another
_MOST_SPREAD = 0.9  # of the longest block
# How often durations are scaled, if the makespan is so far off. If it is farther off, durations are
# not the reason.
_SCALINGS, _SCALED_SHARE, _MOST_SCALED_SHARE = 3, 0.003, 0.06


class BlockTimes(NamedTuple):
    """Of each launch how long its longest blocks run, and how much shorter the shortest run."""

    duration_ns: Float64Array
    spread_ns: Float64Array


@dataclass(frozen=True, slots=True)
class Replay:
    """A program that is predicted again and again, each time with better durations.

    Here launches wait for streams, events and hosts, as they do in the program. So it shows what
    one launch does to the next: which of them run together, and how long all take.

    Attributes:
        timed: the program with such block times.
        spec: the device.
        target_ns: float64 (launches,), how long each kernel takes.
        may_spread: bool (launches,), whether the blocks of a launch may run unequally long.
    """

    timed: Callable[[BlockTimes], Program]
    spec: DeviceSpec
    target_ns: Float64Array
    may_spread: BoolArray

    def improved(self, times: BlockTimes) -> BlockTimes:
        """Block times with which the prediction is nearer to the program as it was measured."""
        program = self.timed(times)
        rows = program.measured
        start_ns = rows["start_ns"].astype(np.float64)
        measured = Spans.of(start_ns, start_ns + self.target_ns)
        tails = measured.tails()
        # The duration of a kernel that ran alone is known.
        is_beside = tails.beside(len(start_ns))
        blocks = sum(one.blocks + _LAUNCH_BLOCKS for one in program.sequence.launches)
        best, nearest, least, vain, power = times, measured, np.inf, 0, _POWER
        for _ in range(max(2, min(_MOST_PREDICTIONS, _MOST_BLOCKS // blocks))):
            found = self._predicted(times)
            distance = measured.distance(found)
            vain = 0 if distance < least else vain + 1
            if distance < least:
                best, nearest, least = times, found, distance
            if least <= _NEAR:
                break
            if vain == _VAIN:
                times, found, vain, power = best, nearest, 0, power / 2
            spread_ns = self._spread(tails, found, times)
            duration_ns = self._duration(found, times.duration_ns, power)
            times = BlockTimes(np.where(is_beside, duration_ns, times.duration_ns), spread_ns)
        return self._scaled(measured, nearest, best, is_beside)

    def _predicted(self, times: BlockTimes) -> Spans:
        program = self.timed(times)
        sequence = merged(program.sequence, self.spec)
        trace = predict(sequence, self.spec, host=program.host)
        start = [x.start_ns.min() for x in trace if x.start_ns is not None]
        end = [x.end_ns.max() for x in trace if x.end_ns is not None]
        return Spans.of(np.array(start, np.float64), np.array(end, np.float64))

    def _duration(self, found: Spans, duration_ns: Float64Array, power: float) -> Float64Array:
        """What to try next: kernels that were too short get longer blocks."""
        ratio = self.target_ns / np.maximum(found.length, 1.0)
        factor = np.clip(ratio, 1 / _MOST_FACTOR, _MOST_FACTOR) ** power
        known_ns = np.maximum(_KNOWN_SHARE * self.target_ns, _KNOWN_NS)
        is_known = np.abs(found.length - self.target_ns) <= known_ns
        return np.where(is_known, duration_ns, duration_ns * factor)

    def _spread(
        self,
        tails: Tails,
        found: Spans,
        times: BlockTimes,
    ) -> Float64Array:
        """What to try next: ends of blocks as far apart as launches start before the last one."""
        first, second, apart_ns = tails
        more_ns = apart_ns - (found.end[first] - found.start[second])
        longest_ns = times.duration_ns[first]
        # Before its last blocks had started, its own were next. A launch that is farther off than
        # a block runs waited for something else.
        says = self.may_spread[first] & (apart_ns <= longest_ns) & (np.abs(more_ns) < longest_ns)
        more = np.full(len(times.spread_ns), -np.inf)
        np.maximum.at(more, first[says], more_ns[says])
        spread_ns = times.spread_ns + _SPREAD_GAIN * more
        is_told = np.isfinite(more)
        limited = np.clip(spread_ns, 0, _MOST_SPREAD * times.duration_ns)
        return np.where(is_told, limited, times.spread_ns)

    def _scaled(
        self, measured: Spans, found: Spans, times: BlockTimes, is_beside: BoolArray
    ) -> BlockTimes:
        """Kernels beside others longer or shorter, so that the program takes its time."""
        least = measured.distance(found)
        for _ in range(_SCALINGS):
            ratio = measured.makespan / max(found.makespan, 1.0)
            if not _SCALED_SHARE <= abs(ratio - 1) <= _MOST_SCALED_SHARE:
                break
            factor = np.where(is_beside, ratio, 1.0)
            scaled = BlockTimes(times.duration_ns * factor, times.spread_ns * factor)
            found = self._predicted(scaled)
            distance = measured.distance(found)
            if distance >= least:
                break
            times, least = scaled, distance
        return times
