"""A policy written in Python places blocks as the policy of the core that does the same."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tbsched as tb
from helpers import examples, final
from tbsched.program.arrays import Int32Array
from tbsched.traces.trace import Trace

XAVIER = tb.device("xavier")
# As the baselines see it: what they choose is then the only difference.
PLAIN = replace(
    XAVIER,
    processing_blocks=1,
    mechanisms=replace(
        XAVIER.mechanisms,
        shared_memory="pooled",
        shared_memory_configuration=False,
        local_memory_configuration=False,
    ),
)
ORDER = PLAIN.sm_preference


def first_fit(room: Int32Array) -> int:
    return next(sm for sm in ORDER if room[sm] > 0)


class RoundRobin:
    """The SM with room after the one that took the last block."""

    def __init__(self) -> None:
        self.turn = 0

    def __call__(self, room: Int32Array) -> int:
        turns = itertools.chain(range(self.turn, len(ORDER)), range(self.turn))
        turn = next(turn for turn in turns if room[ORDER[turn]] > 0)
        self.turn = turn + 1
        return ORDER[turn]


@st.composite
def sequences(draw: st.DrawFn, timed: bool) -> tb.Sequence:
    events: list[tb.Launch | tb.Release] = []
    held: list[int] = []
    for number in range(draw(st.integers(1, 6))):
        events.append(
            tb.Launch(
                draw(st.integers(1, 40)),
                draw(st.integers(1, 1024)),
                draw(st.integers(1, 64)),
                draw(st.sampled_from([0, 10_000, 48_000])),
                stream=draw(st.integers(0, 3)) if timed else None,
                duration=draw(st.integers(1, 9)) * 1e-4 if timed else None,
            )
        )
        held.append(number)
        if not timed and draw(st.booleans()):
            events.append(tb.Release(held.pop(draw(st.integers(0, len(held) - 1)))))
    return tb.Sequence(events)


def as_in_the_core(seq: tb.Sequence, own: Callable[[Int32Array], int], name: str) -> None:
    found, expected = tb.predict(seq, PLAIN, own), tb.predict(seq, PLAIN, name)
    assert final(found) == final(expected)
    assert [p.limiter for p in found] == [p.limiter for p in expected]
    if seq.timed:
        for mine, theirs in zip(found, expected, strict=True):
            assert mine.start_ns is not None
            assert theirs.start_ns is not None
            assert mine.start_ns.tolist() == theirs.start_ns.tolist()


@pytest.mark.parametrize("timed", [False, True])
@settings(max_examples=examples(100), deadline=None)
@given(data=st.data())
def test_it_places_as_the_policy_of_the_core(timed: bool, data: st.DataObject) -> None:
    seq = data.draw(sequences(timed))
    as_in_the_core(seq, first_fit, "first_fit")
    as_in_the_core(seq, RoundRobin(), "round_robin")


TIMED = tb.Sequence([tb.Launch(20, 1024, 32, duration=1e-3)])


def test_room_is_by_smid_for_blocks_of_the_launch() -> None:
    seen: list[list[int]] = []

    def last(room: Int32Array) -> int:
        assert room.dtype == np.int32
        seen.append(room.tolist())
        return int(room.nonzero()[0][-1])

    trace = tb.predict(tb.Sequence([tb.Launch(3, 1024, 32)]), PLAIN, last)
    assert seen == [[2] * 8, [2] * 7 + [1], [2] * 7 + [0]]
    assert trace[0].smid.tolist() == [7, 7, 6]


def test_numpy_s_integers_are_numbers() -> None:
    trace = tb.predict(TIMED, "xavier", policy=np.argmax)
    assert trace[0].smid.tolist()[:3] == [0, 1, 2]
    assert trace.device.details["policy"] == "argmax"


def test_what_sms_held_is_known_without_asking_again() -> None:
    asked = 0

    def counted(room: Int32Array) -> int:
        nonlocal asked
        asked += 1
        return int(room.argmax())

    for seq in (TIMED, tb.Sequence([tb.Launch(20, 1024, 32), tb.Launch(1, 32, 16)])):
        trace = tb.predict(seq, "xavier", counted)
        before = asked
        held = trace.residents(0.5e-3 if seq.timed else 1).rows
        assert held["blocks"].sum() == 16
        assert asked == before
    copied: Trace = pickle.loads(pickle.dumps(trace))
    assert copied.capacities()[1].blocks.tolist() == trace.capacities()[1].blocks.tolist()


def full_sm(room: Int32Array) -> int:
    return 3


@pytest.mark.parametrize(
    ("choose", "message"),
    [
        (full_sm, "policy: chose SM 3, which has no room for the block: warps"),
        (lambda room: 8, "policy: must return the number of an SM, 0 to 7, or -1, got 8"),
        (lambda room: -2, "policy: must return the number of an SM, 0 to 7, or -1, got -2"),
        (lambda room: -1, "launch 0: policy: nothing runs any more, and its blocks wait for ever"),
    ],
)
def test_what_it_must_not_choose(choose: Callable[[Int32Array], int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tb.predict(TIMED, PLAIN, choose)


@pytest.mark.parametrize("wrong", [None, "3", 1.5])
def test_answer_that_is_no_number(wrong: object) -> None:
    with pytest.raises(TypeError, match=r"policy: must return the number of an SM, or -1, got"):
        tb.predict(TIMED, PLAIN, lambda room: wrong)  # type: ignore[arg-type,return-value]


def test_its_own_errors_come_through() -> None:
    def broken(room: Int32Array) -> int:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        tb.predict(TIMED, PLAIN, broken)


def test_block_that_it_lets_wait() -> None:
    """A policy that keeps SMs free: the launch waits for the policy, not for room."""

    def only_four(room: Int32Array) -> int:
        return next((sm for sm in range(4) if room[sm] > 0), -1)

    held = tb.predict(tb.Sequence([tb.Launch(9, 1024, 32)]), PLAIN, only_four)
    assert held[0].smid.tolist() == [0, 0, 1, 1, 2, 2, 3, 3, -1]
    assert held[0].limiter == "policy"
    timed = tb.predict(TIMED, PLAIN, only_four)
    assert set(timed[0].smid.tolist()) == {0, 1, 2, 3}
    assert "for the policy to choose an SM for it" in timed.explain(0)
    assert "policy" in str(held)


def test_launches_that_it_is_not_given() -> None:
    cooperative = tb.Sequence([tb.Launch(1, 32, 16, cooperative=True)])
    with pytest.raises(ValueError, match="launch 0: cooperative: policy 'own' may place some"):
        tb.predict(cooperative, PLAIN, first_fit)
    cluster = tb.Sequence([tb.Launch(2, 32, 16, cluster=2)])
    with pytest.raises(ValueError, match="cluster: policy 'own' places single blocks only"):
        tb.predict(cluster, "h200", np.argmax)


@pytest.mark.parametrize("ask", [tb.predict_many, tb.coresident, tb.outcomes])
def test_functions_that_need_a_name(ask: Callable[..., object]) -> None:
    given = [TIMED] if ask is tb.predict_many else TIMED
    with pytest.raises(TypeError, match="policy: a name is needed, got"):
        ask(given, PLAIN, policy=first_fit)


def test_class_is_no_policy() -> None:
    with pytest.raises(TypeError, match=r"policy: a class; an object of it .* RoundRobin\(\)"):
        tb.predict(TIMED, PLAIN, RoundRobin)  # type: ignore[arg-type]


def test_states_belong_to_policies_of_the_table() -> None:
    with pytest.raises(ValueError, match="initial_state: policy 'first_fit' has none"):
        tb.predict(TIMED, "h200", first_fit, tb.InitialState(first_gpc=1))
