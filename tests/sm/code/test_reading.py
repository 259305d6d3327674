"""What a kernel asks of an SM: read from machine code, or told as a mix."""

from __future__ import annotations

import json
import lzma
import sys
from dataclasses import asdict
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import tbsched as tb
from tbsched.sm.characterization import words
from tbsched.sm.characterization.toolkit import Instruction, ToolMissing, lives, tool
from tbsched.sm.characterization.words import Control
from tbsched.sm.code.classes import Unit, class_of
from tbsched.sm.code.reading import cubin_of, instructions_of
from tbsched.sm.code.walking import path, walk

CONFIGS = Path(__file__).parents[2] / "advice" / "configs"
CUBINS = CONFIGS / "cubins"
CUBIN = CUBINS / "walsh_shared_f32.cubin"
IMAGE = CUBIN.read_bytes()


def code(*lines: tuple[str, str, str, int | None] | str) -> tuple[Instruction, ...]:
    """Instructions by opcode; or by guard, opcode, operands and target."""
    found = []
    for line in lines:
        guard, opcode, operands, target = ("", line, "", None) if isinstance(line, str) else line
        word = Control(1).on(0)
        found.append(Instruction(opcode, tuple(operands.split(",")), guard, target, word))
    return tuple(found)


@pytest.mark.parametrize(
    ("opcode", "unit"),
    [
        ("FFMA", Unit.FP32),
        ("DADD", Unit.FP64),
        ("IMAD.WIDE.U32", Unit.MULTIPLY),
        ("LOP3.LUT", Unit.INTEGER),
        ("MUFU.RCP", Unit.SPECIAL),
        ("HFMA2.MMA", Unit.HALF),
        ("HMMA.16816.F32", Unit.TENSOR),
        ("HGMMA.64x64x16.F32", Unit.TENSOR),
        ("LDS.128", Unit.SHARED),
        ("LDG.E.128", Unit.MEMORY),
        ("BAR.SYNC.DEFER_BLOCKING", Unit.BARRIER),
        ("UIADD3", Unit.UNIFORM),
        ("BRA", Unit.CONTROL),
        ("???", Unit.INTEGER),  # as good as any
    ],
)
def test_an_instruction_belongs_to_its_unit(opcode: str, unit: Unit) -> None:
    assert class_of(opcode).unit is unit


def test_a_loop_turns_as_often_as_asked() -> None:
    loop = code("FADD", "FMUL", ("@P0", "BRA", "0x10", 1), "FADD", "EXIT", "NOP")
    assert path(loop, 3) == [0, 1, 2, 1, 2, 1, 2, 3, 4]


def test_a_loop_in_a_loop_begins_anew() -> None:
    nested = code("FADD", "FMUL", ("@P0", "BRA", "", 1), ("@P1", "BRA", "", 0), "EXIT")
    assert path(nested, 2) == [0, 1, 2, 1, 2, 3] * 2 + [4]


def test_what_a_condition_skips_is_executed() -> None:
    skipping = code(("@P0", "BRA", "", 2), "FADD", "FMUL", "EXIT")
    assert path(skipping, 2) == [0, 1, 2, 3]


def test_the_side_with_the_loop_is_taken() -> None:
    sides = code(
        ("@P0", "BRA", "", 3), "FADD", ("", "BRA", "", 6),  # nothing to do
        "FMUL", ("@P1", "BRA", "", 3), "FMUL", "EXIT",
    )  # fmt: skip
    assert path(sides, 2) == [0, 3, 4, 3, 4, 5, 6]


def test_a_warp_waits_for_its_scoreboards() -> None:
    load, use = code(("", "LDG.E", "R2,[R4]", None), ("", "FADD", "R5,R2,R3", None))
    waiting = (
        Instruction(load.opcode, load.operands, "", None, Control(1, writes=0).on(0)),
        Instruction("FMUL", ("R8", "R8", "R8"), "", None, Control(4).on(0)),
        Instruction(use.opcode, use.operands, "", None, Control(4, waits=1).on(0)),
        *code("EXIT"),
    )
    found = walk(waiting, lambda each: 100.0)
    assert (found.clocks, found.waited) == (105.0, 95.0)
    assert (found.uses, found.bytes) == ([2], 4)
    assert words.SCOREBOARDS == 6


def test_the_widest_access_is_known_unless_a_register_says_how_many_bytes() -> None:
    narrow = code("LDG.E", "LDG.E.64", "FADD", "EXIT")
    wide = code("LDG.E", "STG.E.128", "EXIT")
    bulk = code("LDG.E", "UBLKCP", "EXIT")
    found = [walk(each, lambda _: 100.0) for each in (narrow, wide, bulk)]
    assert [(each.widest, each.bytes, each.in_bulk) for each in found] == [
        (8, 12, 0), (16, 20, 0), (4, 8, 1)
    ]  # fmt: skip
    tables = tb.sm.measured("h200")
    assert tb.sm.read_code(tb.sm.Mix({"memory": 2}), tables, 4).widest == 4
    assert tb.sm.read_code(tb.sm.Mix({"fp32.fma": 2}), tables, 4).widest == 0


def test_a_mix_needs_the_warps_that_its_waits_say() -> None:
    tables = tb.sm.measured("h200")
    chained = tb.sm.read_code(tb.sm.Mix({"fp32.fma": 100}), tables, 4)
    apart = tb.sm.read_code(tb.sm.Mix({"fp32.fma": 100}, {"fp32.fma": 4}), tables, 4)
    assert chained.warps_alone == pytest.approx(4, rel=0.05)
    assert apart.warps_alone == pytest.approx(1, rel=0.05)
    special = tb.sm.read_code(tb.sm.Mix({"special.ex2": 10, "memory": 1}), tables, 4)
    assert (special.busiest, special.memory) == ("special", 1)
    assert special.busy == pytest.approx(80, rel=0.01)


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ({"fp32.fmaa": 1}, "did you mean 'fp32.fma'"),
        ({"fp32.fma": -1}, r"Mix\.counts\.fp32\.fma: -1 is outside 0\.\."),
        ({"fp32.fma": 0}, r"Mix\.counts: at least one instruction"),
        (3, r"Mix\.counts: numbers by opcode are needed, got 3"),
    ],
)
def test_a_mix_that_cannot_be_is_refused(counts: dict[str, int], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        tb.sm.Mix(counts)
    with pytest.raises(ValueError, match=r"Mix\.distances\.fp32\.fma: 0 is outside 1\.\."):
        tb.sm.Mix({"fp32.fma": 1}, {"fp32.fma": 0})


def test_a_cubin_that_is_torn_is_refused() -> None:
    whole = (CUBINS / "walsh_shared_f32.cubin").read_bytes()
    # The last one is without a part of its last section's header.
    for size in (4, 8, 60, 200, 5000, 5330):
        with pytest.raises(ValueError, match="cut short or damaged"):
            instructions_of(*cubin_of(whole[:size]))
    far = whole[:0x28] + b"\xff" * 8 + whole[0x30:]
    with pytest.raises(ValueError, match="cut short or damaged"):
        cubin_of(far)


def test_the_file_of_a_cubin_that_is_torn_is_named(tmp_path: Path) -> None:
    place = tmp_path / "torn.cubin"
    place.write_bytes((CUBINS / "walsh_shared_f32.cubin").read_bytes()[:5000])
    words = r"torn\.cubin: kernel: the cubin is cut short or damaged"
    with pytest.raises(ValueError, match=words):
        tb.sm.variants(place)
    with pytest.raises(ValueError, match=words):
        tb.sm.read_code(place, tb.sm.measured("h200"), 4)


@pytest.mark.parametrize("name", ["walsh_shared_f32", "triton_add_f32.128"])
def test_a_cubin_gives_what_was_recorded(name: str) -> None:
    try:
        tool("nvdisasm")
    except ToolMissing as error:
        pytest.skip(str(error))
    stored = json.loads(lzma.decompress((CONFIGS / "codes.json.xz").read_bytes()))
    function, _, threads = name.partition(".")
    tables = tb.sm.measured("h200")
    found = tb.sm.read_code((CUBINS / f"{name}.cubin", function), tables, 4)
    again = json.loads(json.dumps(asdict(found)))
    assert again == stored[f"{function}/{threads or 0}"]


def test_a_cubin_of_cupy_lacks_its_last_byte() -> None:
    """CuPy cuts it off as if a text ended there; nvdisasm then says that the file is invalid."""
    try:
        tool("nvdisasm")
    except ToolMissing as error:
        pytest.skip(str(error))
    assert lives(IMAGE[:-1], "walsh_shared_f32") == lives(IMAGE, "walsh_shared_f32")
    with pytest.raises(ValueError, match="lacks its last 2 bytes; compile it again"):
        lives(IMAGE[:-2], "walsh_shared_f32")


class Overload:
    """As Numba has it."""

    __module__ = "numba.cuda.dispatcher"
    entry_name = "walsh_shared_f32"
    _codelibrary = SimpleNamespace(get_cubin=lambda: SimpleNamespace(code=IMAGE))


class Compiled:
    """As Triton has it."""

    __module__ = "triton.compiler"
    metadata = SimpleNamespace(name="triton_add_f32")
    asm = {"cubin": (CUBINS / "triton_add_f32.128.cubin").read_bytes()}  # noqa: RUF012


def test_the_machine_code_of_other_libraries_is_found() -> None:
    for kernel in (CUBIN, str(CUBIN), IMAGE, (IMAGE, "walsh_shared_f32"), Overload()):
        assert cubin_of(kernel) == (IMAGE, "walsh_shared_f32")
    assert cubin_of(Compiled())[1] == "triton_add_f32"


class RawKernel:
    """As CuPy has it."""

    __module__ = "cupy._core.raw"
    name, code, options = "walsh_shared_f32", "source", ("-O3",)


def test_cupy_compiles_its_source_again(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = [IMAGE[:-1], b".version 8.0", ".version 8.0"]
    fake: Any = ModuleType("cupy.cuda")
    fake.compiler = SimpleNamespace(compile_using_nvrtc=lambda code, options: (made.pop(0), None))
    monkeypatch.setitem(sys.modules, "cupy", ModuleType("cupy"))
    monkeypatch.setitem(sys.modules, "cupy.cuda", fake)
    assert cubin_of(RawKernel()) == (IMAGE[:-1], "walsh_shared_f32")
    while made:
        with pytest.raises(ValueError, match="CuPy compiles to PTX here"):
            cubin_of(RawKernel())


@pytest.mark.parametrize(
    ("kernel", "error", "message"),
    [
        (3, TypeError, "has no machine code that can be read: the path of a cubin"),
        (b"PTX", ValueError, "kernel: no cubin with a kernel; nvcc -cubin writes one"),
        (IMAGE[:900], ValueError, "cut short or damaged"),
        (IMAGE[:3000] + bytes(len(IMAGE) - 3000), ValueError, "no cubin with a kernel"),
        ((CUBIN, "walsh_shared"), ValueError, r"f32\.cubin: .*did you mean 'walsh_shared_f32'"),
    ],
)
def test_what_has_no_such_kernel_is_refused(
    kernel: object, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        cubin_of(kernel)
