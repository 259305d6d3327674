"""Loops in machine code. They need ptxas and nvdisasm, and no GPU."""

from __future__ import annotations

import dataclasses
import re
import struct

import pytest

from tbsched.sm.characterization import (
    OPCODES,
    Frame,
    Loop,
    Mode,
    ToolMissing,
    Unverified,
    Wanted,
    distances,
    frames,
    loops,
    toolkit,
    words,
)
from tbsched.sm.characterization.frames import ITEMS, KERNEL
from tbsched.sm.characterization.loops import check
from tbsched.sm.characterization.toolkit import Instruction, code_of, disassemble, tool
from tbsched.sm.characterization.words import Control, Field

ARCHITECTURE = "sm_90"
SHOWN = ("fp32.fma", "special.sin", "mma.f16")


@pytest.fixture(scope="module")
def built() -> dict[str, Frame | Unverified]:
    for name in ("ptxas", "nvdisasm"):
        try:
            tool(name)
        except ToolMissing as error:
            pytest.skip(str(error))
    return frames([OPCODES[name] for name in SHOWN], ARCHITECTURE)


def frame(built: dict[str, Frame | Unverified], name: str) -> Frame:
    found = built[name]
    assert isinstance(found, Frame), found
    return found


def code_in(made: list[Loop]) -> list[tuple[Instruction, ...]]:
    """What nvdisasm reads in the kernels of loops."""
    places = [code_of(each.cubin, KERNEL) for each in made]
    codes = [each.cubin[a:b] for each, (a, b) in zip(made, places, strict=True)]
    return disassemble(codes, ARCHITECTURE)


@pytest.mark.parametrize("name", SHOWN)
def test_the_loop_has_its_opcode_in_all_modes_and_distances(
    built: dict[str, Frame | Unverified], name: str
) -> None:
    around = frame(built, name)
    wanted = [
        Wanted(name, mode, distance, spacing=3)
        for mode in Mode
        for distance in (1, distances(around, mode)[-1])
    ]
    for found in loops(around, wanted, ARCHITECTURE):  # which proves each
        assert found.instructions == ITEMS // found.distance * found.distance
        assert found.cubin != around.cubin


def test_a_thread_takes_no_more_registers_than_64_warps_leave(
    built: dict[str, Frame | Unverified],
) -> None:
    for name in SHOWN:
        code = frame(built, name).code
        used = (int(n) for each in code for o in each.operands for n in re.findall(r"\bR(\d+)", o))
        assert max(used) < 32


def test_the_sweep_has_the_wanted_control_fields(built: dict[str, Frame | Unverified]) -> None:
    around = frame(built, "fp32.fma")
    wanted = [Wanted("fp32.fma", Mode.WRITE_READ, 1, stall, updates=2) for stall in (1, 4, 15, 33)]
    made = loops(around, wanted, ARCHITECTURE)
    for asked, found, code in zip(wanted, made, code_in(made), strict=True):
        inside = code[around.first : around.last + 1]
        at = [k for k, each in enumerate(inside) if each.opcode == "FFMA"]
        assert len(at) == asked.updates == found.instructions
        # From the first to the second: its own stall, and those of what lies between.
        between = [Control.of(each.word) for each in inside[at[0] : at[1]]]
        assert sum(control.stall for control in between) == asked.spacing
        assert {(c.writes, c.reads, c.waits) for c in between} == {(7, 7, 0)}
        assert words.REUSE.of(inside[at[0]].word) == 0


def test_who_has_no_fixed_latency_waits_for_the_scoreboard_of_its_chain(
    built: dict[str, Frame | Unverified],
) -> None:
    around = frame(built, "special.sin")
    assert around.waits
    assert distances(around, Mode.WRITE_READ) == (1, 2, 3, 4, 5, 6)
    made = loops(around, [Wanted("special.sin", Mode.WRITE_READ, 3)], ARCHITECTURE)
    (code,) = code_in(made)
    mine = [each for each in code if each.opcode == "MUFU.SIN"]
    assert [Control.of(each.word) for each in mine[:4]] == [
        Control(1, k % 3, waits=1 << k % 3) for k in range(4)
    ]
    # The end is not read before all results are there.
    assert words.WAITS.of(code[around.last + 1].word) == words.ALL_SCOREBOARDS


def test_another_distance_is_found_out(built: dict[str, Frame | Unverified]) -> None:
    around = frame(built, "fp32.fma")
    (code,) = code_in(loops(around, [Wanted("fp32.fma", Mode.WRITE_READ, 4)], ARCHITECTURE))
    for mode, distance in ((Mode.WRITE_READ, 3), (Mode.READ_READ, 4)):
        with pytest.raises(Unverified):
            check(around, code, Wanted("fp32.fma", mode, distance))
    k = around.first + 7
    clash = dataclasses.replace(code[k], operands=("R0", "R2", "R4", "R6"))
    with pytest.raises(Unverified, match="bank"):
        check(around, (*code[:k], clash, *code[k + 1 :]), Wanted("fp32.fma", Mode.WRITE_READ, 4))
    other = dataclasses.replace(code[k], opcode="FMUL")
    with pytest.raises(Unverified, match="FMUL"):
        check(around, (*code[:k], other, *code[k + 1 :]), Wanted("fp32.fma", Mode.WRITE_READ, 4))


def test_what_the_compiler_makes_something_else_of_is_not_measured(
    built: dict[str, Frame | Unverified],
) -> None:
    wrong = dataclasses.replace(OPCODES["fp32.fma"], sass="FADD")
    refused = dataclasses.replace(OPCODES["fp32.add"], ptx="add.rn.f32 {r};")
    found = frames([wrong, refused], ARCHITECTURE)
    assert "FFMA" in str(found["fp32.fma"])
    assert "ptxas" in str(found["fp32.add"])
    assert all(isinstance(each, Unverified) for each in found.values())


def test_a_distance_or_a_spacing_that_does_not_fit_is_refused(
    built: dict[str, Frame | Unverified],
) -> None:
    around = frame(built, "mma.f16")
    with pytest.raises(ValueError, match=r"distance: 5 is outside 1\.\.4"):
        loops(around, [Wanted("mma.f16", Mode.WRITE_READ, 5)], ARCHITECTURE)
    for spacing in (0, 10_000):
        with pytest.raises(ValueError, match="spacing"):
            loops(around, [Wanted("mma.f16", Mode.WRITE_READ, 1, spacing)], ARCHITECTURE)


def test_without_a_tool_the_message_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.setattr(toolkit, "_HOMES", ())
    with pytest.raises(ToolMissing, match="ptxas is needed and was not found: install the CUDA"):
        tool.__wrapped__("ptxas")


def test_a_field_takes_what_fits() -> None:
    field = Field(4, 3)
    assert field.set(0xFFF, 2) == 0xFAF
    assert field.of(0xFAF) == 2
    with pytest.raises(ValueError, match=r"8 is outside 0\.\.7"):
        field.set(0, 8)


def test_operands_fill_the_chains_and_the_constants() -> None:
    for row in OPCODES.values():
        width = 8 if row.kind == "f64" else 4
        assert len(row.operands()) == width * (row.registers + len(row.constants))
    first = OPCODES["bfloat16.fma"].operands()[:4]
    assert struct.unpack("<f", b"\0\0" + first[:2]) == (1.5,)
