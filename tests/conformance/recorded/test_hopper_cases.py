"""Each case of docs/explanation/hopper.md agrees with the H200, and differs without its rule."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tbsched.comparison.compare import compare
from tbsched.comparison.verify import best_diff
from tbsched.hardware.catalogue import device
from tbsched.prediction.predict import predict
from tbsched.program.sequence import Sequence
from tbsched.traces.cases import Case, case_sets, cases

HOPPER = cases("hopper")
H200 = device("h200")


def test_hopper_is_a_set_of_cases_and_others_are_refused() -> None:
    assert "hopper" in case_sets()
    with pytest.raises(ValueError, match=r"cases: .volta. is unknown; there are .*hopper"):
        cases("volta")


@pytest.mark.parametrize("case", HOPPER, ids=lambda case: case.name)
def test_every_block_is_where_the_h200_put_it(case: Case) -> None:
    diff = best_diff(case.trace, H200)
    assert diff.exact, str(diff)


@pytest.mark.parametrize(
    "case", [case for case in HOPPER if case.ablation], ids=lambda case: case.name
)
def test_without_its_mechanism_the_case_differs(case: Case) -> None:
    assert case.ablation is not None
    name, policy = case.ablation
    in_turns = case.name.startswith("H7.") or case.name == "H8.7"
    level = "exact" if in_turns else "occupancy"
    spec = device(name)
    diffs = [
        compare(predict(case.trace.sequence, spec, policy, state), case.trace)
        for state in spec.initial_states(policy)
    ]
    assert not any(diff.agrees(level) for diff in diffs)


def test_case_without_an_ablation_differs_without_its_partition() -> None:
    (case,) = (case for case in HOPPER if case.ablation is None)
    (launch,) = case.trace.sequence.launches
    whole = Sequence([dataclasses.replace(launch, partition=None)])
    seen = case.trace[0].occupancy(132)
    for state in H200.initial_states():
        found = predict(whole, H200, initial_state=state)[0].occupancy(132)
        assert not np.array_equal(found, seen)


def test_case_of_shared_sms_has_an_sm_with_two_blocks() -> None:
    (case,) = (case for case in cases("hopper") if case.name == "H8.8")
    assert case.trace[0].occupancy(132).max() == 2
