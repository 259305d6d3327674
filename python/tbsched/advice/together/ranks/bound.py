"""A bound: launches that fit, however other work has left the SMs.

Work that ends leaves nothing but a shared-memory configuration, and only on SMs that are not idle.
So a block is stuck only if each SM holds blocks of launches that do not end. There must be enough
of these for all SMs.
"""

from __future__ import annotations

from collections.abc import Iterable

from tbsched.hardware.spec import DeviceSpec
from tbsched.program.sequence import Launch


def always_fit(launches: list[Launch], others: Iterable[Launch], spec: DeviceSpec) -> bool:
    """Returns whether launches that do not end are sure to be resident; False: it is not known.

    Args:
        launches: they arrive in any order. Each fits on an idle GPU.
        others: launches that may be there before or meanwhile, and end.
        spec: the GPU.
    """
    if any(one.partition is not None or one.cooperative for one in launches):
        return False
    if len({one.local_memory for one in (*launches, *others)}) > 1:
        return False
    blocks = sum(one.blocks for one in launches)
    alike = len({(one.shared_memory > 0, one.carveout) for one in (*launches, *others)}) == 1
    plain = alike and launches[0].shared_memory == 0
    return all(
        blocks - one.cluster < _least_that_strand(one, launches if plain else [], spec)
        for one in launches
    )


def _least_that_strand(launch: Launch, beside: list[Launch], spec: DeviceSpec) -> int:
    """Returns how many blocks must be resident at least before a cluster finds no room.

    Args:
        launch: the one that asks.
        beside: what is resident; empty: one block of anything may fill an SM.
        spec: the GPU.
    """
    if launch.cluster > 1:
        tpcs = -(-launch.cluster // spec.sms_per_tpc)
        return sum(max(0, len(gpc) - tpcs + 1) for gpc in spec.gpcs)
    each = 1
    while beside and _have_room(launch, beside, each, spec):
        each += 1
    return each * spec.sms


def _have_room(launch: Launch, beside: list[Launch], count: int, spec: DeviceSpec) -> bool:
    """Returns whether a block finds room on an SM with `count` blocks, whichever they are."""
    per_block = spec.processing_blocks
    rows = [_demand(one, spec) for one in beside]
    warps, registers = (max(column) for column in zip(*rows, strict=True))
    own_warps, own_registers = _demand(launch, spec)
    return (
        count < spec.blocks_per_sm
        and (count * warps + own_warps) * per_block <= spec.warps_per_sm
        and (count * registers + own_registers) * per_block <= spec.registers_per_sm
    )


def _demand(launch: Launch, spec: DeviceSpec) -> tuple[int, int]:
    """Returns the warps and registers that a block takes of one processing block at most."""
    warps = -(-launch.threads // (32 * spec.processing_blocks))
    unit = spec.register_unit
    return warps, warps * (-(-launch.registers * 32 // unit) * unit)
