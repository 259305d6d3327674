"""Looks for ranks that are late in such a way that a program hangs."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from tbsched.advice.together.given import Pairs
from tbsched.advice.together.ranks.standstill import Standstill
from tbsched.advice.together.ranks.work import Work, members
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import predict
from tbsched.program.sequence import Launch, Sequence, with_launches
from tbsched.traces.hang import Hang
from tbsched.traces.trace import Trace

Try: TypeAlias = tuple[Sequence, list[float]]  # a program, and delays of its calls

PLAYS = 300  # predictions with random delays; without them, two for each standstill
_MOST_STANDSTILLS = 40
CALL = 5e-6  # seconds: about what a launch call takes
_UNEVEN = 0.05  # share of its duration by which a block stays longer: GPUs end none together
_MOST_UNEVEN = (0.05, 0.3, 1.0)  # where other durations are looked for
_OFTEN = 0.5
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
        """Returns delays with which the program hangs; None: none are found.

        Args:
            work: the order of the program.
            found: what may hang it.
        """
        for sequence, late in self._tries(work, found):
            if time.monotonic() > self.deadline:
                break
            # Calls take time, too: a hang that needs them all at once is none that a GPU repeats.
            called = [gap + CALL for gap in late]
            if self._hang(sequence, called) is None:
                continue
            for played, host in itertools.product((self.sequence, sequence), (late, called)):
                hang = self._hang(played, host)
                if hang is not None:
                    return Witness(played, tuple(host), hang)
        punctual = [0.0] * len(self.sequence)
        hang = self._hang(self.sequence, punctual)
        return None if hang is None else Witness(self.sequence, tuple(punctual), hang)

    def _hang(self, sequence: Sequence, host: list[float]) -> Hang | None:
        self.plays += 1
        trace = predict(sequence, list(self.specs), self.policy, host=host)
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
        long = 1e-3 + 2 * sum(_longest(launch) for launch in work.launches)
        drawn = random.Random(1)
        uneven = self._uneven(drawn)
        found = found[:_MOST_STANDSTILLS]
        yield uneven, [0.0] * len(self.sequence)
        for standstill in found:
            yield uneven, self._ordered(standstill, long)
        for gaps in self._late_hosts(long):
            yield uneven, gaps
        for standstill in found:
            yield self._held(work, standstill, long, None)
        # A launch that comes just after another has ended finds what it has left.
        durations = sorted({_longest(launch) for launch in self.sequence.launches})
        gaps = [long, long / 10, 1e-4, 1e-5, *(each + CALL for each in durations)]
        for number in range(PLAYS):
            if found and number % 2:
                yield self._held(work, found[number // 2 % len(found)], long, drawn)
                continue
            often = drawn.choice((0.1, 0.3, 0.6))
            late = [drawn.choice(gaps) if drawn.random() < often else 0.0 for _ in self.sequence]
            yield self._uneven(drawn), late

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
        return _with_durations(
            self.sequence,
            [
                _spread(event, drawn, _UNEVEN) if isinstance(event.duration, float) else []
                for event in self.sequence
                if isinstance(event, Launch)
            ],
        )

    def _held(
        self, work: Work, standstill: Standstill, long: float, drawn: random.Random | None
    ) -> Try:
        """Returns the program in which the launches of a standstill arrive in its order.

        A launch that waits for other work comes when a block of that work, which stays longer, has
        ended; any other one when its host is late. Blocks of other work may stay until later ones
        arrive, which then find the SMs as that work configured them.

        Args:
            work: the order of the program.
            standstill: what shall happen.
            long: between two arrivals.
            drawn: draws durations, and more that is late. None: nothing else changes.
        """
        some = drawn or random.Random(1)
        steps = _steps(standstill)
        share = some.choice(_MOST_UNEVEN) if drawn else _UNEVEN
        stay = [_spread(launch, some, share) for launch in work.launches]
        never = work.of(standstill.groups)
        if drawn and drawn.random() < _OFTEN:
            for row in (stay[k] for k in range(len(stay)) if not never >> k & 1):
                _outlast(row, drawn, long, max(steps.values(), default=1))
        gaps, clocks, number = [], dict[int, float](), -1
        for event in self.sequence:
            number += isinstance(event, Launch)
            host = getattr(event, "host", 0)
            now, gap = clocks.get(host, 0.0), 0.0
            arrives = long * steps.get(number, 0) if isinstance(event, Launch) else 0.0
            if arrives > now:
                before = [k for k in members(work.ended_before[number] & ~never) if stay[k]]
                if before and not (drawn and drawn.random() < 0.3):
                    row = stay[before[-1]]
                    block = some.randrange(len(row))
                    row[block] = max(row[block], arrives - now)
                else:
                    gap = arrives - now
            elif drawn and drawn.random() < 0.15:
                gap = drawn.choice((1e-5, 1e-4, long))
            gaps.append(gap)
            clocks[host] = now + gap
        return _with_durations(self.sequence, stay), gaps

    def _ordered(self, standstill: Standstill, long: float) -> list[float]:
        """Returns delays after which the launches of a standstill arrive in its order."""
        steps = _steps(standstill)
        gaps, waited, number = [], dict[int, int](), -1
        for event in self.sequence:
            number += isinstance(event, Launch)
            host = getattr(event, "host", 0)
            step = steps.get(number, 0) if isinstance(event, Launch) else 0
            gaps.append(long * max(0, step - waited.get(host, 0)))
            waited[host] = max(step, waited.get(host, 0))
        return gaps


def _steps(standstill: Standstill) -> dict[int, int]:
    """Returns when launches arrive, as numbers from 1 on."""
    return {
        number: 1 + step for stuck in standstill.stuck for step, number in enumerate(stuck.order)
    }


def _spread(launch: Launch, drawn: random.Random, share: float) -> list[float]:
    """Returns durations of blocks that are longer by up to a share; empty: it has none."""
    durations = launch.block_durations()
    if durations is None:
        return []
    longer = np.random.default_rng(drawn.getrandbits(32)).random(launch.blocks)
    found: list[float] = (durations * (1 + share * longer)).tolist()
    return found


def _outlast(row: list[float], drawn: random.Random, long: float, steps: int) -> None:
    """Makes some blocks of a launch stay while so many others arrive, as often as not."""
    if not row or drawn.random() < _OFTEN:
        return
    share = drawn.choice((0.1, 0.5, 1.0))
    longest = drawn.randint(1, steps)
    for block in range(len(row)):
        if drawn.random() < share:
            row[block] = long * (drawn.randint(1, longest) - 0.5)


def _with_durations(sequence: Sequence, stay: list[list[float]]) -> Sequence:
    """Returns a program with other durations of launches; none: as they are."""
    return with_launches(
        sequence,
        [
            replace(launch, duration=tuple(row)) if row else launch
            for launch, row in zip(sequence.launches, stay, strict=True)
        ],
    )


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
