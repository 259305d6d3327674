"""What to change in a program so that it ends sooner, by asking the model."""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from tbsched.advice.change import Change
from tbsched.errors import shown
from tbsched.hardware.catalogue import device as find_device
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import FOREVER_NS, OrdersOfLaunches, predict
from tbsched.program.checks import flag, integer, items
from tbsched.program.sequence import LEGACY_STREAM, Launch, Sequence, with_launches
from tbsched.views import Shown

EXACT_UP_TO = 7
BLOCK_SIZES = (64, 128, 256, 512, 1024)
CARVEOUTS = (None, 0, 25, 50, 75, 100)


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


def best_order(
    kernels: Iterable[Launch],
    device: str | os.PathLike[str] | DeviceSpec,
    policy: str | None = None,
    *,
    launch_interval: float = 0.0,
    max_predictions: int = 2000,
    seed: int = 0,
) -> BestOrder:
    """The order of launches with the shortest predicted makespan.

    For up to seven kernels all different orders are tried. For more kernels there is a search. It
    begins with the launches sorted by local memory, then by shared memory per block, then by
    duration, the largest first. (ICCD 2023, section V, advises the first two, because the first
    block on an SM sets its configuration.) It then exchanges pairs and moves single launches as
    long as that helps. Launches of one numbered stream keep their order.

    Args:
        kernels: launches with durations.
        device, policy, launch_interval: as for :func:`tbsched.predict`.
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
    given = tuple(items("best_order", "kernels", kernels))
    if not given:
        raise ValueError("kernels: none are given")
    for number, kernel in enumerate(given):
        if not isinstance(kernel, Launch):
            raise TypeError(f"kernels[{number}]: a Launch is needed, got {shown(kernel)}")
        if kernel.duration is None:
            raise ValueError(f"kernels[{number}]: Launch.duration: None; how long does it run?")
        if kernel.stream == LEGACY_STREAM:
            raise ValueError(f"kernels[{number}]: Launch.stream: {LEGACY_STREAM!r} orders all work")
    integer("best_order", "max_predictions", max_predictions, 1, 10**9)
    integer("best_order", "seed", seed, -(2**63), 2**63 - 1)
    sequence = Sequence(given)
    search = _Search(given, OrdersOfLaunches(sequence, device, policy, launch_interval))
    in_order = tuple(range(len(given)))
    search.consider([in_order])
    given_ns = search.best_ns
    exact = len(given) <= EXACT_UP_TO
    if exact:
        search.consider(itertools.permutations(in_order))
    else:
        search.consider([search.sorted_first()])
        search.improve(random.Random(seed), max_predictions)
    return BestOrder(
        search.order,
        sequence if search.order == in_order else Sequence(given[k] for k in search.order),
        search.best_ns / 1e9,
        given_ns / 1e9,
        exact,
        len(search.known),
    )


class _Search:
    """The best order so far."""

    def __init__(self, kernels: tuple[Launch, ...], orders: OrdersOfLaunches) -> None:
        self.kernels = kernels
        self.orders = orders
        self.known: set[tuple[int, ...]] = set()
        self.order: tuple[int, ...] = ()
        self.best_ns = FOREVER_NS
        # Equal launches are one: the first of them stands for all.
        first: dict[Launch, int] = {}
        self.kind = [
            first.setdefault(replace(kernel, name=None), number)
            for number, kernel in enumerate(kernels)
        ]

    def consider(self, orders: Iterable[tuple[int, ...]]) -> bool:
        """Predicts those that are not known and break no stream; whether one is the best now."""
        found = self.orders.shortest(filter(self._is_new, orders), self.best_ns)
        if found is not None:
            self.order, self.best_ns = found
        return found is not None

    def _is_new(self, order: tuple[int, ...]) -> bool:
        key = tuple([self.kind[number] for number in order])
        if key in self.known or not self._keeps_streams(order):
            return False
        self.known.add(key)
        return True

    def _keeps_streams(self, order: tuple[int, ...]) -> bool:
        last: dict[int | str, int] = {}
        for number in order:
            stream = self.kernels[number].stream
            if stream is not None and last.get(stream, -1) > number:
                return False
            if stream is not None:
                last[stream] = number
        return True

    def sorted_first(self) -> tuple[int, ...]:
        """Larger configurations first, then longest first; places of a stream in its order."""

        def weight(number: int) -> tuple[float, ...]:
            kernel = self.kernels[number]
            durations = kernel.block_durations()
            assert durations is not None
            return (-kernel.local_memory, -kernel.shared_memory, -float(durations.max()))

        order = sorted(range(len(self.kernels)), key=weight)
        turns = {
            stream: iter(sorted(k for k in order if self.kernels[k].stream == stream))
            for stream in {self.kernels[k].stream for k in order} - {None}
        }
        streams = (self.kernels[number].stream for number in order)
        return tuple(
            number if stream is None else next(turns[stream])
            for number, stream in zip(order, streams, strict=True)
        )

    def improve(self, rng: random.Random, max_predictions: int) -> None:
        improved = True
        while improved:
            improved = False
            for candidate in self._neighbours(rng):
                if len(self.known) >= max_predictions:
                    return
                if self.consider([candidate]):
                    improved = True
                    break

    def _neighbours(self, rng: random.Random) -> Iterator[tuple[int, ...]]:
        pairs = list(itertools.permutations(range(len(self.order)), 2))
        rng.shuffle(pairs)
        for a, b in pairs:
            moved = list(self.order)
            moved.insert(b, moved.pop(a))
            yield tuple(moved)
            if a < b:
                exchanged = list(self.order)
                exchanged[a], exchanged[b] = exchanged[b], exchanged[a]
                yield tuple(exchanged)


@dataclass(frozen=True, slots=True, repr=False)
class WhatIf(Shown):
    """A program and changes of it; prints as a table.

    Attributes:
        given: the program as it is, a :class:`Change`.
        changes: a :class:`Change` each, the shortest makespan first.

    Example:
        >>> program = tb.Sequence([tb.Launch(100, 1024, 64, duration=1e-4)])
        >>> found = tb.what_if(program, "h200", carveouts=[0, 100], block_sizes=[512])
        >>> len(found.changes), found.given.sequence == program
        (3, True)
    """

    given: Change
    changes: tuple[Change, ...]


def what_if(
    seq: Sequence,
    device: str | os.PathLike[str] | DeviceSpec,
    policy: str | None = None,
    *,
    carveouts: Iterable[int | None] = CARVEOUTS,
    block_sizes: Iterable[int] = BLOCK_SIZES,
    orders: bool = True,
    launch_interval: float = 0.0,
) -> WhatIf:
    """Predicts how a program would run with other block sizes, carveouts or orders of launches.

    Each change is one of these: another block size for one launch, another carveout for all
    launches, or the order that :func:`best_order` finds. Changes that the device refuses are left
    out.

    A launch with another block size has the same number of threads in all, rounded up to whole
    blocks, and the same shared memory per thread. Its blocks are assumed to run as long as before.
    For a compute-bound kernel that is too short for larger blocks, so a real program gains less
    than predicted. Launches with clusters or with durations per block keep their size.

    Args:
        seq: launches with durations, and CUDA events.
        device, policy, launch_interval: as for :func:`tbsched.predict`.
        carveouts: each is given to all launches at once.
        block_sizes: threads per block; each is given to one launch at a time.
        orders: whether to look for a better order. Only a program of launches alone, none of them
            in the legacy stream, can be reordered.

    Returns:
        A ``WhatIf``, which prints as a table.

    Raises:
        TypeError, ValueError: as :func:`tbsched.predict`; a sequence without durations.

    Example:
        >>> kernels = [tb.Launch(100, 1024, 64, duration=d) for d in (1e-4, 2e-4, 3e-4)]
        >>> tb.what_if(tb.Sequence(kernels), "h200").changes[0].what
        'launched in the order 2, 1, 0'
    """
    spec = find_device(device)
    flag("what_if", "orders", orders)
    if isinstance(seq, Sequence) and not seq.timed:
        raise ValueError("sequence: launches with durations are needed")

    def predicted(what: str, changed: Sequence) -> Change:
        trace = predict(changed, spec, policy, launch_interval=launch_interval)
        return Change(what, changed, trace.makespan)

    given = predicted("as it is", seq)
    candidates: list[tuple[str, Sequence]] = []
    for carveout in items("what_if", "carveouts", carveouts):
        words = "the driver's" if carveout is None else str(carveout)
        changed = with_launches(seq, [replace(x, carveout=carveout) for x in seq.launches])
        candidates.append((f"carveout {words} for every launch", changed))
    for number, threads in itertools.product(
        range(len(seq.launches)), items("what_if", "block_sizes", block_sizes)
    ):
        launch = _with_block_size(seq.launches[number], threads)
        if launch is not None:
            launches = [*seq.launches[:number], launch, *seq.launches[number + 1 :]]
            candidates.append(
                (f"launch {number} in blocks of {threads} threads", with_launches(seq, launches))
            )
    changes = []
    for what, changed in candidates:
        if changed != seq and _runs(spec, changed):
            changes.append(predicted(what, changed))
    movable = all(x.stream != LEGACY_STREAM for x in seq.launches)
    if orders and movable and seq.events == seq.launches and len(seq) > 1:
        best = best_order(seq.launches, spec, policy, launch_interval=launch_interval)
        words = "launched in the order " + ", ".join(map(str, best.order))
        if best.sequence != seq:
            changes.append(Change(words, best.sequence, best.makespan))
    return WhatIf(given, tuple(sorted(changes, key=lambda change: change.makespan)))


def _with_block_size(launch: Launch, threads: int) -> Launch | None:
    integer("what_if", "block_sizes", threads, 1, 1024)
    if launch.cluster != 1 or isinstance(launch.duration, tuple):
        return None
    blocks = -(-launch.blocks * launch.threads // threads)
    shared_memory = -(-launch.shared_memory * threads // launch.threads)
    return replace(launch, blocks=blocks, threads=threads, shared_memory=shared_memory)


def _runs(spec: DeviceSpec, seq: Sequence) -> bool:
    try:
        spec.check(seq)
    except ValueError:
        return False
    return True
