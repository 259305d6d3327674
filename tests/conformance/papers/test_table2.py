"""The nine cases of the ICCD 2023 paper's Table II, on its RTX 3090.

Each holds with the whole model, and fails without the mechanism that it is evidence for.
"""

from __future__ import annotations

import dataclasses

import pytest

from conformance.papers.table2 import CASES, Case
from tbsched.prediction.predict import policies, predict
from tbsched.program.sequence import Launch, Release, Sequence

FAITHFUL = ("algorithm1", "ampere", "hopper")
NAMES = [case.name for case in CASES]


def holds(case: Case, device: str = "rtx3090", policy: str | None = None) -> bool:
    """Whether the SMs and the verdict are the paper's."""
    trace = predict(case.sequence, device, policy)
    smids_agree = all(
        sorted(placement.smid) == list(smid)
        for placement, smid in zip(trace, case.smid, strict=True)
        if smid is not None
    )
    final = trace[-1].final_smid
    assert final is not None
    verdict_agrees = (final >= 0).all() if case.concurrent else (final < 0).all()
    return smids_agree and bool(verdict_agrees)


def ablated(case: Case) -> dict[str, str]:
    if case.ablation in {policy.name for policy in policies()}:
        return {"policy": case.ablation}
    return {"device": f"rtx3090-{case.ablation}"}


def test_table_has_nine_cases_and_a_mechanism_for_each() -> None:
    assert NAMES == ["1.1", "1.2", "1.3", "1.4", "2.1", "2.2", "3", "4.1", "4.2"]
    assert {case.mechanism for case in CASES} == {"1", "2.1", "2.2", "3", "4"}


@pytest.mark.parametrize("policy", FAITHFUL)
@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_case_holds_with_the_whole_model(case: Case, policy: str) -> None:
    assert holds(case, policy=policy)


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_case_fails_without_its_mechanism(case: Case) -> None:
    assert not holds(case, **ablated(case))


@pytest.mark.parametrize("case", CASES[4:], ids=NAMES[4:])
def test_ablation_of_one_mechanism_leaves_the_cases_of_the_others_alone(case: Case) -> None:
    for other in CASES:
        if other.mechanism != case.mechanism:
            failing = {("2.1", "2.2")}  # free warps have no turns to skip
            expected = (case.name, other.name) not in failing
            assert holds(other, **ablated(case)) == expected, other.name


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_kernel_that_waits_runs_once_the_others_have_exited(case: Case) -> None:
    rest = [Release(k) for k in range(len(case.kernels) - 1) if k not in case.exits]
    final = predict(Sequence([*case.sequence, *rest]), "rtx3090")[-1].final_smid
    assert final is not None
    assert (final >= 0).all()


def test_case_2_2_with_one_warp_less_is_concurrent() -> None:
    """The paper's control: two warps of kernel 3 find processing blocks 2 and 3 free."""
    first, second, third = CASES[NAMES.index("2.2")].kernels
    two_warps = dataclasses.replace(third, threads=64)
    assert (predict(Sequence([first, second, two_warps]), "rtx3090")[2].smid >= 0).all()


@pytest.mark.parametrize(("case", "limiter"), [("2.1", "registers"), ("2.2", "registers"),
                                               ("3", "configuration"),
                                               ("4.2", "shared_memory")])  # fmt: skip
def test_kernel_that_waits_is_told_why(case: str, limiter: str) -> None:
    sequence = CASES[NAMES.index(case)].sequence
    exits = [event for event in sequence if isinstance(event, Release)]
    kernels = [event for event in sequence if isinstance(event, Launch)]
    # Launched after the exits, as what it waits for then is what the case is about.
    after = Sequence([*kernels[:-1], *exits, kernels[-1]])
    placement = predict(after, "rtx3090")[-1]
    assert placement.placed == 0
    assert placement.limiter == limiter


def test_most_room_explains_mechanism_1_alone() -> None:
    """Gilman et al. 2020 know that room matters, and nothing of what is inside an SM."""
    held = [case.name for case in CASES if holds(case, policy="most_room")]
    assert held == ["1.1", "1.2", "1.3", "1.4", "4.1"]  # 4.1: what needs no mechanism to work
