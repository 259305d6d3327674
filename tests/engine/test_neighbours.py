"""Blocks that slow each other: their ends are where the work that they have done says."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import gpu, launch
from tbsched import _core
from tbsched.prediction.neighbours.profiles import RESOURCES, KernelProfile
from tbsched.prediction.predict import predict
from tbsched.program.sequence import Launch, RecordEvent, Sequence, WaitEvent
from tbsched.traces.trace import Trace

FOUR = gpu(sms=4, sms_per_tpc=2)
SMS = FOUR.sms


def slowed(seq: Sequence, profiles: dict[str, KernelProfile]) -> Trace:
    return predict(seq, FOUR, interference="measured", profiles=profiles)


def work_done(trace: Trace, profiles: dict[str, KernelProfile]) -> list[np.ndarray]:
    """What each block has done between its start and its end, in ns of a launch alone.

    Goes from event to event, with the core's word for how long blocks take among each other.
    """
    names = list(profiles)
    rows = [profile.row() for profile in profiles.values()]
    kinds = [names.index(str(launch.name)) for launch in trace.sequence.launches]
    starts = [np.asarray(placement.start_ns) for placement in trace]
    ends = [np.asarray(placement.end_ns) for placement in trace]
    done = [np.zeros(len(own)) for own in starts]
    instants = np.unique(np.concatenate([*starts, *ends]))
    alone = [_alone(trace.sequence.launches[k], kinds[k], rows) for k in range(len(kinds))]
    for begin, end in itertools.pairwise(instants):
        there = [(s <= begin) & (e >= end) for s, e in zip(starts, ends, strict=True)]
        held = np.zeros((SMS, len(names)), int)
        for k, running in enumerate(there):
            np.add.at(held[:, kinds[k]], np.asarray(trace[k].smid)[running], 1)
        mixture = [(row.tolist(), 1) for row in held]
        (times,) = _core.contention_times(rows, SMS, [mixture])
        table = np.reshape(times, (SMS, len(names)))
        for k, running in enumerate(there):
            sms = np.asarray(trace[k].smid)[running]
            done[k][running] += (end - begin) * alone[k] / table[sms, kinds[k]]
    return done


def _alone(own: Launch, kind: int, rows: list[tuple[list[float], float]]) -> float:
    per_sm = [own.blocks // SMS + (sm < own.blocks % SMS) for sm in range(SMS)]
    blocks = [[0] * len(rows) for _ in per_sm]
    for row, count in zip(blocks, per_sm, strict=True):
        row[kind] = count
    (times,) = _core.contention_times(rows, SMS, [[(row, 1) for row in blocks]])
    mean = np.reshape(times, (SMS, len(rows)))[:, kind]
    return float(np.average(mean, weights=per_sm))


shares = st.dictionaries(st.sampled_from(RESOURCES), st.floats(0.01, 1.5), min_size=1, max_size=3)
profiles = st.builds(KernelProfile, st.just("k"), shares, st.floats(0.5, 16))


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


def test_what_is_alone_takes_its_duration() -> None:
    known = {"a": KernelProfile("a", {"dram": 0.9, "issue": 0.3}, 4.0)}
    seq = Sequence([launch(8, duration=1e-3, name="a")])
    assert slowed(seq, known).makespan == pytest.approx(1e-3)


def test_two_that_need_all_of_the_same_take_twice_as_long() -> None:
    known = {name: KernelProfile(name, {"fp64": 1.0}) for name in "ab"}
    seq = Sequence([launch(4, duration=1e-3, stream=k, name="ab"[k]) for k in range(2)])
    assert slowed(seq, known).makespan == pytest.approx(2e-3, rel=0.2)


def test_kernels_on_other_sms_slow_each_other_through_memory_alone() -> None:
    for resource, factor in (("dram", 1.5), ("fp64", 1.0)):
        known = {name: KernelProfile(name, {resource: 2.0}, 4.0) for name in "ab"}
        seq = Sequence([launch(2, duration=1e-3, stream=k, name="ab"[k]) for k in range(2)])
        trace = slowed(seq, known)
        assert set(trace[0].smid).isdisjoint(trace[1].smid)
        assert trace.makespan >= factor * 1e-3 * 0.99


def test_what_waits_for_the_end_waits_for_the_later_end() -> None:
    known = {name: KernelProfile(name, {"fp64": 1.0}) for name in "ab"}
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
    held = trace.residents(1.5e-3)
    assert len(held.rows) == 8


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"profiles": {}}, "need interference"),
        ({"interference": "guessed", "profiles": {}}, "neither None nor"),
        ({"interference": "measured"}, "one for each named launch"),
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
