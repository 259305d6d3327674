"""What can be reached from something, against the closure of its edges."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tbsched.program.reachable import reachable

EDGES = st.sets(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=12)


@given(EDGES, st.sets(st.integers(0, 6)))
def test_reachable_is_the_smallest_set_that_no_edge_leaves(
    edges: set[tuple[int, int]], first: set[int]
) -> None:
    closed = set(first)
    for _ in range(7):
        closed |= {b for a, b in edges if a in closed}
    assert reachable(first, lambda node: [b for a, b in edges if a == node]) == closed
