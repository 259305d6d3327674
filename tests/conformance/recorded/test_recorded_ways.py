"""Ways to launch on two GPUs: dependent, cooperative, events, streams, priorities, queues.

Each recorded program is a small one that needs one rule. Without what the rule is about, the same
recording is not explained any more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
import pytest

from conformance.recorded import timed
from helpers import ROOT
from tbsched.comparison.times import compare_times
from tbsched.hardware.catalogue import device
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import predict, predict_as_recorded
from tbsched.program.sequence import GraphLaunch, Launch, with_launches
from tbsched.traces.files import load_traces
from tbsched.traces.timeline import span_of
from tbsched.traces.trace import Trace

WAYS = ROOT / "tests" / "traces" / "ways"
GPUS = ("h100", "h200")
MODEL = device("h200")
# A tenth of a block's duration: the host's calls reach the GPU some us sooner or later.
TOLERANCE = 0.1

# How late the GPU sees that a queue need not wait varies; the model has one number.
LEAST_STARTS = {"non_blocking": 0.75}

# The launch as it is without what the rule is about.
WITHOUT: dict[str, Callable[[Launch], Launch]] = {
    "triggers": lambda launch: replace(launch, programmatic=False),
    "order": lambda launch: replace(launch, stream=None, programmatic=False),
    "eight": lambda launch: replace(launch, programmatic=False),
    "waits": lambda launch: replace(launch, programmatic=not launch.programmatic),
    "cooperative": lambda launch: replace(launch, cooperative=False),
    "completion_event": lambda launch: replace(launch, completion_event=None),
    "non_blocking": lambda launch: replace(launch, non_blocking=False),
    "priority": lambda launch: replace(launch, priority=min(launch.priority, 0) // 6),
}


@pytest.fixture(scope="module")
def recorded() -> dict[str, list[Trace]]:
    """By mechanism, from both GPUs."""
    found: dict[str, list[Trace]] = defaultdict(list)
    for gpu in GPUS:
        for trace in load_traces(WAYS / f"dependent-{gpu}.jsonl.xz"):
            found[trace.extra["mechanism"]].append(trace)
    return found


def agreeing(trace: Trace) -> tuple[float, float]:
    """Shares of the pairs of launches and of the starts of blocks that are as recorded."""
    diff = compare_times(predict_as_recorded(trace, MODEL), trace, tolerance=TOLERANCE)
    return diff.pairs_agreeing / diff.pairs, diff.starts_agreeing / diff.blocks


@pytest.mark.parametrize("mechanism", WITHOUT)
def test_recorded_program_is_explained_by_its_rule(
    recorded: dict[str, list[Trace]], mechanism: str
) -> None:
    traces = recorded[mechanism]
    assert len(traces) >= 4
    for trace in traces:
        pairs, starts = agreeing(trace)
        assert pairs == 1, trace.id
        assert starts > LEAST_STARTS.get(mechanism, 0.9), trace.id


@pytest.mark.parametrize("mechanism", WITHOUT)
def test_without_its_rule_it_is_not(recorded: dict[str, list[Trace]], mechanism: str) -> None:
    shares = []
    for trace in recorded[mechanism]:
        launches = [WITHOUT[mechanism](launch) for launch in trace.sequence.launches]
        other = replace(trace, sequence=with_launches(trace.sequence, launches))
        shares += agreeing(other)
    assert min(shares) < 0.7


def test_blocks_that_wait_for_memory_end_as_recorded(recorded: dict[str, list[Trace]]) -> None:
    for trace in recorded["memory_wait"]:
        launches = trace.sequence.launches
        assert last_ends_off(trace, launches) < 0.05, trace.id
        without = [replace(launch, memory_wait=None) for launch in launches]
        assert last_ends_off(trace, without) > 0.5, trace.id


def last_ends_off(trace: Trace, launches: Iterable[Launch]) -> float:
    """By how much of its duration the end of a launch is off at most, as its blocks were asked."""
    program = with_launches(trace.sequence, launches)
    predicted = predict(program, MODEL, issue_times=trace.issue_times)
    (found, begin), (expected, first) = (
        (np.array([span_of(0, one)[1] for one in some]), span_of(0, some[0])[0])
        for some in (predicted, trace)
    )
    asked = [launch.duration_ns().mean() for launch in program.launches]
    return float(np.max(np.abs((found - begin) - (expected - first)) / asked))


# -- hardware queues that wait ---------------------------------------------------------------------

CALL = 5e-6  # seconds from one call to the next


@pytest.fixture(scope="module")
def waiting() -> list[Trace]:
    return load_traces(WAYS / "waiting-h100.jsonl.xz")


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
    begins = [
        int(trace[number].start_ns.min())  # type: ignore[union-attr]
        for number in sorted(roots(like))
        if roles[number] in ("w", "own-k") or roles[number].startswith("root")
    ]
    assert ends is not None
    return np.sort(begins) - ends.max()


def error_ns(traces: list[Trace], spec: DeviceSpec) -> float:
    """Mean over the programs, none counted as more than 5 us."""
    errors = []
    for trace in traces:
        model = predict(trace.sequence, spec, launch_interval=CALL)
        apart = np.abs(late_ns(model, trace) - late_ns(trace, trace))
        errors.append(np.minimum(apart, 5000).mean())
    return float(np.mean(errors))


def test_front_ends_go_round_their_queues(waiting: list[Trace]) -> None:
    assert len(waiting) == 100
    assert error_ns(waiting, MODEL) < 450


@pytest.mark.parametrize(
    "without", [{"queue_watch_ns": 0}, {"front_ends": 1}, {"front_ends": 8}], ids=str
)
def test_other_front_ends_explain_less(waiting: list[Trace], without: dict[str, int]) -> None:
    assert error_ns(waiting, replace(MODEL, **without)) > 750


def written() -> list[Trace]:
    """Chains of kernels that write to the memory of the GPU alone, and others."""
    return [trace for gpu in GPUS for trace in load_traces(WAYS / f"writes-{gpu}.jsonl.xz")]


def gap_error_ns(trace: Trace, spec: DeviceSpec) -> float:
    """How far a launch is off that follows another one in its stream, on average."""
    launches = [
        replace(launch, duration=(end - start) / 1e9)
        for launch, (start, end) in zip(trace.sequence.launches, spans(trace), strict=True)
    ]
    sequence = with_launches(trace.sequence, launches)
    model = predict(sequence, spec, issue_times=trace.issue_times)
    return float(np.abs(gaps_ns(model) - gaps_ns(trace)).mean())


def gaps_ns(trace: Trace) -> np.ndarray:
    ended: dict[object, int] = {}
    gaps = []
    for launch, (start, end) in zip(trace.sequence.launches, spans(trace), strict=True):
        gaps.append(start - ended.get(launch.stream, start))
        ended[launch.stream] = end
    return np.array(gaps)


def spans(trace: Trace) -> list[tuple[int, int]]:
    return [span_of(*each) for each in enumerate(trace)]


@pytest.mark.parametrize("trace", written(), ids=lambda trace: f"{trace.device.name}-{trace.id}")
def test_front_ends_wait_for_what_was_written_to_the_host(trace: Trace) -> None:
    host, gpu = (gap_error_ns(trace, replace(MODEL, host_watch_ns=ns)) for ns in (1250, 0))
    if trace.id.endswith("-0"):  # no front end goes round
        assert host == gpu < 500
    elif trace.id.startswith("host"):
        assert host < 0.6 * gpu
    else:
        assert gpu < 0.6 * host
        no_round = replace(MODEL, host_watch_ns=0, queue_watch_ns=0)
        assert gpu < 0.8 * gap_error_ns(trace, no_round)


def test_what_kernels_write_to_the_host_takes_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    traces = load_traces(WAYS / "long-h200.jsonl.xz")
    assert len(traces) == 24
    found = timed.late_ns(traces, MODEL).mean()
    monkeypatch.setattr("tbsched.prediction.predict.host_write_ns", lambda *_: 0)
    assert timed.late_ns(traces, MODEL).mean() > 1.5 * found
