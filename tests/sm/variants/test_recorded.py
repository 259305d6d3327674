"""Variants of recorded cubins: read back by nvdisasm, and executed by the literal machine."""

from __future__ import annotations

import functools
import struct
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

import tbsched as tb
from sm.variants.machine import Machine, Pair, same, walk
from sm.variants.programs import moved, plain
from sm.variants.text import Names, names, with_names
from tbsched.sm.characterization.loops import SAFE_LATENCY
from tbsched.sm.characterization.toolkit import (
    Instruction,
    ToolMissing,
    Touched,
    code_of,
    disassemble,
    sections,
    tool,
)
from tbsched.sm.characterization.words import BYTES, REUSE
from tbsched.sm.rewriting import making
from tbsched.sm.rewriting.blocks import blocks_of
from tbsched.sm.rewriting.cubins import padded, rewritten
from tbsched.sm.rewriting.effects import Listing, listing, step_of
from tbsched.sm.rewriting.orders import Order

CUBINS = Path(__file__).parents[2] / "advice" / "configs" / "cubins"
CUBIN = CUBINS / "walsh_shared_f32.cubin"
# The last one keeps predicates in registers (P2R).
NAMES = ("walsh_shared_f32", "triton_add_f32.128", "triton_layer_norm_f32")
THREADS = 256


def image(name: str) -> bytes:
    folders = CUBINS, Path(__file__).parent / "cubins"
    return next(path for f in folders if (path := f / f"{name}.cubin").exists()).read_bytes()


@functools.cache
def listed(name: str) -> Listing:
    return listing(image(name), name.partition(".")[0])


@functools.cache
def named(name: str) -> dict[int, Names]:
    return names(image(name), name.partition(".")[0])


@pytest.fixture(autouse=True)
def _needs_nvdisasm() -> None:
    try:
        tool("nvdisasm")
    except ToolMissing as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("name", NAMES)
def test_each_block_keeps_its_instructions(name: str) -> None:
    kernel = name.partition(".")[0]
    orders = [plain(listed(name).steps), *(moved(listed(name), order) for order in Order)]
    cubins = [rewritten(image(name), kernel, order) for order in orders]
    codes = [cubin[slice(*code_of(cubin, kernel))] for cubin in cubins]
    original, *others = disassemble(codes, "sm_90")
    assert any(code != original for code in others)
    for code in others:
        for block in blocks_of(listed(name)):
            if block.steps[0].pinned:  # its operands may be an address
                continue
            inside = slice(block.first, block.first + len(block.steps))
            was, now = (
                Counter((each.opcode, each.operands, each.guard) for each in one[inside])
                for one in (original, code)
            )
            assert was == now


@pytest.mark.parametrize("name", NAMES)
def test_a_step_touches_what_the_text_names(name: str) -> None:
    for number, step in enumerate(listed(name).steps):
        reads, writes = named(name)[number]
        assert reads <= step.reads, (number, step)
        assert writes <= step.writes, (number, step)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("order", list(Order))
def test_each_order_does_the_same(name: str, order: Order) -> None:
    steps = with_names(listed(name).steps, named(name))
    found = moved(listed(name), order)
    known = learned(name)
    machine = Machine(steps, lambda pair: min(SAFE_LATENCY, known.get(pair, 0)))
    for seed in range(2):
        places = walk(listed(name).code, seed, most=300)
        assert same(machine.run(plain(steps), places), machine.run(found, places))


@functools.cache
def learned(name: str) -> dict[Pair, int]:
    """The least clocks that the compiler left between two opcodes, on many ways."""
    steps = with_names(listed(name).steps, named(name))
    found: dict[Pair, int] = {}
    for seed in range(10):
        run = Machine(steps).run(plain(steps), walk(listed(name).code, seed, most=300))
        for pair, apart in run.apart.items():
            found[pair] = min(apart, found.get(pair, apart))
    return found


def test_who_keeps_predicates_in_a_register_reads_them() -> None:
    """Else one that writes a predicate anew could come before."""
    words = (
        0xFE4000000000000000040FF027803,  # P2R R2, PR, RZ, 0x40
        0xFE4000000000000000040FF023803,  # @P3 P2R R2, PR, RZ, 0x40
        0xFE400000000000000004005027804,  # R2P PR, R5, 0x40
        0xFE400000000000000004005022804,  # @P2 R2P PR, R5, 0x40
    )
    code = disassemble([word.to_bytes(BYTES, "little") for word in words], "sm_90")
    r2, r5, p2, p3, p6 = ("R", 2), ("R", 5), ("P", 2), ("P", 3), ("P", 6)
    said = (  # by nvdisasm; then what is true
        ({}, {r2}, {p6}, {r2}),
        ({p3}, {r2}, {p3, p6}, {r2}),
        ({r5}, {}, {r5}, {p6}),
        ({r5, p2}, {}, {r5, p2}, {p6}),
    )
    for (each,), (first, second, reads, writes) in zip(code, said, strict=True):
        step = step_of(each, Touched(frozenset(first), frozenset(second)))
        assert (step.reads, step.writes, step.pinned) == (reads, writes, False)


def test_what_is_not_understood_stays_where_it_is() -> None:
    r2 = Touched(writes=frozenset({("R", 2)}))
    for operands in (("R2", "PR", "RZ", "R64"), ("R2", "XR7"), ("R2", "R3")):
        opcode = "P2R" if "PR" in operands else "MOV"
        assert step_of(Instruction(opcode, operands, "", None, 0), r2).pinned
    assert not step_of(Instruction("MOV", ("R2", "0x7"), "", None, 0), r2).pinned


def test_operands_are_reused_only_by_the_same_follower() -> None:
    name = "walsh_shared_f32"
    cubin = image(name)
    count = len(listed(name).steps)
    original = words(cubin, name)
    reusing = next(k for k, word in enumerate(original) if REUSE.of(word))
    order = plain(listed(name).steps)
    assert rewritten(cubin, name, order) == cubin
    order[reusing + 1], order[reusing + 2] = order[reusing + 2], order[reusing + 1]
    changed = words(rewritten(cubin, name, order), name)
    assert next(k for k in range(count) if changed[k] != original[k]) == reusing
    assert REUSE.of(changed[reusing]) == 0


def words(cubin: bytes, kernel: str) -> list[int]:
    begin, end = code_of(cubin, kernel)
    return [int.from_bytes(cubin[at : at + BYTES], "little") for at in range(begin, end, BYTES)]


@pytest.fixture
def read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most of the time goes into nvdisasm's start."""
    monkeypatch.setattr(making, "listing", lambda cubin, name: listed(name))


@pytest.mark.usefixtures("read_once")
def test_padding_changes_the_registers_and_nothing_else(tmp_path: Path) -> None:
    found = tb.sm.variants(CUBIN, threads=THREADS, draws=2)
    assert [each.resident for each in found if not each.order] == [8, 6, 5, 4, 3, 2, 1]
    assert {each.order for each in found} >= {"", "loads", "apart", "random 0"}
    code = slice(*code_of(found[0].cubin, found.kernel))
    for number, each in enumerate(found):
        path = tmp_path / f"{number}.cubin"
        path.write_bytes(each.cubin)
        launch = tb.launch_of(path, grid=1, block=THREADS)
        assert launch.registers == each.registers
        changed = sum(a != b for a, b in zip(each.cubin, found[0].cubin, strict=True))
        if not each.order:
            assert each.cubin[code] == found[0].cubin[code]
            assert changed == (number > 0)


def test_a_kernel_is_padded_alone() -> None:
    cubin = image("walsh_shared_f32")
    old = bytearray(cubin)  # before compute capability 9.0 its section has the number, too
    (text,) = (each for each in sections(cubin) if each.name == ".text.walsh_shared_f32")
    struct.pack_into("<I", old, text.header + 0x2C, text.info | 21 << 24)
    (text,) = (
        each for each in sections(padded(bytes(old), "walsh_shared_f32", 40))
        if each.name == ".text.walsh_shared_f32"
    )  # fmt: skip
    assert text.info >> 24 == 40
    with pytest.raises(ValueError, match=r"registers: 20 is outside 21\.\.255"):
        padded(cubin, "walsh_shared_f32", 20)
    with pytest.raises(ValueError, match="does not say how many registers 'other' has"):
        padded(cubin, "other", 40)


@pytest.mark.usefixtures("read_once")
def test_without_a_block_size_registers_come_by_eight() -> None:
    found = tb.sm.variants(CUBIN, orders=(), most_registers=64)
    assert [each.registers for each in found] == [21, 24, 32, 40, 48, 56, 64]
    assert {each.resident for each in found} == {None}
    assert [each.name for each in found[:2]] == ["original", "24 registers"]
    assert len(found) == 7


def test_every_order_of_a_kernel_with_few_has_all_that_chance_draws(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A recorded kernel of which only two blocks may change: of 25 and of 12 orders."""

    def with_pins(cubin: bytes, name: str) -> Listing:
        found = listed(name)
        free = {*range(7, 14), *range(16, 20)}
        steps = (
            step if k in free else replace(step, pinned=True) for k, step in enumerate(found.steps)
        )
        return replace(found, steps=tuple(steps))

    monkeypatch.setattr(making, "listing", with_pins)
    found = tb.sm.variants(CUBIN, orders=(), every=1000, most_registers=21)
    assert [each.name for each in found[:2]] == ["original", "order 1"]
    count = len(found)
    assert len({each.cubin for each in found}) == count > 100
    assert len(tb.sm.variants(CUBIN, orders=(), every=count, most_registers=21)) == count
    with pytest.raises(ValueError, match=rf"variants\.every: .* more than {count - 1} orders"):
        tb.sm.variants(CUBIN, orders=(), every=count - 1)
    drawn = tb.sm.variants(CUBIN, draws=200, most_registers=21)
    assert len(drawn) > 4  # those that could go earliest come first, so chance finds few
    assert {each.cubin for each in drawn} <= {each.cubin for each in found}


def test_a_kernel_with_its_own_plan_for_registers_is_not_padded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def with_plan(cubin: bytes, name: str) -> Listing:
        found = listed(name)
        first = replace(found.steps[0], opcode="USETMAXREG.DEALLOC.CTAPOOL")
        return replace(found, steps=(first, *found.steps[1:]))

    monkeypatch.setattr(making, "listing", with_plan)
    assert {each.registers for each in tb.sm.variants(CUBIN)} == {21}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"orders": ["load"]}, "variants.orders: 'load' is not one of loads, critical, apart"),
        ({"threads": 0}, r"variants\.threads: 0 is outside 1\.\."),
        ({"draws": -1}, r"variants\.draws"),
        ({"every": 1001}, r"variants\.every: 1001 is outside 0\.\.1000"),
        ({"every": 5}, r"variants\.every: walsh_shared_f32 has more than 5 orders; draw some"),
        ({"most_registers": 256}, r"variants\.most_registers"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tb.sm.variants(CUBIN, **options)
