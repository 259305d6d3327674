"""Which launches may find no room on one GPU, for good, beside others that wait for each other."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from tbsched.advice.together.deciding import decide
from tbsched.advice.together.given import Pairs, held, with_blocks
from tbsched.advice.together.problem import Problem
from tbsched.advice.together.ranks.work import LaunchOrder, Mask, mask, members
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import predict
from tbsched.prediction.together.ended_work import always_fit, finds_room
from tbsched.program.sequence import Launch, Sequence

_MAX_ORDERS = 120


@dataclass(frozen=True, slots=True)
class Stuck:
    """One way in which a GPU may come to a standstill.

    Attributes:
        waiting: launches that may never be resident whole.
        order: in which the launches arrive, and a kernel that may hold them up.
    """

    waiting: Mask
    order: tuple[int, ...] = ()


@dataclass(slots=True)
class GpuRoom:
    """Answers which launches find room on one GPU, and remembers the answers.

    Attributes:
        plays: predictions per question, as of :func:`tbsched.coresident`.
        deadline: by time.monotonic().
        predictions: how many predictions it took so far.
    """

    work: LaunchOrder
    gpu: int
    spec: DeviceSpec
    policy: str
    plays: int
    deadline: float
    predictions: int = 0
    _answers: dict[object, bool] = field(default_factory=dict)

    def stuck(self, arrived: Mask) -> list[Stuck]:
        """Returns each way in which some of the launches that have arrived may lack room for ever;
        empty: they surely all find room.

        Args:
            arrived: the launches of this GPU that have arrived, and whose groups do not end.
        """
        chosen = list(members(arrived))
        if not chosen:
            return []
        beside = self._others_beside(arrived)
        alone = list(members(beside & ~self.work.meeting))
        if (
            len(chosen) + bool(alone) <= self.spec.resident_grids
            and self._all_fit(tuple(chosen), beside)
            and all(self._block_fits(tuple(chosen), beside, number) for number in alone)
        ):
            return []
        orders = list(itertools.islice(self._orders(chosen), _MAX_ORDERS + 1))
        if self._may_overtake(arrived | beside) or len(orders) > _MAX_ORDERS:
            return [Stuck(arrived, tuple(chosen))]
        ways = {}
        for order in orders:
            for whole in range(len(order)):
                held_up = self._held_up(order, whole, arrived)
                if held_up is not None:
                    waiting = mask(order[whole:])
                    ways[waiting] = Stuck(waiting, (*order[:whole], *held_up, *order[whole:]))
                    break
        return list(ways.values())

    def _held_up(self, order: tuple[int, ...], whole: int, arrived: Mask) -> list[int] | None:
        """Returns which launch may find no room, so that ``order[whole]`` may not become resident;
        None: it surely does.

        []: the launch itself may find no room, or no place among the resident grids. Else [k]:
        kernel k before it may find none.

        Args:
            order: in which launches arrive.
            whole: how many of these are resident.
            arrived: all that have arrived.
        """
        if whole >= self.spec.resident_grids:
            return []
        work, rest, before = self.work, self._others_ahead(order[whole], arrived), 0
        for number in order[:whole]:
            before |= work.ended_before[number] | work.arrived_before[number]
        # Kernels for which a launch waits in its stream or in line.
        between = members(rest & ~before & ~work.meeting)
        for kernel in between if whole else ():
            if not self._kernel_goes_on(order[:whole], kernel, arrived):
                return [kernel]
        key = order[: whole + 1], arrived
        fits = self._cached(("next", *key), lambda: self._prove_next(*key))
        return None if fits else []

    def _may_overtake(self, there: Mask) -> bool:
        """Returns whether some launches may overtake others that arrived before them."""
        launches = [self.work.launches[k] for k in members(there)]
        return len({(launch.priority, launch.cooperative) for launch in launches}) > 1

    def _orders(self, chosen: list[int]) -> Iterator[tuple[int, ...]]:
        """Yields the orders in which the launches can arrive."""
        inside = mask(chosen)

        def longer(order: tuple[int, ...], arrived: Mask) -> Iterator[tuple[int, ...]]:
            """Yields all orders of arrival that begin with ``order``."""
            if arrived == inside:
                yield order
            for number in chosen:
                waits = self.work.arrived_before[number] & inside & ~arrived
                if not (arrived >> number & 1 or waits):
                    yield from longer((*order, number), arrived | 1 << number)

        return longer((), 0)

    def _others_beside(self, arrived: Mask) -> Mask:
        """Returns a mask of other launches that may be on the GPU when some of ``arrived`` are
        there or come."""
        ended, work = -1, self.work
        for number in members(arrived):
            ended &= work.ended_before[number]
        return mask(
            number
            for number, launch in enumerate(work.launches)
            if launch.gpu == self.gpu
            and not work.ended_before[number] & arrived
            and work.arrived_before[number] & arrived != arrived
            and not (arrived | ended) >> number & 1
        )

    def _others_ahead(self, launch: int, arrived: Mask) -> Mask:
        """Returns a mask of other launches that may come before ``launch``, and end. ``arrived``:
        those that stay."""
        work = self.work
        return mask(
            number
            for number, other in enumerate(work.launches)
            if other.gpu == self.gpu
            and not arrived >> number & 1
            and not work.ended_before[number] & arrived
            and not work.arrived_before[number] >> launch & 1
        )

    def _cached(self, key: tuple[object, ...], answer: Callable[[], bool]) -> bool:
        """Returns answer() for a key, from a cache."""
        if key not in self._answers:
            self._answers[key] = answer()
        return self._answers[key]

    def _prove_next(self, order: tuple[int, ...], arrived: Mask) -> bool:
        """Returns whether the last launch of ``order`` is proved to find room behind the others,
        which are resident."""
        ahead = [self._others_ahead(number, arrived) for number in order]
        if self._finds_room(order, self.work.launches[order[-1]], ahead):
            return True
        # All else has ended before the first one arrives.
        if functools.reduce(operator.or_, ahead) & ~self.work.ended_before[order[0]]:
            return False
        return self._prove_together(order, tuple(itertools.pairwise(range(len(order)))))

    def _kernel_goes_on(self, order: tuple[int, ...], number: int, arrived: Mask) -> bool:
        """Returns whether kernel ``number``, which ends, is proved to place at least one cluster at
        a time behind the launches of ``order``, which are resident and stay."""
        kernel = self.work.launches[number]

        def goes_on() -> bool:
            """Returns the answer, if it is not known yet."""
            ahead = [self._others_ahead(member, arrived) & ~(1 << number) for member in order]
            ahead.append(self._others_beside(arrived) | 1 << number)
            block = with_blocks(kernel, kernel.cluster)
            return not kernel.cooperative and self._finds_room((*order, number), block, ahead)

        return self._cached(("kernel", order, number, arrived), goes_on)

    def _finds_room(self, order: tuple[int, ...], last: Launch, ahead: list[Mask]) -> bool:
        """Returns whether the launch ``last`` is proved to find room behind the others in
        ``order``.

        Args:
            order: launches, the last one included. Each is resident before the next one arrives.
            last: the last one, or one cluster of it.
            ahead: of each of ``order`` a mask of launches that may be on the GPU before it, and
                end.
        """
        ending = list(members(functools.reduce(operator.or_, ahead)))
        before = [[ending.index(k) for k in members(others)] for others in ahead]
        there, over = [], 0
        for number, others in zip(order, ahead, strict=True):
            over |= self.work.ended_before[number]
            there.append([ending.index(k) for k in members(others & ~over)])
        staying = [*self._on_own_streams(order[:-1]), on_own_stream_and_gpu(last, len(order) - 1)]
        return finds_room(
            staying, self._on_own_streams(ending), self.spec, self.policy, before, there
        )

    def _prove_together(self, chosen: tuple[int, ...], pairs: Pairs) -> bool:
        """Returns whether launches are proved to be resident together, alone on the GPU."""
        group = self._on_own_streams(chosen)
        problem = Problem(
            self.spec, self.policy, group, (tuple(range(len(group))),), pairs, self.plays,
            self.deadline,
        )  # fmt: skip
        decision = decide(problem, only_to_prove=True)
        self.predictions += decision.plays
        return decision.safe is True

    def _all_fit(self, chosen: tuple[int, ...], beside: Mask) -> bool:
        """Returns whether the launches ``chosen`` are proved to be resident, in whatever order they
        arrive, with the launches ``beside``, which end."""

        def fit() -> bool:
            """Returns the answer, if it is not known yet."""
            ending = self._on_own_streams(members(beside))
            return always_fit(self._on_own_streams(chosen), ending, self.spec, self.policy) or (
                not ending and self._prove_together(chosen, self._known_order(chosen))
            )

        return self._cached(("all", chosen, beside), fit)

    def _known_order(self, chosen: tuple[int, ...]) -> Pairs:
        """Returns pairs of indices in ``chosen``: the second arrives when the first is resident."""
        return tuple(
            (first, second)
            for first, second in itertools.permutations(range(len(chosen)), 2)
            if self.work.arrived_before[chosen[second]] >> chosen[first] & 1
        )

    def _block_fits(self, chosen: tuple[int, ...], beside: Mask, number: int) -> bool:
        """Returns whether one cluster of launch ``number``, which ends, is proved to find room
        while the launches ``chosen`` stay."""
        launch = self.work.launches[number]

        def fits() -> bool:
            """Returns the answer, if it is not known yet."""
            block = on_own_stream_and_gpu(with_blocks(launch, launch.cluster), len(chosen))
            staying, ending = (
                [*self._on_own_streams(chosen), block],
                self._on_own_streams(members(beside)),
            )
            return not launch.cooperative and finds_room(staying, ending, self.spec, self.policy)

        return self._cached(("block", frozenset(chosen), beside, number), fits)

    def _on_own_streams(self, numbers: Iterable[int]) -> tuple[Launch, ...]:
        """Returns launches by their numbers, each in a stream of its own and on GPU 0."""
        return tuple(
            [
                on_own_stream_and_gpu(self.work.launches[k], stream)
                for stream, k in enumerate(numbers)
            ]
        )


def check_launches(
    name: str, sequence: Sequence, specs: tuple[DeviceSpec, ...], policy: str | None
) -> None:
    """Checks that each GPU takes its launches in some state. Raises ValueError: naming the
    launch."""
    for gpu, spec in enumerate(specs):
        spec.check(sequence, gpu)
    for number, launch in enumerate(sequence.launches):
        (alone,), _ = held([on_own_stream_and_gpu(launch, 0)])
        try:
            predict(Sequence([alone]), specs[launch.gpu], policy)
        except ValueError as error:
            words = str(error).removeprefix("launch 0: ")
            raise ValueError(f"{name}: launch {number}: {words}") from None


def on_own_stream_and_gpu(launch: Launch, stream: int) -> Launch:
    """Returns the launch in a stream of its own, on GPU 0, and meeting no other."""
    return replace(launch, stream=stream, gpu=0, host=0, meets=None, in_block_order=False)
