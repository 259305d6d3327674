"""What holds for every policy on every device, on drawn sequences."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from contract.laws import LAWS, nothing_passes_a_launch_that_waits_for_room
from contract.sequences import History, sequences
from helpers import examples
from tbsched.hardware.catalogue import ablations, device, devices
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import policies, predict
from tbsched.program.sequence import Launch, Release, Sequence

POLICIES = [policy.name for policy in policies()]
# What is seldom drawn. The last blocks of a released launch let in the next one of its stream,
# within one event; an urgent launch waits behind one that needs more local memory.
PASSED = [
    (
        "v100",
        Sequence(
            [
                Launch(81, 1, 16, 49153, stream=0),
                Launch(961, 1, 153, stream=0, priority=-1),
                Release(0),
            ]
        ),
    ),
    (
        "xavier",
        Sequence(
            [
                Launch(1, 1, 16),
                Release(0),
                Launch(1, 1, 16),
                Launch(33, 512, 16, stream=0, priority=1),
                Release(1),
                Launch(65, 256, 16, stream=0),
                Release(2),
            ]
        ),
    ),
    (
        "h200",
        Sequence(
            [
                Launch(132, 1024, 64),
                Launch(132, 1024, 64),
                Launch(1, 32, 16, local_memory=4096),
                Launch(1, 32, 16, priority=-1),
                Release(0),
            ]
        ),
    ),
]
many = settings(
    max_examples=examples(50),
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)

every_device = pytest.mark.parametrize("name", devices())
every_law = pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)


def history(sequence: Sequence, spec: DeviceSpec, policy: str) -> History:
    """Only Hopper's own policy places clusters; for the others, their blocks come alone."""
    if policy != "hopper":
        sequence = Sequence(
            dataclasses.replace(event, cluster=1) if isinstance(event, Launch) else event
            for event in sequence
        )
    return History(sequence, spec, policy)


@every_device
@many
@given(data=st.data())
def test_every_policy_obeys_every_law(name: str, data: st.DataObject) -> None:
    spec = device(name)
    sequence = data.draw(sequences(spec, clusters=True))
    for policy in POLICIES:
        past = history(sequence, spec, policy)
        for law in LAWS:
            law(past)


@every_device
@settings(many, max_examples=examples(250))
@given(data=st.data(), policy=st.sampled_from(POLICIES))
def test_nothing_passes_a_launch_that_waits_for_room(
    name: str, policy: str, data: st.DataObject
) -> None:
    """So many are needed until an event lets in a launch that others have passed by then."""
    spec = device(name)
    law = nothing_passes_a_launch_that_waits_for_room
    law(History(data.draw(sequences(spec)), spec, policy))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(("name", "sequence"), PASSED)
@every_law
def test_laws_hold_where_a_launch_is_passed(
    law: Callable[[History], None], name: str, sequence: Sequence, policy: str
) -> None:
    law(History(sequence, device(name), policy))


@settings(many, max_examples=200, phases=[Phase.generate])
@given(data=st.data())
def passing(spec: DeviceSpec, data: st.DataObject) -> None:
    nothing_passes_a_launch_that_waits_for_room(history(data.draw(sequences(spec)), spec, "ampere"))


@every_device
def test_sequences_are_drawn_that_show_where_a_launch_passes_another(name: str) -> None:
    with pytest.raises(AssertionError):
        passing(device(f"{name}-no-head-of-line"))


@every_device
@settings(many, max_examples=examples(100))
@given(data=st.data())
def test_ampere_is_algorithm_1(name: str, data: st.DataObject) -> None:
    """Also where a mechanism is missing."""
    sequence = data.draw(sequences(device(name)))
    missing = data.draw(st.sampled_from(sorted(ablations())))
    for spec in (device(name), device(f"{name}-{missing}")):
        fast, literal = (predict(sequence, spec, policy) for policy in ("ampere", "algorithm1"))
        for a, b in zip(fast, literal, strict=True):
            np.testing.assert_array_equal(a.smid, b.smid)
            np.testing.assert_array_equal(a.final_smid, b.final_smid)
            assert a.limiter == b.limiter


@every_device
@settings(many, max_examples=examples(100))
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
