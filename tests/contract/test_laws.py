"""What holds for every row of the policy table on every device, whatever the sequence."""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contract.sequences import History, sequences
from tbsched.hardware.catalogue import ablations, device, devices
from tbsched.prediction.predict import policies, predict
from tbsched.program.sequence import Launch, Sequence

POLICIES = [policy.name for policy in policies()]
LIMITERS = {"slots", "warps", "registers", "shared_memory", "configuration", "local_memory",
            "queue", "stream"}  # fmt: skip
quickly = settings(
    max_examples=10,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
more = settings(quickly, max_examples=100)

every_policy = pytest.mark.parametrize("policy", POLICIES)
every_device = pytest.mark.parametrize("name", devices())


def history(data: st.DataObject, name: str, policy: str) -> History:
    spec = device(name)
    return History(data.draw(sequences(spec)), spec, policy)


@every_policy
@every_device
@quickly
@given(data=st.data())
def test_block_is_placed_once_and_stays(name: str, policy: str, data: st.DataObject) -> None:
    past = history(data, name, policy)
    for event in range(len(past.sequence)):
        for row in past.final(event):
            assert ((row >= -1) & (row < past.spec.sms)).all()
            # The hardware hands out block indices in order: those that wait are the last ones.
            assert (np.diff((row >= 0).astype(int)) <= 0).all()
        if event:
            for before, after in zip(past.final(event - 1), past.final(event), strict=False):
                np.testing.assert_array_equal(before[before >= 0], after[before >= 0])


@every_policy
@every_device
@quickly
@given(data=st.data())
def test_smid_is_the_state_before_the_next_event(
    name: str, policy: str, data: st.DataObject
) -> None:
    past = history(data, name, policy)
    launches = 0
    for event, item in enumerate(past.sequence):
        if isinstance(item, Launch):
            placement = past.traces[-1][launches]
            np.testing.assert_array_equal(placement.smid, past.final(event)[launches])
            launches += 1


@every_policy
@every_device
@quickly
@given(data=st.data())
def test_no_sm_ever_holds_more_than_it_has(name: str, policy: str, data: st.DataObject) -> None:
    past = history(data, name, policy)
    spec = past.spec
    largest = spec.shared_memory_configurations[-1]
    for event in range(len(past.sequence)):
        slots, warps, registers, shared = (Counter[int]() for _ in range(4))
        for launch, sm in past.resident(event):
            count = -(-launch.threads // 32)
            unit, reserve = spec.shared_memory_unit, spec.shared_memory_reserve
            slots[sm] += 1
            warps[sm] += count
            registers[sm] += (
                count * -(-launch.registers * 32 // spec.register_unit) * spec.register_unit
            )
            shared[sm] += -(-launch.shared_memory // unit) * unit + reserve
        for used, limit in (
            (slots, spec.blocks_per_sm),
            (warps, spec.warps_per_sm),
            (registers, spec.registers_per_sm),
            (shared, largest),
        ):
            assert max(used.values(), default=0) <= limit


@every_policy
@every_device
@quickly
@given(data=st.data())
def test_nothing_passes_a_waiting_launch_of_its_own_or_a_more_urgent_priority(
    name: str, policy: str, data: st.DataObject
) -> None:
    past = history(data, name, policy)
    for event in range(len(past.sequence)):
        final = past.final(event)
        earlier = past.final(event - 1) if event else []
        launched = past.traces[event].sequence.launches
        for number, row in enumerate(final):
            placed_before = int((earlier[number] >= 0).sum()) if number < len(earlier) else 0
            if int((row >= 0).sum()) == placed_before:
                continue
            mine = (launched[number].priority, number)
            ahead = {k for k in past.waiting(event) if (launched[k].priority, k) < mine}
            assert not ahead


@every_policy
@every_device
@quickly
@given(data=st.data())
def test_launch_has_a_limiter_if_and_only_if_a_block_of_it_waits(
    name: str, policy: str, data: st.DataObject
) -> None:
    past = history(data, name, policy)
    for placement in past.traces[-1]:
        assert (placement.limiter is None) == bool((placement.smid >= 0).all())
        assert placement.limiter is None or placement.limiter in LIMITERS


@every_policy
@every_device
@quickly
@given(data=st.data())
def test_launch_stops_only_where_not_one_block_more_fits(
    name: str, policy: str, data: st.DataObject
) -> None:
    past = history(data, name, policy)
    spec, events = past.spec, past.sequence.events
    number = -1
    for position, item in enumerate(events):
        if not isinstance(item, Launch):
            continue
        number += 1
        placement = past.traces[-1][number]
        if not 0 < placement.placed < item.blocks:
            continue
        placed = dataclasses.replace(item, blocks=placement.placed)
        one_more = dataclasses.replace(item, blocks=1, stream=None)
        again = predict(Sequence([*events[:position], placed, one_more]), spec, policy)
        assert again[number].limiter is None
        np.testing.assert_array_equal(again[number].smid, placement.smid[: placement.placed])
        assert again[number + 1].placed == 0


@every_policy
@every_device
@quickly
@given(data=st.data())
def test_same_sequence_has_the_same_answer(name: str, policy: str, data: st.DataObject) -> None:
    past = history(data, name, policy)
    for state in past.spec.initial_states(policy)[-2:]:
        one, two = (predict(past.sequence, past.spec, policy, state) for _ in range(2))
        assert one.capacities is not None
        one.capacities()  # asking changes nothing
        for a, b in zip(one, two, strict=True):
            np.testing.assert_array_equal(a.smid, b.smid)
            np.testing.assert_array_equal(a.final_smid, b.final_smid)
            assert a.limiter == b.limiter


@pytest.mark.parametrize(
    ("name", "ablation"), list(itertools.product(devices(), ["", *ablations()]))
)
@quickly
@given(data=st.data())
def test_ampere_is_algorithm_1(name: str, ablation: str, data: st.DataObject) -> None:
    spec = device(f"{name}-{ablation}" if ablation else name)
    sequence = data.draw(sequences(spec))
    fast, literal = (predict(sequence, spec, policy) for policy in ("ampere", "algorithm1"))
    for a, b in zip(fast, literal, strict=True):
        np.testing.assert_array_equal(a.smid, b.smid)
        np.testing.assert_array_equal(a.final_smid, b.final_smid)
        assert a.limiter == b.limiter


@every_device
@more
@given(data=st.data())
def test_hopper_fills_the_sms_of_algorithm_1(name: str, data: st.DataObject) -> None:
    """Numbering permutes the blocks of a launch; launches exit whole, so nothing else changes."""
    spec = device(name)
    sequence = data.draw(sequences(spec))
    states = spec.initial_states("hopper")
    for state in states[:: max(1, len(states) - 1)]:
        hopper = predict(sequence, spec, "hopper", state)
        for a, b in zip(hopper, predict(sequence, spec, "algorithm1"), strict=True):
            np.testing.assert_array_equal(a.occupancy(spec.sms), b.occupancy(spec.sms))
            assert a.limiter == b.limiter
