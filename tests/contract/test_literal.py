"""The core's Algorithm 1 against the paper's pseudocode, written a second time in plain Python."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conformance.papers.table2 import CASES, Case
from contract import literal
from contract.random_devices.specs import specs
from contract.sequences import sequences
from helpers import examples, final, gpu, smids
from tbsched.hardware.catalogue import device
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import predict
from tbsched.program.sequence import Launch, Release, Sequence

TABLE_I = ("topology", "limits", "allocation")


def agree(sequence: Sequence, spec: DeviceSpec) -> None:
    trace = predict(sequence, spec, "algorithm1")
    assert (smids(trace), final(trace)) == literal.run(sequence, spec)


@settings(
    max_examples=examples(200),
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(data=st.data(), spec=st.just(gpu(6)) | specs("rtx3090", TABLE_I, most_sms=6))
def test_core_agrees_with_the_paper_s_pseudocode(data: st.DataObject, spec: DeviceSpec) -> None:
    agree(data.draw(sequences(spec, plain=True)), spec)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_pseudocode_gives_the_paper_s_own_cases(case: Case) -> None:
    agree(case.sequence, device("rtx3090"))


def test_they_agree_where_shared_memory_is_in_pieces() -> None:
    tenths = [Launch(6, 32, 16, 9 * 1024)] * 10
    freed = [Release(k) for k in (0, 3, 4, 7, 8, 9)]
    after = [Launch(30, 32, 16, 19 * 1024), Launch(5, 32, 16, 9 * 1024)]
    agree(Sequence([*tenths, *freed, *after]), gpu(6))


def test_they_agree_on_a_launch_released_while_it_waits() -> None:
    launches = [Launch(6, 1024, 32), Launch(20, 512, 32), Launch(9, 256, 32)]
    agree(Sequence([*launches, Release(1)]), gpu(6))
