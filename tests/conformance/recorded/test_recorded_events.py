"""Host functions, host calls and values in memory, on an H200 and an H100.

``events-directed``: small programs, five runs of each, one after the other. ``events``: 200 random
programs, two runs of each.
"""

from __future__ import annotations

import functools
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from helpers import ROOT
from tbsched.comparison.times import compare_times
from tbsched.hardware.catalogue import ablated
from tbsched.hardware.catalogue import device as find_device
from tbsched.prediction.predict import predict, predict_as_recorded
from tbsched.program.sequence import HostFunction, Sequence, WaitValue, WriteValue
from tbsched.traces.files import load_traces
from tbsched.traces.trace import Trace

HOSTS = ROOT / "tests" / "traces" / "hosts"
RUNS = 5
gpus = pytest.mark.parametrize("gpu", ["h100", "h200"])


@functools.cache
def directed(gpu: str) -> dict[Sequence, list[Trace]]:
    """The runs of each program."""
    found: dict[Sequence, list[Trace]] = {}
    for trace in load_traces(HOSTS / f"events-directed-{gpu}.jsonl.xz"):
        found.setdefault(trace.sequence, []).append(trace)
    assert {len(runs) for runs in found.values()} == {RUNS}
    return found


@functools.cache
def random_programs(gpu: str) -> list[tuple[Trace, Trace]]:
    traces = iter(load_traces(HOSTS / f"events-{gpu}.jsonl.xz"))
    return list(zip(traces, traces, strict=True))


def starts(trace: Trace) -> np.ndarray:
    """When each launch starts, in nanoseconds from the first one."""
    found = np.array([int(rows.start_ns.min()) for rows in trace if rows.start_ns is not None])
    return found - found.min()


def functions_of(seq: Sequence) -> list[HostFunction]:
    return [event for event in seq if isinstance(event, HostFunction)]


@gpus
def test_functions_of_several_streams_run_one_after_the_other(gpu: str) -> None:
    """Kernels behind them start a function apart; with a thread for each they start together."""
    several = [
        (seq, runs) for seq, runs in directed(gpu).items()
        if len({function.stream for function in functions_of(seq)}) > 1
        and not any(isinstance(event, WaitValue) for event in seq)
    ]  # fmt: skip
    assert [len(functions_of(seq)) for seq, _ in several] == [2, 4]
    free = ablated(find_device(gpu), "free-host-functions")
    for seq, runs in several:
        count = len(functions_of(seq))
        for trace in runs:
            behind = starts(trace)[-count:]
            assert np.diff(behind).min() > 95_000
            assert np.diff(starts(predict_as_recorded(trace, gpu))[-count:]).min() > 95_000
            assert np.diff(starts(predict_as_recorded(trace, free))[-count:]).max() < 50_000


@gpus
def test_times_of_values_are_as_recorded(gpu: str) -> None:
    """Median of the runs, within 3 us for each launch."""
    of_values = {
        seq: runs for seq, runs in directed(gpu).items()
        if any(isinstance(event, WriteValue | WaitValue) for event in seq) and not functions_of(seq)
    }  # fmt: skip
    assert len(of_values) == 9
    for runs in of_values.values():
        recorded = np.median([starts(trace) for trace in runs], axis=0)
        predicted = np.median([starts(predict_as_recorded(trace, gpu)) for trace in runs], axis=0)
        assert np.abs(recorded - predicted).max() < 3_000


@gpus
def test_random_programs_run_as_predicted(gpu: str) -> None:
    pairs, overlaps, blocks, in_time, own_overlaps, own_in_time = 0, 0, 0, 0, 0, 0
    for first, again in random_programs(gpu):
        model = compare_times(predict_as_recorded(first, gpu), first)
        itself = compare_times(again, first)
        pairs, blocks = pairs + model.pairs, blocks + model.blocks
        overlaps, in_time = overlaps + model.pairs_agreeing, in_time + model.starts_agreeing
        own_overlaps += itself.pairs_agreeing
        own_in_time += itself.starts_agreeing
    assert pairs > 1_000
    assert overlaps > 0.99 * own_overlaps
    assert in_time >= own_in_time


@gpus
@pytest.mark.parametrize("queues", [1, 2])
def test_what_waits_in_a_stream_holds_its_hardware_queue(gpu: str, queues: int) -> None:
    """As many of the other kernels wait for the first one, in each of three runs."""
    spec = replace(find_device(gpu), hardware_queues=queues)
    waited = Counter[str]()
    for trace in load_traces(HOSTS / f"queues-{queues}-{gpu}.jsonl.xz"):
        behind = [*trace.sequence][1]
        others = [k for k, launch in enumerate(trace.sequence.launches) if launch.stream != 0]
        recorded = starts(trace)[others] > 900_000
        predicted = starts(predict(trace.sequence, spec, host=trace.host_gaps))[others] > 900_000
        # Which of two queues a stream takes is partly chance.
        assert abs(int(predicted.sum()) - int(recorded.sum())) <= 2 * (queues - 1)
        waited[type(behind).__name__] += int(predicted.sum())
    assert waited["WriteValue"] > 0
    assert waited["HostFunction"] > 0
    assert waited["RecordEvent"] == 0


@pytest.mark.parametrize(
    ("ablation", "kind"),
    [("no-queue-for-functions", HostFunction), ("free-value-waits", WriteValue)],
)
def test_queues_are_not_held_without_the_rule(ablation: str, kind: type) -> None:
    spec = replace(ablated(find_device("h200"), ablation), hardware_queues=1)
    found = 0
    for trace in load_traces(HOSTS / "queues-1-h200.jsonl.xz"):
        events = [*trace.sequence]
        if not isinstance(events[1], kind) or len(events) != 6:
            continue
        found += 1
        assert starts(trace)[1:].min() > 900_000
        assert starts(predict(trace.sequence, spec, host=trace.host_gaps))[1:].max() < 900_000
    assert found == 3


@functools.cache
def records(queues: int) -> dict[str, list[Trace]]:
    """The runs of each program with records of events, by name: "one:timed", "one:plain"."""
    file = "timed-records-h200" if queues == 32 else f"timed-records-{queues}-h200"
    found: dict[str, list[Trace]] = {}
    for trace in load_traces(HOSTS / f"{file}.jsonl.xz"):
        assert trace.id is not None
        found.setdefault(trace.id.rpartition(":")[0], []).append(trace)
    assert {len(runs) for runs in found.values()} == {6}
    return found


def gaps_us(trace: Trace) -> np.ndarray:
    """From the end of the first launch to the start of each later one, in us."""
    first = trace[0]
    assert first.end_ns is not None
    begin = starts(trace)
    end = int(first.end_ns.max()) - int(first.start_ns.min())  # type: ignore[union-attr]
    return np.asarray((begin[1:] - begin[0] - end) / 1e3)


@pytest.mark.parametrize("queues", [32, 1])
@pytest.mark.parametrize("timing", ["plain", "timed"])
@pytest.mark.parametrize("name", ["one", "two", "four", "other", "both", "programmatic"])
def test_records_with_timing_delay_a_stream_as_recorded(
    name: str, timing: str, queues: int
) -> None:
    runs = records(queues)[f"{name}:{timing}"]
    expected = gaps_us(predict(runs[0].sequence, "h200", connections=queues))
    seen = np.median([gaps_us(trace) for trace in runs], axis=0)
    tolerance = 5 if (name, timing) == ("programmatic", "plain") else 0.5
    assert np.abs(expected - seen).max() < tolerance, (expected, seen)


@pytest.mark.parametrize("timing", ["plain", "timed"])
def test_records_with_timing_hold_their_hardware_queue_as_recorded(timing: str) -> None:
    """Four streams behind a kernel of 300 us and a record: with one queue they wait."""
    for queues in (32, 1):
        runs = records(queues)[f"held:{timing}"]
        expected = gaps_us(predict(runs[0].sequence, "h200", connections=queues, host=0.0)) > 0
        assert expected.tolist() == 4 * [timing == "timed" and queues == 1]
        for trace in runs:
            assert ((gaps_us(trace) > 0) == expected).all()
