"""Twenty concurrent workloads, for the GPU, for tbsched and for simulators.

Times are multiples of STEP. Where blocks wait, others leave one by one and STEP apart, so that it
is certain who leaves first: a simulator and a GPU can then be compared block by block.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import tbsched as tb

STEP = 8e-6  # seconds
LONG = 25 * STEP
KB = 1024

Workload = Callable[[], list[tb.Launch]]


def one_by_one(
    blocks: int, leaving: int, order: str = "ascending", after: float = LONG
) -> tuple[float, ...]:
    """Durations: some blocks leave, two steps apart; the others leave later together."""
    first = list(range(blocks))[:leaving]
    if order == "descending":
        first = list(range(blocks))[::-1][:leaving]
    if order == "shuffled":
        first = random.Random(1).sample(range(blocks), leaving)
    durations = [after + (2 * leaving + 40) * STEP] * blocks
    for k, block in enumerate(first):
        durations[block] = after + 2 * k * STEP
    return tuple(durations)


def two_kernels() -> list[tb.Launch]:
    """Both fit: the second takes the room that the first leaves on each SM."""
    return [
        tb.Launch(100, 512, 32, stream=0, duration=LONG),
        tb.Launch(100, 256, 64, stream=1, duration=LONG + 5 * STEP),
    ]


def configuration() -> list[tb.Launch]:
    """Few small blocks would fit beside a kernel that is on every SM, but its shared-memory
    configuration keeps them out."""
    return [
        tb.Launch(132, 1024, 32, stream=0, duration=one_by_one(132, 20)),
        tb.Launch(20, 64, 32, stream=1, duration=LONG),
    ]


def four_kernels() -> list[tb.Launch]:
    """Four kernels of other sizes share the SMs."""
    return [
        tb.Launch(66, 256, 64, stream=0, duration=LONG),
        tb.Launch(132, 128, 40, 16 * KB, stream=1, duration=LONG + 4 * STEP),
        tb.Launch(90, 384, 32, stream=2, duration=LONG + 8 * STEP),
        tb.Launch(144, 96, 24, 8 * KB, stream=3, duration=LONG + 12 * STEP),
    ]


def eight_streams() -> list[tb.Launch]:
    """Eight small kernels on eight streams: do they overlap?"""
    return [tb.Launch(20, 256, 32, stream=k, duration=LONG + 2 * k * STEP) for k in range(8)]


def shared_memory() -> list[tb.Launch]:
    """Shared memory decides who fits together."""
    return [
        tb.Launch(90, 128, 32, 100 * KB, stream=0, duration=LONG),
        tb.Launch(90, 128, 32, 120 * KB, stream=1, duration=LONG + 4 * STEP),
        tb.Launch(60, 64, 32, 60 * KB, stream=2, duration=LONG + 8 * STEP),
    ]


def registers() -> list[tb.Launch]:
    """Registers decide who fits together."""
    return [
        tb.Launch(132, 128, 255, stream=0, duration=LONG),
        tb.Launch(100, 96, 168, stream=1, duration=LONG + 4 * STEP),
        tb.Launch(100, 64, 64, stream=2, duration=LONG + 8 * STEP),
    ]


def chains() -> list[tb.Launch]:
    """Two streams of three kernels each: later ones find what others left."""
    return [
        tb.Launch(80, 256, 32, stream=0, duration=LONG),
        tb.Launch(100, 512, 32, stream=1, duration=LONG + 13 * STEP),
        tb.Launch(120, 128, 48, stream=0, duration=LONG),
        tb.Launch(70, 320, 40, stream=1, duration=LONG),
        tb.Launch(60, 512, 32, stream=0, duration=LONG + 3 * STEP),
        tb.Launch(132, 64, 32, stream=1, duration=LONG),
    ]


def holes() -> list[tb.Launch]:
    """A kernel in the middle leaves; the next one finds holes."""
    return [
        tb.Launch(132, 384, 32, stream=0, duration=4 * LONG),
        tb.Launch(75, 512, 32, stream=1, duration=LONG),
        tb.Launch(132, 256, 32, stream=2, duration=4 * LONG + 5 * STEP),
        tb.Launch(100, 256, 32, stream=1, duration=LONG),
    ]


def fragments() -> list[tb.Launch]:
    """Holes of 96 threads, into which blocks of 160 do not go: thread IDs are in pieces."""
    return [
        tb.Launch(792, 96, 24, stream=0, duration=LONG),
        tb.Launch(792, 64, 24, stream=1, duration=4 * LONG),
        tb.Launch(396, 96, 24, stream=2, duration=4 * LONG + 5 * STEP),
        tb.Launch(264, 160, 24, stream=0, duration=LONG),
    ]


def waits(order: str) -> list[tb.Launch]:
    return [
        tb.Launch(264, 1024, 32, stream=0, duration=one_by_one(264, 40, order)),
        tb.Launch(40, 1024, 32, stream=1, duration=LONG + 40 * STEP),
    ]


def leave_in_order() -> list[tb.Launch]:
    """The GPU is full; blocks leave in their order, others take their places."""
    return waits("ascending")


def leave_in_reverse() -> list[tb.Launch]:
    """As before, from the last block to the first."""
    return waits("descending")


def leave_shuffled() -> list[tb.Launch]:
    """As before, in any order; two smaller blocks follow each one."""
    first, _ = waits("shuffled")
    return [first, tb.Launch(60, 512, 32, stream=1, duration=LONG)]


def priorities() -> list[tb.Launch]:
    """Two kernels wait, and the later one is more urgent."""
    return [
        tb.Launch(1, 32, 32, stream=2, priority=-5, duration=10 * STEP),
        tb.Launch(1, 32, 32, stream=1, duration=5 * STEP),
        tb.Launch(264, 992, 32, stream=0, duration=one_by_one(264, 40)),
        tb.Launch(20, 992, 32, stream=1, duration=LONG + 40 * STEP),
        tb.Launch(20, 992, 32, stream=2, priority=-5, duration=LONG + 40 * STEP),
    ]


def held_up() -> list[tb.Launch]:
    """A kernel that does not fit holds up a small one that would."""
    return [
        tb.Launch(132, 1024, 32, stream=0, duration=one_by_one(132, 30)),
        tb.Launch(132, 512, 32, stream=1, duration=one_by_one(132, 20, after=4 * LONG)),
        tb.Launch(20, 1024, 32, stream=2, duration=LONG),
        tb.Launch(20, 64, 32, stream=3, duration=LONG),
    ]


def clusters() -> list[tb.Launch]:
    """Clusters of 4 beside single blocks."""
    return [
        tb.Launch(100, 256, 64, stream=0, duration=LONG),
        tb.Launch(96, 384, 64, cluster=4, stream=1, duration=LONG + 5 * STEP),
    ]


def large_clusters() -> list[tb.Launch]:
    """Clusters of 8 and of 2, one block per SM."""
    return [
        tb.Launch(64, 384, 64, 120 * KB, cluster=8, stream=0, duration=LONG),
        tb.Launch(60, 256, 64, 100 * KB, cluster=2, stream=1, duration=LONG + 5 * STEP),
        tb.Launch(50, 128, 32, stream=2, duration=LONG + 10 * STEP),
    ]


def carveouts() -> list[tb.Launch]:
    """A small carveout on some SMs: blocks with much shared memory must go elsewhere."""
    return [
        tb.Launch(60, 128, 32, 4 * KB, carveout=10, stream=0, duration=LONG),
        tb.Launch(60, 256, 32, 60 * KB, stream=1, duration=LONG + 5 * STEP),
        tb.Launch(40, 128, 32, 30 * KB, carveout=50, stream=2, duration=LONG + 10 * STEP),
    ]


def gemm_and_all_reduce() -> list[tb.Launch]:
    """A GEMM of cuBLAS beside an all-reduce of NCCL, as recorded, with the next GEMM."""
    return [
        tb.Launch(24, 544, 96, 103_808, cluster=4, stream=0, duration=3 * LONG),
        tb.Launch(96, 384, 168, 213_188, cluster=2, stream=1, duration=LONG),
        tb.Launch(96, 384, 168, 213_188, cluster=2, stream=1, duration=LONG),
    ]


def gemm_streams() -> list[tb.Launch]:
    """The recorded program gemm_streams: five GEMMs of FP32, one stream each, a fifth as large."""
    return [
        tb.Launch(blocks, 128, 255, 33_792, stream=k, duration=LONG + 3 * k * STEP)
        for k, blocks in enumerate([50, 10, 50, 14, 51])
    ]


def split_k() -> list[tb.Launch]:
    """The recorded program split_k: GEMM, reduction and element-wise kernels on two streams."""
    return [
        tb.Launch(52, 128, 121, 12_672, stream=0, duration=LONG),
        tb.Launch(18, 128, 72, 8_704, stream=1, duration=2 * LONG + 3 * STEP),
        tb.Launch(205, 512, 32, 16, stream=0, duration=LONG + 5 * STEP),
        tb.Launch(16, 128, 32, stream=1, duration=LONG),
        tb.Launch(16, 128, 32, stream=0, duration=LONG),
        tb.Launch(102, 512, 32, 16, stream=1, duration=LONG + 7 * STEP),
    ]


WORKLOADS: dict[str, Workload] = {
    workload.__name__: workload
    for workload in (
        two_kernels,
        configuration,
        four_kernels,
        eight_streams,
        shared_memory,
        registers,
        chains,
        holes,
        fragments,
        leave_in_order,
        leave_in_reverse,
        leave_shuffled,
        priorities,
        held_up,
        clusters,
        large_clusters,
        carveouts,
        gemm_and_all_reduce,
        gemm_streams,
        split_k,
    )
}


def sequence(name: str) -> tb.Sequence:
    return tb.Sequence(WORKLOADS[name]())
