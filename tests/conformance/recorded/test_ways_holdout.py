"""Every way to launch, on an H200 and an H100, with seeds that were used once: only scored.

But for ``graphs-h200``: latencies of graphs were found in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pytest

from conformance.recorded.recordings import Recording
from helpers import ROOT
from tbsched.comparison.times import TimeDiff, compare_times
from tbsched.prediction.predict import predict, predict_as_recorded
from tbsched.traces.files import load_traces
from tbsched.traces.placement import Placement
from tbsched.traces.trace import Trace

HOLDOUT = ROOT / "tests" / "traces" / "ways-holdout"

gpus = pytest.mark.parametrize("gpu", ["h100", "h200"])


def traces_of(name: str, gpu: str) -> list[Trace]:
    return load_traces(HOLDOUT / f"{name}-{gpu}.jsonl.xz")


@gpus
def test_every_block_in_partitions_and_beside_them_is_where_the_gpu_put_it(gpu: str) -> None:
    traces = traces_of("held", gpu)
    launches = [launch for trace in traces for launch in trace.sequence.launches]
    assert len(launches) > 10_000
    assert sum(launch.partition is not None for launch in launches) > 2_500
    assert sum(launch.cluster > 1 for launch in launches) > 2_500
    assert len({launch.carveout for launch in launches}) > 5
    assert len({launch.priority for launch in launches}) == 6
    assert Recording.of(traces).unexplained(gpu) == []


@gpus
def test_cooperative_launches_are_placed_as_predicted(gpu: str) -> None:
    traces = traces_of("cooperative", gpu)
    launches = [launch for trace in traces for launch in trace.sequence.launches]
    assert sum(launch.cooperative for launch in launches) > 200
    assert Recording.of(traces).unexplained(gpu) == []


@dataclass(frozen=True)
class Score:
    """One run of each program against the model, and another run of the GPU against it."""

    model: list[TimeDiff] = field(default_factory=list)
    itself: list[TimeDiff] = field(default_factory=list)
    in_their_blocks: list[bool] = field(default_factory=list)

    @classmethod
    def of(cls, runs: Iterator[tuple[Trace, Trace]], gpu: str) -> Score:
        score = cls()
        for first, again in runs:
            predicted = predict_as_recorded(first, gpu)
            score.model.append(compare_times(predicted, first))
            score.itself.append(compare_times(again, first))
            score.in_their_blocks.extend(
                alike(one, model)
                for one, other, model in zip(first, again, predicted, strict=True)
                if alike(one, other)
            )
        return score


def alike(a: Placement, b: Placement) -> bool:
    """As many blocks on each SM."""
    return np.array_equal(np.sort(a.smid), np.sort(b.smid))


def pairs(diffs: list[TimeDiff]) -> float:
    return sum(d.pairs_agreeing for d in diffs) / sum(d.pairs for d in diffs)


def starts(diffs: list[TimeDiff]) -> float:
    return sum(d.starts_agreeing for d in diffs) / sum(d.blocks for d in diffs)


def score_of(name: str, gpu: str) -> Score:
    traces = iter(traces_of(name, gpu))
    return Score.of(zip(traces, traces, strict=True), gpu)


# Least shares: of pairs; of launches with their blocks on each SM, where two runs of the GPU agree;
# and how many fewer starts are within the tolerance than in another run of the GPU.
LEAST = {
    ("programs", "h100"): (0.995, 0.97, 0.0),
    ("graphs", "h100"): (0.99, 0.93, 0.0),
    ("graphs", "h200"): (0.99, 0.94, 0.0),
    ("hosts", "h100"): (0.975, 0.9, 0.0),
    ("hosts", "h200"): (0.98, 0.9, 0.0),
}


@pytest.mark.parametrize(("name", "gpu"), LEAST)
def test_programs_run_as_predicted(name: str, gpu: str) -> None:
    score = score_of(name, gpu)
    least_pairs, least_in_blocks, fewer_starts = LEAST[name, gpu]
    assert len(score.model) >= 60
    assert pairs(score.model) > least_pairs
    assert len(score.in_their_blocks) > 300
    assert np.mean(score.in_their_blocks) > least_in_blocks
    assert starts(score.model) > starts(score.itself) - fewer_starts


@gpus
def test_hosts_are_predicted_from_the_gaps_between_their_calls(gpu: str) -> None:
    """Who overlaps with whom, and what starts when: nearer to a run of the GPU than another run."""
    traces = traces_of("hosts", gpu)
    firsts = [
        compare_times(predict(first.sequence, gpu, host=first.host_gaps), first)
        for first in traces[::2]
    ]
    again = [compare_times(b, a) for a, b in zip(traces[::2], traces[1::2], strict=True)]
    assert len(firsts) == 300
    assert pairs(firsts) > pairs(again)
    assert starts(firsts) > starts(again)
