"""The latent states of an idle device are those of the policy that enumerates them."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contract.random_devices.specs import specs
from contract.sequences import sequences
from helpers import examples, final, launch, recorded, smids
from tbsched import _core
from tbsched.hardware.catalogue import device, devices
from tbsched.hardware.initial_state import InitialState
from tbsched.hardware.spec import model
from tbsched.prediction.predict import policies, predict, predict_many
from tbsched.program.sequence import Launch, Release, Sequence

H200 = device("h200")
STATEFUL = {row.name for row, names in zip(policies(), _core.state_names(), strict=True) if names}


def test_h200_has_32_and_the_first_is_the_default() -> None:
    found = [(state.first_gpc, state.first_singleton) for state in H200.initial_states()]
    assert found == [(gpc, singleton) for gpc in range(8) for singleton in (0, 2, 1, 3)]
    assert H200.initial_states()[0] == InitialState()


@pytest.mark.parametrize("policy", [row.name for row in policies()])
@pytest.mark.parametrize("name", devices())
def test_the_first_of_any_device_under_any_policy_is_the_default(name: str, policy: str) -> None:
    states = device(name).initial_states(policy)
    assert states[0] == InitialState()
    assert len(set(states)) == len(states)
    assert len(states) == 1 or policy in STATEFUL


def test_where_no_gpcs_are_known_there_is_one() -> None:
    assert device("rtx3090").initial_states("hopper") == (InitialState(),)


def test_without_clusters_the_second_tpc_of_a_pair_is_not_told_from_the_first() -> None:
    spec = dataclasses.replace(H200, max_cluster=1)
    assert {state.first_singleton for state in spec.initial_states()} == {0, 2}


def test_states_of_a_gpc_without_sms_are_those_of_the_next() -> None:
    # TPCs 2 and 3 of four belong to no GPC; GPCs 0, 2 and 4 have none.
    spec = dataclasses.replace(
        H200,
        sms=12,
        sm_preference=(*range(0, 12, 2), *range(1, 12, 2)),
        gpcs=((), (0, 1), (), (2, 3), ()),
    )
    states = spec.initial_states()
    found = [(state.first_gpc, state.first_singleton) for state in states]
    assert found == [(0, 0), (0, 1), (3, 0), (3, 1)]
    sequence = Sequence(
        [
            launch(12),
            Release(0),
            Launch(8, 32, 16, carveout=100, cluster=4),
            Release(1),
            Launch(4, 32, 16, carveout=100, cluster=2),
            launch(30),
        ]
    )
    traces = [predict(sequence, spec, initial_state=state) for state in states]
    assert [smids(trace)[1][:4] for trace in traces] == [[0, 1, 2, 3]] * 2 + [[4, 5, 6, 7]] * 2
    for trace in traces:
        assert all((placement.smid >= 0).all() for placement in trace)
        assert sorted(smids(trace)[0]) == [*range(12)]


@pytest.mark.parametrize("name", ["balanced", "cl", "rrel"])
def test_a_state_decides_which_blocks_an_sm_gets_and_not_how_many(name: str) -> None:
    sequences = [trace.sequence for trace in recorded(name)[:40]]
    placed = [
        [smids(trace) for trace in predict_many(sequences, H200, initial_state=state)]
        for state in H200.initial_states()[::5]
    ]
    which = {str(traces) for traces in placed}
    how_many = {str([[sorted(sms) for sms in trace] for trace in traces]) for traces in placed}
    assert len(which) == len(placed)
    assert len(how_many) == 1


@settings(max_examples=examples(250), deadline=None)
@given(st.data())
def test_no_state_of_any_device_decides_how_many_blocks_an_sm_gets(data: st.DataObject) -> None:
    """The search for launches that strand each other plays one state for all."""
    spec = data.draw(st.one_of(st.just(H200), specs()))
    sequence = data.draw(sequences(spec, clusters=spec.max_cluster > 1))
    states = spec.initial_states("hopper")
    one, other = (
        [[sorted(sms) for sms in row] for row in (smids(trace), final(trace))]
        for trace in (
            predict(sequence, spec, "hopper", state)
            for state in (states[0], data.draw(st.sampled_from(states)))
        )
    )
    assert one == other


def test_more_states_than_a_predictor_can_try_are_refused() -> None:
    spec = dataclasses.replace(
        H200,
        sms=2048,
        sms_per_tpc=1,
        sm_preference=tuple(range(2048)),
        gpcs=tuple((tpc,) for tpc in range(1024)),
    )
    with pytest.raises(ValueError, match=r"gpcs: 1024 .* 1024 .* more than 65536 initial states"):
        spec.initial_states()
    assert len(spec.initial_states("ampere")) == 1


def test_a_policy_does_not_start_from_the_state_of_another() -> None:
    sequence = Sequence([launch()])
    with pytest.raises(ValueError, match=r"initial_state: .*first_gpc=3.* initial_states"):
        predict(sequence, H200, "ampere", InitialState(first_gpc=3))
    assert smids(predict(sequence, H200, "ampere", InitialState())) == [[124]]


def test_the_core_refuses_a_state_that_is_not_one_of_the_model() -> None:
    (*_, last) = model(H200, "hopper")[1].values()
    ampere, _ = model(H200, "ampere")
    with pytest.raises(
        ValueError, match=r"initial state: .* is none of the 1 that h200 .* policy 'ampere'"
    ):
        _core.predict(ampere, _core.Sequence([launch()]), last, False)


def test_unknown_policies_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match="policy: 'turing' is unknown; there are first_fit, "):
        H200.initial_states("turing")
    with pytest.raises(TypeError, match="policy: a name is needed, got 3"):
        H200.initial_states(3)  # type: ignore[arg-type]


def test_components_are_named_and_those_not_named_are_0() -> None:
    state = InitialState(first_singleton=2)
    assert (state.first_gpc, state.first_singleton) == (0, 2)
    assert repr(state) == "InitialState(first_gpc=0, first_singleton=2)"
    assert repr(InitialState()) == "InitialState(first_gpc=0, first_singleton=0)"
    assert state == InitialState(0, 2) == InitialState(first_gpc=0, first_singleton=2)
    assert hash(state) == hash(InitialState(0, 2))
    assert state != InitialState(first_gpc=2)
    assert pickle.loads(pickle.dumps(state)) == copy.deepcopy(state) == state


def test_components_that_no_policy_has_are_refused() -> None:
    with pytest.raises(TypeError, match="no policy has the components first_cpc; there are first_"):
        InitialState(first_cpc=1)
    with pytest.raises(TypeError, match="first_gpc, first_singleton is needed at most once"):
        InitialState(0, first_gpc=1)
    with pytest.raises(TypeError, match="first_gpc, first_singleton is needed at most once"):
        InitialState(0, 1, 2)
    with pytest.raises(AttributeError, match="an InitialState has no 'first_cpc'"):
        assert InitialState().first_cpc


def test_a_state_does_not_change() -> None:
    state = InitialState(first_gpc=1)
    with pytest.raises((AttributeError, TypeError)):
        state.first_gpc = 2  # type: ignore[misc]
    assert state.first_gpc == 1
