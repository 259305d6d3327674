"""Every kind of fix, those that change least first."""

from __future__ import annotations

from collections.abc import Callable, Iterator

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
from tbsched.advice.together.problem import proved

# What each yields is tried in turn; the first that holds is the fix of its kind.
KINDS: tuple[Callable[[Unsafe], Iterator[Fix]], ...] = (
    order, streams, loading, set_up, carveout, partition, grid, registers, cooperative,
)  # fmt: skip


def fixes_of(unsafe: Unsafe) -> tuple[Fix, ...]:
    """Of each kind the least change that the search proves safe."""
    found = []
    for kind in KINDS:
        for fix in kind(unsafe):
            if _holds(unsafe, fix):
                found.append(fix)
                break
    return tuple(found)


def _holds(unsafe: Unsafe, fix: Fix) -> bool:
    try:
        return proved(fixed(unsafe.problem, fix))
    except ValueError:  # the device refuses a launch of it
        return False
