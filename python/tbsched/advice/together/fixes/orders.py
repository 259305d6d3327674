"""Launches that wait until others are resident."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from tbsched.advice.together.deciding import decide
from tbsched.advice.together.fixes.fix import Fix, Unproved
from tbsched.advice.together.given import Pairs, is_order, to_launch
from tbsched.advice.together.problem import Problem, Stranding
from tbsched.program.sequence import Launch

_MAX_PLAYS = 10_000  # budget for the next witness, which is found soon if there is one
# Sizes by which all launches are ordered, the largest blocks first.
_SIZES: tuple[Callable[[Launch], int], ...] = (
    lambda launch: launch.shared_memory,
    lambda launch: launch.threads * launch.registers,
)


def order(unproved: Unproved) -> Iterator[Fix]:
    """Yields orders: one pair of launches, then all pairs that witnesses need, then a full order.

    The first launch of a pair is of a group, as others may never arrive. If the program does more
    than launch, a launch may also wait for one of its other operations.
    """
    problem = unproved.problem
    yield from _after_other_work(unproved)
    kinds = [_exchange_key(problem, number) for number in range(len(problem.launches))]
    tried = set()
    for pair in itertools.product(problem.members, range(len(problem.launches))):
        alike = (kinds[pair[0]], kinds[pair[1]])
        if pair[0] != pair[1] and alike not in tried:
            tried.add(alike)
            yield from _order_fix(problem, [pair])
    if problem.around is not None:
        return
    pairs_: list[tuple[int, int]] = []
    stranding: Stranding | None = unproved.stranding
    while stranding is not None and (new := _missing_pairs(stranding, (*problem.after, *pairs_))):
        pairs_ += new
        if not is_order([*problem.after, *pairs_]):
            break
        yield from _order_fix(problem, pairs_)
        ordered = replace(problem, after=(*problem.after, *pairs_))
        stranding = decide(replace(ordered, plays=min(_MAX_PLAYS, problem.plays))).stranding
    for size in _SIZES:
        pairs = _pairs_by_size(problem, size)
        if _is_solved(unproved, pairs):
            yield from _order_fix(problem, _minimal_pairs(unproved, pairs))


def _after_other_work(unproved: Unproved) -> Iterator[Fix]:
    """Yields fixes by which a launch waits for an operation other than a launch."""
    problem, stranding = unproved.problem, unproved.stranding
    launches = list(range(len(problem.launches)))
    others = list(range(len(launches), problem.count))
    if stranding is not None:
        others.sort(key=lambda number: number != stranding.stranded)
        launches.sort(key=lambda number: number != stranding.behind)
    for pair in itertools.product(others, launches):
        yield from _order_fix(problem, [pair])


def _exchange_key(problem: Problem, number: int) -> tuple[object, ...]:
    """Returns a key of a launch. Launches with equal keys can be exchanged without any effect."""
    groups = tuple(index for index, group in enumerate(problem.groups) if number in group)
    launch = problem.launches[number]
    is_ordered = launch.stream is not None or any(number in pair for pair in problem.after)
    # A first use is known by the kernel's name: that kernel is loaded.
    unnamed = launch if launch.first_use else replace(launch, name=None)
    return unnamed, groups, number if is_ordered else None


def _missing_pairs(stranding: Stranding, after: Pairs) -> list[tuple[int, int]]:
    """Returns pairs of launches that are not in ``after`` yet, and keep a witness from happening:
    the stranded launch comes before each launch that arrived before it."""
    before = stranding.order[: stranding.order.index(stranding.stranded)]
    pairs = [(stranding.stranded, other) for other in before]
    return [pair for pair in pairs if pair not in after]


def _pairs_by_size(problem: Problem, size: Callable[[Launch], int]) -> list[tuple[int, int]]:
    """Returns pairs that order the groups' launches by size, and the others behind them."""
    members = sorted(problem.members, key=lambda number: -size(problem.launches[number]))
    others = [k for k in range(len(problem.launches)) if k not in members]
    return [*itertools.pairwise(members), *((members[-1], other) for other in others)]


def _is_solved(unproved: Unproved, pairs: Iterable[tuple[int, int]]) -> bool:
    """Returns whether the problem with more pairs is proved safe."""
    problem = unproved.problem
    after = (*problem.after, *pairs)
    return is_order(after) and unproved.solved_by(replace(problem, after=after))


def _minimal_pairs(unproved: Unproved, pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Returns the fewest of these pairs that are found with which the problem is still proved
    safe.
    """
    for pair in list(pairs):
        others = [other for other in pairs if other != pair]
        if _is_solved(unproved, others):
            pairs = others
    return pairs


def _order_fix(problem: Problem, pairs: list[tuple[int, int]]) -> Iterator[Fix]:
    """Yields the fix that adds pairs to the order of arrival, unless they are in it."""
    after: Pairs = (*problem.after, *pairs)
    if len(set(after)) < len(after) or not is_order(after):
        return
    words = []
    for first, rows in itertools.groupby(sorted(pairs), key=lambda pair: pair[0]):
        later = to_launch(problem.launches, (second for _, second in rows))
        if first < len(problem.launches):
            words.append(f"{later} when all blocks of {problem.name_of(first)} have started")
        else:
            words.append(f"{later} when {problem.name_of(first)} is over")
    yield Fix("order", "; ".join(words), problem.launches, after, problem.groups)
