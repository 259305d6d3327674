"""What stands in for the GPU in a campaign."""

from __future__ import annotations

import dataclasses
import importlib
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import find, settings

from helpers import launch, run
from tbsched.campaigns.campaign import fuzz
from tbsched.campaigns.oracles import (
    ModelGpu,
    OracleLike,
    RecordedOracle,
    Repeated,
    open_oracle,
    prefix,
)
from tbsched.campaigns.results import Report
from tbsched.campaigns.space.draws import Draws
from tbsched.campaigns.space.options import SequenceOptions
from tbsched.comparison.compare import compare
from tbsched.errors import NoGpuError
from tbsched.hardware.catalogue import device
from tbsched.prediction.predict import predict
from tbsched.program.sequence import Graph, Launch, Release, Sequence
from tbsched.strategies import prefixes
from tbsched.traces.placement import DeviceInfo, Placement
from tbsched.traces.trace import Trace

# By this path: the name tbsched.observe is a function, too.
OBSERVE = importlib.import_module("tbsched.launcher.observe")
SMALL = run("rtx3090", launch(1))
LARGE = run("rtx3090", launch(82), launch(82, warps=4), Release(0), launch(3))


def test_a_model_plays_the_gpu() -> None:
    oracle = ModelGpu("rtx3090", "round_robin")
    assert compare(
        oracle.observe(LARGE.sequence), predict(LARGE.sequence, "rtx3090", "round_robin")
    ).exact


def test_a_model_takes_tables_and_places_nothing_behind_a_launch_that_does_not_fit() -> None:
    drawn = next(Draws(device("h200"), SequenceOptions(), 7).tables()).part(0, 50)
    oracle = ModelGpu("h200", initial_state=device("h200").initial_states()[3])
    (seen,) = oracle.observe_tables([drawn.event_table()])
    full = 0
    for number, smid in enumerate(seen):
        placed = [each.smid for each in oracle.observe(drawn.draw(number).sequence)]
        refused = next((k for k, sms in enumerate(placed) if sms.min() < 0), len(placed))
        known = sum(map(len, placed[: refused + 1]))
        assert smid[:known].tolist() == np.concatenate(placed)[:known].tolist()
        assert (smid[known:] == -1).all()
        assert len(smid) == sum(map(len, placed))
        full += known < len(smid)
    assert full > 10


@pytest.mark.parametrize(
    "meant",
    ["rtx3090", "rtx3090/ampere", device("rtx3090"), ("rtx3090", "ampere"), ModelGpu("rtx3090")],
)
def test_an_oracle_is_named_in_several_ways(meant: object) -> None:
    with open_oracle(meant) as oracle:  # type: ignore[arg-type]
        assert compare(oracle.observe(LARGE.sequence), LARGE).exact


def test_a_recorded_prefix_has_all_nodes_of_a_graph() -> None:
    node = Launch(1, 32, 32, duration=1e-6)
    sequence = Sequence([Graph([node, node]).launch(), node])
    placement = Placement(np.zeros(1, np.int32))
    oracle = RecordedOracle([Trace(sequence, DeviceInfo("one", 1), (placement,) * 3)])
    assert prefix(sequence, 1) == prefix(sequence, 2) == sequence[:1]
    assert len(oracle.observe(sequence[:1])) == 2


@pytest.mark.parametrize("nonsense", [7, None, object()])
def test_what_cannot_observe_is_no_oracle(nonsense: object) -> None:
    with pytest.raises(TypeError, match="oracle"), open_oracle(nonsense):  # type: ignore[arg-type]
        pass


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ("rtx3090/algorithm", "'rtx3090/algorithm' has no policy .* there are .*did you mean"),
        ("rtx/ampere", r"neither 'gpu', a device, nor .*\(rtx3090/algorithm1\): device: 'rtx' is"),
        ("model", "'model' is neither 'gpu', a device, nor a device with a policy"),
    ],
)
def test_an_error_says_what_is_wrong_of_device_and_policy(named: str, message: str) -> None:
    with pytest.raises(ValueError, match=message), open_oracle(named):
        pass


def test_a_campaign_takes_device_and_policy_as_the_command_line() -> None:
    def found(oracle: OracleLike) -> Report:
        return fuzz(oracle, "rtx3090", "ampere", max_examples=50, seed=1, progress=False)

    named, given = found("rtx3090/first_fit"), found(("rtx3090", "first_fit"))
    assert named.counterexamples
    assert [one.code for one in named.counterexamples] == [
        one.code for one in given.counterexamples
    ]


def test_a_misspelt_oracle_names_the_devices() -> None:
    with pytest.raises(ValueError, match="h200"), open_oracle("h20"):
        pass


def test_the_gpu_is_opened_and_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = []

    class Gpu:
        def __init__(self, index: int) -> None:
            self.index = index

        def __enter__(self) -> Gpu:
            return self

        def __exit__(self, *_: object) -> None:
            closed.append(self.index)

        def observe(self, seq: Sequence) -> Trace:
            return predict(seq, "rtx3090")

    monkeypatch.setattr(OBSERVE, "Gpu", Gpu)
    with open_oracle("gpu") as oracle:
        assert compare(oracle.observe(SMALL.sequence), SMALL).exact
        assert not closed
    assert closed == [0]


def test_no_gpu_is_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(index: int) -> None:
        raise NoGpuError("looked for libcuda.so.1")

    monkeypatch.setattr(OBSERVE, "Gpu", none)
    with pytest.raises(NoGpuError, match="libcuda"), open_oracle("gpu"):
        pass


# -- recorded traces ------------------------------------------------------------------------------


def test_a_recorded_oracle_knows_every_prefix_that_ends_with_a_launch() -> None:
    oracle = RecordedOracle([LARGE])
    for launches in (1, 2, 3):
        cut = prefix(LARGE.sequence, launches)
        observed = oracle.observe(cut)
        assert len(observed) == launches
        for p, q in zip(observed, LARGE.placements[:launches], strict=True):
            assert np.array_equal(p.smid, q.smid)
            assert p.final_smid is None  # later events decide it


def test_a_prefix_of_an_unknown_event_is_refused() -> None:
    with pytest.raises(AttributeError, match="launches"):
        prefix(SimpleNamespace(events=("a copy",)), 1)  # type: ignore[arg-type]


def test_a_recorded_oracle_refuses_what_nobody_recorded() -> None:
    with pytest.raises(ValueError, match="recorded"):
        RecordedOracle([LARGE]).observe(Sequence([launch(5)]))


def test_recorded_sequences_shrink_to_the_shortest_prefix_of_the_smallest_trace() -> None:
    oracle = RecordedOracle([LARGE, SMALL])
    repeatable = settings(database=None, derandomize=True, deadline=None)
    strategy = prefixes(oracle.predictable(device("rtx3090")))
    assert find(strategy, lambda _: True, settings=repeatable) == SMALL.sequence
    two = find(strategy, lambda sequence: len(sequence.launches) >= 2, settings=repeatable)
    assert two == prefix(LARGE.sequence, 2)


def test_recorded_traces_that_are_unstable_or_cannot_be_predicted_are_left_out() -> None:
    unstable = dataclasses.replace(LARGE, extra={"unstable": True})
    with pytest.raises(ValueError, match="stable"):
        RecordedOracle([unstable])
    clusters = run("a100", launch(2))
    clusters = dataclasses.replace(
        clusters, sequence=Sequence([dataclasses.replace(launch(2), cluster=2)])
    )
    with pytest.raises(ValueError, match="none of the sequences"):
        RecordedOracle([clusters]).predictable(device("a100"))


# -- repeats --------------------------------------------------------------------------------------


class Wavering:
    """Places blocks by another policy at every other observation."""

    def __init__(self) -> None:
        self.calls = 0

    def observe(self, seq: Sequence) -> Trace:
        self.calls += 1
        return predict(seq, "rtx3090", "first_fit" if self.calls % 2 else "ampere")


def test_an_observation_that_does_not_repeat_is_marked_unstable() -> None:
    assert "launch 0" in Repeated(Wavering(), 2).observe(LARGE.sequence).extra["unstable"]


def test_an_observation_that_repeats_is_not() -> None:
    assert not Repeated(ModelGpu("rtx3090"), 3).observe(LARGE.sequence).extra
    assert not Repeated(Wavering(), 1).observe(LARGE.sequence).extra


def test_fewer_than_one_repeat_is_refused() -> None:
    with pytest.raises(ValueError, match="repeats: 0"):
        Repeated(Wavering(), 0)
