"""Which unit executes an instruction of the machine code."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum


class Unit(StrEnum):
    """What executes instructions. Those of one unit wait for each other."""

    FP32 = "FP32"
    FP64 = "FP64"
    INTEGER = "integer"
    MULTIPLY = "integer multiply"
    HALF = "half"
    SPECIAL = "special"
    TENSOR = "tensor"
    SHARED = "shared memory"
    MEMORY = "memory"
    BARRIER = "barrier"
    UNIFORM = "uniform"
    CONTROL = "control"


@dataclass(frozen=True, slots=True)
class Class:
    """Instructions that were measured together.

    Attributes:
        unit: that executes them.
        measured: the opcode of :data:`tbsched.sm.OPCODES` that stands for them; empty: none.
        pattern: of their names in the machine code, without modifiers.
    """

    unit: Unit
    measured: str
    pattern: str


# The first one whose pattern fits.
CLASSES = (
    Class(Unit.FP32, "fp32.fma", "FFMA|FADD|FMUL|FFMA32I|FADD32I|FMUL32I|FSWZADD"),
    Class(Unit.FP64, "fp64.fma", "DFMA|DADD|DMUL|DSETP|DMNMX"),
    Class(Unit.MULTIPLY, "int32.mad", "IMAD|IMUL|IDP|IDP4A|IMAD32I"),
    Class(Unit.HALF, "half.fma", "HFMA2|HADD2|HMUL2|HSETP2|HMNMX2|HADD2_32I|HFMA2_32I|HMUL2_32I"),
    Class(Unit.SPECIAL, "special.ex2", "MUFU"),
    Class(Unit.SPECIAL, "convert.f2i", "F2F|F2I|I2F|FRND|I2I"),
    Class(Unit.SPECIAL, "bits.popc", "POPC|FLO|BREV"),
    Class(Unit.TENSOR, "mma.f16", "[HIDBQ]?MMA|[HIQB]GMMA"),
    Class(Unit.SHARED, "shared.load", "LDS|STS|LDSM|STSM|ATOMS|SHFL|REDUX|MATCH"),
    Class(Unit.MEMORY, "", "LD|ST|LDG|STG|LDL|STL|ATOM|ATOMG|RED|LDGSTS|TEX|TLD|TLD4|SULD|SUST"),
    Class(Unit.MEMORY, "", "UBLKCP|UTMALDG|UTMASTG|SYNCS"),
    Class(Unit.BARRIER, "", "BAR|B2R|WARPSYNC|DEPBAR|LDGDEPBAR|MEMBAR|ERRBAR|CCTL|BARRIER"),
    Class(Unit.CONTROL, "", "BRA|BRX|JMP|EXIT|RET|CALL|NOP|BSSY|BSYNC|BREAK|YIELD|KILL|NANOSLEEP"),
    Class(Unit.CONTROL, "", "WARPGROUP|WARPGROUPSET|ELECT|PMTRIG|BPT|ACQBULK"),
    Class(Unit.UNIFORM, "", "U[A-Z0-9]+|R2UR|S2UR|LDCU?|ULDC|S2R|CS2R|VOTEU"),
    Class(Unit.INTEGER, "int32.add", ".*"),
)
_COMPILED = tuple((each, re.compile(each.pattern)) for each in CLASSES)


def class_of(opcode: str) -> Class:
    """Returns the class of an instruction.

    Args:
        opcode: with its modifiers, as nvdisasm writes it.
    """
    name = opcode.split(".", 1)[0]
    return next(kind for kind, pattern in _COMPILED if pattern.fullmatch(name))
