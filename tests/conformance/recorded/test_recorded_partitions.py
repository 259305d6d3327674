"""Launches in partitions, as an H200 and an H100 ran them, and what their driver refused.

Sequences end at the first release after a launch that could not be placed whole.
"""

from __future__ import annotations

import functools
import json
from typing import Any

import pytest

from conformance.recorded.recordings import Recording
from helpers import ROOT
from tbsched.comparison.verify import best_diff
from tbsched.hardware.catalogue import device
from tbsched.hardware.partitions import split_sms
from tbsched.prediction.predict import predict
from tbsched.program.partition import Partition
from tbsched.program.sequence import Launch, Sequence
from tbsched.traces.files import load_traces
from tbsched.traces.trace import Trace

FOLDER = ROOT / "tests" / "traces" / "partition-launches"
H200 = device("h200")
# In the first moments of their process a second block per SM was numbered a few turns early.
EARLY = ("part0_4", "part1_4", "part1_7", "part1_12", "part3_1", "part4_0")
# The launch after a release came while the blocks were still leaving.
RACE = ("part2_212",)

both = pytest.mark.parametrize("gpu", ["h100", "h200"])


@functools.cache
def launches_of(gpu: str) -> tuple[Trace, ...]:
    return tuple(load_traces(FOLDER / f"{gpu}.jsonl.xz"))


@both
def test_one_initial_state_explains_every_block_of_all_partitions(gpu: str) -> None:
    traces = launches_of(gpu)
    assert sum(len(trace.placements) for trace in traces) == 3607
    assert {*Recording.of(traces).unexplained()} == {*EARLY, *RACE}


@both
def test_blocks_that_were_numbered_early_are_on_the_right_sms(gpu: str) -> None:
    for trace in launches_of(gpu):
        if trace.id in EARLY:
            assert best_diff(trace, H200).agrees("occupancy")


def test_where_launches_wait_other_rules_of_the_line_explain_less() -> None:
    every = launches_of("h200")
    waiting = Recording.of(trace for trace in every if trace.id.startswith("part4_"))
    found = {
        rule: len(waiting.unexplained(f"h200{rule}"))
        for rule in ("", "-one-line", "-no-head-of-line")
    }
    assert found == {"": 1, "-one-line": 91, "-no-head-of-line": 19}


@pytest.mark.parametrize("row", json.loads((FOLDER / "clusters.json").read_text("utf-8")), ids=str)
def test_clusters_are_refused_where_the_driver_refuses_them(row: dict[str, Any]) -> None:
    number, taken, refused = (row.pop(key) for key in ("group", "taken", "refused"))
    groups, rest = split_sms(H200, **row)
    partition: Partition = rest if number is None else groups[number]
    for cluster in taken:
        predict(Sequence([Launch(16, 32, 16, cluster=cluster, partition=partition)]), H200)
    for cluster in refused:
        launch = Launch(16, 32, 16, cluster=cluster, partition=partition)
        with pytest.raises(ValueError, match=r"cluster: this partition of h200 takes up to \d+ "):
            predict(Sequence([launch]), H200)


@both
def test_large_clusters_in_groups_of_small_pieces_are_placed_as_everywhere(gpu: str) -> None:
    traces = list(load_traces(FOLDER / f"parts-{gpu}.jsonl.xz"))
    assert len(traces) == 80
    assert Recording.of(traces).unexplained() == []


@both
def test_clusters_use_the_tpcs_of_no_gpc_in_partitions_alone(gpu: str) -> None:
    recording = Recording.of(load_traces(FOLDER.with_name("ways") / f"clusters-{gpu}.jsonl.xz"))
    in_partitions = [name for name in recording.ids if not name.startswith("whole_")]
    assert len(in_partitions) == {"h200": 88, "h100": 2}[gpu]
    assert recording.unexplained() == []
    assert recording.unexplained("h200-partition-clusters-in-gpcs") == in_partitions


def test_cooperative_launches_have_ranks_and_numbers_of_their_own() -> None:
    recording = Recording.of(load_traces(FOLDER.with_name("ways") / "cooperative-h200.jsonl.xz"))
    assert len(recording.ids) == 421
    assert recording.unexplained() == []
