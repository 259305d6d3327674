"""The largest grid beside a program of several GPUs: with it nothing hangs, whenever it comes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import tbsched as tb
from helpers import examples, gpu

SLOTS = 4
TOY = gpu(1, "h200", blocks_per_sm=SLOTS, warps_per_sm=64)


def reduce_(blocks: int, threads: int, name: str = "reduce", stream: int = 0) -> list[tb.Launch]:
    return [
        tb.Launch(
            blocks, threads, 64, stream=stream, gpu=k, host=k, meets=name, name=name, duration=1e-4
        )
        for k in (0, 1)
    ]


def test_what_a_collective_leaves() -> None:
    gemm = tb.Launch(1, 384, 168, gpu=1, duration=1e-3)
    program = tb.Sequence(reduce_(24, 544))
    assert tb.budget(gemm, ["h200"] * 2, beside=program) == 108
    both = tb.Sequence([*program, *reduce_(100, 1024, "weights", 1)])
    assert tb.budget(gemm, ["h200"] * 2, beside=both) == 32
    turned = tb.Sequence([both[0], both[2], both[3], both[1]])
    full = [tb.Launch(132, 1024, 64, stream=k, gpu=g, host=g, meets=m, duration=1e-5)
            for k, g, m in ((0, 0, "a"), (1, 0, "b"), (1, 1, "b"), (0, 1, "a"))]  # fmt: skip
    assert tb.budget(gemm, ["h200"] * 2, beside=turned) == 32
    assert tb.budget(gemm, ["h200"] * 2, beside=tb.Sequence(full)) is None


@pytest.mark.parametrize(("stream", "first"), [(0, False), (1, False), (1, True)])
def test_launches_that_meet_no_other_run_beside_it(stream: int, first: bool) -> None:
    kernel = tb.Launch(1, 128, 32, 200 * 1024)
    meets = tb.Launch(2, 128, 32, stream=0, duration=1e-5, meets="a")
    after = tb.Launch(132, 128, 32, 200 * 1024, stream=stream, duration=1e-5)
    program = tb.Sequence([after, meets] if first else [meets, after])
    assert tb.budget(kernel, ["h200"], beside=program) == 131
    assert tb.budget(replace(kernel, gpu=1, duration=1.0), ["h200"] * 2, beside=program) == 132
    behind = replace(after, meets="b", in_block_order=True)
    assert tb.budget(kernel, ["h200"], beside=tb.Sequence([meets, behind])) == 131
    whole = replace(after, cooperative=True)
    assert tb.budget(kernel, ["h200"], beside=tb.Sequence([meets, whole])) is None


def test_bad_input_is_refused() -> None:
    program = tb.Sequence(reduce_(24, 544))
    devices = ["h200", "h200"]
    with pytest.raises(ValueError, match=r"budget\.launch: GPU 2 is needed, but there are 2"):
        tb.budget(tb.Launch(1, 384, 168, gpu=2, duration=1e-3), devices, beside=program)
    with pytest.raises(ValueError, match=r"budget\.beside: GPU 1 is needed, but there are 1"):
        tb.budget(tb.Launch(1, 384, 168), devices[:1], beside=program)
    with pytest.raises(ValueError, match="no launch meets another"):
        tb.budget(tb.Launch(1, 384, 168), devices, beside=tb.Sequence([tb.Launch(1, 32, 16)]))
    with pytest.raises(ValueError, match=r"Launch\.meets is 'reduce'"):
        tb.budget(program[0], devices, beside=program)


@st.composite
def programs(draw: st.DrawFn) -> tb.Sequence:
    events = []
    for on in range(2):
        for k in draw(st.permutations(range(2))):
            stream, blocks = draw(st.integers(0, 1)), draw(st.integers(1, 2))
            at = {"stream": stream, "gpu": on, "host": on}
            events.append(tb.Launch(blocks, 32, 16, **at, meets=f"g{k}", duration=1e-6))
            if draw(st.booleans()):
                shared = draw(st.sampled_from([0, 0, 200 * 1024]))
                alone = tb.Launch(draw(st.integers(1, 5)), 32, 16, shared, **at, duration=1e-6)
                events.append(alone)
    return tb.Sequence(events)


@settings(max_examples=examples(200), deadline=None)
@given(programs(), st.data())
def test_nothing_hangs_beside_it(program: tb.Sequence, data: st.DataObject) -> None:
    on = data.draw(st.integers(0, 1))
    kernel = tb.Launch(1, 32, 16, gpu=on, duration=1e-6)
    most = tb.budget(kernel, [TOY] * 2, beside=program)
    assume(most is not None)
    assert most is not None
    for place in range(len(program) + 1):
        duration = data.draw(st.sampled_from([1e-6, 1.0]))
        own = tb.Launch(most, 32, 16, gpu=on, host=on, duration=duration)
        events = [*program.events[:place], own, *program.events[place:]]
        gaps = data.draw(
            st.lists(st.sampled_from([0.0, 1e-5, 1e-3]), min_size=len(events), max_size=len(events))
        )
        trace = tb.predict(tb.Sequence(events), [TOY] * 2, host=gaps)
        assert trace.hang is None
        for event, launch in zip(events, trace, strict=True):
            assert event is own or launch.end_ns.max() < 5e8
