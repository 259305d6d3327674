"""How long a launch configuration takes, compared with others of the same kernel.

The numbers were chosen on a third of the kernels in ``tests/lab/inside/kernels``, on an H200, and
scored on the others.
"""

from __future__ import annotations

import math

from tbsched.advice.reasons.case import Case
from tbsched.sm.code.walking import TURNS

CLOCKS_PER_LAUNCH = 1.25  # clocks of the GPU until the next block can be launched
_CLOCKS_PER_BLOCK = 700.0  # clocks that a block costs its SM besides its work
_CLOCKS_PER_WARP = 10.0  # the same, for each warp of it
_SHARPNESS = 3.0  # exponent of the transition between bounds by latency and by throughput


def estimate(case: Case) -> float:
    """Returns the estimated time in clocks; only ratios of such estimates mean something.

    Blocks are launched one after another. The busiest unit of a processing block works off its
    warps; with too few warps it waits for them. SMs that have a block more than others end last.
    """
    sms, fit = case.spec.sms, case.evenness.blocks_per_sm
    whole, left = divmod(case.launch.blocks, fit * sms)
    last = _wave(case, math.ceil(left / sms)) if left else 0.0
    return max(whole * _wave(case, fit) + last, CLOCKS_PER_LAUNCH * case.launch.blocks)


def _wave(case: Case, blocks: int) -> float:
    """Returns the clocks of one wave with ``blocks`` blocks on each SM."""
    turns = float(TURNS)
    if case.items:
        threads = case.launch.blocks * case.launch.threads
        turns = max(1.0, case.items / threads) / case.code.items_a_turn
    alone, busy = case.code.with_turns(turns)
    busy_clocks = math.ceil(blocks * case.block_warps / case.spec.processing_blocks) * busy
    bound = math.pow(alone**_SHARPNESS + busy_clocks**_SHARPNESS, 1 / _SHARPNESS)
    return bound + _CLOCKS_PER_BLOCK + _CLOCKS_PER_WARP * case.block_warps
