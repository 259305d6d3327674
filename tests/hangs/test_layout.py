"""Code in another order does what it did."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from tbsched.hangs.disassembler import Instructions
from tbsched.hangs.layout import with_loops_in_one_piece

_JUMP = re.compile(r"(?:@(!?)P0 )?BRA 0x([0-9a-f]+)")
_STEPS = 60


def executed(instructions: Instructions, predicates: list[bool]) -> Iterator[str]:
    """Yields the instructions that a thread executes but jumps, for some values of P0."""
    index_at = {address: index for index, (address, _) in enumerate(instructions)}
    values, index, jumps = itertools.cycle(predicates), 0, 0
    while index < len(instructions) and jumps < 1000:  # with no other instruction in between
        text = instructions[index][1]
        jump = _JUMP.fullmatch(text)
        if jump is None:
            yield text
            if text == "EXIT":
                return
        jumps = 0 if jump is None else jumps + 1
        is_taken = jump is not None and (jump[1] is None or next(values) != (jump[1] == "!"))
        index = index_at[int(jump[2], 16)] if jump is not None and is_taken else index + 1


KINDS = ["own", "own", "BRA", "@P0 BRA", "@!P0 BRA", "EXIT"]
ROWS = st.lists(
    st.tuples(
        st.sampled_from(["own", "own", "BRA", "@P0 BRA", "@!P0 BRA", "EXIT"]), st.integers(0)
    ),
    min_size=1,
    max_size=24,
)


@given(rows=ROWS, predicates=st.lists(st.booleans(), min_size=1, max_size=20))
def test_every_thread_executes_the_same(
    rows: list[tuple[str, int]], predicates: list[bool]
) -> None:
    code = tuple([
        (
            16 * index,
            f"MOV R{index}, RZ"
            if kind == "own"
            else "EXIT" if kind == "EXIT" else f"{kind} {16 * (to % len(rows)):#x}",
        )
        for index, (kind, to) in enumerate([*rows, ("EXIT", 0)])
    ])  # fmt: skip
    ordered = with_loops_in_one_piece(code)
    before, after = (
        [*itertools.islice(executed(each, predicates), _STEPS)] for each in (code, ordered)
    )
    assert before == after


def test_wait_that_was_moved_away_comes_before_what_follows_it() -> None:
    texts = ["NOP", "@!P0 BRA 0x40", "MOV R0, RZ", "EXIT", "LDG R1, [R2]", "@!P0 BRA 0x40",
             "BRA 0x20"]  # fmt: skip
    ordered = with_loops_in_one_piece(tuple((16 * at, text) for at, text in enumerate(texts)))
    assert [text for _, text in ordered] == [
        "NOP", "@P0 BRA 0x50", "LDG R1, [R2]", "@!P0 BRA 0x20", "BRA 0x50", "MOV R0, RZ", "EXIT",
    ]  # fmt: skip
