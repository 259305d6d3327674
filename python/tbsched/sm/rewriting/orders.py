"""Other orders of the steps of a block, in which everything is still right."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from enum import StrEnum

from tbsched.sm.characterization.words import MOST_STALL, Control
from tbsched.sm.rewriting.blocks import Block
from tbsched.sm.rewriting.dependences import BEFORE, Compiled, Edges
from tbsched.sm.rewriting.effects import Step

# Clocks until a result is there that a scoreboard tells of; it only guides the order.
_EXPECTED = {"global": 400, "local": 200, "": 400, "shared": 30, None: 20}


class Order(StrEnum):
    """What comes first among instructions that could be next."""

    LOADS = "loads"  # reads of memory and what they need
    CRITICAL = "critical"  # what most of the time still follows
    APART = "apart"  # what has been ready for longest: chains take turns
    RANDOM = "random"  # any


# Sort key of a step, by its number and its earliest, likely ready and likely issue times.
Rank = Callable[[int, int, int, int], tuple[float, ...]]


def reordered(
    block: Block, shown: Compiled, edges: Edges, order: Order, seed: int = 0
) -> list[tuple[int, Control]] | None:
    """Returns another order of a block's steps: the index of each step, and how it is issued; None:
    there is none, or none was found.

    Args:
        block: the steps.
        shown: what the compiler's code shows of stalls and waits.
        edges: of the block.
        order: which of the possible orders.
        seed: of what is drawn.
    """
    issue_times = _listed(block, shown, edges, order, seed)
    if issue_times is None or list(issue_times) == list(range(len(block.steps))):
        return None
    return _with_stalls(block, edges, issue_times)


def every_order(
    block: Block, shown: Compiled, edges: Edges, max_orders: int
) -> list[list[tuple[int, Control]]] | None:
    """Returns all orders of a block's steps, the compiler's first; None: more than ``max_orders``.

    An order is left out if it needs a stall that a control field cannot say, or one before its
    first step.
    """
    steps = block.steps
    before: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for (early, late), clocks in edges.items():
        before[late].append((early, clocks))
    orders = [[(k, step.control) for k, step in enumerate(steps)]]
    for index, order in enumerate(_linear(len(steps), edges)):
        if index == max_orders:
            return None
        issued = {BEFORE: 0}
        for last, k in zip([None, *order], order, strict=False):
            now = 0 if last is None else issued[last] + shown.between(steps[last], steps[k])
            issued[k] = max([now, *(issued[early] + clocks for early, clocks in before[k])])
        del issued[BEFORE]
        can = index > 0 and issued[order[0]] == 0
        written = _with_stalls(block, edges, issued) if can else None
        if written is not None:
            orders.append(written)
    return orders


def _linear(count: int, edges: Edges) -> Iterator[list[int]]:
    """Yields all orders of so many steps that keep the edges, from the given one on."""
    after: dict[int, list[int]] = defaultdict(list)
    missing = [0] * count
    for early, late in edges:
        if early != BEFORE and late < count:
            after[early].append(late)
            missing[late] += 1
    order: list[int] = []
    placed = [False] * count

    def place(k: int, step: int) -> None:
        placed[k] = step > 0
        for late in after[k]:
            missing[late] -= step

    def choices() -> Iterator[int]:
        return iter([k for k in range(count) if not placed[k] and not missing[k]])

    candidates = [choices()]
    while candidates:
        k = next(candidates[-1], None)
        if k is not None:
            order.append(k)
            place(k, 1)
            if len(order) < count:
                candidates.append(choices())
                continue
            yield list(order)
        else:
            candidates.pop()
        if order:
            place(order.pop(), -1)


def _with_stalls(
    block: Block, edges: Edges, issue_times: Mapping[int, int]
) -> list[tuple[int, Control]] | None:
    """Returns, for steps with these issue times, the index of each step and how it is issued, in
    order; None: a stall would be too long."""
    steps = block.steps
    times = list(issue_times.values())
    end = max(
        times[-1] + steps[list(issue_times)[-1]].clocks,
        *(
            issue_times[k] + n
            for (k, late), n in edges.items()
            if late == len(steps) and k in issue_times
        ),
        edges.get((BEFORE, len(steps)), 0),
    )
    stalls = [b - a for a, b in zip(times, [*times[1:], end], strict=True)]
    if max(stalls) > MOST_STALL:
        return None
    return [
        (k, replace(steps[k].control, stall=stall))
        for k, stall in zip(issue_times, stalls, strict=True)
    ]


def _listed(
    block: Block, shown: Compiled, edges: Edges, order: Order, seed: int
) -> dict[int, int] | None:
    """Returns when each step is issued in the new order, in clocks, by its index; None: a stall
    would be too long."""
    steps, count = block.steps, len(block.steps)
    before: dict[int, list[tuple[int, int]]] = defaultdict(list)
    after: dict[int, list[int]] = defaultdict(list)
    for (early, late), clocks in edges.items():
        before[late].append((early, clocks))
        after[early].append(late)
    expected = _expected(steps, edges)
    rank = _rank(steps, before, expected, order, seed)
    missing = {k: sum(early != BEFORE for early, _ in before[k]) for k in range(count)}
    ready = {k for k in range(count) if not missing[k]}
    issued: dict[int, int] = {BEFORE: 0}
    last = None
    while ready:
        now = {
            k: 0 if last is None else issued[last] + shown.between(steps[last], steps[k])
            for k in ready
        }
        latest = 0 if last is None else issued[last] + MOST_STALL
        soonest = {k: max([now[k], *(issued[a] + n for a, n in before[k])]) for k in ready}
        can = [k for k in ready if soonest[k] <= latest]
        if not can:
            return None
        since = {k: max((issued[a] + expected[a, k] for a, _ in before[k]), default=0) for k in can}
        chosen = min(can, key=lambda k: rank(k, soonest[k], since[k], max(now[k], since[k])))
        issued[chosen] = soonest[chosen]
        last = chosen
        ready.remove(chosen)
        for k in after[chosen]:
            if k < count:
                missing[k] -= 1
                if not missing[k]:
                    ready.add(k)
    del issued[BEFORE]
    return issued


def _expected(steps: tuple[Step, ...], edges: Edges) -> dict[tuple[int, int], int]:
    """Returns the clocks that are likely between the two steps of each edge: more than the least if
    the second waits for memory."""
    likely = {}
    for (early, late), clocks in edges.items():
        is_signalled = early != BEFORE and late < len(steps) and any(
            steps[late].waits(scoreboard) for scoreboard in steps[early].sets
        )  # fmt: skip
        likely[early, late] = max(clocks, _EXPECTED[steps[early].space]) if is_signalled else clocks
    return likely


def _rank(
    steps: tuple[Step, ...],
    before: Mapping[int, list[tuple[int, int]]],
    expected: Edges,
    order: Order,
    seed: int,
) -> Rank:
    """Returns a function that gives a step its sort key, among those that could be issued next. The
    least goes first."""
    draw = random.Random(seed)
    drawn = [draw.random() for _ in steps]
    clocks_to_end = _clocks_to_end(len(steps), expected)
    loading = _loading(steps, before)
    return {
        Order.LOADS: lambda k, _, since, wanted: (k not in loading, wanted, k),
        Order.CRITICAL: lambda k, _, since, wanted: (wanted, -clocks_to_end[k], k),
        Order.APART: lambda k, _, since, wanted: (since, k),
        Order.RANDOM: lambda k, soonest, since, wanted: (soonest, drawn[k]),
    }[order]


def _clocks_to_end(count: int, expected: Edges) -> list[int]:
    """Returns, for each step, the likely clocks until the end of the block, along the longest chain
    of edges."""
    after: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for (early, late), clocks in expected.items():
        after[early].append((late, clocks))
    clocks_left = [0] * (count + 1)
    for k in reversed(range(count)):
        clocks_left[k] = max((clocks_left[late] + clocks for late, clocks in after[k]), default=0)
    return clocks_left


def _loading(steps: tuple[Step, ...], before: Mapping[int, list[tuple[int, int]]]) -> set[int]:
    """Returns the indices of the steps that read memory, and of all steps that these depend on."""
    loading: set[int] = set()
    work = [k for k, step in enumerate(steps) if step.space is not None and not step.stores]
    while work:
        k = work.pop()
        if k not in loading and k != BEFORE:
            loading.add(k)
            work.extend(early for early, _ in before[k])
    return loading
