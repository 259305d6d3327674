"""Whether launches are resident together, literally: every history, played from every state.

A history is a list of steps. In a step a launch arrives, or some resident blocks of an outsider, a
launch outside the group, leave. All orders of arrival are played, and all sets of blocks that can
leave; an outsider may never arrive, and its blocks may stay for ever. A group is safe if in no
history a launch of the group has arrived of which a block waits at the end.

Nothing here knows the search. Blocks leave singly, which no release does. So histories are played
as timed sequences: a second lies between two steps, a block that leaves gets just that duration,
and all others stay for longer than the history. Far slower, and plain.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from tbsched.hardware.initial_state import InitialState
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import predict
from tbsched.program.sequence import Launch, Sequence

FOREVER = 1e6  # seconds: longer than any history, of which each step takes one


@dataclass(frozen=True)
class Step:
    """A launch arrives; or, if there are any, these blocks of it leave."""

    launch: int
    leaving: tuple[int, ...] = ()


@dataclass(frozen=True)
class Case:
    """A question: the launches, one group of them, and who waits for whom."""

    spec: DeviceSpec = field(repr=False)
    policy: str
    launches: tuple[Launch, ...]
    group: frozenset[int]
    after: tuple[tuple[int, int], ...] = ()

    @property
    def outsiders(self) -> list[int]:
        return [k for k in range(len(self.launches)) if k not in self.group]

    @functools.cached_property
    def awaited(self) -> set[int]:
        """The group, and the launches for which it waits."""
        found = set(self.group)
        while more := {a for a, b in self.after if b in found} - found:
            found |= more
        return found


@dataclass(frozen=True)
class History:
    """What happened so far, and from which state."""

    case: Case
    state: InitialState
    steps: tuple[Step, ...] = ()
    # How long each block stays, by launch that has arrived, in order.
    stay: dict[int, tuple[float, ...]] = field(default_factory=dict)

    @property
    def now(self) -> float:
        return float(len(self.steps))

    def started(self) -> dict[int, list[float | None]]:
        """Returns when each block of each launch that has arrived started; None: it still waits."""
        if not self.stay:
            return {}
        launches = [
            dataclasses.replace(self.case.launches[k], duration=stay)
            for k, stay in self.stay.items()
        ]
        arrivals = [float(n) for n, step in enumerate(self.steps) if not step.leaving]
        trace = predict(
            Sequence(launches), self.case.spec, self.case.policy, self.state, issue_times=arrivals
        )
        found: dict[int, list[float | None]] = {}
        now = self.now
        for k, placement in zip(self.stay, trace, strict=True):
            assert placement.start_ns is not None
            starts = (placement.start_ns / 1e9).tolist()
            found[k] = [
                start if sm >= 0 and start < now else None
                for start, sm in zip(starts, placement.smid.tolist(), strict=True)
            ]
        return found

    def with_arrival(self, launch: int) -> History:
        stay = (FOREVER,) * self.case.launches[launch].blocks
        return dataclasses.replace(
            self, steps=(*self.steps, Step(launch)), stay={**self.stay, launch: stay}
        )

    def with_leaving(
        self, launch: int, blocks: tuple[int, ...], started: list[float | None]
    ) -> History:
        stay = list(self.stay[launch])
        for block in blocks:
            start = started[block]
            assert start is not None
            stay[block] = self.now - start
        return dataclasses.replace(
            self, steps=(*self.steps, Step(launch, blocks)), stay={**self.stay, launch: tuple(stay)}
        )

    def longer(self, started: dict[int, list[float | None]]) -> Iterator[History]:
        """Every history of one step more."""
        for launch in range(len(self.case.launches)):
            if launch not in self.stay and self._may_arrive(launch, started):
                yield self.with_arrival(launch)
        since = [] if self._some_waited(started) else [s.launch for s in self._since_arrival()]
        for launch in self.case.outsiders:
            if launch not in self.stay or launch in since:
                continue
            there = self.resident(launch, started)
            for count in range(1, len(there) + 1):
                for blocks in itertools.combinations(there, count):
                    yield self.with_leaving(launch, blocks, started[launch])

    def resident(self, launch: int, started: dict[int, list[float | None]]) -> list[int]:
        """The blocks of a launch that have started, and have not left."""
        blocks = enumerate(zip(started[launch], self.stay[launch], strict=True))
        return [n for n, (start, stay) in blocks if start is not None and stay == FOREVER]

    def _may_arrive(self, launch: int, started: dict[int, list[float | None]]) -> bool:
        """Whether all that it waits for are, or were, resident whole."""
        return all(
            first in started and None not in started[first]
            for first, second in self.case.after
            if second == launch
        )

    def _some_waited(self, started: dict[int, list[float | None]]) -> bool:
        """Whether blocks waited after the last arrival: then it matters which leave first."""
        last = self.now - 1 - len(self._since_arrival())
        starts = itertools.chain.from_iterable(started.values())
        return any(start is None or start > last for start in starts)

    def _since_arrival(self) -> list[Step]:
        """The steps since the last arrival, in which blocks left."""
        return list(itertools.takewhile(lambda step: step.leaving, reversed(self.steps)))

    def strands(self, started: dict[int, list[float | None]]) -> bool:
        """Whether a block of the group waits, or a launch for which the group waits has one."""
        return any(None in started[k] for k in self.case.awaited if k in started)


def shortest(case: Case) -> History | None:
    """The first of the shortest histories that strand a block; None if there is none."""
    level = [History(case, state) for state in case.spec.initial_states(case.policy)]
    while level:
        following = []
        for history in level:
            started = history.started()
            if history.strands(started):
                return history
            if case.awaited <= history.stay.keys():
                continue  # all their blocks have started: whatever comes, none waits
            following += history.longer(started)
        level = following
    return None


def random_history(case: Case, rng: random.Random) -> tuple[History, bool]:
    """Any history in which all launches arrive, and whether it strands a block.

    Blocks of outsiders leave by chance, singly or many at once.
    """
    history = History(case, rng.choice(case.spec.initial_states(case.policy)))
    ahead = list(range(len(case.launches)))
    rng.shuffle(ahead)
    while ahead:
        history = history.with_arrival(ahead.pop())
        started = history.started()
        if history.strands(started):
            return history, True
        for launch in case.outsiders:
            there = history.resident(launch, started) if launch in started else []
            if there and rng.random() < 0.6:
                blocks = rng.sample(there, rng.randint(1, len(there)))
                history = history.with_leaving(launch, tuple(blocks), started[launch])
                started = history.started()
    return history, False
