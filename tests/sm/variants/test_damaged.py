"""A damaged cubin is read, or refused in words."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tbsched as tb
from helpers import examples
from sm.code.test_reading import IMAGE
from tbsched.sm.characterization.toolkit import code_of, lives, sections
from tbsched.sm.characterization.words import (
    BYTES,
    NO_SCOREBOARD,
    READS,
    SCOREBOARDS,
    WRITES,
    Field,
)
from tbsched.sm.code.reading import cubin_of, instructions_of
from tbsched.sm.rewriting.cubins import padded, registers_of

_, KERNEL = cubin_of(IMAGE)
TABLES = tb.sm.measured("h200")
TABLE = struct.unpack_from("<Q", IMAGE, 0x28)[0]
# The bytes that lead to others: the header, the sections' headers, and what says of registers.
LEADING = [
    *range(0x20, 0x40),
    *range(TABLE, len(IMAGE)),
    *(
        at
        for section in sections(IMAGE)
        if section.name.startswith(".nv.info") or section.name == ".symtab"
        for at in range(section.offset, section.offset + section.size)
    ),
]


def damaged(places: list[tuple[int, int]], end: int) -> bytes:
    found = bytearray(IMAGE)
    for place, value in places:
        found[place] = value
    return bytes(found[:end])


def refusal(use: Callable[[], object]) -> str:
    """What a message begins with; empty: nothing is refused."""
    try:
        use()
    except ValueError as error:
        return str(error).split(":")[0]
    return ""


@given(
    st.lists(st.tuples(st.sampled_from(LEADING), st.integers(0, 255)), min_size=1, max_size=3),
    st.one_of(st.just(len(IMAGE)), st.integers(4, len(IMAGE))),
)
def test_what_says_of_registers_is_read_or_refused(places: list[tuple[int, int]], end: int) -> None:
    image = damaged(places, end)
    assert refusal(lambda: padded(*cubin_of(image), registers_of(*cubin_of(image)))) in (
        "",
        "kernel",
    )


@pytest.mark.parametrize(
    "use", [lambda cubin: tb.sm.variants(cubin, orders=()), lambda cubin: lives(cubin, KERNEL)]
)
@pytest.mark.parametrize("places", [[(0x28, 0xFF)], [(0x2F, 0xFF)], [(0x20, 0xFF), (0x27, 0xFF)]])
def test_header_that_leads_nowhere_is_refused(
    use: Callable[[bytes], object], places: list[tuple[int, int]]
) -> None:
    said = refusal(lambda: use(damaged(places, len(IMAGE))))
    assert said in ("kernel", "nvdisasm")


BEGIN, END = code_of(IMAGE, KERNEL)


@pytest.mark.parametrize("field", [WRITES, READS])
def test_scoreboard_that_no_sm_has_is_refused(field: Field) -> None:
    word = int.from_bytes(IMAGE[BEGIN : BEGIN + BYTES], "little")
    for number in (0, SCOREBOARDS, NO_SCOREBOARD):
        changed = field.set(word, number).to_bytes(BYTES, "little")
        image = IMAGE[:BEGIN] + changed + IMAGE[BEGIN + BYTES :]
        said = refusal(lambda image=image: tb.sm.read_code(image, TABLES, 4))
        assert said == ("kernel" if number == SCOREBOARDS else "")


def test_branch_that_leads_out_of_the_kernel_is_refused() -> None:
    listed = instructions_of(IMAGE, KERNEL)
    branches = [at for at, each in enumerate(listed) if each.target is not None]
    for number in (branches[0], branches[-1]):
        high = BEGIN + BYTES * number + 7  # a byte of how far it leads
        image = damaged([(high, 0x3F)], len(IMAGE))
        assert refusal(lambda image=image: tb.sm.read_code(image, TABLES, 4)) == "kernel"


@settings(deadline=None, max_examples=examples(32))
@given(
    st.lists(st.tuples(st.integers(BEGIN, END - 1), st.integers(0, 255)), min_size=1, max_size=3)
)
def test_damaged_machine_code_is_read_or_refused(places: list[tuple[int, int]]) -> None:
    image = damaged(places, len(IMAGE))
    assert refusal(lambda: tb.sm.read_code(image, TABLES, 4)) in ("", "kernel", "nvdisasm")


def test_kernel_that_nvdisasm_does_not_show_is_refused() -> None:
    instructions_of(IMAGE, KERNEL)
    with pytest.raises(ValueError, match="the cubin is cut short or damaged"):
        lives(IMAGE, "another")
