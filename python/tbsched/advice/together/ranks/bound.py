"""A bound: launches that fit, however other work has left the SMs.

Work that ends leaves nothing but a shared-memory configuration and gaps, and only on SMs that are
not idle. So a block is stuck only if each SM is full of blocks of launches that do not end. Each of
them has a weight: an SM whose blocks weigh less than 1 together has room. If all blocks together
weigh less than there are SMs, no block is stuck.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable

from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import predict
from tbsched.program.sequence import Launch, Sequence

_EPSILON = 1e-9


def always_fit(launches: list[Launch], others: Iterable[Launch], spec: DeviceSpec) -> bool:
    """Returns whether launches that do not end are sure to be resident; False: it is not known.

    Args:
        launches: they arrive in any order. Each fits on an idle GPU.
        others: launches that may be there before or meanwhile, and end.
        spec: the GPU.
    """
    everything = [*launches, *others]
    if any(one.partition is not None or one.cooperative for one in launches):
        return False
    if len({one.local_memory for one in everything}) > 1:
        return False
    if spec.mechanisms.registers != "pooled":  # they may have gaps
        return False
    configurations = _configurations(everything, spec)
    if spec.mechanisms.configuration_per_tpc and len(configurations) != 1:
        return False  # an idle SM may be set by its neighbour
    granule = math.gcd(*(_bytes(one, spec) for one in everything))
    return all(
        sum(
            (other.blocks - (one.cluster if other is one else 0))
            * _weight(other, one, configurations, granule, spec)
            for other in launches
        )
        < _units(one, spec) - _EPSILON
        for one in launches
    )


def _units(launch: Launch, spec: DeviceSpec) -> int:
    """Returns how many SMs are full if a block finds no room; for a cluster, how many TPCs."""
    if launch.cluster == 1:
        return spec.sms
    tpcs = -(-launch.cluster // spec.sms_per_tpc)
    return sum(max(0, len(gpc) - tpcs + 1) for gpc in spec.gpcs)


def _weight(
    block: Launch, asking: Launch, configurations: frozenset[int], granule: int, spec: DeviceSpec
) -> float:
    """Returns how much of an SM a block fills at most, for a block that asks for room.

    Args:
        block: one that is resident.
        asking: the one that asks.
        configurations: bytes of shared memory to which an SM may be set; empty: any.
        granule: all blocks take multiples of it, in bytes of shared memory.
        spec: the GPU.
    """
    own, asked = _demands(block, spec), _demands(asking, spec)
    limits = (
        spec.warps_per_sm // spec.processing_blocks,
        spec.registers_per_sm // spec.processing_blocks,
        spec.blocks_per_sm if asking.cluster == 1 else spec.cluster_blocks_per_sm,
    )
    rows = [
        taken / (limit - more + 1) for taken, more, limit in zip(own, asked, limits, strict=True)
    ]
    return min(1.0, max(*rows, _memory_weight(block, asking, configurations, granule, spec)))


def _demands(launch: Launch, spec: DeviceSpec) -> tuple[int, int, int]:
    """Returns the warps and registers of one processing block that a block takes, and its slot."""
    warps = -(-launch.threads // (32 * spec.processing_blocks))
    unit = spec.register_unit
    return warps, warps * (-(-launch.registers * 32 // unit) * unit), 1


def _memory_weight(
    block: Launch, asking: Launch, configurations: frozenset[int], granule: int, spec: DeviceSpec
) -> float:
    """Returns the weight by shared memory; what is free may be in gaps between the blocks."""
    own, asked = _bytes(block, spec), _bytes(asking, spec)
    gap = asked - granule  # the largest that is too small
    fitting = [size for size in configurations if size >= own]
    # A block is refused on an SM that is set to less than the block would set it to.
    wanted = max(asked, _configuration(_of_block(asking), spec))
    if not fitting or any(size < wanted for size in fitting):
        return 1.0
    return max((own + gap) / max(size - size % granule - gap, 1) for size in fitting)


def _bytes(launch: Launch, spec: DeviceSpec) -> int:
    unit = spec.shared_memory_unit
    return -(-(launch.shared_memory + spec.shared_memory_reserve) // unit) * unit


def _configurations(launches: list[Launch], spec: DeviceSpec) -> frozenset[int]:
    """Returns the bytes of shared memory to which these launches may set SMs; empty: any."""
    if any(one.carveout is not None for one in launches):
        return frozenset()
    if not spec.mechanisms.shared_memory_configuration:
        return frozenset([spec.shared_memory_configurations[-1]])
    return frozenset(_configuration(_of_block(one), spec) for one in launches)


def _of_block(launch: Launch) -> Launch:
    """Returns one cluster of the launch, with what its configuration depends on."""
    return Launch(
        launch.cluster, launch.threads, launch.registers, launch.shared_memory,
        cluster=launch.cluster,
    )  # fmt: skip


@functools.lru_cache(maxsize=4096)
def _configuration(launch: Launch, spec: DeviceSpec) -> int:
    return int(predict(Sequence([launch]), spec).residents().configured.max())
