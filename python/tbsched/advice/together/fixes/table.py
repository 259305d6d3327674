"""Every kind of fix, those that change least first."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from tbsched.advice.together.above import MAX_FOR_ALL_ORDERS
from tbsched.advice.together.fixes.fix import Fix, Unproved, fixed
from tbsched.advice.together.fixes.orders import order
from tbsched.advice.together.fixes.partitions import partition
from tbsched.advice.together.fixes.settings import (
    carveout,
    cooperative,
    grid,
    loading,
    registers,
    set_up,
)
from tbsched.advice.together.fixes.streams import streams
from tbsched.progress import bar

# Kinds of fixes; the first one of each kind that is proved safe is kept.
KINDS: tuple[Callable[[Unproved], Iterator[Fix]], ...] = (
    order, streams, loading, set_up, carveout, partition, grid, registers, cooperative,
)  # fmt: skip

# Those that help a launch which never reaches the scheduler.
ARRIVAL_KINDS = (order, streams, loading, set_up)

# Limit of the events that each kind of change tries, in programs that do more than launch.
_MAX_EVENTS_TRIED = 2000

# Divisor of the plays for each change, if there are too many launches to play all orders, or no
# witness that refutes most changes: most are proved soon or never.
_PLAYS_DIVISOR = 30


def fixes_of(unproved: Unproved) -> tuple[Fix, ...]:
    """Returns the smallest change of each kind that is proved to make a problem safe."""
    problem = unproved.problem
    if any(len(group) > problem.spec.resident_grids for group in problem.groups):
        return ()  # no change but fewer launches lets the GPU take all of them
    if len(problem.launches) > MAX_FOR_ALL_ORDERS or unproved.stranding is None:
        fewer = replace(problem, plays=problem.plays // _PLAYS_DIVISOR)
        unproved = replace(unproved, problem=fewer)
    fixes: list[Fix] = []
    stranding = unproved.stranding
    kinds = KINDS if stranding is None or stranding.host is None else ARRIVAL_KINDS
    program = problem.around
    most = None if program is None else max(8, _MAX_EVENTS_TRIED // len(program))
    with bar("looking for changes", len(kinds)) as advance:
        for number, kind in enumerate(kinds):
            for fix in itertools.islice(kind(unproved), most):
                if unproved.problem.deadline <= time.monotonic():
                    return tuple(fixes)
                advance(number)
                if _is_solved(unproved, fix):
                    changed = fixed(unproved.problem, fix).program
                    fixes.append(replace(fix, sequence=changed))
                    break
    return tuple(fixes)


def _is_solved(unproved: Unproved, fix: Fix) -> bool:
    """Returns whether a fix is proved to make the problem safe."""
    try:
        return unproved.solved_by(fixed(unproved.problem, fix))
    except ValueError:  # the device refuses a launch of it
        return False
