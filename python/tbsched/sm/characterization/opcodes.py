"""The instructions that are measured: a row per opcode class."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from types import MappingProxyType

from tbsched.errors import did_you_mean

# Registers left for chains, besides the clocks, of the 32 per thread that allow 64 warps per SM.
_REGISTERS = 16


@dataclass(frozen=True, slots=True)
class Opcode:
    """An instruction: how PTX spells it, and what the machine code must then be.

    Attributes:
        name: what users call it.
        family: the class that it belongs to.
        sass: the opcode of the machine code, with its modifiers.
        ptx: the instruction; ``{r}`` is the chain register that it reads and writes, ``%a0`` to
            ``%a2`` are constants.
        kind: of its operands: ``f32``, ``f64``, ``f16x2``, ``bf16x2`` or ``b32``.
        also: what the compiler writes instead of ``sass`` or beside it; is overwritten.
        constants: the values of the constants.
        constant_kind: their kind, if it is another.
        guard: of the machine code's instruction: empty, ``@P`` or ``@!P``.
        wide: how many registers hold an operand of the chain.
        shared: the chain leads through shared memory.
        reuse: whether the constants stay in the reuse cache.
        mixed: another opcode of the machine code that does the same on another unit; every second
            instruction is one of it.
        tells: whether applying it often gives something else each time, so that who reads too
            early is found out.
    """

    name: str
    family: str
    sass: str
    ptx: str
    kind: str
    also: tuple[str, ...] = ()
    constants: tuple[float, ...] = ()
    constant_kind: str = ""
    guard: str = ""
    wide: int = 1
    shared: bool = False
    reuse: bool = False
    mixed: str = ""
    tells: bool = True

    @property
    def chains(self) -> int:
        """The number of chains that fit, which is the largest distance."""
        return _REGISTERS // self.wide

    @property
    def registers(self) -> int:
        """How many registers PTX names for the chains."""
        return self.chains if self.kind == "f64" else _REGISTERS

    @property
    def executes(self) -> bool:
        """Whether it changes its register; it does not if its guard never holds."""
        return self.guard != "@!P"

    def instruction(self, chain: int) -> str:
        """Returns the PTX of one of them."""
        per = self.registers // self.chains
        names = [f"%r{index}" for index in range(per * chain, per * (chain + 1))]
        return self.ptx.replace("{r}", names[0] if per == 1 else "{" + ", ".join(names) + "}")

    def operands(self) -> bytes:
        """Returns what the kernel loads first: the chain registers, then the constants."""
        step = 4.0 if self.shared else 0.0625 if self.kind == "f16x2" else 1.0
        first = 0.0 if self.shared else 1.5
        chain = [step * (first + i) for i in range(self.registers)]
        kind = self.constant_kind or self.kind
        return b"".join(
            [encoded(self.kind, value) for value in chain]
            + [encoded(kind, value) for value in self.constants]
        )


def encoded(kind: str, value: float) -> bytes:
    """Returns a value as the register holds it."""
    if kind == "b32":
        return struct.pack("<I", int(value))
    if kind == "f16x2":
        return 2 * struct.pack("<e", value)
    if kind == "bf16x2":
        return 2 * struct.pack("<f", value)[2:]
    return struct.pack("<d" if kind == "f64" else "<f", value)


# The registers give an SM's processing block two operands of a warp in a clock, from two banks. An
# instruction of one clock that reads three would show that, and not its own throughput. So those
# of one clock read the chain register alone, as in the thesis; the others are rows of their own.
_FMA = "fma.rn.f32 {r}, {r}, {r}, {r};"
_FMA_OF_THREE = "fma.rn.f32 {r}, {r}, %a0, %a1;"
_ROWS = (
    Opcode("fp32.fma", "FP32", "FFMA", _FMA, "f32"),
    Opcode("fp32.add", "FP32", "FADD", "add.rn.f32 {r}, {r}, {r};", "f32"),
    Opcode("fp32.mul", "FP32", "FMUL", "mul.rn.f32 {r}, {r}, {r};", "f32"),
    Opcode("fp64.fma", "FP64", "DFMA", "fma.rn.f64 {r}, {r}, {r}, {r};", "f64", wide=2),
    Opcode("fp64.add", "FP64", "DADD", "add.rn.f64 {r}, {r}, {r};", "f64", wide=2),
    Opcode("fp64.mul", "FP64", "DMUL", "mul.rn.f64 {r}, {r}, {r};", "f64", wide=2),
    Opcode("int32.mad", "INT32", "IMAD", "mad.lo.s32 {r}, {r}, %a0, %a1;", "b32",
           constants=(5, 3)),
    Opcode("int32.add", "INT32", "IADD3", "add.s32 {r}, {r}, %a0;", "b32",
           also=("IMAD.IADD",), constants=(3,)),
    Opcode("int32.min", "INT32", "VIMNMX", "min.s32 {r}, {r}, %a0;", "b32", constants=(7,),
           also=("IMNMX",), tells=False),
    Opcode("logic.lop3", "logic", "LOP3.LUT", "lop3.b32 {r}, {r}, %a0, %a1, 0x6a;", "b32",
           constants=(0x5A5A5A5A, 0x33CC33CC)),
    Opcode("logic.prmt", "logic", "PRMT", "prmt.b32 {r}, {r}, %a0, %a1;", "b32",
           constants=(0, 0x0321)),
    Opcode("shift.shf", "shift", "SHF.L.W.U32.HI", "shf.l.wrap.b32 {r}, {r}, {r}, %a0;", "b32",
           constants=(5,)),
    Opcode("shift.shl", "shift", "SHF.L.U32", "shl.b32 {r}, {r}, %a0;", "b32", constants=(1,)),
    Opcode("bits.popc", "bits", "POPC", "popc.b32 {r}, {r};", "b32"),
    Opcode("bits.brev", "bits", "BREV", "brev.b32 {r}, {r};", "b32"),
    Opcode("bits.flo", "bits", "FLO.U32", "bfind.u32 {r}, {r};", "b32"),
    Opcode("convert.i2f", "conversion", "I2FP.F32.S32", "cvt.rn.f32.s32 {r}, {r};", "b32"),
    Opcode("convert.f2i", "conversion", "F2I.NTZ", "cvt.rni.s32.f32 {r}, {r};", "b32"),
    Opcode("special.ex2", "special", "MUFU.EX2", "ex2.approx.ftz.f32 {r}, {r};", "f32"),
    Opcode("special.lg2", "special", "MUFU.LG2", "lg2.approx.ftz.f32 {r}, {r};", "f32"),
    Opcode("special.rcp", "special", "MUFU.RCP", "rcp.approx.ftz.f32 {r}, {r};", "f32"),
    Opcode("special.rsq", "special", "MUFU.RSQ", "rsqrt.approx.ftz.f32 {r}, {r};", "f32"),
    Opcode("special.sin", "special", "MUFU.SIN", "sin.approx.ftz.f32 {r}, {r};", "f32",
           also=("FMUL.RZ",)),
    Opcode("half.fma", "half", "HFMA2", "fma.rn.f16x2 {r}, {r}, {r}, {r};", "f16x2",
           also=("HFMA2.MMA",)),
    Opcode("half.add", "half", "HADD2", "add.rn.f16x2 {r}, {r}, {r};", "f16x2",
           also=("HFMA2.MMA",)),
    Opcode("bfloat16.fma", "bfloat16", "HFMA2.BF16_V2", "fma.rn.bf16x2 {r}, {r}, {r}, {r};",
           "bf16x2", also=("HFMA2.MMA.BF16_V2",)),
    Opcode("half.fma/mixed", "half", "HFMA2", "fma.rn.f16x2 {r}, {r}, {r}, {r};", "f16x2",
           also=("HFMA2.MMA",), mixed="HFMA2.MMA"),
    Opcode("bfloat16.fma/mixed", "bfloat16", "HFMA2.BF16_V2", "fma.rn.bf16x2 {r}, {r}, {r}, {r};",
           "bf16x2", also=("HFMA2.MMA.BF16_V2",), mixed="HFMA2.MMA.BF16_V2"),
    Opcode("fp32.fma@p", "predicated", "FFMA", f"@%q {_FMA}", "f32", guard="@P"),
    Opcode("fp32.fma@!p", "predicated", "FFMA", f"@!%q {_FMA}", "f32", guard="@!P"),
    Opcode("int32.mad@p", "predicated", "IMAD", "@%q mad.lo.s32 {r}, {r}, %a0, %a1;", "b32",
           constants=(5, 3), guard="@P"),
    Opcode("fp32.fma/three", "registers", "FFMA", _FMA_OF_THREE, "f32", constants=(1.0, 1.0)),
    Opcode("fp32.fma/reuse", "registers", "FFMA", _FMA_OF_THREE, "f32", constants=(1.0, 1.0),
           reuse=True),
    Opcode("fp64.fma/three", "registers", "DFMA", "fma.rn.f64 {r}, {r}, %a0, %a1;", "f64",
           constants=(1.0, 1.0), wide=2),
    Opcode("shared.load", "shared memory", "LDS", "ld.volatile.shared.b32 {r}, [{r}];", "b32",
           shared=True),
    Opcode("mma.f16", "tensor", "HMMA.16816.F32",
           "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {r}, {%a0, %a1, %a2, %a3}, "
           "{%a4, %a5}, {r};",
           "f32", constants=(1.0, 1.0, 1.0, 1.0, 0.0625, 0.0625), constant_kind="f16x2", wide=4),
)  # fmt: skip
OPCODES = MappingProxyType({row.name: row for row in _ROWS})


def opcode(name: str) -> Opcode:
    """Returns the row of that name.

    Raises:
        ValueError: there is none.
    """
    if name not in OPCODES:
        raise ValueError(f"opcodes: {name!r} is not known{did_you_mean(name, OPCODES)}")
    return OPCODES[name]
