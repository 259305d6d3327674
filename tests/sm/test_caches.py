"""Caches against a literal one."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import examples
from tbsched import _core

LRU, FIFO, ANY = range(3)


class Literal:
    """A list per set, of lines, their sectors and the dirty ones; the next to leave is first."""

    def __init__(self, sets: int, ways: int, replacement: int) -> None:
        self.sets: list[list[tuple[int, set[int], set[int]]]] = [[] for _ in range(sets)]
        self.ways = ways
        self.replacement = replacement

    def access(self, line: int, sectors: set[int], write: bool) -> tuple[set[int], int, set[int]]:
        """The sectors that hit, and the line with dirty sectors that left, or -1."""
        held = self.sets[line % len(self.sets)]
        found = next((entry for entry in held if entry[0] == line), None)
        dirty = sectors if write else set()
        if found is not None:
            if self.replacement == LRU:
                held.remove(found)
                held.append(found)
            hit = found[1] & sectors
            found[1].update(sectors)
            found[2].update(dirty)
            return hit, -1, set()
        left = held.pop(0) if len(held) == self.ways else (-1, set(), set())
        held.append((line, set(sectors), set(dirty)))
        return set(), left[0] if left[2] else -1, left[2]


def bits(mask: int) -> set[int]:
    return {bit for bit in range(4) if mask >> bit & 1}


ACCESSES = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 15), st.booleans()), max_size=80)


def cache(
    sets: int, ways: int, replacement: int, hashed: bool, accesses: list[tuple[int, int, bool]]
) -> list[tuple[set[int], int, set[int]]]:
    line, sectors, write = (np.array([row[at] for row in accesses], int) for at in range(3))
    hits, left, dirty = _core.sm_cache(
        (sets, ways), replacement, hashed,
        line.astype(np.uint64), sectors.astype(np.uint8), write.astype(np.uint8),
    )  # fmt: skip
    rows = zip(hits.tolist(), left.tolist(), dirty.tolist(), strict=True)
    return [(bits(hit), gone, bits(mask)) for hit, gone, mask in rows]


@settings(max_examples=examples(100), deadline=None)
@given(st.integers(1, 5), st.integers(1, 4), st.sampled_from([LRU, FIFO]), ACCESSES)
def test_cache_is_a_list_of_lines_with_sectors(
    sets: int, ways: int, replacement: int, accesses: list[tuple[int, int, bool]]
) -> None:
    literal = Literal(sets, ways, replacement)
    expected = [literal.access(line, bits(mask), write) for line, mask, write in accesses]
    assert cache(sets, ways, replacement, False, accesses) == expected


@settings(max_examples=examples(50), deadline=None)
@given(st.integers(1, 5), st.integers(1, 4), st.booleans(), ACCESSES)
def test_any_line_may_leave_but_only_of_a_full_set(
    sets: int, ways: int, hashed: bool, accesses: list[tuple[int, int, bool]]
) -> None:
    found = cache(sets, ways, ANY, hashed, accesses)
    there: dict[int, set[int]] = {}
    wrote: dict[int, set[int]] = {}
    for (line, mask, write), (hit, left, dirty) in zip(accesses, found, strict=True):
        # Nothing hits that did not come; what was written leaves with what was written of it.
        assert hit <= there.get(line, set()) & bits(mask)
        if left >= 0:
            assert dirty == wrote.pop(left)
            del there[left]
        if not hit and line in there and bits(mask) & there[line]:
            there[line], wrote[line] = set(), set()  # it has left unnoticed, clean
        there[line] = there.get(line, set()) | bits(mask)
        wrote[line] = wrote.get(line, set()) | (bits(mask) if write else set())


def test_hashed_sets_spread_what_lies_far_apart() -> None:
    # Eight lines that all go to set 0 of 8, one way each, where the set is the line modulo 8.
    accesses = [(8 * line, 1, False) for line in range(8)] * 2
    assert sum(len(row[0]) for row in cache(8, 1, LRU, False, accesses)) == 0
    assert sum(len(row[0]) for row in cache(8, 1, LRU, True, accesses)) == 8
