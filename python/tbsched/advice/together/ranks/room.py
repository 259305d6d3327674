"""Which launches may find no room on one GPU, for good, beside others that wait for each other."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from tbsched.advice.together.given import with_blocks
from tbsched.advice.together.problem import Problem, decided
from tbsched.advice.together.ranks.bound import always_fit
from tbsched.advice.together.ranks.work import Mask, Work, mask, members
from tbsched.hardware.spec import DeviceSpec
from tbsched.program.sequence import Launch

_MOST_ORDERS = 120


@dataclass(frozen=True, slots=True)
class Stuck:
    """One way in which a GPU may come to a standstill.

    Attributes:
        waiting: launches that have arrived and may never be resident whole.
        short: whether kernels that wait for nobody may find no room, either.
        order: in which the launches arrive.
    """

    waiting: Mask
    short: bool
    order: tuple[int, ...] = ()


@dataclass(slots=True)
class Room:
    """What finds room on one GPU. It asks for one GPU alone, and remembers the answers.

    Attributes:
        plays: predictions per question, as of :func:`tbsched.coresident`.
        deadline: by time.monotonic().
        asked: how many predictions it took so far.
    """

    work: Work
    gpu: int
    spec: DeviceSpec
    policy: str
    plays: int
    deadline: float
    asked: int = 0
    _known: dict[object, bool] = field(default_factory=dict)

    def stuck(self, arrived: Mask) -> list[Stuck]:
        """Returns all ways in which launches that meet others may be stuck; none: there are none.

        Args:
            arrived: the launches of this GPU that have arrived, and whose groups do not end.
        """
        chosen = list(members(arrived))
        if not chosen:
            return []
        beside = self._beside(arrived)
        alone = beside & ~self.work.meeting
        short = not all(self._fits(tuple(chosen), beside, one) for one in members(alone))
        if self._fits(tuple(chosen), beside):
            return [Stuck(0, True)] if short else []
        if len({self.work.launches[k].priority for k in chosen}) > 1:
            return [Stuck(arrived, True, tuple(chosen))]
        orders = list(itertools.islice(self._orders(chosen), _MOST_ORDERS + 1))
        if len(orders) > _MOST_ORDERS:
            return [Stuck(arrived, True, tuple(chosen))]
        found = {}
        for order in orders:
            whole = 0
            while whole < len(order) and self._fits(order[: whole + 1], beside, in_order=True):
                whole += 1
            waiting = mask(order[whole:])
            if waiting:
                found[waiting] = Stuck(waiting, True, order)
        return list(found.values()) or [Stuck(0, True)]

    def _orders(self, chosen: list[int]) -> Iterable[tuple[int, ...]]:
        """Returns the orders in which the launches can arrive."""
        for order in itertools.permutations(chosen):
            arrived = 0
            for number in order:
                if self.work.earlier[number] & mask(chosen) & ~arrived:
                    break
                arrived |= 1 << number
            else:
                yield order

    def _beside(self, arrived: Mask) -> Mask:
        """Returns other launches that may be on the GPU while these arrive, or before."""
        found, ended = 0, -1
        for number in members(arrived):
            ended &= self.work.before[number]
        for number, launch in enumerate(self.work.launches):
            waits = self.work.before[number] & arrived
            last = self.work.earlier[number] & arrived == arrived
            known = (arrived | ended) >> number & 1
            if launch.gpu == self.gpu and not (waits or last or known):
                found |= 1 << number
        return found

    def _fits(
        self, chosen: tuple[int, ...], beside: Mask, short: int | None = None,
        in_order: bool = False,
    ) -> bool:  # fmt: skip
        """Returns whether the launches are proved to be resident together.

        Args:
            chosen: the launches, in the order in which they arrive if `in_order`.
            beside: others that may be there, and end.
            short: the number of a kernel of which a cluster must find room, too.
            in_order: whether a launch arrives only when those before it are resident.
        """
        key = (chosen, beside, short, in_order)
        if key not in self._known:
            self._known[key] = self._proved(*key)
        return self._known[key]

    def _proved(
        self, chosen: tuple[int, ...], beside: Mask, short: int | None, in_order: bool
    ) -> bool:
        group = [_apart(self.work.launches[k], at) for at, k in enumerate(chosen)]
        if short is not None:
            one = self.work.launches[short]
            blocks = one.blocks if one.cooperative else one.cluster
            group.append(_apart(with_blocks(one, blocks), len(group)))
        ending = [self.work.launches[k] for k in members(beside)]
        if always_fit(group, ending, self.spec):
            return True
        if ending:
            return False
        if in_order:
            pairs = list(itertools.pairwise(range(len(chosen))))
        else:
            pairs = [
                (first, second)
                for first, second in itertools.permutations(range(len(chosen)), 2)
                if self.work.earlier[chosen[second]] >> chosen[first] & 1
            ]
        problem = Problem(
            self.spec, self.policy, tuple(group), (tuple(range(len(group))),), tuple(pairs),
            self.plays, self.deadline,
        )  # fmt: skip
        found = decided(problem, only_to_prove=True)
        self.asked += found.plays
        return found.safe is True


def _apart(launch: Launch, stream: int) -> Launch:
    """Returns the launch in a stream of its own, as one GPU sees it."""
    return replace(launch, stream=stream, gpu=0, host=0, meets=None, in_block_order=False)
