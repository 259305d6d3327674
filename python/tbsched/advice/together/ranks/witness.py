"""Looks for ranks that are late in such a way that a program hangs."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass

from tbsched.advice.together.given import Pairs
from tbsched.advice.together.ranks.history import (
    History,
    Scene,
    TimedProgram,
    durations,
    spread,
    with_durations,
)
from tbsched.advice.together.ranks.room import Stuck
from tbsched.advice.together.ranks.standstill import Standstill
from tbsched.advice.together.ranks.work import LaunchOrder
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import predict
from tbsched.program.sequence import Launch, Sequence
from tbsched.traces.hang import Hang
from tbsched.traces.trace import Trace

PLAYS = 1000  # histories and random delays; before them, two for each standstill
_MAX_STANDSTILLS = 40
CALL = 5e-6  # seconds: about what a launch call takes
_REPEATS, _SHARE = 4, 0.01  # how often a hang is repeated with blocks that much longer, at most
_NAMED_FACTOR = 2.1  # a duration so many times as long is named


@dataclass(frozen=True, slots=True)
class Witness:
    """Delays with which a program hangs.

    Attributes:
        sequence: the program; with other durations, if it hangs only with them.
        host: for each event the seconds since its host's last call returned, as ``host`` of
            :func:`tbsched.predict`.
        hang: what it comes to.
    """

    sequence: Sequence
    host: tuple[float, ...]
    hang: Hang


@dataclass(slots=True)
class WitnessSearch:
    """Plays a program with late ranks, in search of a hang.

    Attributes:
        plays: how many predictions it took.
    """

    sequence: Sequence
    specs: tuple[DeviceSpec, ...]
    after: Pairs
    policy: str | None
    deadline: float
    plays: int = 0

    def witness(self, work: LaunchOrder, standstills: list[Standstill]) -> Witness | None:
        """Returns a program and delays of its calls with which it hangs; None: none was found."""
        last_choice = None
        for sequence, delays in self._candidates(work, standstills):
            if time.monotonic() > self.deadline:
                break
            # Calls take time, too: a hang that needs them all at once is none that a GPU repeats.
            called = [gap + CALL for gap in delays]
            if self._hang(sequence, called) is None:
                continue
            for played, host in itertools.product((self.sequence, sequence), (delays, called)):
                hang = self._hang(played, host)
                if hang is None:
                    continue
                witness = Witness(played, tuple(host), hang)
                if self._repeats(witness):
                    return witness
                last_choice = last_choice or witness
        if last_choice is not None:
            return last_choice
        punctual = [0.0] * len(self.sequence)
        hang = self._hang(self.sequence, punctual)
        return None if hang is None else Witness(self.sequence, tuple(punctual), hang)

    def _repeats(self, witness: Witness) -> bool:
        """Returns whether a program hangs again if calls and blocks take a little longer."""
        rng = random.Random(1)
        for _ in range(_REPEATS):
            stay = [spread(launch, rng, _SHARE) for launch in witness.sequence.launches]
            late = [gap + 2 * CALL * rng.random() for gap in witness.host]
            if self._hang(with_durations(witness.sequence, stay), late) is None:
                return False
        return True

    def _hang(self, sequence: Sequence, host: list[float]) -> Hang | None:
        """Returns the hang of a program with delayed calls; None: it ends, or breaks ``after``."""
        trace = self._play((sequence, host))
        return trace.hang if trace.hang is not None and self._keeps_order(trace) else None

    def _keeps_order(self, trace: Trace) -> bool:
        """Returns whether in a prediction the second launch of each pair of ``after`` starts only
        when the first is resident whole."""
        for first, second in self.after:
            starts, later = trace[first].start_ns, trace[second].start_ns
            assert starts is not None  # a timed sequence has times
            assert later is not None
            begun = later[trace[second].smid >= 0]
            whole = bool((trace[first].smid >= 0).all())
            if len(begun) and not (whole and begun.min() >= starts.max()):
                return False
        return True

    def _candidates(
        self, work: LaunchOrder, standstills_: list[Standstill]
    ) -> Iterator[TimedProgram]:
        """Yields programs, each with delays of its calls in seconds, that may hang."""
        long = 1e-3 + 2 * sum(_longest_seconds(launch) for launch in work.launches)
        rng = random.Random(1)
        uneven = self._with_uneven_blocks(rng)
        standstills_ = standstills_[:_MAX_STANDSTILLS]
        yield uneven, [0.0] * len(self.sequence)
        for standstill in standstills_:
            yield uneven, self._delays_in_order(standstill, long)
        for gaps in self._delays_of_late_hosts(long):
            yield uneven, gaps
        histories = [self._histories(work, standstill, long) for standstill in standstills_]
        for history in histories:
            yield from next(history)
        # A launch that comes just after another has ended finds what it has left.
        longest = sorted({_longest_seconds(launch) for launch in self.sequence.launches})
        gaps = [long, long / 10, 1e-4, 1e-5, *(longest_ + CALL for longest_ in longest)]
        in_turn = itertools.cycle(histories)
        for number in range(PLAYS):
            if standstills_ and number % 4:
                yield from next(next(in_turn))
                continue
            often = rng.choice((0.1, 0.3, 0.6))
            late = [rng.choice(gaps) if rng.random() < often else 0.0 for _ in self.sequence]
            yield self._with_uneven_blocks(rng), late

    def _histories(
        self, work: LaunchOrder, standstill: Standstill, long: float
    ) -> Iterator[tuple[TimedProgram, ...]]:
        """Yields programs in which the launches of a standstill are stuck on each GPU.

        The first one has the order of the standstill, and no more. Then what happens on a GPU is
        drawn. Once launches are stuck there it is kept, and only other GPUs are drawn again. An
        empty tuple: no program yet.
        """
        history = History(self.sequence, work, standstill, long)
        rng = random.Random(1)
        calm = dict.fromkeys(standstill.stuck, Scene())
        yield (
            history.delayed_program(
                history.fitted_durations(calm, durations(work, rng), self._play)[0], calm
            ),
        )
        kept: dict[Stuck, Scene] = {}
        while True:
            scenes = {
                stuck: kept.get(stuck) or history.random_scene(stuck, self.specs, rng)
                for stuck in standstill.stuck
            }
            stay, trace = history.fitted_durations(scenes, durations(work, rng), self._play)
            kept = {stuck: scenes[stuck] for stuck in scenes if history.stays_stuck(stuck, trace)}
            if len(kept) < len(scenes):
                yield ()
            else:
                kept = {}
                yield (history.delayed_program(stay, scenes),)

    def _play(self, candidate: TimedProgram) -> Trace:
        """Returns the prediction of a program with delays of its calls."""
        self.plays += 1
        sequence, host = candidate
        return predict(sequence, list(self.specs), self.policy, host=host)

    def _delays_of_late_hosts(self, long: float) -> Iterator[list[float]]:
        """Yields for each host a delay in seconds for each event: only the host's first call is
        late, by ``long``."""
        hosts = sorted({event.host for event in self.sequence if hasattr(event, "host")})
        for late in hosts if len(hosts) > 1 else ():
            seen: set[int] = set()
            gaps = []
            for event in self.sequence:
                host = getattr(event, "host", 0)
                gaps.append(long if host == late and host not in seen else 0.0)
                seen.add(host)
            yield gaps

    def _with_uneven_blocks(self, rng: random.Random) -> Sequence:
        """Returns the program with blocks that end at different times, if it does not say when."""
        return with_durations(
            self.sequence,
            [
                spread(event, rng) if isinstance(event.duration, float) else []
                for event in self.sequence
                if isinstance(event, Launch)
            ],
        )

    def _delays_in_order(self, standstill: Standstill, long: float) -> list[float]:
        """Returns a delay in seconds for each event, with which the launches of a standstill arrive
        in its order, ``long`` apart."""
        steps = {
            number: step for stuck in standstill.stuck for step, number in enumerate(stuck.order, 1)
        }
        gaps, waited, number = [], dict[int, int](), -1
        for event in self.sequence:
            number += isinstance(event, Launch)
            host = getattr(event, "host", 0)
            step = steps.get(number, 0) if isinstance(event, Launch) else 0
            gaps.append(long * max(0, step - waited.get(host, 0)))
            waited[host] = max(step, waited.get(host, 0))
        return gaps


def _longest_seconds(launch: Launch) -> float:
    """Returns the duration of the longest block, in seconds; 0: unknown."""
    durations = launch.block_durations()
    return 0.0 if durations is None else float(durations.max())


def longer_words(sequence: Sequence, witness: Sequence) -> str:
    """Returns words: which launches of a witness have much longer blocks than the program."""
    if witness == sequence:
        return ""
    longer = [
        str(number)
        for number, (given, other) in enumerate(
            zip(sequence.launches, witness.launches, strict=True)
        )
        if _longest_seconds(other) > _longest_seconds(given) * _NAMED_FACTOR
    ]
    if not longer:
        return ", where blocks of a launch take different times"
    words = "launch" if len(longer) == 1 else "launches"
    return f" and blocks of {words} {', '.join(longer)} take longer"
