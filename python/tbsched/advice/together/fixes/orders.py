"""Launches that wait until others are resident."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from tbsched.advice.together.deciding import decided
from tbsched.advice.together.fixes.fix import Fix, Unproved
from tbsched.advice.together.given import Pairs, is_order, to_launch
from tbsched.advice.together.problem import Problem, Stranding
from tbsched.program.sequence import Launch

_PLAYS = 10_000  # budget for the next witness, which is found soon if there is one
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
    kinds = [_kind(problem, number) for number in range(len(problem.launches))]
    tried = set()
    for pair in itertools.product(problem.members, range(len(problem.launches))):
        alike = (kinds[pair[0]], kinds[pair[1]])
        if pair[0] != pair[1] and alike not in tried:
            tried.add(alike)
            yield from _fix(problem, [pair])
    if problem.around is not None:
        return
    found: list[tuple[int, int]] = []
    stranding: Stranding | None = unproved.stranding
    while stranding is not None and (new := _missing_pairs(stranding, (*problem.after, *found))):
        found += new
        if not is_order([*problem.after, *found]):
            break
        yield from _fix(problem, found)
        ordered = replace(problem, after=(*problem.after, *found))
        stranding = decided(replace(ordered, plays=min(_PLAYS, problem.plays))).stranding
    for size in _SIZES:
        pairs = _in_order(problem, size)
        if _holds(unproved, pairs):
            yield from _fix(problem, _needed(unproved, pairs))


def _after_other_work(unproved: Unproved) -> Iterator[Fix]:
    """Yields pairs of an operation that is no launch, and a launch: the stranded one first."""
    problem, stranding = unproved.problem, unproved.stranding
    launches = list(range(len(problem.launches)))
    others = list(range(len(launches), problem.count))
    if stranding is not None:
        others.sort(key=lambda number: number != stranding.stranded)
        launches.sort(key=lambda number: number != stranding.behind)
    for pair in itertools.product(others, launches):
        yield from _fix(problem, [pair])


def _kind(problem: Problem, number: int) -> tuple[object, ...]:
    """Returns what two launches share of which either may be in the place of the other."""
    groups = tuple(at for at, group in enumerate(problem.groups) if number in group)
    launch = problem.launches[number]
    is_own = launch.stream is not None or any(number in pair for pair in problem.after)
    # A first use is known by the kernel's name: that kernel is loaded.
    unnamed = launch if launch.first_use else replace(launch, name=None)
    return unnamed, groups, number if is_own else None


def _missing_pairs(stranding: Stranding, after: Pairs) -> list[tuple[int, int]]:
    """Returns new pairs that place the stranded launch before all that arrived first."""
    before = stranding.order[: stranding.order.index(stranding.stranded)]
    pairs = [(stranding.stranded, other) for other in before]
    return [pair for pair in pairs if pair not in after]


def _in_order(problem: Problem, size: Callable[[Launch], int]) -> list[tuple[int, int]]:
    """Returns pairs that order the launches of groups by size, and the others behind them."""
    members = sorted(problem.members, key=lambda number: -size(problem.launches[number]))
    others = [k for k in range(len(problem.launches)) if k not in members]
    return [*itertools.pairwise(members), *((members[-1], other) for other in others)]


def _holds(unproved: Unproved, pairs: Iterable[tuple[int, int]]) -> bool:
    problem = unproved.problem
    after = (*problem.after, *pairs)
    return is_order(after) and unproved.solved_by(replace(problem, after=after))


def _needed(unproved: Unproved, pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Returns the pairs without those that are not needed."""
    for pair in list(pairs):
        others = [each for each in pairs if each != pair]
        if _holds(unproved, others):
            pairs = others
    return pairs


def _fix(problem: Problem, pairs: list[tuple[int, int]]) -> Iterator[Fix]:
    """Yields the fix that adds these pairs to the order of arrival, unless it has them."""
    after: Pairs = (*problem.after, *pairs)
    if len(set(after)) < len(after) or not is_order(after):
        return
    words = []
    for first, rows in itertools.groupby(sorted(pairs), key=lambda pair: pair[0]):
        later = to_launch(problem.launches, (second for _, second in rows))
        if first < len(problem.launches):
            words.append(f"{later} when all blocks of {problem.called(first)} have started")
        else:
            words.append(f"{later} when {problem.called(first)} is over")
    yield Fix("order", "; ".join(words), problem.launches, after, problem.groups)
