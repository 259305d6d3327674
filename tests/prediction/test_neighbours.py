"""Blocks that slow each other: their ends are where the work that they have done says."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import gpu, launch
from tbsched import _core
from tbsched.prediction.neighbours.factors import slowdowns
from tbsched.prediction.neighbours.profiles import RESOURCES, KernelProfile
from tbsched.prediction.neighbours.slowing import neighbours_of
from tbsched.prediction.predict import predict
from tbsched.program.duration import Drawn
from tbsched.program.sequence import RecordEvent, Sequence, WaitEvent
from tbsched.traces.trace import Trace

FOUR = gpu(sms=4, sms_per_tpc=2)
SMS = FOUR.sms


def slowed(seq: Sequence, profiles: dict[str, KernelProfile]) -> Trace:
    return predict(seq, FOUR, interference="measured", profiles=profiles)


def work_done(trace: Trace, profiles: dict[str, KernelProfile]) -> list[np.ndarray]:
    """What each block has done between its start and its end, in ns of a launch alone.

    Goes from event to event, with the core's word for how long blocks take among each other.
    """
    launches = trace.sequence.launches
    numbers = range(len(launches))
    rows = neighbours_of(trace.sequence, FOUR, "measured", profiles)
    starts = [np.asarray(placement.start_ns) for placement in trace]
    ends = [np.asarray(placement.end_ns) for placement in trace]
    done = [np.zeros(len(own)) for own in starts]
    measured = [spread(k, launches[k].blocks) for k in numbers]
    for begin, end in itertools.pairwise(np.unique(np.concatenate([*starts, *ends]))):
        there = [(s <= begin) & (e >= end) for s, e in zip(starts, ends, strict=True)]
        held = np.stack([np.bincount(trace[k].smid[there[k]], minlength=SMS) for k in numbers])
        together = [([(k, n) for k, n in enumerate(sm) if n], 1) for sm in held.T.tolist()]
        before = [held_alone(k, sms, launches[k].blocks) for k, sms in enumerate(held.tolist())]
        (times, *alone) = _core.contention_times(rows, SMS, measured, [together, *before])
        found = iter(times)
        table = {(k, sm): next(found) for sm, (own, _) in enumerate(together) for k, _ in own}
        for k in numbers:
            own = dict(zip([sm for sm in range(SMS) if held[k, sm]], alone[k], strict=True))
            for block in np.flatnonzero(there[k]):
                sm = int(trace[k].smid[block])
                done[k][block] += (end - begin) * own[sm] / table[k, sm]
    return done


def held_alone(
    launch: int, held: list[int], blocks: int
) -> list[tuple[list[tuple[int, int]], int]]:
    """What SMs hold of a launch, but no more than when it is alone."""
    most = -(-blocks // SMS)
    return [([(launch, min(count, most))], 1) for count in held if count]


def spread(launch: int, blocks: int) -> list[tuple[list[tuple[int, int]], int]]:
    """So many blocks of a launch, evenly over the SMs."""
    each = ((blocks // SMS + 1, blocks % SMS), (blocks // SMS, SMS - blocks % SMS))
    return [([(launch, per_sm)], sms) for per_sm, sms in each if per_sm and sms]


work = st.dictionaries(st.sampled_from(RESOURCES), st.floats(1e-6, 1e-3), min_size=1, max_size=3)
profiles = st.builds(
    KernelProfile, st.just("k"), work, memory_wait=st.floats(0, 1e-3), far=st.floats(0, 1)
)


@settings(max_examples=25, deadline=None)
@given(
    st.tuples(profiles, profiles),
    st.lists(
        st.tuples(
            st.sampled_from("ab"), st.integers(1, 8), st.floats(1e-5, 1e-3), st.integers(0, 2)
        ),
        min_size=1,
        max_size=4,
    ),
)
def test_every_block_does_the_work_of_its_duration(
    known: tuple[KernelProfile, KernelProfile], given: list[tuple[str, int, float, int]]
) -> None:
    named = dict(zip("ab", known, strict=True))
    seq = Sequence(
        launch(blocks, duration=duration, stream=stream, name=name)
        for name, blocks, duration, stream in given
    )
    trace = slowed(seq, named)
    for own, done in zip(seq.launches, work_done(trace, named), strict=True):
        # Each change of pace rounds to a nanosecond, at most at that pace.
        assert done == pytest.approx(1e9 * own.duration, rel=1e-3, abs=60)


def uses(resource: str, part: float) -> KernelProfile:
    """A block that lasts a millisecond, and takes up so much of what an SM has."""
    return KernelProfile(
        "k", {resource: part * 1e-3}, memory_wait=9e-4 * (resource == "dram"), far=1
    )


def test_what_is_alone_takes_its_durations() -> None:
    uneven = tuple((k + 1) * 1e-4 for k in range(13))
    cases = itertools.product(((8, 1e-3), (100, 1e-3), (13, uneven)), ("dram", "issue"))
    for (blocks, duration), resource in cases:
        seq = Sequence([launch(blocks, duration=duration, name="a")])
        trace = slowed(seq, {"a": uses(resource, 0.4)})
        assert trace.makespan == pytest.approx(predict(seq, FOUR).makespan, rel=1e-6)


def test_two_that_need_all_of_the_same_take_twice_as_long() -> None:
    known = {name: uses("fp64", 0.95) for name in "ab"}
    seq = Sequence([launch(4, duration=1e-3, stream=k, name="ab"[k]) for k in range(2)])
    assert slowed(seq, known).makespan == pytest.approx(2e-3, rel=0.1)


def test_two_that_need_different_things_hardly_slow_each_other() -> None:
    known = {"a": uses("fp64", 0.9), "b": uses("dram", 0.9)}
    seq = Sequence([launch(4, duration=1e-3, stream=k, name="ab"[k]) for k in range(2)])
    assert slowed(seq, known).makespan < 1.05e-3


def test_kernels_on_other_sms_slow_each_other_through_memory_alone() -> None:
    for resource, low, high in (("dram", 1.5e-3, 2.1e-3), ("fp64", 1e-3, 1.001e-3)):
        known = {name: uses(resource, 1.9) for name in "ab"}
        seq = Sequence([launch(2, duration=1e-3, stream=k, name="ab"[k]) for k in range(2)])
        trace = slowed(seq, known)
        assert set(trace[0].smid).isdisjoint(trace[1].smid)
        assert low <= trace.makespan <= high


def test_what_waits_for_the_end_waits_for_the_later_end() -> None:
    known = {name: uses("fp64", 0.95) for name in "ab"}
    seq = Sequence([
        launch(4, duration=1e-3, stream=0, name="a"),
        launch(4, duration=1e-3, stream=1, name="b"),
        RecordEvent(0, stream=0),
        WaitEvent(0, stream=2),
        launch(1, duration=1e-3, stream=2, name="a"),
    ])  # fmt: skip
    trace = slowed(seq, known)
    assert trace[2].start_ns is not None
    assert trace[0].end_ns is not None
    assert trace[2].start_ns.min() >= trace[0].end_ns.max() > 1.5e6
    assert len(trace.residents(1.5e-3).rows) == 8


def test_factors_are_those_of_the_timeline() -> None:
    known = {"a": uses("issue", 0.5), "b": uses("issue", 0.8)}
    launches = [launch(4, duration=1e-3, stream=k, name="ab"[k]) for k in range(2)]
    first, second = slowdowns(launches, FOUR, known)
    trace = slowed(Sequence(launches), known)
    ends = [float(np.max(placement.end_ns)) for placement in trace]  # type: ignore[arg-type]
    assert min(ends) == pytest.approx(1e6 * min(first, second), rel=1e-4)


def test_durations_that_are_drawn_are_those_of_the_blocks() -> None:
    drawn = Drawn("lognormal", 1e-3, 2e-4, seed=3)
    known = {"a": uses("fp64", 0.6), "b": uses("fp64", 0.9)}
    given = [launch(4, duration=drawn, stream=k, name="ab"[k]) for k in range(2)]
    written = [replace(each, duration=tuple(drawn.draw(each.blocks).tolist())) for each in given]
    assert slowed(Sequence(given), known).makespan == slowed(Sequence(written), known).makespan
    assert slowdowns(given, FOUR, known) == slowdowns(written, FOUR, known)


@pytest.mark.parametrize(
    "way",
    [
        {"host": 1},
        {"first_use": True},
        {"delay": 1e-6},
        {"memory_wait": 1e-6},
        {"completion_event": 1},
        {"non_blocking": True},
    ],
)
def test_how_launches_come_does_not_matter_to_factors(way: dict[str, Any]) -> None:
    known = {"a": uses("issue", 0.8)}
    plain = [launch(4, duration=1e-3, stream=k, name="a") for k in range(2)]
    given = [replace(each, **way) for each in plain]
    assert slowdowns(given, FOUR, known) == slowdowns(plain, FOUR, known)


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), -1.0, 10**400])
def test_profile_out_of_range_is_refused(seconds: float) -> None:
    with pytest.raises(ValueError, match=r"work: dram: .* is outside 0"):
        KernelProfile("a", {"dram": seconds})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"profiles": {}}, "need interference"),
        ({"interference": "guessed", "profiles": {}}, "neither None nor"),
        ({"interference": "measured"}, "one for the name of each"),
        ({"interference": "measured", "profiles": {}}, "launch 0 is called 'a'"),
    ],
)
def test_what_is_not_known_is_refused(arguments: dict[str, object], message: str) -> None:
    seq = Sequence([launch(1, duration=1e-3, name="a")])
    with pytest.raises(ValueError, match=message):
        predict(seq, FOUR, **arguments)  # type: ignore[arg-type]


def test_held_and_programmatic_launches_are_refused() -> None:
    known = {"a": KernelProfile("a", {})}
    for own in (launch(1, name="a"), launch(1, duration=1e-3, trigger=1e-4, name="a")):
        with pytest.raises(ValueError, match="interference"):
            slowed(Sequence([own]), known)
