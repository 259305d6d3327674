"""The core's Algorithm 1 against the paper's pseudocode, written a second time in plain Python."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from conformance.papers.table2 import CASES, Case
from contract import literal
from contract.sequences import sequences
from helpers import final, gpu, smids
from tbsched.prediction.predict import predict
from tbsched.program.sequence import Launch, Release, Sequence


def agree(sequence: Sequence, sms: int) -> None:
    trace = predict(sequence, gpu(sms), "algorithm1")
    assert (smids(trace), final(trace)) == literal.run(sequence, sms)


@settings(
    max_examples=300,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(sequence=sequences(gpu(6), plain=True))
def test_core_agrees_with_the_paper_s_pseudocode(sequence: Sequence) -> None:
    agree(sequence, 6)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_pseudocode_gives_the_paper_s_own_cases(case: Case) -> None:
    agree(case.sequence, 82)


def test_they_agree_where_shared_memory_is_in_pieces() -> None:
    tenths = [Launch(6, 32, 16, 9 * 1024)] * 10
    freed = [Release(k) for k in (0, 3, 4, 7, 8, 9)]
    after = [Launch(30, 32, 16, 19 * 1024), Launch(5, 32, 16, 9 * 1024)]
    agree(Sequence([*tenths, *freed, *after]), 6)


def test_they_agree_on_a_launch_released_while_it_waits() -> None:
    launches = [Launch(6, 1024, 32), Launch(20, 512, 32), Launch(9, 256, 32)]
    agree(Sequence([*launches, Release(1)]), 6)
