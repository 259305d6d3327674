"""Launches that stand in line for room later than they could."""

from __future__ import annotations

import numpy as np
import pytest

import tbsched as tb
from helpers import gpu

US = 1e-6
ONE = gpu(launch_latency_ns=1000, launch_call_ns=0)  # an SM


def kernel(stream: int, delay_us: float | None = None, **rest: object) -> tb.Launch:
    delay = None if delay_us is None else delay_us * US
    return tb.Launch(1, 32, 16, stream=stream, duration=10 * US, delay=delay, **rest)  # type: ignore[arg-type]


def starts(*events: tb.Launch | tb.RecordEvent | tb.WaitEvent, **spec: object) -> list[int]:
    trace = tb.predict(tb.Sequence(events), gpu(launch_latency_ns=1000, **spec), host=0.0)
    return [int(p.start_ns.min()) for p in trace if p.start_ns is not None]


def test_a_delay_counts_from_when_the_launch_waits_for_nothing() -> None:
    first, second = starts(kernel(0, 3), kernel(0))
    assert first == starts(kernel(0))[0] + 3000
    late_first, late_second = starts(kernel(0, 3), kernel(0, 2))
    assert late_first == first
    assert late_second == second + 2000


def test_of_launches_that_wait_for_the_same_kernel_the_delay_says_which_goes_first() -> None:
    fork = [kernel(0), tb.RecordEvent(0, 0), tb.WaitEvent(0, 1), tb.WaitEvent(0, 2)]
    _, one, other = starts(*fork, kernel(1), kernel(2))
    assert one <= other
    _, one, other = starts(*fork, kernel(1, 1), kernel(2))
    assert other < one


def test_a_late_launch_holds_up_what_is_behind_it_in_its_hardware_queue() -> None:
    both = kernel(0, 5), kernel(1)
    late, behind = starts(*both, hardware_queues=1)
    assert behind >= late
    late, beside = starts(*both, hardware_queues=2)
    assert beside < late


def test_a_wait_lasts_until_the_delay_is_over() -> None:
    sequence = tb.Sequence([kernel(0), kernel(0, 4)])
    trace = tb.predict(sequence, ONE, host=0.0)
    assert trace.waits is not None
    assert trace[1].start_ns is not None
    (wait,) = trace.waits[trace.waits["launch"] == 1]
    assert (wait["cause"], wait["behind"]) == ("stream", 0)
    assert wait["end_ns"] == trace[1].start_ns.min()


def test_a_delay_alone_is_no_wait() -> None:
    trace = tb.predict(tb.Sequence([kernel(0, 4)]), ONE, host=0.0)
    assert trace.waits is not None
    assert not len(trace.waits)


def test_a_delay_of_nothing_changes_nothing() -> None:
    sequences = [tb.Sequence([kernel(k % 3, delay) for k in range(9)]) for delay in (None, 0.0)]
    one, other = (tb.predict(sequence, "h200", host=1e-6) for sequence in sequences)
    for a, b in zip(one, other, strict=True):
        assert np.array_equal(a.start_ns, b.start_ns)


def test_nodes_of_graphs_have_none() -> None:
    with pytest.raises(ValueError, match="delay"):
        tb.Graph([tb.Launch(1, 32, 16, duration=US, delay=US)])
