"""Host threads on an H200: what a recorder of its own saw, against the model.

``recorder-*`` are 60 random programs of 2 to 8 kernels with a host thread per stream, run twice
with eager and twice with lazy loading. ``calls`` are directed: what makes calls wait. The rules
were found in the recordings of an H200; those of an H100 are only scored.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
import pytest

from helpers import ROOT
from tbsched.comparison.times import compare_times
from tbsched.hardware.catalogue import device
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import predict, predict_as_recorded
from tbsched.program.sequence import Copy, Launch, Sequence, Synchronize, with_launches
from tbsched.traces.files import load_traces
from tbsched.traces.trace import Trace

HOSTS = ROOT / "tests" / "traces" / "hosts"
H200 = device("h200")


@functools.cache
def recorded(name: str) -> list[Trace]:
    return load_traces(HOSTS / f"{name}.jsonl.xz")


def pairs(traces: Iterable[Trace], predicted: Callable[[Trace], Trace]) -> float:
    """The share of pairs of launches that overlap as predicted."""
    diffs = [compare_times(predicted(trace), trace) for trace in traces]
    return sum(d.pairs_agreeing for d in diffs) / sum(d.pairs for d in diffs)


def from_gaps(trace: Trace) -> Trace:
    return predict(trace.sequence, H200, host=trace.host_gaps)


@pytest.mark.parametrize("gpu", ["h200", "h100"])
@pytest.mark.parametrize(("loading", "itself"), [("eager", 0.98), ("lazy", 0.93)])
def test_launches_of_threads_overlap_as_recorded(gpu: str, loading: str, itself: float) -> None:
    traces = recorded(f"recorder-{loading}-{gpu}")
    assert len(traces) == 120
    assert pairs(traces, lambda trace: predict_as_recorded(trace, H200)) > 0.985
    # From the gaps alone it is as near as the GPU is to itself.
    again = dict(zip(map(id, traces[::2]), traces[1::2], strict=True))
    assert itself < pairs(traces[::2], lambda trace: again[id(trace)]) < itself + 0.015
    assert pairs(traces, from_gaps) > itself


def without_first_use(trace: Trace) -> Trace:
    others = [replace(launch, first_use=False) for launch in trace.sequence.launches]
    return replace(trace, sequence=with_launches(trace.sequence, others))


def test_without_first_uses_lazy_loading_is_not_predicted() -> None:
    changed = [without_first_use(trace) for trace in recorded("recorder-lazy-h200")]
    assert pairs(changed, from_gaps) < 0.7


def test_without_synchronisation_threads_run_ahead() -> None:
    trace = next(t for t in recorded("calls-h200") if t.id == "syncs_auto:chain_0")
    assert trace.issue_times is not None
    found = from_gaps(trace).issue_times
    assert found is not None
    assert found[-1] == pytest.approx(trace.issue_times[-1], rel=0.03)
    kept = [k for k, event in enumerate(trace.sequence) if not isinstance(event, Synchronize)]
    assert trace.host_gaps is not None
    gaps = [trace.host_gaps[k] for k in kept]
    ahead = predict(Sequence([trace.sequence[k] for k in kept]), H200, host=gaps).issue_times
    assert ahead is not None
    assert ahead[-1] < trace.issue_times[-1] / 5


@pytest.mark.parametrize(
    "kind",
    ["device_later", "stream_later", "event_again", "event_waited", "stream_waited", "chain"],
)
def test_synchronisation_returns_soon_after_what_it_names(kind: str) -> None:
    for trace in chosen(f"syncs_auto:{kind}"):
        assert trace.call_times is not None
        first = next(k for k, e in enumerate(trace.sequence) if isinstance(e, Synchronize))
        # A launch that calls at once shows when the wait was over.
        probe = Sequence(
            [*trace.sequence[: first + 1], trace.sequence[0], *trace.sequence[first + 1 :]]
        )
        gaps = [*trace.host_gaps[: first + 1], 0.0, *trace.host_gaps[first + 1 :]]  # type: ignore[index]
        found = predict(probe, H200, host=gaps).issue_times
        assert found is not None
        number = len(trace.sequence[: first + 1].launches)
        assert found[number] == pytest.approx(trace.call_times[first][1], abs=30e-6)


def chosen(prefix: str) -> list[Trace]:
    found = [trace for trace in recorded("calls-h200") if trace.id.rpartition("_")[0] == prefix]
    assert len(found) == 3
    return found


@pytest.mark.parametrize("kind", ["busy", "busy_nonblocking", "chain", "same_stream", "later"])
def test_first_use_waits_for_all_work_on_the_gpu(kind: str) -> None:
    for trace in chosen(f"first_use:{kind}")[1:]:  # the first of a process now and then does not
        number = next(k for k, x in enumerate(trace.sequence.launches) if x.first_use)
        found, seen = from_gaps(trace)[number].start_ns, trace[number].start_ns
        assert found is not None
        assert seen is not None
        # The clocks differ by when the first launch starts: some microseconds.
        assert abs(int(found.min()) - int(seen.min())) < 40_000


def test_more_local_memory_holds_the_call_and_those_of_other_threads() -> None:
    grown = [t for t in recorded("calls-h200") if t.id.startswith("growth:first")]
    assert len(grown) == 8
    waited = []
    for trace in grown:
        assert trace.call_times is not None
        blocked = trace.call_times[1][1] - trace.call_times[1][0] > 1e-3
        assert blocked == (trace.sequence.launches[1].local_memory > 1024)
        if not blocked:
            continue
        found, seen = from_gaps(trace)[1].start_ns, trace[1].start_ns
        assert found is not None
        assert seen is not None
        waited.append(int(found.min()) / int(seen.min()))
        # The first launch of the other thread was called at 0.35 ms, and waited with it.
        assert trace.call_times[3][1] - trace.call_times[3][0] > 1e-3
        assert from_gaps(trace)[3].start_ns.min() > 1_000_000  # type: ignore[union-attr]
    assert np.allclose(waited, 1, atol=0.1)


def test_a_full_hardware_queue_holds_the_launch_call() -> None:
    trace = next(t for t in recorded("calls-h200") if t.id == "queues:one_0")
    assert trace.call_times is not None
    longest = int(np.argmax([end - begin for begin, end in trace.call_times[:-1]]))
    assert longest == H200.queue_places + 1  # one runs, and so many wait
    found = from_gaps(trace).issue_times
    assert found is not None
    assert found[longest + 1] == pytest.approx(trace.call_times[longest][1], rel=0.02)
    assert found[longest] < 0.5 * found[longest + 1]


def test_calls_take_as_long_as_the_device_file_says() -> None:
    took = {"Launch": [], "RecordEvent": [], "WaitEvent": []}  # type: dict[str, list[float]]
    for trace in [*recorded("calls-h200"), *recorded("firsts-h200")]:
        if trace.id == "calls:waits_0" or trace.id.startswith("eight_streams"):
            assert trace.call_times is not None
            calls = list(zip(trace.sequence, trace.call_times, strict=True))
            for event, (begin, end) in calls[25:]:
                took[type(event).__name__].append(end - begin)
    assert np.median(took["Launch"]) * 1e9 == pytest.approx(H200.launch_call_ns, rel=0.15)
    for name in ("RecordEvent", "WaitEvent"):
        assert np.median(took[name]) * 1e9 == pytest.approx(H200.event_call_ns, rel=0.35)


def late(gpu: str, case: str, spec: DeviceSpec) -> float:
    """By how much the tenth launch is called too late, or the last one, as a share of its time.

    The median of six runs.
    """
    errors = []
    for trace in recorded(f"firsts-{gpu}"):
        if trace.id.rsplit("_", 1)[0] != case:
            continue
        assert trace.call_times is not None
        calls = zip(trace.sequence, trace.call_times, strict=True)
        seen = [begin for event, (begin, _) in calls if isinstance(event, Launch)]
        found = predict(trace.sequence, spec, host=trace.host_gaps).issue_times
        assert found is not None
        last = min(9, len(seen) - 1)
        errors.append(found[last] / seen[last] - 1)
    assert len(errors) == 6
    return float(np.median(errors))


# By how much sooner they are called where the first calls take no longer than later ones.
@pytest.mark.parametrize("gpu", ["h200", "h100"])
@pytest.mark.parametrize(
    ("case", "sooner"),
    [
        ("one_stream", 0.1),
        ("eight_streams", 0.2),
        ("new_streams", 0.25),
        ("mixed", 0.1),
        ("copies_up", 0.1),
        ("sync_each", 0.01),
    ],
)
def test_the_first_calls_of_a_thread_take_longer(gpu: str, case: str, sooner: float) -> None:
    practised = device("h200-practised-hosts")
    assert abs(late(gpu, case, H200)) < 0.12
    assert late(gpu, case, practised) < late(gpu, case, H200) - sooner


def drift(gpu: str, spec: DeviceSpec) -> float:
    """By how much programs of copies are called sooner than recorded, as a share, at the median."""
    found = []
    for trace in recorded(f"copies-{gpu}"):
        waits = any(isinstance(e, Copy) and (e.blocking or not e.pinned) for e in trace.sequence)
        if waits or len(trace) < 8:
            continue
        assert trace.call_times is not None
        times = predict(trace.sequence, spec, host=trace.host_gaps).call_ns
        assert times is not None
        found.append(times[-1, 0] / 1e9 / trace.call_times[-1][0] - 1)
    assert len(found) > 20
    return float(np.median(found))


@pytest.mark.parametrize("gpu", ["h200", "h100"])
def test_first_calls_of_each_kind_take_longer(gpu: str) -> None:
    spec = device(gpu)
    without = replace(spec, first_kind_call_ns=0, new_stream_call_ns=0)
    assert abs(drift(gpu, spec)) < 0.1
    assert drift(gpu, without) < drift(gpu, spec) - 0.05


@pytest.mark.parametrize("gpu", ["h200", "h100"])
def test_calls_for_pageable_memory_take_as_long_as_the_device_file_says(gpu: str) -> None:
    off = {"h2d": [], "d2h": []}  # type: dict[str, list[float]]
    for trace in recorded(f"copies-{gpu}"):
        found = predict(trace.sequence, device(gpu), host=trace.host_gaps).call_ns
        calls = zip(trace.sequence, trace.call_times or (), found, strict=True)  # type: ignore[arg-type]
        for event, (begin, end), (began_ns, ended_ns) in calls:
            if isinstance(event, Copy) and not event.pinned and event.bytes > 1 << 18:
                off[event.kind].append((ended_ns - began_ns) / 1e9 / (end - begin) - 1)
    for each in off.values():
        assert len(each) >= 8
        assert abs(np.median(each)) < 0.2


def test_calls_for_copies_take_as_long_as_the_device_file_says() -> None:
    took = []
    for trace in load_traces(ROOT / "tests" / "traces" / "ways" / "transfers-h200.jsonl.xz"):
        for event, (begin, end) in zip(trace.sequence, trace.call_times or (), strict=False):
            if isinstance(event, Copy) and event.kind != "d2d" and event.pinned:
                took.append(end - begin)
    assert np.median(took) * 1e9 == pytest.approx(H200.copy_call_ns, rel=0.2)


def between_calls(issue_times: Iterable[float]) -> float:
    """Microseconds from a launch call of any thread to the next."""
    return 1e6 * float(np.ptp(list(issue_times))) / (len(list(issue_times)) - 1)


# Where calls vary, as they do on a GPU, four threads meet more often than in the model.
@pytest.mark.parametrize(("threads", "within"), [(1, 0.25), (2, 0.15), (4, 0.3), (8, 0.1)])
def test_calls_of_several_threads_wait_for_the_driver(threads: int, within: float) -> None:
    (trace,) = [t for t in recorded("threads-h200") if t.id == f"threads:L_{threads}"]
    assert trace.call_times is not None
    seen = between_calls([begin for begin, _ in trace.call_times])
    times = predict(trace.sequence, H200, host=7e-8).issue_times
    without = predict(trace.sequence, replace(H200, driver_call_ns=0), host=7e-8).issue_times
    assert times is not None
    assert without is not None
    assert between_calls(times) == pytest.approx(seen, rel=within)
    if threads == 8:
        assert between_calls(without) < 0.55 * seen
