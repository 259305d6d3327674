"""What each instruction of a kernel reads and writes, as nvdisasm says it, and what may move."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from enum import Enum

from tbsched.sm.characterization.toolkit import (
    Instruction,
    Place,
    Touched,
    lives,
    refusing_torn,
    sections,
)
from tbsched.sm.characterization.words import BYTES, NO_SCOREBOARD, Control
from tbsched.sm.code.reading import instructions_of
from tbsched.sm.rewriting.cubins import attributes

_NAMED = re.compile(r"\b(UR|UP|R|P)(\d+)\b")
# All others stay where they are, and nothing crosses them.
_MOVABLE = re.compile(
    "F(ADD|FMA|MUL|MNMX|SEL|SET|SETP)|D(ADD|FMA|MUL|SETP|MNMX)|H(ADD2|FMA2|MUL2|MNMX2|SETP2|SET2)"
    "|MUFU|[FI]2[FI]|[FI]2FP|FRND|I2IP|IMAD|IADD3|VIADD|VIMNMX|VIADDMNMX|IMNMX|IABS|ISETP|LOP3|LEA"
    "|SHF|SEL|PRMT|MOV|PLOP3|P2R|R2P|BMSK|SGXT|POPC|FLO|BREV|IDP|HMMA|IMMA|DMMA"
    "|U(IADD3|MOV|LOP3|LEA|SHF|ISETP|IMAD|SEL|PRMT|PLOP3|LDC)|LDC"
    "|LD|LDG|LDS|LDL|LDSM|ST|STG|STS|STL"
)
# Special registers that never change; the others are clocks.
_CONSTANT = {
    "SRZ",
    "SR_LANEID",
    *(f"SR_{kind}.{axis}" for kind in ("TID", "CTAID") for axis in "XYZ"),
}
_PREDICATES = 7
# They touch the predicates of a mask, of which nvdisasm -lrm says nothing.
_PACKING = ("P2R", "R2P")
_WORD = re.compile(r"(?<![\w.])(?:[A-Za-z_]\w*|0x[0-9a-f]+)")
_CONSTANTS = re.compile(r"0x[0-9a-f]+|U?RZ|SRZ|U?PT|SR_\w+|cx?|desc|INF|QNAN")
_SPACES = {
    "LDG": "global", "STG": "global", "LDS": "shared", "STS": "shared", "LDSM": "shared",
    "LDL": "local", "STL": "local", "LD": "", "ST": "",
}  # fmt: skip
_SLOW = re.compile("MUFU|[FI]2[FI]|FRND|POPC|FLO|BREV|S2|LDC")  # if nothing else says so
_ORDERED = re.compile(r"STRONG|VOLATILE|MMIO|PRIVATE")
_OFFSETS = (0x1C, 0x1D, 0x28, 0x31, 0x39)  # attributes that list where instructions are


class Kind(Enum):
    """Why an instruction must stay behind another."""

    READ_AFTER_WRITE = "RAW"
    WRITE_AFTER_WRITE = "WAW"
    WRITE_AFTER_READ = "WAR"


@dataclass(frozen=True, slots=True)
class Step:
    """An instruction, as far as its place matters.

    Attributes:
        opcode: with its modifiers.
        control: how it is issued.
        reads, writes: registers, those of the guard among what is read.
        guard: registers of it, so that what is written may stay as it was.
        pinned: it stays where it is, and nothing crosses it.
        space: of the memory that it touches; empty: of any; None: it touches none.
        stores: whether it changes that memory.
        operands: as they are written.
    """

    opcode: str
    control: Control
    reads: frozenset[Place] = frozenset()
    writes: frozenset[Place] = frozenset()
    guard: frozenset[Place] = frozenset()
    pinned: bool = False
    space: str | None = None
    stores: bool = False
    operands: tuple[str, ...] = ()

    @property
    def sets(self) -> tuple[int, ...]:
        """The scoreboards that it sets."""
        scoreboards = (self.control.writes, self.control.reads)
        return tuple(scoreboard for scoreboard in scoreboards if scoreboard != NO_SCOREBOARD)

    def waits(self, scoreboard: int) -> bool:
        """Returns whether it waits for one."""
        return bool(self.control.waits >> scoreboard & 1)

    @property
    def slow(self) -> bool:
        """Whether no number of clocks says when it is over."""
        return self.space is not None or bool(self.sets) or bool(_SLOW.match(self.opcode))

    @property
    def clocks(self) -> int:
        """Clocks until the next instruction may issue."""
        return max(1, self.control.stall)

    def use(self, register: Place) -> tuple[int, ...]:
        """Returns how far a register is behind the one named, and at which operand; -1: none."""
        name, register_number = register
        offsets = [
            (register_number - int(digits), at)
            for at, text in enumerate(self.operands)
            for kind, digits in _NAMED.findall(text)
            if kind == name and register_number - int(digits) >= 0
        ]
        offset = min(offsets, default=(0, 0))[0]
        guard = (-1,) if register in self.guard else ()
        return (offset, *guard, *(at for distance, at in offsets if distance == offset))


@dataclass(frozen=True, slots=True)
class Listing:
    """The steps of a kernel, the branches among them, and where something can lead to.

    Attributes:
        steps: in the order of the machine code.
        code: the same instructions.
        labels: numbers of the steps that a branch may lead to.
    """

    steps: tuple[Step, ...]
    code: tuple[Instruction, ...]
    labels: frozenset[int]


def listing(cubin: bytes, name: str) -> Listing:
    """Returns the instructions of a kernel, with what they read, write and wait for.

    Raises:
        ToolMissing: nvdisasm is not there.
        ValueError: nvdisasm refuses the cubin.
    """
    code = instructions_of(cubin, name)
    ranges, labels = lives(cubin, name)
    with refusing_torn():
        fixed = _fixed(cubin, name)
    steps = tuple(
        step_of(instruction, ranges.get(k, Touched()), k in fixed or k not in ranges)
        for k, instruction in enumerate(code)
    )
    targets = {instruction.target for instruction in code if instruction.target is not None}
    return Listing(steps, code, frozenset(labels | targets))


def step_of(instruction: Instruction, touched: Touched, fixed: bool = False) -> Step:
    """Returns what an instruction reads, writes and waits for.

    Args:
        instruction: of a kernel.
        touched: registers, as ``nvdisasm -lrm`` says.
        fixed: whether something else in the cubin knows its place.
    """
    base = instruction.base
    text = " ".join((instruction.guard, *instruction.operands))
    registers_named = {(kind, int(digits)) for kind, digits in _NAMED.findall(text)}
    guard = frozenset((kind, int(digits)) for kind, digits in _NAMED.findall(instruction.guard))
    constant = base in ("S2R", "S2UR", "CS2R") and instruction.operands[-1].strip() in _CONSTANT
    pinned = (
        fixed
        or not (constant or _MOVABLE.fullmatch(base))
        or bool(_ORDERED.search(instruction.opcode))
        or not registers_named <= touched.reads | touched.writes
        or not all(_is_known(word, instruction) for word in _WORD.findall(text))
    )
    packed = _packed(instruction) if base in _PACKING else frozenset()
    reads = touched.reads | guard | (packed if base == "P2R" else frozenset())
    writes = touched.writes | (packed if base == "R2P" else frozenset())
    return Step(
        instruction.opcode, Control.of(instruction.word), reads, writes, guard, pinned,
        _SPACES.get(base), base.startswith("ST"), instruction.operands,
    )  # fmt: skip


def _is_known(word: str, instruction: Instruction) -> bool:
    """Returns whether it is clear what an instruction does with an operand, or a part of one,
    ``word``."""
    if word == "PR":
        return instruction.opcode in _PACKING and instruction.operands[-1].startswith("0x")
    return bool(_NAMED.fullmatch(word) or _CONSTANTS.fullmatch(word))


def _packed(instruction: Instruction) -> frozenset[Place]:
    """Returns the predicates of an instruction's mask; all of them if the mask is not a number."""
    last = instruction.operands[-1]
    mask = int(last, 16) if last.startswith("0x") else -1
    return frozenset(("P", index) for index in range(_PREDICATES) if mask >> index & 1)


def _fixed(cubin: bytes, name: str) -> set[int]:
    """Returns the indices of the instructions whose place something else in the cubin refers to:
    they cannot move."""
    fixed: set[int] = set()
    for section in sections(cubin):
        data = cubin[section.offset : section.offset + section.size]
        if section.name in (f".rela.text.{name}", f".rel.text.{name}"):
            size = 24 if section.name.startswith(".rela") else 16
            offsets = (struct.unpack_from("<Q", data, at)[0] for at in range(0, len(data), size))
            fixed.update(offset // BYTES for offset in offsets)
        if section.name == f".nv.info.{name}":
            for kind, at, size in attributes(data):
                if kind in _OFFSETS:
                    code_offsets = struct.unpack_from(f"<{size // 4}I", data, at)
                    fixed.update(code_offset // BYTES for code_offset in code_offsets)
    return fixed
