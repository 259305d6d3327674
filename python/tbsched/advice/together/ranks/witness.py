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
    Try,
    durations,
    spread,
    with_durations,
)
from tbsched.advice.together.ranks.room import Stuck
from tbsched.advice.together.ranks.standstill import Standstill
from tbsched.advice.together.ranks.work import Work
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import predict
from tbsched.program.sequence import Launch, Sequence
from tbsched.traces.hang import Hang
from tbsched.traces.trace import Trace

PLAYS = 1000  # histories and random delays; before them, two for each standstill
_MOST_STANDSTILLS = 40
CALL = 5e-6  # seconds: about what a launch call takes
_AGAIN, _SHARE = 4, 0.01  # how often a hang is repeated with blocks that much longer, at most
_MUCH = 2.1  # a duration so many times as long is named


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
class Search:
    """Plays a program with ranks that are late.

    Attributes:
        plays: how many predictions it took.
    """

    sequence: Sequence
    specs: tuple[DeviceSpec, ...]
    after: Pairs
    policy: str | None
    deadline: float
    plays: int = 0

    def witness(self, work: Work, found: list[Standstill]) -> Witness | None:
        """Returns delays with which the program hangs; None: none are found."""
        last_choice = None
        for sequence, late in self._tries(work, found):
            if time.monotonic() > self.deadline:
                break
            # Calls take time, too: a hang that needs them all at once is none that a GPU repeats.
            called = [gap + CALL for gap in late]
            if self._hang(sequence, called) is None:
                continue
            for played, host in itertools.product((self.sequence, sequence), (late, called)):
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
        """Returns whether it hangs again if calls and blocks take a little longer."""
        drawn = random.Random(1)
        for _ in range(_AGAIN):
            stay = [spread(launch, drawn, _SHARE) for launch in witness.sequence.launches]
            late = [gap + 2 * CALL * drawn.random() for gap in witness.host]
            if self._hang(with_durations(witness.sequence, stay), late) is None:
                return False
        return True

    def _hang(self, sequence: Sequence, host: list[float]) -> Hang | None:
        trace = self._play((sequence, host))
        return trace.hang if trace.hang is not None and self._keeps_order(trace) else None

    def _keeps_order(self, trace: Trace) -> bool:
        """Returns whether launches arrive only when those before them are resident."""
        for first, second in self.after:
            starts, later = trace[first].start_ns, trace[second].start_ns
            assert starts is not None  # a timed sequence has times
            assert later is not None
            begun = later[trace[second].smid >= 0]
            whole = bool((trace[first].smid >= 0).all())
            if len(begun) and not (whole and begun.min() >= starts.max()):
                return False
        return True

    def _tries(self, work: Work, found: list[Standstill]) -> Iterator[Try]:
        """Yields durations of blocks and delays of calls with which a program may hang."""
        long = 1e-3 + 2 * sum(_longest(launch) for launch in work.launches)
        drawn = random.Random(1)
        uneven = self._uneven(drawn)
        found = found[:_MOST_STANDSTILLS]
        yield uneven, [0.0] * len(self.sequence)
        for standstill in found:
            yield uneven, self._ordered(standstill, long)
        for gaps in self._late_hosts(long):
            yield uneven, gaps
        histories = [self._histories(work, standstill, long) for standstill in found]
        for history in histories:
            yield from next(history)
        # A launch that comes just after another has ended finds what it has left.
        longest = sorted({_longest(launch) for launch in self.sequence.launches})
        gaps = [long, long / 10, 1e-4, 1e-5, *(each + CALL for each in longest)]
        in_turn = itertools.cycle(histories)
        for number in range(PLAYS):
            if found and number % 4:
                yield from next(next(in_turn))
                continue
            often = drawn.choice((0.1, 0.3, 0.6))
            late = [drawn.choice(gaps) if drawn.random() < often else 0.0 for _ in self.sequence]
            yield self._uneven(drawn), late

    def _histories(
        self, work: Work, standstill: Standstill, long: float
    ) -> Iterator[tuple[Try, ...]]:
        """Yields programs in which the launches of a standstill are stuck on each of their GPUs.

        The first one has the order of the standstill, and no more. Then what happens on a GPU is
        drawn. Once launches are stuck there it is kept, and only other GPUs are drawn again. An
        empty tuple: no program yet.
        """
        history = History(self.sequence, work, standstill, long)
        drawn = random.Random(1)
        calm = dict.fromkeys(standstill.stuck, Scene())
        yield (history.program(history.settled(calm, durations(work, drawn), self._play)[0], calm),)
        kept: dict[Stuck, Scene] = {}
        while True:
            scenes = {
                stuck: kept.get(stuck) or history.scene(stuck, self.specs, drawn)
                for stuck in standstill.stuck
            }
            stay, trace = history.settled(scenes, durations(work, drawn), self._play)
            kept = {stuck: scenes[stuck] for stuck in scenes if history.stays_stuck(stuck, trace)}
            if len(kept) < len(scenes):
                yield ()
            else:
                kept = {}
                yield (history.program(stay, scenes),)

    def _play(self, one: Try) -> Trace:
        self.plays += 1
        sequence, host = one
        return predict(sequence, list(self.specs), self.policy, host=host)

    def _late_hosts(self, long: float) -> Iterator[list[float]]:
        """Yields delays of the first call of one host."""
        hosts = sorted({event.host for event in self.sequence if hasattr(event, "host")})
        for late in hosts if len(hosts) > 1 else ():
            seen: set[int] = set()
            gaps = []
            for event in self.sequence:
                host = getattr(event, "host", 0)
                gaps.append(long if host == late and host not in seen else 0.0)
                seen.add(host)
            yield gaps

    def _uneven(self, drawn: random.Random) -> Sequence:
        """Returns the program with blocks that do not end together, unless it says when they do."""
        return with_durations(
            self.sequence,
            [
                spread(event, drawn) if isinstance(event.duration, float) else []
                for event in self.sequence
                if isinstance(event, Launch)
            ],
        )

    def _ordered(self, standstill: Standstill, long: float) -> list[float]:
        """Returns delays after which the launches of a standstill arrive in its order."""
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


def _longest(launch: Launch) -> float:
    durations = launch.block_durations()
    return 0.0 if durations is None else float(durations.max())


def longer_words(sequence: Sequence, witness: Sequence) -> str:
    """Says which durations of a witness are other ones than those of the program."""
    if witness == sequence:
        return ""
    longer = [
        str(number)
        for number, (given, other) in enumerate(
            zip(sequence.launches, witness.launches, strict=True)
        )
        if _longest(other) > _longest(given) * _MUCH
    ]
    if not longer:
        return ", where blocks of a launch take different times"
    words = "launch" if len(longer) == 1 else "launches"
    return f" and blocks of {words} {', '.join(longer)} take longer"
