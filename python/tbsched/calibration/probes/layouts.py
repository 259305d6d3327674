"""How an SM gives out warps, registers and shared memory, by elimination.

Sequences leave gaps on every SM alike. Each rule predicts how many blocks then fit; those that
predict wrong are struck out.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from tbsched.calibration import one_sm
from tbsched.calibration.draft import draft, with_values
from tbsched.calibration.elimination import Left, eliminate
from tbsched.calibration.finding import Finding, Found, assumed, told
from tbsched.calibration.lab import LEAST_REGISTERS, Lab
from tbsched.hardware.spec import DeviceSpec
from tbsched.program.sequence import Sequence

_TURNS = {
    "strict_round_robin": (True, False),
    "warp_skip": (True, False),
    "registers": ("pooled", "contiguous", "circular"),
}
_GAPS = {
    "shared_memory": ("contiguous", "circular", "pooled"),
    "lowest_gap_first": (True, False),
}


def ask_turns(lab: Lab, found: Found) -> list[Finding]:
    """Blocks of odd numbers of warps, with so many registers that few warps fit."""
    spec = draft(found)
    each = spec.registers_per_sm // spec.processing_blocks
    most = min(32, spec.threads_per_block // 32)
    registers = sorted({
        min(max(each // (32 * warps), LEAST_REGISTERS), spec.registers_per_thread)
        for warps in (2, 3, 4, 5, 6, 8, 11, 16)
    })
    sizes = [
        (warps, r, 0)
        for warps, r in product(range(1, min(most, 9) + 1), registers)
        if one_sm.one_sm(spec)._registers_for(32 * warps) >= r  # noqa: SLF001
    ]
    return _ask(lab, spec, _TURNS, sizes)


def ask_gaps(lab: Lab, found: Found) -> list[Finding]:
    """Blocks of which few fill the shared memory."""
    spec = draft(found)
    size, reserve = spec.shared_memory_configurations[-1], spec.shared_memory_reserve
    shared = {
        min(max(size // blocks - reserve, 0), spec.shared_memory_per_block)
        for blocks in (2, 3, 4, 5, 6, 7, 8, 10, 13, 16, 20)
    }
    return _ask(lab, spec, _GAPS, [(1, LEAST_REGISTERS, each) for each in sorted(shared)])


def _ask(
    lab: Lab,
    spec: DeviceSpec,
    choices: dict[str, tuple[Any, ...]],
    sizes: list[tuple[int, int, int]],
) -> list[Finding]:
    whole = one_sm.one_sm(spec)
    devices = [
        with_values(whole, **dict(zip(choices, values, strict=True)))
        for values in product(*choices.values())
    ]

    def drawn(rng: np.random.Generator) -> Sequence:
        return one_sm.draw(rng, sizes)

    return read(eliminate(lab, devices, drawn, one_sm.VIEW, seed=0), choices, spec)


def read(left: Left, choices: dict[str, tuple[Any, ...]], spec: DeviceSpec) -> list[Finding]:
    """From the rules that no sequence contradicted; ``spec`` has the guesses."""
    findings = []
    for name in choices:
        seen = {getattr(device.mechanisms, name) for device in left.devices}
        path = f"mechanisms.{name}"
        if len(seen) == 1:
            because = f"every other rule was wrong about one of {left.asked} sequences"
            findings.append(told(path, seen.pop(), because))
        elif seen:
            value = getattr(spec.mechanisms, name)
            value = value if value in seen else next(v for v in choices[name] if v in seen)
            because = f"the others agree on all of {left.asked} sequences"
            findings.append(assumed(path, value, because, tuple(sorted(seen - {value}, key=str))))
        else:
            because = f"no rule fits, the smallest disagreement is {left.misfit!r}"
            findings.append(assumed(path, getattr(spec.mechanisms, name), because))
    return findings
