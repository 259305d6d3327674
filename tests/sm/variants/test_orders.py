"""Reordered steps do what they did, as a literal machine has it, which can tell if they do not."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sm.variants.machine import Machine, same, walk
from sm.variants.programs import Written, latency, moved, plain, programs
from tbsched.sm.characterization.toolkit import Instruction
from tbsched.sm.characterization.words import MOST_STALL, Control
from tbsched.sm.rewriting.blocks import blocks_of
from tbsched.sm.rewriting.dependences import BEFORE, compiled, edges
from tbsched.sm.rewriting.effects import Listing, Step
from tbsched.sm.rewriting.orders import Order, every_order, reordered


@settings(max_examples=40, deadline=None)
@given(programs(), st.sampled_from(list(Order)), st.integers(0, 3))
def test_a_reordered_program_does_the_same(listed: Listing, order: Order, seed: int) -> None:
    machine = Machine(listed.steps, latency)
    places = walk(listed.code, seed, most=100)
    before = machine.run(plain(listed.steps), places)
    assert not before.marks  # the program was right
    found = moved(listed, order, seed)
    assert Counter(k for k, _ in found) == Counter(range(len(listed.steps)))
    assert all(k == place for place, (k, _) in enumerate(found) if listed.steps[k].pinned)
    assert same(before, machine.run(found, places))


@settings(max_examples=40, deadline=None)
@given(programs(), st.integers(0, 3))
def test_every_order_is_there_and_does_the_same(listed: Listing, seed: int) -> None:
    """Those of each block, the others as they were, against all permutations."""
    machine = Machine(listed.steps, latency)
    places = walk(listed.code, seed, most=100)
    before = machine.run(plain(listed.steps), places)
    blocks = blocks_of(listed)
    shown = compiled(blocks)
    for block in blocks:
        count = len(block.steps)
        if not block.movable or count > 6:
            continue
        needed = edges(block, shown)
        right = [
            order
            for order in itertools.permutations(range(count))
            if all(
                order.index(early) < order.index(late)
                for early, late in needed
                if early != BEFORE and late < count
            )
        ]
        found = every_order(block, shown, needed, 720)
        assert found is not None
        orders = [tuple(k for k, _ in steps) for steps in found]
        assert len(set(orders)) == len(orders)
        assert set(orders) <= set(right)
        # What is left out would have to wait longer than a control field can say, or at its start.
        for order in set(right) - set(orders):
            begins_late = needed.get((BEFORE, order[0]), 0) > 0
            assert begins_late or max(needed.values()) > MOST_STALL
        assert every_order(block, shown, needed, len(right)) == found
        assert every_order(block, shown, needed, len(right) - 1) is None
        for steps in found:
            whole = plain(listed.steps)
            whole[block.first : block.first + count] = [(block.first + k, c) for k, c in steps]
            assert same(before, machine.run(whole, places))


R = [("R", number) for number in range(8)]


def load(into: int, address: int, **control: int) -> Step:
    return Step(
        "LDS", Control(1, **control), frozenset({R[address]}), frozenset({R[into]}), space="shared"
    )


def add(into: int, *operands: int, stall: int = 4, waits: int = 0) -> Step:
    reads = frozenset(R[k] for k in operands)
    return Step("FADD", Control(stall, waits=waits), reads, frozenset({R[into]}))


# A load that only the next one's scoreboard tells of, and a chain beside it.
STEPS = (
    load(1, 0), load(2, 0, writes=0), add(3, 4), add(3, 3),
    add(5, 1, waits=1), add(6, 2), add(7, 3),
)  # fmt: skip


@pytest.mark.parametrize(
    "wrong",
    [
        lambda found: [*found[:2], found[3], found[2], *found[4:]],  # a chain the other way round
        lambda found: [found[1], found[0], *found[2:]],  # the one that tells of the other first
        lambda found: [*found[:4], found[5], found[4], *found[6:]],  # before who waits
        lambda found: [*found[:2], (2, Control(1)), *found[3:]],  # too short a stall
        lambda found: [*found[:4], (4, Control(4)), *found[5:]],  # nobody waits
    ],
)
def test_the_machine_sees_what_is_wrong(wrong: Callable[[Written], Written]) -> None:
    machine = Machine(STEPS, latency)
    right = machine.run(plain(STEPS), range(len(STEPS)))
    assert not right.marks
    assert not same(right, machine.run(wrong(plain(STEPS)), range(len(STEPS))))


CODE = tuple(Instruction("NOP", (), "", None, 0) for _ in range(20))


def order_of(steps: Sequence[Step], order: Order) -> list[int]:
    (block,) = blocks_of(Listing(tuple(steps), CODE[: len(steps)], frozenset()))
    shown = compiled([block])
    found = reordered(block, shown, edges(block, shown), order)
    return list(range(len(steps))) if found is None else [k for k, _ in found]


def test_loads_come_first_and_chains_take_turns() -> None:
    chains = [add(1, 1), add(1, 1), add(1, 1), add(2, 2), add(2, 2), add(2, 2)]
    assert order_of([*chains, load(3, 0, writes=0)], Order.LOADS)[0] == 6
    turns = order_of(chains, Order.APART)
    assert turns == [0, 3, 1, 4, 2, 5]


def test_nothing_crosses_what_is_pinned() -> None:
    barrier = Step("BAR", Control(1), pinned=True)
    steps = [add(1, 1), add(1, 1), barrier, load(3, 0, writes=0)]
    blocks = blocks_of(Listing(tuple(steps), CODE[:4], frozenset()))
    assert [(block.first, len(block.steps)) for block in blocks] == [(0, 2), (2, 1), (3, 1)]


def test_memory_is_touched_no_sooner_behind_a_barrier() -> None:
    """A barrier blocks some clocks after it went; the compiler has something else done first."""
    barrier = Step("BAR", Control(1), pinned=True)
    steps = (barrier, add(1, 1), add(2, 2), load(3, 0, writes=0), add(4, 3, waits=1), add(5, 5))
    listed = Listing(steps, CODE[: len(steps)], frozenset())
    machine = Machine(steps, latency)
    right = machine.run(plain(steps), range(len(steps)))
    assert not right.marks
    early = [(0, barrier.control), *((k, steps[k].control) for k in (3, 1, 2, 4, 5))]
    assert machine.run(early, range(len(steps))).marks
    orders = [moved(listed, order, seed) for order in Order for seed in range(5)]
    assert any(order != plain(steps) for order in orders)
    assert all(same(right, machine.run(order, range(len(steps)))) for order in orders)


def test_a_load_before_a_label_is_told_of_behind_it() -> None:
    steps = (load(1, 0), load(2, 0, writes=0), add(3, 2, waits=1), add(4, 1), add(5, 5))
    listed = Listing(steps, CODE[: len(steps)], frozenset({1}))
    machine = Machine(steps, latency)
    right = machine.run(plain(steps), range(len(steps)))
    assert not right.marks
    for seed in range(10):
        found = moved(listed, Order.RANDOM, seed)
        assert same(right, machine.run(found, range(len(steps))))


def test_a_block_is_not_shorter_than_what_another_waits_for() -> None:
    """The result of the first one is read behind a block that has nothing to do with it."""
    double = Step("DFMA", Control(1), frozenset({R[0]}), frozenset({R[1]}))
    quick, slow = (
        Step("STG", Control(stall, reads=0), frozenset({R[7]}), space="global", stores=True)
        for stall in (1, 14)
    )
    steps = (quick, add(6, 6), double, slow, add(3, 3, stall=1), add(4, 4, stall=1), add(5, 1))
    listed = Listing(steps, CODE[: len(steps)], frozenset({3, 6}))
    machine = Machine(steps, latency)
    right = machine.run(plain(steps), range(len(steps)))
    assert not right.marks
    orders = [moved(listed, Order.RANDOM, seed) for seed in range(10)]
    assert any(order != plain(steps) for order in orders)
    assert all(same(right, machine.run(order, range(len(steps)))) for order in orders)


def test_what_one_way_leaves_pending_is_waited_for() -> None:
    branch = Step("BRA", Control(5), pinned=True)
    steps = (branch, load(1, 0, writes=0), add(3, 2, waits=1), add(4, 1), add(5, 5))
    skipping = Instruction("BRA", (), "@P0", 2, 0)
    listed = Listing(steps, (skipping, *CODE[1 : len(steps)]), frozenset({2}))
    machine = Machine(steps, latency)
    right = machine.run(plain(steps), range(len(steps)))
    assert not right.marks
    orders = [moved(listed, Order.RANDOM, seed) for seed in range(10)]
    assert all(same(right, machine.run(order, range(len(steps)))) for order in orders)
