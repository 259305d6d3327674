"""Table II of the ICCD 2023 paper with its durations: when each kernel starts, in seconds.

The paper says which kernels run beside which; the last kernel's start follows from that.
"""

from __future__ import annotations

import dataclasses

import pytest

from conformance.papers.table2 import CASES, Case
from tbsched.prediction.predict import predict
from tbsched.program.sequence import Sequence
from tbsched.traces.trace import Trace

NAMES = [case.name for case in CASES]
# The start of the last kernel, and what it waits for, first to last.
LAST = {
    "1.1": (0, []),
    "1.2": (0, []),
    "1.3": (0, []),
    "1.4": (0, []),
    "2.1": (2, ["registers"]),
    "2.2": (1, ["registers"]),
    "3": (1, ["configuration"]),
    "4.1": (1, ["registers"]),
    "4.2": (2, ["shared_memory"]),
}


def in_time(case: Case) -> Trace:
    """The case with durations: 1 s for the kernels that exit first and for the last, else 2 s.

    Where none exits early, all kernels run for 1 s.
    """
    last = len(case.kernels) - 1
    short = {*case.exits, last} if case.exits else set(range(last + 1))
    kernels = [
        dataclasses.replace(kernel, duration=1.0 if number in short else 2.0)
        for number, kernel in enumerate(case.kernels)
    ]
    return predict(Sequence(kernels), "rtx3090")


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_last_kernel_starts_when_the_paper_says(case: Case) -> None:
    trace = in_time(case)
    start, causes = LAST[case.name]
    last = len(case.kernels) - 1
    for number, placement in enumerate(trace):
        assert placement.start_ns is not None
        assert set(placement.start_ns) == {start * 10**9 if number == last else 0}
    assert trace.waits is not None
    assert trace.waits["cause"].tolist() == causes
    beside = [k for k in range(last) if trace.concurrent(k, last)]
    stay = [k for k in range(last) if k not in case.exits]
    assert beside == (stay if case.concurrent else [])


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_kernels_go_to_the_sms_that_the_paper_prints(case: Case) -> None:
    for placement, smid in zip(in_time(case), case.smid, strict=True):
        if smid is not None:
            assert sorted(placement.smid) == list(smid)
