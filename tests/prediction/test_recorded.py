"""What `predict_as_recorded` reads from the recording of a timed sequence."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tbsched as tb
from tbsched.hardware.catalogue import device
from tbsched.prediction.calls import Calls
from tbsched.prediction.predict import Run, predict_as_recorded
from tbsched.traces.placement import DeviceInfo

H200 = device("h200")
US = 1e-6
# Two waves: whoever leaves first decides where blocks of the second go.
WAVES = tb.Sequence(
    [
        tb.Launch(60, 1024, 64, stream=0, duration=1e-4),
        tb.Launch(100, 1024, 64, stream=1, duration=tuple((100 + k) * US for k in range(100))),
    ]
)


def recorded(sequence: tb.Sequence, calls: list[float], **given: object) -> tb.Trace:
    """As if a GPU had run it, but the host notes other times of its calls."""
    found = tb.predict(sequence, H200, **given)  # type: ignore[arg-type]
    issued = {"issued_ns": [round(us * 1e3) for us in calls]}
    gpu = DeviceInfo("NVIDIA H200", H200.sms)
    return replace(found, device=gpu, waits=None, call_ns=None, extra=issued)


def starts(trace: tb.Trace) -> list[int]:
    found = np.array([p.start_ns.min() for p in trace if p.start_ns is not None])
    return [int(start) for start in found - found.min()]


@pytest.mark.parametrize("state", [tb.InitialState(3, 1), tb.InitialState(6, 2)], ids=str)
def test_the_launches_before_the_first_end_show_the_latent_state(state: tb.InitialState) -> None:
    observation = recorded(WAVES, [0, 0], initial_state=state)
    found = predict_as_recorded(observation, H200)
    for one, other in zip(found, observation, strict=True):
        assert (one.smid == other.smid).all()
    other_state = predict_as_recorded(observation, H200, initial_state=tb.InitialState())
    assert (other_state[0].smid != observation[0].smid).any()


def test_a_launch_is_handed_on_within_its_call() -> None:
    program = tb.Sequence([tb.Launch(1, 32, 16, duration=1e-4) for _ in range(3)])
    calls = [0.0, 10, 30]
    observation = recorded(program, calls, issue_times=[4 * US, 25 * US, 30 * US])
    assert starts(predict_as_recorded(observation, H200)) == starts(observation)
    # One that starts later than the next call has waited for something else.
    late = recorded(program, calls, issue_times=[0, 40 * US, 40 * US])
    assert starts(predict_as_recorded(late, H200)) == [0, 10_000, 40_000 + H200.launch_switch_ns]


def test_the_driver_issues_roots_when_the_recording_shows() -> None:
    node = tb.Launch(1, 32, 16, duration=1e-4)
    graph = tb.Graph([node] * 4, edges=[(0, 2)])
    program = tb.Sequence([graph.launch()])
    observation = recorded(program, [0] * 4, issue_times=[0, 5 * US, 5 * US, 7 * US])
    assert starts(observation)[1::2] == [5_000, 7_000]
    assert starts(predict_as_recorded(observation, H200)) == starts(observation)


def test_blocks_run_from_when_they_were_placed() -> None:
    program = tb.Sequence([tb.Launch(2, 32, 16, duration=1e-4)])
    observation = recorded(program, [0])
    start_ns, end_ns = observation[0].start_ns, observation[0].end_ns
    assert start_ns is not None
    assert end_ns is not None
    for late_ns, runs_ns in ((64, 100_064), (65, 100_000)):
        late = np.array([0, late_ns])
        placement = replace(observation[0], start_ns=start_ns + late, end_ns=end_ns + late)
        found = predict_as_recorded(replace(observation, placements=(placement,)), H200)
        assert found[0].start_ns is not None
        assert found[0].end_ns is not None
        assert (found[0].end_ns - found[0].start_ns).tolist() == [100_000, runs_ns]


@pytest.mark.parametrize("name", ["h200", "rtx3090"])
def test_blocks_of_a_prediction_run_as_long_as_it_says(name: str, tmp_path: Path) -> None:
    # Blocks of the first launch end within 64 ns of each other, and others take their room.
    durations = tuple(1e-5 + 1e-9 * k for k in range(132))
    first, second = (tb.Launch(132, 1024, 32, stream=0), tb.Launch(300, 1024, 32, stream=1))
    program = tb.Sequence([replace(first, duration=durations), replace(second, duration=1e-4)])
    own = tb.predict(program, name, host=0.0)
    tb.save_traces(tmp_path / "t.jsonl", [own])
    for trace in (own, *tb.load_traces(tmp_path / "t.jsonl")):
        played = predict_as_recorded(trace, name)
        for found, given in zip(played, trace, strict=True):
            assert found.start_ns is not None
            assert found.end_ns is not None
            assert given.start_ns is not None
            assert given.end_ns is not None
            ran = found.end_ns - found.start_ns
            assert ran.tolist() == (given.end_ns - given.start_ns).tolist()


def test_one_call_issues_all_nodes_of_a_graph() -> None:
    node = tb.Launch(1, 32, 16, duration=1e-5)
    launch = tb.Graph([node] * 2, edges=[(0, 1)]).launch()
    program = tb.Sequence([launch, replace(node, stream=1)])
    found = tb.predict(program, H200, launch_interval=1e-3)
    (many,) = tb.predict_many([program], H200, launch_interval=1e-3, threads=1)
    assert starts(found) == starts(many)
    assert starts(found)[2] == 1_000_000 + H200.launch_latency_ns - H200.graph_latency_ns


def test_a_recording_of_events_alone_is_predicted() -> None:
    observation = recorded(tb.Sequence([tb.RecordEvent(0, stream=1)]), [])
    assert predict_as_recorded(observation, H200).makespan == 0


def test_a_graph_that_begins_with_a_copy_is_a_call_too() -> None:
    node = tb.Launch(1, 32, 16, duration=1e-4)
    program = tb.Sequence([node, tb.Graph([tb.Memset(1), node], [(0, 1)]).launch(), node])
    late = recorded(program, [0, 10, 30], issue_times=[20 * US, 20 * US, 30 * US])
    first, _, last = starts(predict_as_recorded(late, H200))
    assert last - first == 30_000


def with_calls(trace: tb.Trace, calls: list[tuple[float, float]]) -> tb.Trace:
    """As if the host had noted these times of its calls as well, in us."""
    called = [[round(us * 1e3) for us in times] for times in calls]
    return replace(trace, extra={**trace.extra, "called_ns": called})


def test_a_graph_is_issued_when_its_roots_show_beside_other_launches() -> None:
    """Within its call the driver takes 20 us before it issues the first root."""
    node = tb.Launch(1, 32, 16, duration=1e-4)
    graph = tb.Graph([node] * 2).launch(stream=1)
    program = tb.Sequence([node, graph, replace(node, stream=2)])
    at = [0, 30 * US, 31.1 * US, 36 * US]
    observation = recorded(program, [0, 10, 10, 36], issue_times=at)
    called = with_calls(observation, [(0, 4), (10, 35), (36, 40)])
    assert starts(predict_as_recorded(called, H200)) == starts(observation)


def test_a_copy_begins_when_it_was_called() -> None:
    kernel = tb.Launch(1, 32, 16, duration=1e-5)
    copy = tb.Copy(1 << 20, "d2h", pinned=False, stream=0)
    program = tb.Sequence([replace(kernel, stream=1, host=1), copy, replace(kernel, stream=0)])
    observation = recorded(program, [0, 200], host=[0, 0, 0])
    # It is over when the host calls for the next launch of its stream.
    called = with_calls(observation, [(0, 3), (-20, 150), (200, 203)])
    assert starts(predict_as_recorded(called, H200))[1] == 200_000
    # If nobody says when, it is called together with that launch.
    assert starts(predict_as_recorded(observation, H200))[1] > 270_000


def test_times_of_calls_of_a_prediction_are_kept(tmp_path: Path) -> None:
    kernel = tb.Launch(2, 64, 32, stream=0, duration=1e-3)
    program = tb.Sequence([kernel, tb.Synchronize(stream=0), replace(kernel, host=1), kernel])
    gaps = (10 * US, 0.0, 20 * US, 5 * US)
    played = tb.predict(program, H200, host=gaps)
    assert played.host_gaps == pytest.approx(gaps)
    assert played.call_times is not None
    assert [played.call_times[k][0] for k in (0, 2, 3)] == [*(played.issue_times or ())]
    tb.save_traces(tmp_path / "a.jsonl", [played])
    (read,) = tb.load_traces(tmp_path / "a.jsonl")
    assert (read.call_times, read.host_gaps) == (played.call_times, played.host_gaps)
    assert tb.predict(program, H200).host_gaps is None


def test_times_of_calls_are_one_for_each_event() -> None:
    run = Run(H200, None, None, 0.0, False)
    sequence = tb.Sequence([tb.Launch(1, 32, 16, duration=1e-5), tb.Memset(64)])
    events = run.events(sequence)
    for called_ns in ([0], [0, -1]):
        with pytest.raises(ValueError, match="times of calls: one for each of 2 events"):
            run.predicted(sequence, events, Calls(issue_ns=[0], called_ns=called_ns))


@pytest.mark.parametrize("is_node", [False, True], ids=["in a stream", "in a graph"])
def test_a_gpu_does_not_know_what_duration_a_memset_was_given(is_node: bool) -> None:
    kernel = tb.Launch(1, 32, 16, duration=1e-4)

    def program(duration: float | None) -> tb.Sequence:
        if is_node:
            nodes = [kernel, tb.Memset(64, duration), kernel]
            return tb.Sequence([tb.Graph(nodes, [(0, 1), (1, 2)]).launch()])
        launch = replace(kernel, stream=0)
        return tb.Sequence([launch, tb.Memset(64, duration, stream=0), launch])

    own, given = (recorded(program(duration), [0, 0]) for duration in (None, 5e-3))
    seen = replace(own, sequence=given.sequence, transfer_ns=None)
    assert starts(predict_as_recorded(seen, H200)) == starts(own)
    # A trace that says when it happened was played by a model, which does know it.
    assert starts(predict_as_recorded(given, H200)) == starts(given) != starts(own)
