"""Instruction loops: one opcode, one mode, one distance, proved in the machine code."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from tbsched.sm.characterization import words
from tbsched.sm.characterization.frames import Frame, Unverified
from tbsched.sm.characterization.opcodes import Opcode
from tbsched.sm.characterization.toolkit import Instruction, disassemble
from tbsched.sm.characterization.words import Control

# Clocks after which the result of every instruction of fixed latency is there: above all that
# ptxas waits for on Hopper.
SAFE_LATENCY = 40
_REGISTER = re.compile(r"\bR(\d+)\b")


class Mode(StrEnum):
    """What the instructions of a loop have in common."""

    WRITE_READ = "write-read"
    READ_READ = "read-read"


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop that was proved to be what it claims.

    Attributes:
        opcode: of its instructions.
        mode: ``write-read``: instruction k reads what k - distance wrote; ``read-read``: it reads
            what k - distance read, and nobody reads what it writes.
        distance: how many instructions lie between the two.
        spacing: clocks, at least, from one instruction of a warp to its next.
        updates: of each chain in one iteration; 0: as many as there is room for.
        instructions: of the opcode, in one iteration.
        cubin: the machine code.
    """

    opcode: str
    mode: Mode
    distance: int
    spacing: int
    updates: int
    instructions: int
    cubin: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Parameters of a requested loop; see :class:`Loop`.

    Attributes:
        spacing: None: enough for every result to be right.
    """

    opcode: str
    mode: Mode
    distance: int
    spacing: int | None = None
    updates: int = 0


def distances(around: Frame, mode: Mode) -> tuple[int, ...]:
    """Returns the distances that a loop can have.

    A scoreboard tells of one chain, and there are six; and results of read-read instructions take
    half of the registers.
    """
    max_distance = around.opcode.chains if mode is Mode.WRITE_READ else around.opcode.chains // 2
    if mode is Mode.WRITE_READ and around.waits:
        max_distance = min(max_distance, words.SCOREBOARDS)
    return tuple(range(1, max_distance + 1))


def loops(around: Frame, wanted: Iterable[Wanted], architecture: str) -> list[Loop]:
    """Writes loops into the compiled kernel, and proves each.

    Args:
        around: the compiled kernel.
        wanted: loops of its opcode.
        architecture: that it was compiled for.

    Raises:
        ToolMissing: nvdisasm is not there.
        Unverified: the machine code is not as wanted.
        ValueError: no such distance or spacing.

    Example:
        >>> from tbsched.sm.characterization import Mode, OPCODES, Wanted, frames, loops
        >>> frame = frames([OPCODES["fp32.fma"]], "sm_90")["fp32.fma"]
        >>> loops(frame, [Wanted("fp32.fma", Mode.WRITE_READ, 4)], "sm_90")[0].instructions
        480
    """
    with_spacing = [_spaced(around, spec) for spec in wanted]
    planned = [_planned(around, spec, spacing) for spec, spacing in with_spacing]
    cubins = [_written(around, plan) for plan in planned]
    end = around.at + len(around.code) * words.BYTES
    codes = disassemble([cubin[around.at : end] for cubin in cubins], architecture)
    loops_made = []
    for (spec, spacing), plan, cubin, code in zip(
        with_spacing, planned, cubins, codes, strict=True
    ):
        check(around, code, spec)
        inside = code[around.first : around.last + 1]
        if [instruction.word for instruction in inside] != plan:
            raise Unverified(f"{spec.opcode}: the loop was not written as planned")
        count = sum(instruction.opcode in _sass_names(around.opcode) for instruction in inside)
        loops_made.append(
            Loop(spec.opcode, spec.mode, spec.distance, spacing, spec.updates, count, cubin)
        )
    return loops_made


def _spaced(around: Frame, wanted: Wanted) -> tuple[Wanted, int]:
    """Returns a wanted loop with its spacing: its own, or else the least one that is safe.

    Raises:
        ValueError: no such loop has that distance.
    """
    known = distances(around, wanted.mode)
    if wanted.distance not in known:
        raise ValueError(f"distance: {wanted.distance} is outside 1..{known[-1]}")
    spacing = wanted.spacing
    if spacing is None:
        spacing = safe_spacing(around, wanted.mode, wanted.distance)
    return wanted, spacing


def safe_spacing(around: Frame, mode: Mode, distance: int) -> int:
    """Returns the least clocks between two instructions with which every result is surely right."""
    if around.waits:
        # The wait for a scoreboard sees a mark that was set two clocks before.
        return 2 if distance == 1 else 1
    if mode is Mode.READ_READ or not around.opcode.executes:
        return 1
    return -(-SAFE_LATENCY // distance)


def _planned(around: Frame, wanted: Wanted, spacing: int) -> list[int]:
    """Returns the machine code of the loop, a word for each instruction: count, half of the
    instructions under test, test, the other half, branch."""
    group = _group(around, wanted.mode, wanted.distance, spacing, 0)
    groups = min(around.items // len(group), wanted.updates or around.items)
    if spacing < 1 or not groups:
        raise ValueError(f"spacing: {spacing} clocks do not fit the loop")
    items = []
    for group_index in range(groups):
        items += _group(
            around, wanted.mode, wanted.distance, spacing, group_index * wanted.distance
        )
    items += [Control(1).on(words.NOP)] * (around.items - len(items))
    count, test, branch = (around.code[k].word for k in around.control)
    middle = len(items) // 2
    return [
        Control(1).on(count), *items[:middle], Control(1).on(test), *items[middle:], branch,
    ]  # fmt: skip


def _group(around: Frame, mode: Mode, distance: int, spacing: int, before: int) -> list[int]:
    """Returns the machine code of one instruction on each chain, a word for each.

    Args:
        around: the compiled kernel.
        mode: how an instruction depends on the one before it on its chain.
        distance: how many chains take turns.
        spacing: clocks between two instructions.
        before: how many instructions were before these; two kinds of instruction alternate by it.
    """
    words_of_group = []
    reuse = 0
    if around.opcode.reuse and spacing <= words.PATIENT:  # it is lost when the warp yields
        constant = (field not in around.sources for field in words.SOURCES)
        reuse = sum(1 << slot for slot, is_constant in enumerate(constant) if is_constant)
    for k in range(distance):
        source = around.chains[k]
        word = around.other if (before + k) % 2 else around.template
        for source_field in around.sources:
            word = source_field.set(word, source)
        stall = min(spacing, words.MOST_STALL)
        if mode is Mode.WRITE_READ:
            word = words.DESTINATION.set(word, source)
            control = (
                Control(stall, k, waits=1 << k) if around.waits else Control(stall, reuse=reuse)
            )
        else:
            word = words.DESTINATION.set(word, around.chains[distance + k])
            control = Control(stall, 0) if around.waits else Control(stall, reuse=reuse)
        words_of_group.append(control.on(word))
        remaining_clocks = spacing - stall
        while remaining_clocks > 0:
            words_of_group.append(Control(min(remaining_clocks, words.MOST_STALL)).on(words.NOP))
            remaining_clocks -= words.MOST_STALL
    return words_of_group


def _written(around: Frame, planned: list[int]) -> bytes:
    """Returns the cubin with the loop in it; the clocks are read when everything before is over."""
    cubin = bytearray(around.cubin)
    after_all = Control(words.MOST_STALL, waits=words.ALL_SCOREBOARDS)
    clocks = {k: after_all.on(around.code[k].word) for k in (around.first - 1, around.last + 1)}
    for k, word in [*clocks.items(), *enumerate(planned, around.first)]:
        at = around.at + k * words.BYTES
        cubin[at : at + words.BYTES] = word.to_bytes(words.BYTES, "little")
    return bytes(cubin)


def check(around: Frame, code: tuple[Instruction, ...], wanted: Wanted) -> None:
    """Checks, by what nvdisasm reads, that a loop has the wanted opcode, mode and distance.

    Raises:
        Unverified: it has not.
    """
    opcode = around.opcode
    inside = code[around.first : around.last + 1]
    control = Counter(around.code[k].opcode for k in around.control)
    opcodes = _sass_names(opcode)
    measured = [instruction for instruction in inside if instruction.opcode in opcodes]
    other_opcodes = Counter(
        instruction.opcode for instruction in inside if instruction.opcode not in (*opcodes, "NOP")
    )
    if other_opcodes != control or not measured:
        raise Unverified(f"{opcode.name}: the loop also has {', '.join(other_opcodes - control)}")
    if any(instruction.guard.rstrip("0123456789") != opcode.guard for instruction in measured):
        raise Unverified(f"{opcode.name}: the guard {opcode.guard or 'none'} is not everywhere")
    if opcode.wide == 1 and any(
        _in_one_bank(_registers(instruction.operands[1:])) for instruction in measured
    ):
        raise Unverified(f"{opcode.name}: three operands are in one bank of the registers")
    chained = set(around.chains)
    written = [_registers(instruction.operands[:1]) & chained for instruction in measured]
    read = [_registers(instruction.operands[1:]) & chained for instruction in measured]
    if any(len(chain_registers) != 1 for chain_registers in (*written, *read)):
        raise Unverified(f"{opcode.name}: an instruction has more than one chain register")
    count = len(measured)
    if wanted.mode is Mode.WRITE_READ:
        before = written
    else:
        before = read
        if any(chain_registers in written for chain_registers in read):
            raise Unverified(f"{opcode.name}: a read-read loop reads what it writes")
    for k in range(count):
        # Around the end of the loop: what comes first follows what comes last.
        distance = next(d for d in range(1, count + 1) if before[(k - d) % count] == read[k])
        if distance != wanted.distance:
            raise Unverified(
                f"{opcode.name}: distance {distance} at instruction {k}, not {wanted.distance}"
            )


def _sass_names(opcode: Opcode) -> tuple[str, ...]:
    return (opcode.sass, opcode.mixed) if opcode.mixed else (opcode.sass,)


def _in_one_bank(registers: set[int]) -> bool:
    """Returns whether more than two registers are all in one bank, so that reads take two turns.

    Since Volta there are two banks, even and odd.
    """
    return len(registers) > 2 and len({register % 2 for register in registers}) == 1


def _registers(operands: tuple[str, ...]) -> set[int]:
    return {int(register) for text in operands for register in _REGISTER.findall(text)}
