"""Looks for ranks that are late in such a way that a program hangs."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass

from tbsched.advice.together.given import Pairs
from tbsched.advice.together.ranks.standstill import Standstill
from tbsched.advice.together.ranks.work import Work
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import predict
from tbsched.program.sequence import Launch, Sequence
from tbsched.traces.hang import Hang
from tbsched.traces.trace import Trace

PLAYS = 300  # predictions with random delays; without them, one for each standstill
_MOST_STANDSTILLS = 40
_LATER = 5e-6  # seconds: about what a launch call takes


@dataclass(frozen=True, slots=True)
class Witness:
    """Delays with which a program hangs.

    Attributes:
        host: for each event the seconds since its host's last call returned, as ``host`` of
            :func:`tbsched.predict`.
        hang: what it comes to.
    """

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
        long = 1e-3 + 2 * sum(_longest(launch) for launch in work.launches)
        for gaps in self._delays(found, long):
            if time.monotonic() > self.deadline:
                break
            self.plays += 1
            trace = predict(self.sequence, list(self.specs), self.policy, host=gaps)
            if trace.hang is not None and self._keeps_order(trace):
                return Witness(tuple(gaps), trace.hang)
        return None

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

    def _delays(self, found: list[Standstill], long: float) -> Iterator[list[float]]:
        yield [0.0] * len(self.sequence)
        for standstill in found[:_MOST_STANDSTILLS]:
            yield self._ordered(standstill, long)
        hosts = sorted({event.host for event in self.sequence if hasattr(event, "host")})
        for late in hosts if len(hosts) > 1 else ():
            seen: set[int] = set()
            gaps = []
            for event in self.sequence:
                host = getattr(event, "host", 0)
                gaps.append(long if host == late and host not in seen else 0.0)
                seen.add(host)
            yield gaps
        drawn = random.Random(1)
        # A launch that comes just after another has ended finds what it has left.
        durations = sorted({_longest(launch) for launch in self.sequence.launches})
        gaps = [long, long / 10, 1e-4, 1e-5, *(each + _LATER for each in durations)]
        for _ in range(PLAYS):
            often = drawn.choice((0.1, 0.3, 0.6))
            yield [drawn.choice(gaps) if drawn.random() < often else 0.0 for _ in self.sequence]

    def _ordered(self, standstill: Standstill, long: float) -> list[float]:
        """Returns delays after which the launches of a standstill arrive in its order."""
        steps = {}
        for stuck in standstill.stuck:
            for step, number in enumerate(stuck.order):
                steps[number] = 1 + step
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
