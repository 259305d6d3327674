"""How long calls take: Python and the core say the same."""

from __future__ import annotations

import pytest

import tbsched as tb
from tbsched.prediction.calls import call_ns
from tbsched.program.events.kinds import Event

NEXT = tb.Launch(1, 32, 32, stream=1, duration=1e-6)
EVENTS = [
    NEXT, tb.Graph([tb.Launch(1, 32, 32, duration=1e-6)]).launch(), tb.RecordEvent(0, 0),
    tb.WaitEvent(0, 0), tb.Memset(64), tb.Memset(1 << 20), tb.Copy(64, "h2d"), tb.Copy(64, "d2d"),
]  # fmt: skip


@pytest.mark.parametrize("event", EVENTS, ids=str)
def test_the_next_call_comes_when_a_call_has_returned(event: Event) -> None:
    trace = tb.predict(tb.Sequence([event, NEXT]), "h200", host=0.0)
    assert trace.issue_times is not None
    assert round(trace.issue_times[-1] * 1e9) == call_ns(event, tb.device("h200"))
