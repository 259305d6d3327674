"""Many sequences at once: the same answers as one by one, whatever the number of threads."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contract.sequences import sequences
from helpers import gpu, run_python
from tbsched.prediction.predict import predict, predict_many
from tbsched.program.sequence import Launch, Release, Sequence
from tbsched.traces.trace import Trace

SMALL = gpu(6)
HELD = Sequence([Launch(40, 1024, 32), Launch(5, 64, 16), Release(0)])
TIMED = Sequence([Launch(40, 1024, 32, duration=1e-6), Launch(5, 64, 16, duration=(1e-6,) * 5)])


def same(a: Trace, b: Trace) -> bool:
    def arrays(trace: Trace) -> list[object]:
        return [
            array
            for placement in trace
            for array in (placement.smid, placement.final_smid, placement.warp_slots,
                          placement.start_ns, placement.end_ns)
        ]  # fmt: skip

    limiters = [[placement.limiter for placement in trace] for trace in (a, b)]
    pairs = zip(arrays(a), arrays(b), strict=True)
    return limiters[0] == limiters[1] and all(np.array_equal(x, y) for x, y in pairs)


@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(
    batch=st.lists(sequences(SMALL, plain=True), max_size=6),
    threads=st.integers(1, 4),
    warp_slots=st.booleans(),
)
def test_they_are_those_of_predict(batch: list[Sequence], threads: int, warp_slots: bool) -> None:
    many = predict_many(batch, SMALL, threads=threads, warp_slots=warp_slots)
    one_by_one = [predict(sequence, SMALL, warp_slots=warp_slots) for sequence in batch]
    assert len(many) == len(batch)
    assert all(map(same, many, one_by_one))


def test_held_and_timed_ones_may_be_mixed() -> None:
    batch = [HELD, TIMED] * 20
    many = predict_many(batch, "h200", threads=3)
    assert all(same(trace, predict(seq, "h200")) for trace, seq in zip(many, batch, strict=True))


def test_policy_state_and_interval_are_those_of_all() -> None:
    state = SMALL.initial_states()[0]
    (trace,) = predict_many(iter([TIMED]), SMALL, "ampere", state, launch_interval=1e-3)
    assert same(trace, predict(TIMED, SMALL, "ampere", state, launch_interval=1e-3))
    assert trace.device.details["policy"] == "ampere"


def test_no_sequences_are_no_traces() -> None:
    assert predict_many([], "h200") == ()


def test_arrays_are_the_core_s_memory() -> None:
    (trace,) = predict_many([Sequence([Launch(3, 32, 16)])], "h200")
    assert trace[0].smid is trace[0].final_smid
    assert not trace[0].smid.flags.owndata


def test_first_sequence_at_fault_is_named() -> None:
    clusters = Sequence([Launch(2, 32, 16, cluster=2)])
    with pytest.raises(ValueError, match=r"^sequence 1: launch 0: cluster: policy 'ampere'"):
        predict_many([HELD, clusters, clusters], "h200", "ampere", threads=4)
    large = Sequence([Launch(1, 32, 16, 2**24)])
    with pytest.raises(ValueError, match=r"^sequence 2: launch 0: shared_memory: "):
        predict_many([HELD, HELD, large], "h200")
    with pytest.raises(TypeError, match=r"^sequence 0: sequence: a Sequence is needed, got 'no'"):
        predict_many(["no"], "h200")  # type: ignore[list-item]


@pytest.mark.skipif("asan" in os.environ.get("LD_PRELOAD", ""), reason="it takes all addresses")
def test_out_of_memory_is_no_value_error() -> None:
    done = run_python(
        "import resource, tbsched as tb\n"
        "sequence = tb.Sequence([tb.Launch(2**26, 32, 16, duration=1e-6)])\n"
        "tb.predict(tb.Sequence([tb.Launch(1, 32, 16)]), 'h200')\n"
        "resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))\n"
        "try:\n"
        "    tb.predict_many([sequence] * 2, 'h200', threads=2)\n"
        "except MemoryError:\n"
        "    print('out of memory')\n"
    )
    assert done.stdout == "out of memory\n"


@pytest.mark.parametrize("threads", [0, -1, 1025])
def test_number_of_threads_has_limits(threads: int) -> None:
    with pytest.raises(ValueError, match=r"predict_many.threads: .* is outside 1..1024"):
        predict_many([HELD], "h200", threads=threads)
    with pytest.raises(TypeError, match=r"predict_many.threads: an integer is needed"):
        predict_many([HELD], "h200", threads="2")  # type: ignore[arg-type]
