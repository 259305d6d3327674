"""Every kind of fix, those that change least first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from tbsched.advice.together.fixes.carveouts import carveout
from tbsched.advice.together.fixes.cooperative import cooperative
from tbsched.advice.together.fixes.fix import Fix, Unsafe, fixed
from tbsched.advice.together.fixes.grids import grid
from tbsched.advice.together.fixes.loading import loading
from tbsched.advice.together.fixes.orders import order
from tbsched.advice.together.fixes.partitions import partition
from tbsched.advice.together.fixes.registers import registers
from tbsched.advice.together.fixes.set_up import set_up
from tbsched.advice.together.fixes.streams import streams
from tbsched.advice.together.problem import decided

# What each yields is tried in turn; the first that holds is the fix of its kind.
KINDS: tuple[Callable[[Unsafe], Iterator[Fix]], ...] = (
    order, streams, loading, set_up, carveout, partition, grid, registers, cooperative,
)  # fmt: skip


# Launches in no group may leave in more ways than anybody can play. Where there are some, a search
# for a fix that finds no proof at once is short.
_PLAYS_WITH_OUTSIDERS = 2000


def fixes_of(unsafe: Unsafe) -> tuple[Fix, ...]:
    """Of each kind the least change that the search proves safe."""
    problem = unsafe.problem
    if len(problem.members) < len(problem.launches):
        plays = min(problem.plays, _PLAYS_WITH_OUTSIDERS)
        unsafe = replace(unsafe, problem=replace(problem, plays=plays))
    found = []
    for kind in KINDS:
        for fix in kind(unsafe):
            if _holds(unsafe, fix):
                found.append(fix)
                break
    return tuple(found)


def _holds(unsafe: Unsafe, fix: Fix) -> bool:
    try:
        return decided(fixed(unsafe.problem, fix)).safe is True
    except ValueError:  # the device refuses a launch of it
        return False
