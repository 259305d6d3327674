"""Hardware queues that wait for one end, on an H100: how late the GPU sees each."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from helpers import ROOT
from tbsched.hardware.catalogue import device
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import predict
from tbsched.program.sequence import GraphLaunch, Launch
from tbsched.traces.files import load_traces
from tbsched.traces.trace import Trace

MODEL = device("h200")
CALL = 5e-6  # seconds from one call to the next


@pytest.fixture(scope="module")
def recorded() -> list[Trace]:
    return load_traces(ROOT / "tests" / "traces" / "ways" / "waiting-h100.jsonl.xz")


def roots(trace: Trace) -> set[int]:
    """The launches that are no dependents of nodes."""
    found: set[int] = set()
    number = 0
    for event in trace.sequence:
        if isinstance(event, Launch):
            found.add(number)
            number += 1
        elif isinstance(event, GraphLaunch):
            dependent = {after for _, after in event.graph.edges}
            nodes = range(len(event.graph.nodes))
            found |= {number + node for node in nodes if node not in dependent}
            number += len(nodes)
    return found


def late_ns(trace: Trace, like: Trace) -> np.ndarray:
    """How long after the end of launch K each launch starts that waits for it, in order."""
    roles = like.extra["roles"]
    ends = trace[roles.index("K")].end_ns
    waiting = [
        int(trace[number].start_ns.min())  # type: ignore[union-attr]
        for number in sorted(roots(like))
        if roles[number] in ("w", "own-k") or roles[number].startswith("root")
    ]
    assert ends is not None
    return np.sort(waiting) - ends.max()


def error_ns(traces: list[Trace], spec: DeviceSpec) -> float:
    """Mean over the programs, none counted as more than 5 us."""
    errors = []
    for trace in traces:
        model = predict(trace.sequence, spec, launch_interval=CALL)
        apart = np.abs(late_ns(model, trace) - late_ns(trace, trace))
        errors.append(np.minimum(apart, 5000).mean())
    return float(np.mean(errors))


def test_front_ends_go_round_their_queues(recorded: list[Trace]) -> None:
    assert len(recorded) == 100
    assert error_ns(recorded, MODEL) < 450


@pytest.mark.parametrize(
    "without", [{"queue_watch_ns": 0}, {"front_ends": 1}, {"front_ends": 8}], ids=str
)
def test_other_front_ends_explain_less(recorded: list[Trace], without: dict[str, int]) -> None:
    assert error_ns(recorded, replace(MODEL, **without)) > 750
