"""How an SM gives out warps, registers and shared memory, by elimination.

Sequences leave equal gaps on every SM. Each rule predicts how many blocks then fit; rules that
predict wrong are eliminated.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from tbsched.calibration.asking import one_sm
from tbsched.calibration.asking.choices import Choices, by_elimination
from tbsched.calibration.asking.lab import LEAST_REGISTERS, Lab, small
from tbsched.calibration.draft import draft
from tbsched.calibration.finding import Finding, KnownValues, assumed
from tbsched.calibration.probes.shared_memory import CONFIGURATIONS
from tbsched.hardware.spec import DeviceSpec
from tbsched.program.sequence import Sequence

_TURNS: Choices = {
    "strict_round_robin": (True, False),
    "warp_skip": (True, False),
    "registers": ("pooled", "contiguous", "circular"),
}
_GAPS: Choices = {
    "shared_memory": ("contiguous", "circular", "pooled"),
    "lowest_gap_first": (True, False),
}


def ask_turns(lab: Lab, known: KnownValues) -> list[Finding]:
    """Eliminates rules for warps and registers that contradict where blocks go of which few fill
    the registers, and returns findings from the rules that remain."""
    spec = draft(known)
    registers_per_block = spec.registers_per_sm // spec.processing_blocks
    max_warps = min(32, spec.threads_per_block // 32)
    registers = sorted(
        {
            min(
                max(registers_per_block // (32 * warps), LEAST_REGISTERS), spec.registers_per_thread
            )
            for warps in (2, 3, 4, 5, 6, 8, 11, 16)
        }
    )
    sizes = [
        (warps, r, 0)
        for warps, r in product(range(1, min(max_warps, 9) + 1), registers)
        if _fits(spec, warps, r)
    ]
    choices = dict(_TURNS)
    findings = []
    if spec.processing_blocks == 1 and known.is_determined("processing_blocks"):
        for name in ("strict_round_robin", "warp_skip"):
            because = "an SM has one processing block, so there are no turns"
            findings.append(assumed(f"mechanisms.{name}", True, because, (False,)))
            known.irrelevant.add(name)
            del choices[name]
    return findings + _ask(lab, known, choices, sizes)


def ask_gaps(lab: Lab, known: KnownValues) -> list[Finding]:
    """Eliminates rules for shared memory, and sizes of it, that contradict where blocks go of which
    few fill it. Returns findings from what remains."""
    spec = draft(known)
    size, reserve = spec.shared_memory_configurations[-1], spec.shared_memory_reserve
    shared = {
        min(max(size // blocks - reserve, 0), spec.shared_memory_per_block)
        for blocks in (2, 3, 4, 5, 6, 7, 8, 10, 13, 16, 20)
    }
    findings = _ask(lab, known, _GAPS, [(1, LEAST_REGISTERS, size) for size in sorted(shared)])
    _note_largest(known)
    return findings


def _note_largest(known: KnownValues) -> None:
    """Notes which sizes can still be the largest configuration."""
    groups = [group for group in known.remaining_groups if CONFIGURATIONS in group[0]]
    if known.unknown(known.premises) or not groups:
        return
    sizes = known.notes["sizes"] = sorted({values[CONFIGURATIONS][-1] for values in groups[0]})
    if len(sizes) == 1:
        known.set_remaining(
            {name: value for name, value in values.items() if name != CONFIGURATIONS}
            for values in groups[0]
        )


def _ask(
    lab: Lab, known: KnownValues, choices: Choices, sizes: list[tuple[int, int, int]]
) -> list[Finding]:
    """Eliminates layouts of shared memory that contradict where random launches go, and returns
    findings from those that remain."""

    def drawn(rng: np.random.Generator) -> Sequence:
        return one_sm.draw(rng, sizes)

    spec = one_sm.one_sm(draft(known))
    return by_elimination(lab, known, spec, choices, drawn, one_sm.VIEW, seed=0)


def _fits(spec: DeviceSpec, warps: int, registers: int) -> bool:
    """Returns whether the device accepts such a block."""
    try:
        spec.check(Sequence([small(warps, registers)]))
    except ValueError:
        return False
    return True
