"""Whether a safe answer rests on the order in which launches of one host arrive."""

from __future__ import annotations

from hypothesis import assume, given, settings
from hypothesis import strategies as st

import tbsched as tb
from advice.together.ranks.searching import few_histories
from helpers import examples

# It hung in 21 of 24 runs on two H200s, where blocks kept reading the host's memory: as many blocks
# began as if the last launch had come before the one called before it.
HUNG = [
    # gpu, stream, blocks, shared memory, group, microseconds
    (0, 0, 177, 0, "a", 43), (0, 1, 149, 102_400, "b", 34),
    (1, 10, 28, 0, None, 157), (1, 0, 422, 0, "a", 9), (1, 1, 132, 102_400, "b", 29),
]  # fmt: skip


def program(rows: list[tuple[int, int, int, int, str | None, int]]) -> tb.Sequence:
    return tb.Sequence(
        tb.Launch(
            blocks, 512, 14, shared, stream=stream, gpu=gpu, host=gpu, non_blocking=True,
            meets=group, duration=lasts / 1e6,
        )
        for gpu, stream, blocks, shared, group, lasts in rows
    )  # fmt: skip


def test_a_program_that_hung_as_if_a_launch_was_late() -> None:
    found = tb.coresident(program(HUNG), ["h200"] * 2, connections=32, fixes=False)
    assert found.safe
    assert found.in_order
    assert found.argument.endswith("if launches arrive at a GPU in the order of its host's calls")
    turned = program([*HUNG[:3], HUNG[4], HUNG[3]])
    hang = tb.predict(turned, ["h200"] * 2, connections=32).hang
    assert hang is not None
    # As it was on the GPU: 396 of 422 blocks begin.
    assert {each.launch: each.blocks for each in hang.stranded}[4] == 422 - 396


@st.composite
def programs(draw: st.DrawFn) -> tb.Sequence:
    rows: list[tuple[int, int, int, int, str | None, int]] = []
    share = draw(st.sampled_from([0.5, 0.8, 1.0]))
    groups = draw(st.integers(2, 3))
    sizes = [draw(st.sampled_from([(0, 4), (16384, 4), (49152, 4), (102_400, 2)])) for _ in "abc"]
    for gpu in range(2):
        for k in draw(st.permutations(range(groups))):
            shared, fit = sizes[k]
            blocks = max(2, int(132 * fit * share / groups))
            stream = draw(st.integers(0, 2))
            if draw(st.integers(0, 3)) == 0:
                rows.append((gpu, draw(st.integers(0, 3)), draw(st.integers(1, 150)), 0, None, 50))
            rows.append((gpu, stream, blocks, shared, "abc"[k], 20))
    return program(rows)


@settings(max_examples=examples(300), deadline=None)
@given(programs(), st.data())
def test_without_the_order_no_arrival_hangs(sequence: tb.Sequence, data: st.DataObject) -> None:
    with few_histories():
        found = tb.coresident(sequence, ["h200"] * 2, connections=32, fixes=False)
    assume(found.safe and not found.in_order)
    # A host calls in another order, except for the launches of a stream.
    left: dict[tuple[int, object], list[tb.Launch]] = {}
    for one in sequence.launches:
        left.setdefault((one.gpu, one.stream), []).append(one)
    events = []
    while left:
        where = data.draw(st.sampled_from(sorted(left, key=str)))
        events.append(left[where].pop(0))
        left = {key: rest for key, rest in left.items() if rest}
    gaps = data.draw(
        st.lists(
            st.sampled_from([0.0, 5e-6, 2e-5, 6e-5, 1e-3]),
            min_size=len(events), max_size=len(events),
        )
    )  # fmt: skip
    assert tb.predict(tb.Sequence(events), ["h200"] * 2, connections=32, host=gaps).hang is None
