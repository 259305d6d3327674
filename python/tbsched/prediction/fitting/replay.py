"""Durations and delays made better by predictions of the whole program."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.fitting.as_measured import BlockTimes, BoolArray
from tbsched.prediction.fitting.delays import Delays
from tbsched.prediction.fitting.effort import QUICK, Effort, StartingPoint, Strategy
from tbsched.prediction.fitting.merged import merged
from tbsched.prediction.fitting.spans import Spans, Tails, kernel_times
from tbsched.prediction.predict import predict_launches
from tbsched.program.arrays import Float64Array, Int64Array
from tbsched.program.program import Program

_MAX_PREDICTIONS = 24  # predictions of one strategy
_MAX_STEPS = 72  # predictions of a strategy that goes on in order
_MIN_PREDICTIONS = 3  # predictions with a small budget
_MIN_DISTANCE = 1e-3  # distance that ends a strategy
_SUFFICIENT_DISTANCE = 0.01  # distance that needs no other strategy
# Damping of steps, as neighbours change as well: a duration changes by this power of the error of
# the kernel's time, and a spread by this share of the error of its tail.
_POWER, _SPREAD_SHARE = 0.6, 0.7
_MAX_FACTOR = 2.0
# Factors of the step size after a change of sign and without one, and the least step size.
_REVERSED, _STRAIGHT, _MIN_GAIN = 0.6, 1.1, 0.05
# Error of the makespan beyond which a prediction costs more, and that cost in shares of pairs.
_MAX_MAKESPAN_ERROR, _MAKESPAN_COST = 0.01, 0.2
_KNOWN_SHARE, _KNOWN_NS = 0.003, 200.0  # errors up to which a kernel's time is right
_MAX_SPREAD = 0.9  # share of the longest block
_MAX_TAIL = 0.3  # share of the kernel's time
# Share of the spread that the longest block gets where durations fall, so the time stays equal.
_SPREAD_TO_LONGEST = 0.5
# Predictions that are repeated block by block in the end. On a full GPU, an error of a microsecond
# can change the order of all that follows.
_MAX_CANDIDATES = 6
_MAX_MERGED_DISTANCE = 0.1  # distance beyond which the search goes on block by block
# Most scalings of all durations, and the least and largest error of the makespan for which they are
# scaled. Larger errors have other reasons.
_SCALINGS, _SCALED_SHARE, _MAX_SCALED_SHARE = 3, 0.003, 0.06
_WRONG_NS = 6000.0  # errors of start and end together beyond which a launch is wrong
_LAUNCHES_AHEAD = 12  # launches behind the first wrong one that are changed as well
# Largest delay for which a late launch is shortened, and the least share of it that stays.
_MAX_LATE_NS, _MIN_LEFT = 30_000.0, 0.5
_ADVANCE_FACTOR = (
    1.2  # advances faster than the predictions are used up, so that some are left at the end
)


class _Attempt(NamedTuple):
    """A prediction of the whole program, and what it suggests to try next.

    Attributes:
        times: the block times that it was made with.
        spans: starts and ends of its kernels.
        distance: of these from the measured ones, 0 if they are equal (:meth:`Spans.distance`).
        delay_ns: the delays to try next, float64 (launches,).
        waited: whether each launch waited for room, bool (launches,).
    """

    times: BlockTimes
    spans: Spans
    distance: float
    delay_ns: Float64Array
    waited: BoolArray


class _Gains:
    """Step size of each launch, adapted separately."""

    def __init__(self, launches: int) -> None:
        self._gain = np.ones(launches)
        self._last = np.zeros(launches)

    def next(self, more: Float64Array) -> Float64Array:
        """Returns the step size of each launch, float64 (launches,): smaller than before where
        ``more`` has the other sign than at the last call, else larger, up to 1."""
        reversed_, straight = more * self._last < 0, more * self._last > 0
        gain = self._gain * np.where(reversed_, _REVERSED, np.where(straight, _STRAIGHT, 1.0))
        self._gain = np.clip(gain, _MIN_GAIN, 1.0)
        self._last = np.sign(more)
        return self._gain


def _nearest(attempts: Iterable[_Attempt]) -> _Attempt:
    """Returns the attempt with the least distance from the measured times."""
    return min(attempts, key=lambda found: found.distance)


@dataclass(frozen=True, slots=True)
class Replay:
    """A program that is predicted again and again, each time with better durations and delays.

    Here launches wait for streams, events and hosts, as they do in the program. So it shows what
    one launch does to the next: which of them run together, and how long all take.

    Attributes:
        timed: returns the program with given block times.
        spec: the device.
        measured: when the blocks of kernels ran: the kernels' times without their overhead.
        waves: number of waves of each launch if it runs alone, float64.
        kernel: a number for each launch, equal for launches of one kernel, int64.
        delays: finds the delays to try next.
        tails: launches that started while others ran.
    """

    timed: Callable[[BlockTimes], Program]
    spec: DeviceSpec
    measured: Spans
    waves: Float64Array
    kernel: Int64Array
    delays: Delays
    tails: Tails

    @classmethod
    def of(
        cls,
        program: Program,
        timed: Callable[[BlockTimes], Program],
        target_ns: Float64Array,
        waves: Float64Array,
        spec: DeviceSpec,
    ) -> Replay:
        """Returns the replay of a program whose kernels are to take ``target_ns`` each."""
        start_ns = program.measured["start_ns"].astype(np.float64)
        measured = Spans.of(start_ns, start_ns + target_ns)
        delays = Delays.of(program, measured, spec)
        numbers: dict[Hashable, int] = {}
        kernel = [
            numbers.setdefault((x.name, x.blocks, x.threads, x.shared_memory), len(numbers))
            for x in program.sequence.launches
        ]
        return cls(timed, spec, measured, waves, np.array(kernel), delays, measured.tails())

    def improved_times(self, times: BlockTimes, effort: Effort) -> BlockTimes:
        """Returns block times with which the program is predicted nearer to what was measured.

        Args:
            times: block times to begin with.
            effort: how much is predicted, and the strategies that are tried until one is enough.
        """
        sequence = merged(self.timed(times).sequence, self.spec)
        blocks = sum(one.blocks + effort.launch for one in sequence.launches)
        predictions_left = effort.replays // blocks
        if effort is QUICK:
            return self._improved_quickly(
                times, max(_MIN_PREDICTIONS, min(_MAX_PREDICTIONS, predictions_left))
            )
        attempts: list[_Attempt] = []
        for strategy in effort.strategies:
            most = _MAX_STEPS if strategy.in_order else _MAX_PREDICTIONS
            count = max(
                2,
                min(
                    most, predictions_left if attempts else predictions_left - predictions_left // 2
                ),
            )
            begin = self._starting_times(times, strategy, attempts)
            tried = list(self._attempts(begin, strategy, count))
            attempts += [*tried, self._scaled_to_makespan(_nearest(tried))]
            predictions_left -= count
            if predictions_left <= 0 or _nearest(attempts).distance <= _SUFFICIENT_DISTANCE:
                break
            if strategy.begin is StartingPoint.best and _nearest(attempts).times is begin:
                break  # the next strategy would be the same
        nearest = sorted(attempts, key=self._cost)[:_MAX_CANDIDATES]
        return self._block_by_block(nearest, effort.whole).times

    def _improved_quickly(self, times: BlockTimes, count: int) -> BlockTimes:
        """Returns the nearest of few predictions, by the only strategy of :data:`QUICK`."""
        found = list(self._attempts(times, QUICK.strategies[0], count))
        best = min(found, key=self._cost)
        return min(best, self._scaled_to_makespan(best), key=self._cost).times

    def _block_by_block(self, nearest: list[_Attempt], most_blocks: int) -> _Attempt:
        """Returns the nearest attempt, after repeating them without merged blocks. They are
        repeated only if two such predictions fit into ``most_blocks``."""
        whole = self.timed(nearest[0].times).sequence
        most = most_blocks // sum(launch.blocks for launch in whole.launches)
        if most > 1 and merged(whole, self.spec) is not whole:
            some = nearest[:most]
            nearest = [self._predicted(found.times, block_by_block=True) for found in some]
            best, left = min(nearest, key=self._cost), min(most - len(some), _MAX_PREDICTIONS)
            if best.distance > _MAX_MERGED_DISTANCE and left:
                strategy = Strategy(best.times.ends_late, in_order=True, begin=StartingPoint.best)
                nearest += self._attempts(best.times, strategy, left, block_by_block=True)
        return min(nearest, key=self._cost)

    def _starting_times(
        self, times: BlockTimes, strategy: Strategy, attempts: list[_Attempt]
    ) -> BlockTimes:
        """Returns the block times with which a strategy begins, given the attempts before it."""
        match strategy.begin:
            case StartingPoint.first:
                return times._replace(ends_late=strategy.ends_late)
            case StartingPoint.best:
                return _nearest(attempts).times
            case StartingPoint.alike:
                duration_ns = times.duration_ns.copy()
                is_beside = self.tails.beside(len(duration_ns))
                for number in np.unique(self.kernel[is_beside]):
                    same_kernel = is_beside & (self.kernel == number)
                    duration_ns[same_kernel] = np.median(duration_ns[same_kernel])
                return times._replace(duration_ns=duration_ns, ends_late=strategy.ends_late)

    def _cost(self, attempt: _Attempt) -> float:
        """Returns the distance of a prediction, plus a cost if its makespan is wrong."""
        error = abs(attempt.spans.makespan / max(self.measured.makespan, 1.0) - 1)
        return attempt.distance + _MAKESPAN_COST * (error > _MAX_MAKESPAN_ERROR)

    def _attempts(
        self, times: BlockTimes, strategy: Strategy, count: int, *, block_by_block: bool = False
    ) -> Iterator[_Attempt]:
        """Yields predictions, each with block times that the one before suggests."""
        launches = len(self.waves)
        # The duration of a kernel that ran alone is known.
        is_beside = self.tails.beside(launches)
        order = np.argsort(self.measured.start, kind="stable")
        gains = _Gains(launches), _Gains(launches)
        for number in range(1, count + 1):
            found = self._predicted(times, block_by_block=block_by_block)
            yield found
            if found.distance <= _MIN_DISTANCE:
                return
            spread_ns = self._next_spreads(found, gains[0]) if strategy.spreads else times.spread_ns
            late_ns = (found.spans.start - self.measured.start) * strategy.in_order
            duration_ns = self._next_durations(found, spread_ns, gains[1], late_ns)
            duration_ns = np.where(is_beside, duration_ns, times.duration_ns)
            moves = np.ones(launches, np.bool_)
            if strategy.in_order:
                least = int(_ADVANCE_FACTOR * number / count * launches)
                moves[order[max(least, self._first_wrong(found, order) + _LAUNCHES_AHEAD) :]] = (
                    False
                )
            times = times._replace(
                duration_ns=np.where(moves, duration_ns, times.duration_ns),
                spread_ns=np.where(moves, spread_ns, times.spread_ns),
                delay_ns=np.where(moves, found.delay_ns, times.delay_ns),
            )

    def _first_wrong(self, attempt: _Attempt, order: Int64Array) -> int:
        """Returns the index in ``order`` of the first launch whose predicted time is wrong; its
        length if none is."""
        off = np.abs(attempt.spans.start - self.measured.start)
        off += np.abs(attempt.spans.end - self.measured.end)
        wrong = np.flatnonzero(off[order] > _WRONG_NS)
        return int(wrong[0]) if len(wrong) else len(order)

    def _predicted(self, times: BlockTimes, *, block_by_block: bool = False) -> _Attempt:
        """Returns the attempt with some block times; blocks are merged, unless forbidden."""
        program = self.timed(times)
        sequence = program.sequence if block_by_block else merged(program.sequence, self.spec)
        trace = predict_launches(sequence, self.spec, host=program.host)
        spans = Spans.of(*kernel_times(trace))
        delay_ns, waited = self.delays.next(trace, spans, times.delay_ns)
        return _Attempt(times, spans, self.measured.distance(spans), delay_ns, waited)

    def _next_durations(
        self, attempt: _Attempt, spread_ns: Float64Array, gains: _Gains, late_ns: Float64Array
    ) -> Float64Array:
        """Returns the durations to try next, float64 ns (launches,). Kernels that were too short
        get longer blocks. One that starts late gets shorter ones, so that what waits for its end is
        not late."""
        target_ns, length_ns = self.measured.length, attempt.spans.length
        known_ns = np.maximum(_KNOWN_SHARE * target_ns, _KNOWN_NS)
        late_ns = np.where(np.abs(late_ns) < _MAX_LATE_NS, late_ns, 0.0)
        target_ns = np.maximum(target_ns - late_ns, _MIN_LEFT * target_ns)
        ratio = target_ns / np.maximum(length_ns, 1.0)
        power = _POWER * gains.next(target_ns - length_ns)
        factor = np.clip(ratio, 1 / _MAX_FACTOR, _MAX_FACTOR) ** power
        factor = np.where(np.abs(length_ns - target_ns) <= known_ns, 1.0, factor)
        # With another spread and the same longest block the kernel would take another time.
        falls = np.maximum(-spread_ns, 0) - np.maximum(-attempt.times.spread_ns, 0)
        more_ns = _SPREAD_TO_LONGEST * falls
        if attempt.times.ends_late:
            grows = np.maximum(spread_ns, 0) - np.maximum(attempt.times.spread_ns, 0)
            more_ns += (1 - 1 / self.waves) * grows
        return np.maximum(attempt.times.duration_ns * factor + more_ns, 0.0)

    def _next_spreads(self, attempt: _Attempt, gains: _Gains) -> Float64Array:
        """Returns over how many ns the ends of each launch's blocks are spread to try next, float64
        (launches,), so that the launches that wait for them start as measured."""
        first, second, apart_ns = self.tails
        times = attempt.times
        more_ns = apart_ns - (attempt.spans.end[first] - attempt.spans.start[second])
        most_ns = _MAX_SPREAD * times.duration_ns
        # Before its last blocks had started, its own were next. A launch that is farther off than
        # a block runs waited for something else.
        limit_ns = times.duration_ns[first]
        is_evidence = np.ones(len(first), np.bool_)
        longest_ns = most_ns
        if times.ends_late:
            tail_ns = _MAX_TAIL * self.measured.length
            limit_ns = np.maximum(limit_ns, tail_ns[first])
            longest_ns = np.maximum(most_ns, tail_ns)
            is_evidence = attempt.waited[second]
        is_evidence = is_evidence & (apart_ns <= limit_ns) & (np.abs(more_ns) < limit_ns)
        more = np.full(len(times.spread_ns), -np.inf)
        np.maximum.at(more, first[is_evidence], more_ns[is_evidence])
        more = np.where(np.isfinite(more), more, 0.0)
        spread_ns = times.spread_ns + _SPREAD_SHARE * gains.next(more) * more
        return np.where(more == 0, times.spread_ns, np.clip(spread_ns, -most_ns, longest_ns))

    def _scaled_to_makespan(self, attempt: _Attempt) -> _Attempt:
        """Returns the nearest attempt whose durations are scaled to match the makespan."""
        is_beside = self.tails.beside(len(self.waves))
        best = attempt
        for _ in range(_SCALINGS):
            ratio = self.measured.makespan / max(attempt.spans.makespan, 1.0)
            if not _SCALED_SHARE <= abs(ratio - 1) <= _MAX_SCALED_SHARE:
                break
            factor = np.where(is_beside, ratio, 1.0)
            times = attempt.times
            attempt = self._predicted(
                times._replace(
                    duration_ns=times.duration_ns * factor, spread_ns=times.spread_ns * factor
                )
            )
            best = min(best, attempt, key=self._cost)
        return best
