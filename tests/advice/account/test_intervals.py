"""Intervals as arrays, against painting one nanosecond after the other."""

from __future__ import annotations

import itertools
from typing import TypeAlias

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import examples
from tbsched.advice.account.intervals import (
    NO_INTERVALS,
    Intervals,
    Overlaps,
    concatenated,
    cut_overlaps,
    gaps,
    joined,
    numbered,
    overlaps,
    within,
)

Triple: TypeAlias = tuple[int, int, int]  # begin, end, of
_END = 30
_TIMES = st.integers(0, _END)
_TIMED = settings(max_examples=examples(200), deadline=None)


@st.composite
def intervals(draw: st.DrawFn) -> Triple:
    """One that may be empty."""
    begin, end = sorted((draw(_TIMES), draw(_TIMES)))
    return begin, end, draw(st.integers(0, 5))


@st.composite
def disjoint(draw: st.DrawFn) -> list[Triple]:
    """Some that are sorted and do not overlap, but may touch."""
    edges = sorted(draw(st.lists(_TIMES, max_size=10, unique=True)))
    pairs = [*itertools.pairwise(edges)] if edges else []
    return [(*pair, draw(st.integers(0, 5))) for pair in pairs if draw(st.booleans())]


ANY = st.lists(intervals(), max_size=8)


def made(rows: list[Triple]) -> Intervals:
    return Intervals(*np.array(rows, np.int64).reshape(-1, 3).T)


def listed(found: Intervals) -> list[Triple]:
    return [*zip(*(column.tolist() for column in found), strict=True)]


def covered(rows: list[Triple]) -> set[int]:
    """The nanoseconds that lie in some interval."""
    return {ns for begin, end, _ in rows for ns in range(begin, end)}


def painted(rows: list[Triple]) -> dict[int, int]:
    """Returns what the only interval at each nanosecond belongs to."""
    found: dict[int, int] = {}
    for begin, end, of in rows:
        assert begin < end
        for ns in range(begin, end):
            assert ns not in found, "two intervals overlap"
            found[ns] = of
    return found


def is_sorted(rows: list[Triple]) -> bool:
    return all(one[1] <= other[0] for one, other in itertools.pairwise(rows))


@_TIMED
@given(ANY)
def test_numbered_and_length(rows: list[Triple]) -> None:
    begin, end, _ = made(rows)
    found = numbered(begin.astype(np.int32), end)
    assert all(column.dtype == np.int64 for column in found)
    assert listed(found) == [(*row[:2], number) for number, row in enumerate(rows)]
    assert found.length == sum(end - begin for begin, end, _ in rows)


@_TIMED
@given(ANY, st.data())
def test_some(rows: list[Triple], data: st.DataObject) -> None:
    mask = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    chosen = made(rows).select(np.array(mask, np.bool_))
    assert listed(chosen) == [row for row, taken in zip(rows, mask, strict=True) if taken]
    places = np.flatnonzero(mask)[::-1]
    assert listed(made(rows).select(places)) == [rows[place] for place in places]


@_TIMED
@given(ANY)
def test_first_come(rows: list[Triple]) -> None:
    given_rows = made(rows)
    before = [column.copy() for column in given_rows]
    found = listed(cut_overlaps(given_rows))
    want = {}
    for ns in covered(rows):
        there = [row for row in rows if row[0] <= ns < row[1]]
        first = min(row[0] for row in there)
        shortest = min(row[1] for row in there if row[0] == first)
        want[ns] = next(of for begin, end, of in there if (begin, end) == (first, shortest))
    assert painted(found) == want
    assert is_sorted(found)
    assert all(np.array_equal(*pair) for pair in zip(before, given_rows, strict=True))


@_TIMED
@given(ANY)
def test_joined(rows: list[Triple]) -> None:
    found = listed(joined(made(rows)))
    assert set(painted(found)) == covered(rows)
    assert [of for *_, of in found] == [*range(len(found))]
    # As few as possible: there is time between any two.
    assert all(one[1] < other[0] for one, other in itertools.pairwise(found))


@_TIMED
@given(disjoint(), _TIMES, _TIMES)
def test_gaps(rows: list[Triple], one: int, other: int) -> None:
    begin, end = sorted((one, other))
    found = listed(gaps(made(rows), begin, end))
    assert set(painted(found)) == set(range(begin, end)) - covered(rows)
    assert is_sorted(found)
    assert [of for *_, of in found] == [
        sum(row_end <= own_begin for _, row_end, _ in rows) for own_begin, *_ in found
    ]


@_TIMED
@given(ANY, disjoint())
def test_overlaps(rows: list[Triple], others: list[Triple]) -> None:
    found = overlaps(made(rows), made(others))
    pairs = [
        (max(row[0], other[0]), min(row[1], other[1]), first, second)
        for first, row in enumerate(rows)
        for second, other in enumerate(others)
    ]
    want = [pair for pair in pairs if pair[0] < pair[1]]
    columns = (column.tolist() for column in found)
    assert [*zip(*columns, strict=True)] == want


@_TIMED
@given(ANY, disjoint())
def test_within(rows: list[Triple], others: list[Triple]) -> None:
    found = listed(within(made(rows), made(others)))
    there = covered(others)
    want = sorted((ns, of) for begin, end, of in rows for ns in range(begin, end) if ns in there)
    assert sorted((ns, of) for begin, end, of in found for ns in range(begin, end)) == want


def test_parts_one_after_the_other() -> None:
    one = Overlaps(*(np.array([number]) for number in range(4)))
    both = concatenated([one, one])
    assert [column.tolist() for column in both] == [[0, 0], [1, 1], [2, 2], [3, 3]]
    assert [column.tolist() for column in both.select(np.array([True, False]))] == [
        [0],
        [1],
        [2],
        [3],
    ]


def test_nothing() -> None:
    assert listed(cut_overlaps(NO_INTERVALS)) == listed(joined(NO_INTERVALS)) == []
    assert listed(gaps(NO_INTERVALS, 3, 7)) == [(3, 7, 0)]
    assert listed(gaps(NO_INTERVALS, 3, 3)) == []
