"""Caches against a literal one."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import examples
from tbsched import _core


class Literal:
    """A list per set, of lines and whether they are dirty; the most recently used one is last."""

    def __init__(self, sets: int, ways: int) -> None:
        self.sets: list[list[tuple[int, bool]]] = [[] for _ in range(sets)]
        self.ways = ways

    def access(self, line: int, write: bool) -> tuple[bool, int]:
        """Whether it hit, and the dirty line that left, or -1."""
        held = self.sets[line % len(self.sets)]
        found = next((entry for entry in held if entry[0] == line), None)
        if found is not None:
            held.remove(found)
            held.append((line, found[1] or write))
            return True, -1
        left = held.pop(0) if len(held) == self.ways else (-1, False)
        held.append((line, write))
        return False, left[0] if left[1] else -1


@settings(max_examples=examples(100), deadline=None)
@given(
    st.integers(1, 5),
    st.integers(1, 4),
    st.lists(st.tuples(st.integers(0, 30), st.booleans()), max_size=80),
)
def test_cache_is_a_list_of_recently_used_lines(
    sets: int, ways: int, accesses: list[tuple[int, bool]]
) -> None:
    literal = Literal(sets, ways)
    expected = [literal.access(line, write) for line, write in accesses]
    lines = np.array([line for line, _ in accesses], np.uint64)
    writes = np.array([write for _, write in accesses], np.uint8)
    hits, evicted = _core.sm_cache(sets, ways, lines, writes)
    assert list(zip(hits.astype(bool).tolist(), evicted.tolist(), strict=True)) == expected
