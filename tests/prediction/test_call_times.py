"""How long calls take: Python and the core say the same."""

from __future__ import annotations

import numpy as np
import pytest

import tbsched as tb
from tbsched.prediction.calls import CallLengths, waits_for_gpu
from tbsched.program.events.kinds import Event

NEXT = tb.Launch(1, 32, 32, stream=1, duration=1e-6)
EVENTS = [
    NEXT, tb.Graph([tb.Launch(1, 32, 32, duration=1e-6)]).launch(), tb.RecordEvent(0, 0),
    tb.WaitEvent(0, 0), tb.RecordEvent(0, 0, timing=True), tb.HostFunction(stream=0),
    tb.WriteValue("v", stream=0), tb.Memset(64), tb.Memset(1 << 20),
    tb.Copy(64, "h2d"), tb.Copy(64, "d2d"),
]  # fmt: skip


@pytest.mark.parametrize("event", EVENTS, ids=str)
def test_the_next_call_comes_when_a_call_has_returned(event: Event) -> None:
    spec = tb.device("h200")
    calls = [event, NEXT] * 3
    issued_ns = np.asarray(tb.predict(tb.Sequence(calls), spec, host=0.0).issue_times) * 1e9
    lengths = CallLengths(spec)
    ends = np.cumsum([lengths.next_ns(each, 0) for each in calls])
    # Before each of the launches in stream 1.
    seen = issued_ns[1::2] if event.launches else issued_ns
    assert np.round(seen).tolist() == ends[0::2].tolist()


@pytest.mark.parametrize(
    "event",
    [
        tb.Copy(64, "h2d", stream=0),
        tb.Copy(64, "d2h", stream=0),
        tb.Copy(64, "h2d", stream=0, blocking=True),
        tb.Copy(64, "h2d", stream=0, pinned=False),
        tb.Copy(64, "d2h", stream=0, pinned=False),
        tb.Memset(1 << 20, stream=0),
        tb.Synchronize(0),
    ],
    ids=str,
)
def test_some_calls_return_only_when_work_is_over(event: Event) -> None:
    long = tb.Launch(1, 32, 32, stream=0, duration=1e-3)
    trace = tb.predict(tb.Sequence([long, event, NEXT]), "h200", host=0.0)
    assert trace.issue_times is not None
    assert (trace.issue_times[-1] > 1e-3) is waits_for_gpu(event)
