"""How long a launch configuration takes, compared with others of the same kernel."""

from __future__ import annotations

import math

from tbsched.advice.reasons.case import Case
from tbsched.sm.code.walking import TURNS

BLOCK = 600.0  # clocks that a block costs besides, from its arrival to its leaving


def estimate(case: Case) -> float:
    """Clocks, in the units of the profile: only ratios mean something.

    The busiest unit of a processing block works off its warps one after another; with too few
    warps it waits for them. SMs that have a block more than others end last.
    """
    sms, fit = case.spec.sms, case.evenness.blocks_per_sm
    whole, left = divmod(case.launch.blocks, fit * sms)
    last = _wave(case, math.ceil(left / sms)) if left else 0.0
    return whole * _wave(case, fit) + last


def _wave(case: Case, blocks: int) -> float:
    """Of so many blocks on an SM at once."""
    warps = math.ceil(blocks * case.block_warps / case.spec.processing_blocks)
    work = 1.0
    if case.items:
        work = case.items / (case.launch.blocks * case.launch.threads) / TURNS
    return max(case.profile.clocks, warps * case.profile.busy) * work + BLOCK
