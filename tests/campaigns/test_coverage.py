"""What a default campaign draws, and what its report says that it covered."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tbsched import _core
from tbsched.campaigns import ModelGpu, Report, SequenceOptions, fuzz, record
from tbsched.campaigns.judge import Judge
from tbsched.campaigns.space.draws import Draws
from tbsched.campaigns.space.options import DRAWN
from tbsched.cli.options import Drawn
from tbsched.hardware.catalogue import ablations, device, shows_in, unablated
from tbsched.hardware.partitions import split_sms
from tbsched.prediction.tables import predict_until_refused
from tbsched.program.sequence import Launch, Release, Sequence
from tbsched.traces.files import load_traces
from tbsched.traces.trace import Trace

RIGHT = "rtx3090"


def campaign(oracle: Any, predictor: str, policy: str | None = None, **arguments: Any) -> Report:
    settings = {"seed": 1, "max_examples": 200, "progress": False, **arguments}
    return fuzz(oracle, predictor, policy, **settings)


def test_a_default_campaign_draws_every_kind_that_the_device_has() -> None:
    drawn: list[Launch] = []

    class Seen(ModelGpu):
        def observe(self, seq: Sequence, /) -> Trace:
            drawn.extend(seq.launches)
            return super().observe(seq)

    campaign(Seen("h200"), "h200", max_examples=300, draw="native")
    h200 = device("h200")
    carveouts = {launch.carveout for launch in drawn}
    assert carveouts >= {None, 0, 100}
    assert len(carveouts) > len(h200.shared_memory_configurations)
    assert {launch.cluster for launch in drawn} >= {1, 2, 4, 8, 16}
    assert {launch.local_memory for launch in drawn} == {0, 4096, 16384}
    assert {launch.priority for launch in drawn} == {0, -1, -2, -3, -4, -5}
    everything = SequenceOptions.everything(h200)
    assert {launch.partition for launch in drawn} == {*everything.partitions}
    assert any(launch.cooperative and launch.partition is not None for launch in drawn)
    assert any(launch.cooperative and launch.cluster > 1 for launch in drawn)
    other = SequenceOptions.everything(device(RIGHT))
    assert (other.clusters, other.partitions) == ((1,), (None,))
    assert other.priorities == (0, -1, -2, -3, -4, -5)


@pytest.mark.parametrize("base", ["h200", "rtx3090"])
def test_what_shows_in_some_launches_alone_shows_in_no_others(base: str) -> None:
    """Campaigns do not ask about it there."""
    spec = device(base)
    everything, start = SequenceOptions.everything(spec), spec.initial_states()[0]
    options = {
        "cluster": everything.without(["clusters"]),
        "partition": everything.without(["partitions"]),
        "duration": everything,  # a table has none
    }
    for way, others in options.items():
        table = next(Draws(spec, others, seed=1).tables()).part(0, 100).event_table()
        right = predict_until_refused(table, spec, spec.policy, start, 1)[1]
        needing = [name for name in ablations() if way in shows_in(name)]
        assert needing
        for name in needing:
            other = device(f"{base}-{name}")
            found = predict_until_refused(table, other, spec.policy, start, 1)[1]
            assert all(map(np.array_equal, right, found)), name


def test_fields_of_the_options_can_be_left_out() -> None:
    everything = SequenceOptions.everything(device("h200"))
    assert everything.without(DRAWN) == SequenceOptions()
    ways = campaign("h200", "h200", max_examples=100, without=["partitions", "clusters"])
    assert set(ways.coverage.ways) == {"cooperative", "priority"}
    for without, words in (
        (["partition"], "without: 'partition' is not one of carveouts, .*mean 'partitions'"),
        ("partitions", "without: a list of names is needed, got 'partitions'"),
    ):
        with pytest.raises((TypeError, ValueError), match=words):
            campaign("h200", "h200", without=without)
    with pytest.raises(ValueError, match=r"without: .* does not go with options"):
        campaign("h200", "h200", without=DRAWN, options=everything)
    assert [*Drawn] == [*DRAWN]


def test_a_policy_that_places_no_clusters_is_given_none() -> None:
    (found,) = campaign("h200", "h200", "first_fit").counterexamples
    assert found.shrunk


def test_an_ablation_is_given_what_its_device_can_run() -> None:
    assert unablated(device("h200-no-warp-skip")) == device("h200")
    mine = dataclasses.replace(device("h200-no-warp-skip"), warps_per_sm=32)
    assert unablated(mine) is mine
    small = ModelGpu("rtx3090")

    class Gpu:
        def observe(self, seq: Sequence) -> Trace:
            device(RIGHT).check(seq)
            return small.observe(seq)

    campaign(Gpu(), "rtx3090-no-processing-blocks", max_counterexamples=0)


def test_the_report_says_what_bound_and_which_mechanisms_decided_nothing() -> None:
    plain = campaign(
        "h200", "h200", options=SequenceOptions(), max_examples=400, past_refusal=False
    ).coverage
    assert sum(plain.refused.values()) > 100
    assert {"warps", "registers", "slots"} <= set(plain.refused) < {*_core.CAUSES}
    assert not plain.ways
    idle = {"no-local-memory", "no-head-of-line", "clusters-anywhere", "no-configuration"}
    assert {name for name, times in plain.decided.items() if times == 0} >= idle
    assert plain.decided["free-warps"] > 0
    report = campaign("h200", "h200", max_examples=1500)
    assert not idle & {name for name, times in report.coverage.decided.items() if times == 0}
    ways = {"partition", "cooperative", "cluster", "priority"}
    assert all(report.coverage.ways[way] > report.launches // 50 for way in ways)
    assert re.search(r"launches with: .*\bpartition \d", str(report))
    assert report.coverage.refused["cooperative"] > 0
    assert "launches that did not fit, by what refused them: " in str(report)
    assert "would have shown: no-warp-skip, free-warps, " in str(report)


def _coverage_of(traces: list[Trace]) -> tuple[Counter[str], Counter[str]]:
    """Counts what launches are, and what refused them, one by one."""
    ways: Counter[str] = Counter()
    for launch in (launch for trace in traces for launch in trace.sequence.launches):
        ways.update(name for name in ("priority", "cooperative") if getattr(launch, name))
    return ways, Counter(item.limiter for trace in traces for item in trace if item.limiter)


@pytest.mark.parametrize("draw", ["native", "hypothesis"])
def test_each_launch_of_a_recording_counts_in_its_coverage(tmp_path: Path, draw: str) -> None:
    place = tmp_path / "recorded.jsonl"
    report = record(RIGHT, place, 200, predictor=RIGHT, seed=7, draw=draw, progress=False)
    ways, refused = _coverage_of(load_traces(place))
    assert min(ways["priority"], ways["cooperative"], refused["warps"]) > 9
    assert (report.coverage.ways, report.coverage.refused) == (ways, refused)


def test_no_launch_counts_twice_where_tables_are_repeated_uncut() -> None:
    found = campaign(RIGHT, RIGHT, max_examples=3000, draw="native")
    drawn: list[Trace] = []

    class Seen(ModelGpu):
        def observe(self, seq: Sequence, /) -> Trace:
            drawn.append(super().observe(seq))
            return drawn[-1]

    one_by_one = campaign(Seen(RIGHT), RIGHT, max_examples=3000, draw="native")
    assert found.launches == one_by_one.launches
    assert (found.coverage.ways, found.coverage.refused) == _coverage_of(drawn)


@pytest.mark.parametrize("order", ["fifo", "one_line", "pass_by"])
def test_tables_end_before_the_order_of_what_waits_shows(order: str) -> None:
    spec = device("h200")
    table = next(Draws(spec, SequenceOptions.everything(spec), 1).tables()).event_table()
    state = spec.initial_states()[0]
    one, other = (
        predict_until_refused(table, each, spec.policy, state, 1)
        for each in (spec, dataclasses.replace(spec, launch_order=order))
    )
    assert sum(limiter is not None for limiter in one[2]) > 50
    assert one[2] == other[2]
    assert all(map(np.array_equal, one[1], other[1]))


@pytest.mark.parametrize("draw", ["native", "hypothesis"])
def test_what_shows_behind_a_launch_that_does_not_fit_is_seen_and_shrunk_there(draw: str) -> None:
    (found,) = campaign(
        RIGHT, "rtx3090-no-head-of-line", max_examples=1000, draw=draw
    ).counterexamples
    assert len(found.sequence) == 2
    assert not campaign(
        RIGHT, "rtx3090-no-head-of-line", past_refusal=False, draw=draw
    ).disagreements


def test_what_waits_in_a_partition_is_not_cut_at_a_release_on_other_sms() -> None:
    judge = Judge(ModelGpu("h200"), device("h200"), None, None, "occupancy", None, True)
    (here, there), _ = split_sms("h200", 64)
    full = Launch(128, 1024, 32, partition=here)
    other = Launch(64, 1024, 32, partition=there)
    two_wait = [full, other, full, full]

    def kept(*events: Launch | Release, whole: bool = True) -> int:
        return len(judge.predict(Sequence([*two_wait, *events]), whole=whole).sequence.launches)

    assert kept(Release(1), other, Release(0), other) == 5
    assert kept(Release(0), other) == 4
    assert kept(Release(2), other) == 4  # it waits itself
    # These wait for all SMs.
    assert kept(Launch(400, 1024, 32), Release(1), other) == 5
    assert kept(Launch(8, 64, 32, 0, 4096, partition=there), Release(1), other) == 5
    assert kept(Release(1), other, whole=False) == 3


def test_fragments_of_shared_memory_are_drawn_often_enough() -> None:
    for seed in (1, 2, 3):
        report = campaign(
            "h200", "h200-pooled-shared-memory", seed=seed, options=SequenceOptions(),
            max_examples=3000, shrink_seconds=0,
        )  # fmt: skip
        assert report.counterexamples, seed


def test_the_latent_state_of_a_gpu_is_no_mechanism() -> None:
    """What held sequences cannot show is not shown by a GPU that starts elsewhere, either."""
    gpu = ModelGpu("h200", initial_state=device("h200").initial_states()[3])
    report = campaign(gpu, "h200", level="exact", max_examples=600, draw="hypothesis")
    assert not report.counterexamples
    assert report.coverage.decided["practised-hosts"] == 0
    assert report.coverage.decided["free-warps"] > 0
