"""Searches for groups that keep each other from ending, over all GPUs.

Say that the program hangs. Let U be the groups that never end. All else has ended, unless it waits
for one of them. So the launches of U that wait for no launch of U have arrived, and each group of U
has a launch that has not arrived, or that has no room. `Room` says which launches may have none.
If there is no such U, the program cannot hang.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Iterator
from dataclasses import dataclass

from tbsched.advice.together.ranks.room import GpuRoom, Stuck
from tbsched.advice.together.ranks.work import LaunchOrder, Mask, mask, members
from tbsched.program.reachable import reachable

MAX_SETS = 5000  # of groups that are looked at


@dataclass(frozen=True, slots=True)
class Standstill:
    """Groups that may keep each other from ending.

    Attributes:
        groups: their names.
        arrived: their launches that have arrived.
        stuck: of each GPU where launches have no room, what is stuck there.
        certain: whether the order of the program alone makes them wait in a circle.
    """

    groups: frozenset[str]
    arrived: Mask
    stuck: tuple[Stuck, ...]
    certain: bool


class TooManySets(Exception):
    """There are more sets of groups than are looked at."""


def standstills(work: LaunchOrder, rooms: list[GpuRoom]) -> Iterator[Standstill]:
    """Yields all standstills that may hang the program; those first that its order of calls alone
    makes sure. Raises TooManySets: there may be others."""
    sets = list(itertools.islice(_sets_that_may_not_end(work), MAX_SETS + 1))
    doubtful = []
    for groups in sets[:MAX_SETS]:
        launches = work.launches_of(groups)
        arrived = mask(k for k in members(launches) if not work.ended_before[k] & launches)
        behind = {name for name in groups if work.groups[name] & ~arrived}
        if behind == groups:
            yield Standstill(groups, arrived, (), True)
        else:
            doubtful.append((groups, arrived, groups - behind))
    for groups, arrived, others in doubtful:
        yield from _standstills_for_room(work, rooms, groups, arrived, others)
    if len(sets) > MAX_SETS:
        raise TooManySets


def _sets_that_may_not_end(work: LaunchOrder) -> Iterator[frozenset[str]]:
    """Yields sets of the names of groups that may never end, the smallest first. With a group a set
    also has the groups that wait for it."""
    waits: dict[str, set[str]] = {name: {name} for name in work.groups}
    for name, launches in work.groups.items():
        for other, others in work.groups.items():
            if any(work.ended_before[k] & launches for k in members(others)):
                waits[name].add(other)
    seen: set[frozenset[str]] = set()
    latest = {frozenset[str]()}
    while latest:
        new: set[frozenset[str]] = set()
        for groups in sorted(latest, key=sorted):
            for name in sorted(set(work.groups) - groups):
                closed = frozenset(reachable(groups | {name}, waits.__getitem__))
                if closed not in seen:
                    seen.add(closed)
                    new.add(closed)
                    yield closed
        latest = new


def _standstills_for_room(
    work: LaunchOrder, rooms: list[GpuRoom], groups: frozenset[str], arrived: Mask,
    others: frozenset[str],
) -> Iterator[Standstill]:  # fmt: skip
    """Yields the standstills in which every group that has arrived whole, ``others``, has a launch
    that lacks room."""
    by_gpu = [
        room.stuck(mask(k for k in members(arrived) if work.launches[k].gpu == room.gpu))
        for room in rooms
    ]
    for chosen in itertools.product(*filter(None, by_gpu)):
        waiting = functools.reduce(operator.or_, (stuck.waiting for stuck in chosen), 0)
        if chosen and all(work.groups[name] & waiting for name in others):
            yield Standstill(groups, arrived, chosen, False)
