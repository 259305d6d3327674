"""Algorithm 1 for one grid that drains in waves, in Python without NumPy: what tbsched replaces.

As quick as plain Python is without leaving the algorithm: each block asks every SM. Shared memory
is a sum of bytes; blocks of one kernel leave no gaps.
"""

from __future__ import annotations

from dataclasses import dataclass

from tbsched.hardware.spec import DeviceSpec
from tbsched.program.sequence import Launch


@dataclass(slots=True)
class Sm:
    """What one SM has left."""

    slots: int
    warps: list[int]  # by processing block
    registers: list[int]
    shared_memory: int
    turn: int = 0


def waves(spec: DeviceSpec, launch: Launch) -> list[int]:
    """The SM of each block of the launch; a wave leaves when nothing more fits."""
    count = spec.processing_blocks
    warps = -(-launch.threads // 32)
    unit = spec.register_unit
    registers = -(-launch.registers * 32 // unit) * unit
    shared = -(-launch.shared_memory // spec.shared_memory_unit) * spec.shared_memory_unit
    shared += spec.shared_memory_reserve
    turns = [0] * spec.sms

    def idle(sm: int) -> Sm:
        return Sm(
            spec.blocks_per_sm,
            [spec.warps_per_sm // count] * count,
            [spec.registers_per_sm // count] * count,
            spec.shared_memory_configurations[-1],
            turns[sm],
        )

    def room(sm: Sm) -> int:
        fit = [min(w, r // registers) for w, r in zip(sm.warps, sm.registers, strict=True)]
        least = min(fit)
        first = next(turn for turn in range(count) if fit[(sm.turn + turn) % count] == least)
        return min(sm.slots, (least * count + first) // warps, sm.shared_memory // shared)

    def choose(sms: list[Sm]) -> int:
        most, chosen = 0, -1
        for number in spec.sm_preference:
            blocks = room(sms[number])
            if blocks > most:
                most, chosen = blocks, number
        return chosen

    placed: list[int] = []
    while len(placed) < launch.blocks:
        sms = [idle(number) for number in range(spec.sms)]
        while len(placed) < launch.blocks and (chosen := choose(sms)) >= 0:
            sm = sms[chosen]
            for warp in range(warps):
                sm.warps[(sm.turn + warp) % count] -= 1
                sm.registers[(sm.turn + warp) % count] -= registers
            sm.turn = (sm.turn + warps + (warps % count == 0)) % count
            sm.slots -= 1
            sm.shared_memory -= shared
            placed.append(chosen)
        turns = [sm.turn for sm in sms]
    return placed
