"""Times of an H100 that was calibrated, read as the probes read them."""

from __future__ import annotations

import pytest

import tbsched as tb
from calibration.hidden import same
from helpers import ROOT
from tbsched.calibration.asking.lab import Inconclusive
from tbsched.calibration.asking.times import at_once, measured, median
from tbsched.calibration.finding import TOLD
from tbsched.calibration.probes.streams import calls, grids, latencies, queues

RECORDED = ROOT / "tests" / "traces" / "calibrations"


def test_h100_has_the_queues_and_latencies_of_its_file() -> None:
    spec = tb.device("h100")
    traces = tb.load_traces(RECORDED / "streams-h100.jsonl.xz")
    assert all(trace.device.name == spec.title for trace in traces)
    grids_, queues_, exits, ends, events, chain = (traces[at : at + 3] for at in range(0, 18, 3))
    finding = grids.read(measured(grids_, at_once), room=4224, default=1)
    assert (finding.kind, finding.value) == (TOLD, spec.resident_grids)
    finding = queues.read(measured(queues_, queues._first_ones), 128, 1, max_connections=None)
    assert (finding.kind, finding.value) == (TOLD, 32)  # as the process asked
    left = measured(exits, latencies._between_blocks)
    over = measured(ends, latencies._between)
    found = latencies.read(left, over, measured(events, latencies._between))
    assert [finding.kind for finding in found] == [TOLD, "assumed", TOLD]
    for finding in (found[0], found[2]):
        truth = getattr(spec, finding.path.partition(".")[2])
        assert same(finding.path, finding.value, truth)
    # The host is a part of it.
    assert found[1].value > spec.completion_latency_ns
    idle, back = measured(chain, calls._idle), measured(chain, calls._from_call)
    (_, call) = calls.read(over, idle, back, found[1].value)
    assert call.kind == "assumed"


def test_median_is_known_as_well_as_ranks_around_it() -> None:
    assert median([5.0]) == (5.0, 0.0)
    value, within = median([float(number) for number in range(100)])
    assert value == 49.5
    assert 9 <= within <= 11


def test_launches_that_a_slow_host_calls_say_nothing() -> None:
    one = tb.Launch(1, 32, 16, duration=1e-3)
    together = tb.Sequence([one, one])
    seen = tb.predict(together, "h200", host=0.0)
    assert at_once(seen) == [2.0]
    late = tb.predict(together, "h200", host=(0.0, 7e-4))
    with pytest.raises(Inconclusive, match="the host was too slow"):
        measured([late], at_once)
