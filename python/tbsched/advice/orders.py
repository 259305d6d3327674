"""The order of launches in which a program ends soonest."""

from __future__ import annotations

import itertools
import math
import os
import random
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, replace

from tbsched.advice.moves import MovableUnits, launches_of
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.fitting.merged import merged
from tbsched.prediction.orders import FOREVER_NS, OrdersOfEvents
from tbsched.prediction.program_device import device_of
from tbsched.program.checks import instances, integer
from tbsched.program.one_gpu import one_gpu
from tbsched.program.program import Program
from tbsched.program.sequence import LEGACY_STREAM, Launch, Sequence
from tbsched.shown import Shown

EXACT_UP_TO = 7
_ORDERS_PER_BATCH = 4096  # orders that are listed at a time
_NEIGHBOURS_PER_BATCH = 16  # neighbours of an order that are predicted together, on several threads
_MAX_NEIGHBOURS = 20_000


@dataclass(frozen=True, slots=True, repr=False)
class BestOrder(Shown):
    """An order of launches, and how long they take in it.

    Attributes:
        order: numbers of the kernels in the list that was given, from 0.
        sequence: the kernels in that order.
        makespan: predicted seconds in that order.
        given_makespan: predicted seconds in the order that was given.
        exact: whether all orders were tried, so that none is predicted to be better.
        predictions: how many orders were predicted.
        host: of a program, the gaps between its calls in that order, as ``Program.host``; else
            empty.

    Example:
        >>> kernels = [tb.Launch(100, 1024, 64, duration=d) for d in (1e-4, 2e-4, 3e-4)]
        >>> found = tb.best_order(kernels, "h200")
        >>> found.exact, found.makespan < found.given_makespan
        (True, True)
    """

    order: tuple[int, ...]
    sequence: Sequence
    makespan: float
    given_makespan: float
    exact: bool
    predictions: int
    host: tuple[float, ...] = ()


def best_order(
    kernels: Iterable[Launch] | Program,
    device: str | os.PathLike[str] | DeviceSpec,
    policy: str | None = None,
    *,
    launch_interval: float = 0.0,
    max_predictions: int = 2000,
    seed: int = 0,
) -> BestOrder:
    """Returns the order of launches with the shortest predicted makespan.

    For up to seven kernels all different orders are tried. For more kernels there is a search. It
    begins with the launches sorted by local memory, then by shared memory per block, then by
    duration, the largest first. (ICCD 2023, section V, advises the first two, because the first
    block on an SM sets its configuration.) It then exchanges pairs and moves single launches as
    long as that helps. Launches of one numbered stream keep their order.

    In a program, only the calls of launches move. A launch takes with it the waits for events right
    before it and the records right after it in its stream, and the time that the host needs before
    the call. Whatever the program computes stays the same: work of a stream, an event and the wait
    for it, and the calls before and after a synchronisation keep their order. Of very many blocks,
    those that follow each other on an SM are predicted as one, with an error below 0.1 %.

    Args:
        kernels: launches with durations, or a :class:`Program`.
        device, policy, launch_interval: as for :func:`tbsched.predict`. A program has times of its
            own between calls.
        max_predictions: the search stops after so many predictions.
        seed: of the order in which the search tries changes.

    Raises:
        TypeError, ValueError: as :func:`tbsched.predict`; no kernels, one without a duration, or
            one in the legacy stream, which orders everything; names the field and the value.

    Example:
        >>> kernels = [tb.Launch(100, 1024, 64, duration=d) for d in (1e-4, 2e-4, 3e-4)]
        >>> tb.best_order(kernels, "h200").order
        (2, 1, 0)
    """
    integer("best_order", "max_predictions", max_predictions, 1, 10**9)
    integer("best_order", "seed", seed, -(2**63), 2**63 - 1)
    sequence, host = _given(kernels, launch_interval)
    one_gpu("best_order", sequence)
    quick = sequence
    if isinstance(kernels, Program):
        device = device_of(kernels, device)
        quick = merged(sequence, device)
    orders = OrdersOfEvents(quick, device, policy, launch_interval, host)
    search = _Search(sequence, host, orders)
    in_order = search.order
    search.consider([in_order])
    given_ns = search.best_ns
    exact = len(in_order) <= EXACT_UP_TO
    if exact:
        search.consider(itertools.permutations(in_order))
    else:
        search.consider([search.sorted_first()])
        search.improve(random.Random(seed), max_predictions)
    places = search.units.places(search.order)
    return BestOrder(
        launches_of(sequence, places),
        sequence if search.order == in_order else Sequence(sequence.events[k] for k in places),
        search.best_ns / 1e9, given_ns / 1e9, exact, len(search.tried),
        () if host is None else tuple(host[k] for k in places),
    )  # fmt: skip


def _given(
    kernels: Iterable[Launch] | Program, launch_interval: float
) -> tuple[Sequence, tuple[float, ...] | None]:
    """Returns the sequence to order, and seconds between its calls if it is of a program."""
    if isinstance(kernels, Program):
        if launch_interval:
            raise ValueError(f"launch_interval: {launch_interval}, but a program has its own times")
        if not kernels.sequence.launches:
            raise ValueError("kernels: the program has no launches")
        return kernels.sequence, kernels.host
    launches = instances("best_order", "kernels", kernels, Launch)
    if not launches:
        raise ValueError("kernels: none are given")
    for number, kernel in enumerate(launches):
        if kernel.duration is None:
            raise ValueError(f"kernels[{number}]: Launch.duration: None; how long does it run?")
        if kernel.stream == LEGACY_STREAM:
            raise ValueError(f"kernels[{number}]: Launch.stream: {LEGACY_STREAM!r} orders all work")
    return Sequence(launches), None


class _Search:
    """The best order found so far, of units that move as one."""

    def __init__(
        self, sequence: Sequence, host: tuple[float, ...] | None, orders: OrdersOfEvents
    ) -> None:
        self.sequence = sequence
        self.orders = orders
        self.units = MovableUnits(sequence)
        self.tried: set[tuple[int, ...]] = set()
        self.order = tuple(range(len(self.units)))
        self.best_ns = FOREVER_NS
        # Equal units are one: the first of them stands for all.
        first: dict[Hashable, int] = {}
        self.same_as = [
            first.setdefault(self._kind(places, host), number)
            for number, places in enumerate(self.units.events)
        ]

    def _kind(self, places: list[int], host: tuple[float, ...] | None) -> Hashable:
        """Returns a key of a unit of events. Units with equal keys can be exchanged without any
        effect."""
        events = [self.sequence.events[place] for place in places]
        unnamed = [
            replace(event, name=None) if isinstance(event, Launch) else event for event in events
        ]
        return tuple(unnamed), None if host is None else tuple(host[place] for place in places)

    def consider(self, orders: Iterable[tuple[int, ...]]) -> bool:
        """Predicts orders that are allowed and new; returns whether one of them is the best."""
        admitted = filter(self._admit, orders)
        better = False
        while batch := list(itertools.islice(admitted, _ORDERS_PER_BATCH)):
            orders_by_places = {self.units.places(order): order for order in batch}
            shortest = self.orders.shortest(orders_by_places, self.best_ns)
            if shortest is not None:
                self.order, self.best_ns = orders_by_places[shortest[0]], shortest[1]
                better = True
        return better

    def _admit(self, order: tuple[int, ...]) -> bool:
        """Returns whether an order is allowed and new; notes that it was tried."""
        key = tuple([self.same_as[number] for number in order])
        if key in self.tried or not self.units.allows(order):
            return False
        self.tried.add(key)
        return True

    def sorted_first(self) -> tuple[int, ...]:
        """Returns an order to begin with: larger configurations first, then longer launches."""

        def weight(number: int) -> tuple[float, ...]:
            """Returns a sort key: larger configurations first, then longest."""
            launches = [
                launch
                for place in self.units.events[number]
                for launch in self.sequence.events[place].launches
            ]
            if not launches:
                return (-math.inf,)
            return (
                -max(x.local_memory for x in launches),
                -max(x.shared_memory for x in launches),
                -max(_longest(x) for x in launches),
            )

        return self.units.sorted_by(weight)

    def improve(self, rng: random.Random, max_predictions: int) -> None:
        """Moves on to a better neighbour of the best order as long as there is one, or until this
        many predictions were made."""
        improved = True
        while improved:
            improved = False
            neighbours = self._neighbours(rng)
            while batch := list(itertools.islice(neighbours, _NEIGHBOURS_PER_BATCH)):
                left = max_predictions - len(self.tried)
                if left <= 0:
                    return
                if self.consider(batch[:left]):
                    improved = True
                    break

    def _neighbours(self, rng: random.Random) -> Iterator[tuple[int, ...]]:
        """Yields orders that differ from the best one in one unit that has moved, or in two that
        are exchanged; at random."""
        count, movable = len(self.order), set(self.units.movable)
        codes = range(count * count)
        for code in rng.sample(codes, min(len(codes), _MAX_NEIGHBOURS)):
            a, b = divmod(code, count)
            if a == b or self.order[a] not in movable:
                continue
            moved = list(self.order)
            moved.insert(b, moved.pop(a))
            yield tuple(moved)
            if a < b and self.order[b] in movable:
                exchanged = list(self.order)
                exchanged[a], exchanged[b] = exchanged[b], exchanged[a]
                yield tuple(exchanged)


def _longest(launch: Launch) -> float:
    """Returns the duration of the longest block, in seconds."""
    durations = launch.block_durations()
    assert durations is not None
    return float(durations.max())
