"""Which launch of a capture is which kernel that a debugger sees."""

from __future__ import annotations

from collections.abc import Iterable

from tbsched.hangs.debugger_text import bare_name
from tbsched.hangs.look import Resident
from tbsched.hangs.unfinished import LAUNCH, Operation


def resident_operations(
    operations: tuple[Operation, ...], kernels: Iterable[Resident]
) -> dict[int, Resident]:
    """Returns the kernels that are on the GPU, by the places of the launches that they are.

    Both are in the order of their launches. A kernel is the first launch left with its name, grid
    and block on its GPU; so is one whose name only one of the two knows.
    """
    found: dict[int, Resident] = {}
    for kernel in kernels:
        for place, operation in enumerate(operations):
            if place not in found and _is_it(operation, kernel):
                found[place] = kernel
                break
    return found


def _is_it(operation: Operation, kernel: Resident) -> bool:
    if operation.what != LAUNCH or operation.gpu != kernel.gpu:
        return False
    if (operation.grid, operation.block) != (kernel.grid, kernel.block):
        return False
    return operation.name is None or bare_name(operation.name) == kernel.name
