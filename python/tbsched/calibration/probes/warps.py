"""Warp slots, processing blocks, registers and their unit: how many blocks fill an idle SM.

An SM with P processing blocks holds min(W, P * (Q // d)) warps. W are its warp slots, Q the
registers of a processing block and d those of a warp: whole units. Every (P, unit, Q, W) that
contradicts what was counted is eliminated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import lcm
from typing import NamedTuple

from tbsched.calibration.asking.lab import LEAST_REGISTERS, Lab, small
from tbsched.calibration.finding import Finding, KnownValues, assumed, determined
from tbsched.program.sequence import Launch, Sequence

PROCESSING_BLOCKS = (1, 2, 3, 4)
UNITS = tuple(32 * n for n in (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 48, 64))
_MAX_REGISTERS = 16_777_216
_PATHS = (
    "limits.processing_blocks",
    "limits.warps_per_sm",
    "limits.registers_per_sm",
    "allocation.register_unit",
)
# (warps per block, registers per thread): blocks that an idle SM holds.
Counts = Mapping[tuple[int, int], int]


class Files(NamedTuple):
    """A candidate for the sizes of an SM's register files and warp slots."""

    processing_blocks: int
    unit: int
    units: int  # register units per processing block
    warps: int

    def holds(self, registers: int) -> int:
        """Returns how many warps with so many registers per thread an SM holds."""
        return min(self.warps, self.processing_blocks * (self.units // self.takes(registers)))

    def takes(self, registers: int) -> int:
        """Returns the register units of a warp with so many registers per thread."""
        return -(-32 * registers // self.unit)


def ask(lab: Lab, known: KnownValues) -> list[Finding]:
    """Measures how many blocks fill an SM, by their warps and registers, and returns findings:
    processing blocks, warp slots, registers and their unit.

    Fills the SMs with blocks of 1, 2, ... warps, then of some of these sizes with more and more
    registers.
    """
    max_warps = min(32, known["threads_per_block"] // 32)
    sizes = range(1, max_warps + 1)
    by_warps = lab.fills([small(warps) for warps in sizes])
    counts = dict(zip(((warps, LEAST_REGISTERS) for warps in sizes), by_warps, strict=True))
    known.notes["single"] = lab.most_per_sm = by_warps[0]
    limit = known["registers_per_thread"]
    below = [warps for warps, count in zip(sizes, by_warps, strict=True) if count < by_warps[0]]
    for warps in (below or [1])[:3]:
        # Blocks of several warps with many registers may be refused: they fit no SM.
        fits = _max_registers(lab, warps, limit)
        register_counts = list(range(LEAST_REGISTERS + 1, fits + 1))
        block_counts = lab.fills([small(warps, registers) for registers in register_counts])
        counts.update(
            {(warps, r): count for r, count in zip(register_counts, block_counts, strict=True)}
        )
    candidates = _narrowed_by_full_registers(lab, remaining(counts), limit)
    known.notes["files"] = candidates
    if candidates:
        best = _most_likely(candidates)
        known.set_remaining(map(_values, [best, *(files for files in candidates if files != best)]))
    return read(candidates, limit)


def _narrowed_by_full_registers(lab: Lab, candidates: list[Files], limit: int) -> list[Files]:
    """Returns the candidates that remain after blocks have filled the registers to the last unit,
    while there are several."""
    width = lcm(*(files.processing_blocks for files in candidates))
    if len(candidates) < 2:
        return candidates
    for warps in range(width, 32, width):
        max_registers = _max_registers(lab, warps, limit)
        blocks, slots = lab.fills([small(warps, max_registers), small()])
        if blocks < slots:
            break  # there is a slot for one more
    # Some sizes leave too little for the smallest warp; others are tried then.
    for registers in sorted({max_registers * part // 16 for part in range(8, 17)}, reverse=True):
        (blocks,) = lab.fills([small(warps, registers)])
        entered = _entered(lab, small(warps, registers, blocks=blocks * lab.sms), max_registers)
        if entered is not None:
            candidates = [
                files for files in candidates if _leaves(files, warps, registers, blocks, entered)
            ]
        if len(candidates) < 2:
            break
    return candidates


def _max_registers(lab: Lab, warps: int, limit: int) -> int:
    """Returns the most registers per thread with which a block of so many warps is accepted."""
    return lab.largest(lambda r: lab.accepts(small(warps, r)), LEAST_REGISTERS, limit)


def _entered(lab: Lab, other_blocks: Launch, max_registers: int) -> int | None:
    """Returns the most registers per thread with which a block enters beside others; None: none
    enters."""

    def enters(registers: int) -> bool:
        (trace,) = lab.run(
            [Sequence([other_blocks, replace(other_blocks, blocks=1, registers=registers)])]
        )
        return trace[0].placed == other_blocks.blocks and trace[1].placed == 1

    if not enters(LEAST_REGISTERS):
        return None
    return lab.largest(enters, LEAST_REGISTERS, max_registers)


def _leaves(files: Files, warps: int, registers: int, blocks: int, entered: int) -> bool:
    """Returns whether a candidate has room for a block of ``entered`` registers per thread beside
    ``blocks`` blocks, and none for more registers."""
    warps_per_processing_block = warps // files.processing_blocks
    free = files.units - blocks * warps_per_processing_block * files.takes(registers)
    return (
        warps_per_processing_block * files.takes(entered)
        <= free
        < warps_per_processing_block * files.takes(entered + 1)
    )


def remaining(counts: Counts) -> list[Files]:
    """Returns all candidates that agree with the counts."""
    slots = max(counts.values())  # a lower bound of the block slots
    low, high = 1, 64
    for (warps, registers), count in counts.items():
        if registers != LEAST_REGISTERS:
            continue
        low = max(low, count * warps)
        if count < slots:
            high = min(high, count * warps + warps - 1)
    return [
        files
        for warp_slots in range(low, high + 1)
        for processing_blocks in PROCESSING_BLOCKS
        if warp_slots % processing_blocks == 0
        for unit in UNITS
        for files in _built(processing_blocks, unit, warp_slots, slots, counts)
    ]


def _built(
    processing_blocks: int, unit: int, warp_slots: int, slots: int, counts: Counts
) -> list[Files]:
    """Returns candidates with ``warp_slots`` warps of few registers, by slots or by registers."""
    min_units, max_units = 0, _MAX_REGISTERS // unit
    for (warps, registers), count in counts.items():
        units_per_warp = -(-32 * registers // unit)
        # Each processing block holds at least its share of these warps.
        min_units = max(min_units, -(-count * warps // processing_blocks) * units_per_warp)
        if count == slots or count == warp_slots // warps:
            continue
        too_many = (count + 1) * warps
        max_units = min(max_units, -(-too_many // processing_blocks) * units_per_warp - 1)
    few = -(-32 * LEAST_REGISTERS // unit)
    bound_by_slots = [
        Files(processing_blocks, unit, units, warp_slots)
        for units in range(
            max(min_units, warp_slots // processing_blocks * few), _end(min_units, max_units)
        )
    ]
    return [files for files in bound_by_slots if _agrees(files, slots, counts)] + [
        files
        for units in range(min_units, _end(min_units, max_units))
        if processing_blocks * (units // few) == warp_slots and warp_slots + processing_blocks <= 64
        for files in [Files(processing_blocks, unit, units, warp_slots + processing_blocks)]
        if _agrees(files, slots, counts)
    ]


def _end(min_units: int, max_units: int) -> int:
    """Limits a range to its first 64 values: several candidates are enough to be undecided."""
    return min(max_units + 1, min_units + 64)


def _agrees(files: Files, slots: int, counts: Counts) -> bool:
    """Returns whether register files with these warp slots and block slots give all the counts."""
    return all(
        count == min(slots, files.holds(registers) // warps)
        for (warps, registers), count in counts.items()
    )


def _most_likely(candidates: list[Files]) -> Files:
    """Returns the candidate that is preferred: with four processing blocks, and a round number of
    registers."""
    return max(
        candidates,
        key=lambda files: (
            files.processing_blocks == 4,
            files.units * files.unit % 1024 == 0,
            files.unit,
            -files.units,
        ),
    )


def _values(files: Files) -> dict[str, int]:
    """Returns the fields of a device that register files of processing blocks give."""
    return {
        "processing_blocks": files.processing_blocks,
        "warps_per_sm": files.warps,
        "registers_per_sm": files.processing_blocks * files.units * files.unit,
        "register_unit": files.unit,
    }


def read(candidates: list[Files], registers_per_thread: int) -> list[Finding]:
    """Returns findings from the remaining candidates."""
    if not candidates:
        nothing = "no sizes of warp slots and register files agree with how many blocks filled SMs"
        return [
            assumed("limits.processing_blocks", 4, nothing),
            assumed("limits.warps_per_sm", 64, nothing),
            assumed("limits.registers_per_sm", 65536, nothing),
            assumed("allocation.register_unit", 256, nothing),
        ]
    best = _values(_most_likely(candidates))
    because = "how many blocks of 1 to 32 warps and of 16 to 255 registers filled idle SMs"
    findings = []
    for path in _PATHS:
        name = path.rpartition(".")[2]
        rivals = tuple(sorted({_values(files)[name] for files in candidates} - {best[name]}))
        findings.append(
            assumed(path, best[name], f"{because} leave others", rivals[:16])
            if rivals
            else determined(path, best[name], because)
        )
    if all(32 * (registers_per_thread + 1) <= files.units * files.unit for files in candidates):
        findings.append(
            determined("limits.registers_per_thread", registers_per_thread, "one more is refused")
        )
    return findings
