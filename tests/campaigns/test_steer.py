"""Steering: a GPU that remembers whose turn it is starts every sequence from a known state."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given, settings

import tbsched as tb
from tbsched.campaigns import ModelGpu, SequenceOptions, fuzz, record
from tbsched.campaigns.steer import Steered, steer
from tbsched.hardware.initial_state import InitialState
from tbsched.hardware.spec import DeviceSpec
from tbsched.program.sequence import Event, Launch, Release, Sequence
from tbsched.strategies import sequences
from tbsched.traces.placement import Placement
from tbsched.traces.trace import Trace

H200 = tb.device("h200")
STATES = H200.initial_states()
WITH_CLUSTERS = SequenceOptions(max_launches=6, carveouts=(100,), clusters=(1, 2, 4))
# Tells all states apart, in a way of its own: first whose turn it is outside the GPCs, then inside.
TELLS_APART = Sequence(
    [
        *(Launch(8, 32, 16, carveout=100, cluster=2), Release(0)),
        *(Launch(32, 32, 16, carveout=100, cluster=4), Release(1)),
    ]
)


class StatefulGpu:
    """A model in the place of a GPU that keeps its state from sequence to sequence.

    It predicts all that ever ran as one sequence, each part drained, and returns the last part.
    """

    def __init__(self, spec: DeviceSpec = H200, state: InitialState | None = None) -> None:
        self.spec = spec
        self.state = state
        self.ran: list[Event] = []
        self.launches = 0
        self.observed = 0

    def observe(self, seq: Sequence, /) -> Trace:
        first = self.launches
        released = {event.launch for event in seq.events if isinstance(event, Release)}
        for event in seq.events:
            self.ran.append(Release(first + event.launch) if isinstance(event, Release) else event)
        self.launches += len(seq.launches)
        left = [k for k in range(len(seq.launches)) if k not in released]
        whole = tb.predict(Sequence(self.ran), self.spec, initial_state=self.state)
        self.ran += [Release(first + k) for k in left]
        self.observed += 1
        return Trace(seq, whole.device, whole.placements[first:])


class Fixed:
    """A GPU whose blocks always go to the same SMs."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    def observe(self, seq: Sequence, /) -> Trace:
        placements = tuple(Placement(np.zeros(k.blocks, np.int32)) for k in seq.launches)
        return Trace(seq, self.trace.device, placements)


def equal(a: Trace, b: Trace) -> bool:
    return all(np.array_equal(x.smid, y.smid) for x, y in zip(a, b, strict=True))


def test_every_state_is_reached_from_every_other() -> None:
    predicted = {s: tb.predict(TELLS_APART, H200, initial_state=s) for s in STATES}
    assert len({b"".join(p.smid.tobytes() for p in t) for t in predicted.values()}) == 32
    for begin, goal in itertools.product(STATES, STATES):
        gpu = StatefulGpu(state=begin)
        assert tb.steer(gpu, "h200", goal) == begin
        assert gpu.observed <= 3
        assert equal(gpu.observe(TELLS_APART), predicted[goal])


def test_a_gpu_that_is_there_already_runs_the_probe_only() -> None:
    gpu = StatefulGpu(state=STATES[5])
    tb.steer(gpu, H200, STATES[5])
    assert gpu.launches == 1


@settings(max_examples=60, deadline=None)
@given(seq=sequences(H200, WITH_CLUSTERS))
def test_steered_runs_of_a_sequence_are_equal_and_as_predicted(seq: Sequence) -> None:
    for state in (STATES[0], STATES[22]):
        steered = tb.Steered(StatefulGpu(state=STATES[13]), "h200", state)
        first, second = steered.observe(seq), steered.observe(seq)
        assert equal(first, second)
        assert equal(first, tb.predict(seq, "h200", initial_state=steered.initial_state))


def test_runs_that_are_not_steered_differ() -> None:
    seq = Sequence([Launch(6, 32, 16, carveout=100, cluster=2), Launch(20, 64, 16, carveout=100)])
    gpu = StatefulGpu()
    assert not equal(gpu.observe(seq), gpu.observe(seq))


def test_a_device_without_clusters_is_steered_by_single_blocks() -> None:
    spec = dataclasses.replace(H200, max_cluster=1)
    whole = Sequence([Launch(132, 32, 16, carveout=100)])
    for begin, goal in itertools.product(spec.initial_states(), spec.initial_states()):
        gpu = StatefulGpu(spec, begin)
        assert tb.steer(gpu, spec, goal) == begin
        assert equal(gpu.observe(whole), tb.predict(whole, spec, initial_state=goal))


def test_a_device_with_one_state_needs_no_steering() -> None:
    gpu = StatefulGpu(tb.device("rtx3090"))
    assert tb.steer(gpu, "rtx3090") == InitialState()
    assert gpu.observed == 0


def test_a_state_that_no_short_launches_lead_to_is_refused() -> None:
    spec = dataclasses.replace(H200, max_cluster=4)
    with pytest.raises(
        ValueError, match=r"to: no short launches bring h200 from .* to .*first_gpc=7"
    ):
        tb.steer(StatefulGpu(spec, InitialState(first_gpc=3)), spec, InitialState(first_gpc=7))


def test_a_device_whose_states_look_alike_is_refused() -> None:
    # Clusters of 2, none of which a TPC of one SM takes: nothing shows whose turn it is there.
    spec = dataclasses.replace(H200, sms_per_tpc=1, max_cluster=2)
    with pytest.raises(ValueError, match="no short launch tells the initial states of h200 apart"):
        tb.steer(StatefulGpu(spec), spec)


def test_what_no_state_explains_is_an_unstable_measurement() -> None:
    with pytest.raises(tb.UnstableMeasurement, match="no initial state of h200 explains"):
        tb.steer(Fixed(tb.predict(TELLS_APART, "h200")))


def test_a_gpu_that_does_not_move_on_is_an_unstable_measurement() -> None:
    with pytest.raises(tb.UnstableMeasurement, match=r"first_singleton=3.* not reached in 3 tries"):
        tb.steer(ModelGpu("h200"), "h200", InitialState(first_singleton=3))


def test_a_state_that_the_device_has_not_is_refused() -> None:
    with pytest.raises(ValueError, match=r"to: .*first_gpc=8.* not one of h200's initial_states"):
        tb.steer(StatefulGpu(), "h200", InitialState(first_gpc=8))
    with pytest.raises(TypeError, match="to: an InitialState is needed, got 3"):
        tb.Steered(StatefulGpu(), "h200", 3)  # type: ignore[arg-type]


def test_a_steered_campaign_agrees_from_one_state_and_one_that_is_not_does_not() -> None:
    def exact(gpu: StatefulGpu, steer: bool) -> tuple[int, int]:
        report = fuzz(
            gpu,
            "h200",
            max_examples=40,
            max_counterexamples=0,
            level="exact",
            seed=3,
            options=WITH_CLUSTERS,
            initial_state=STATES[9],
            steer=steer,
            progress=False,
        )
        return report.exact, report.launches

    agreeing, launches = exact(StatefulGpu(), steer=True)
    assert agreeing == launches
    agreeing, launches = exact(StatefulGpu(), steer=False)
    assert agreeing < launches


def test_a_steered_recording_repeats(tmp_path: object) -> None:
    traces = []
    for name, state in (("a", STATES[1]), ("b", STATES[30])):
        path = f"{tmp_path}/{name}.jsonl"
        gpu = StatefulGpu(state=state)
        record(gpu, path, 20, seed=4, options=WITH_CLUSTERS, steer=True, progress=False)
        traces.append(tb.load_traces(path))
    assert all(equal(a, b) for a, b in zip(*traces, strict=True))


@pytest.mark.parametrize("nothing", [[], "gpu", None])
def test_what_cannot_observe_is_not_steered(nothing: object) -> None:
    for steered in (steer, Steered):
        with pytest.raises(TypeError, match=r"gpu: an open Gpu, or an object with observe\(seq\)"):
            steered(nothing, "h200")  # type: ignore[operator]


def test_gpu_on_which_no_cluster_fits_is_told_apart_by_single_blocks_or_refused() -> None:
    each_alone = dataclasses.replace(
        H200, sms=8, sms_per_tpc=1, gpcs=((7,),), sm_preference=tuple(range(8)),
        coscheduled_sms=0, max_cluster=2,
    )  # fmt: skip
    with pytest.raises(ValueError, match="steer: no short launch tells the initial states"):
        steer(StatefulGpu(each_alone), each_alone)
