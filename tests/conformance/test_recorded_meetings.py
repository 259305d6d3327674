"""Groups of launches whose blocks wait for each other: they met, or hung, as the model says."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest

import tbsched as tb
from gpu.together.groups import STEP
from gpu.together.record import hang, is_race, shown
from helpers import ROOT
from tbsched.traces.annotations import met_groups

FILES = sorted((ROOT / "tests" / "traces" / "meetings").glob("*.jsonl.xz"))
H200 = tb.device("h200")
EXACT = 100  # runs of which every block is looked at, from each latent state


@functools.cache
def runs(path: Path) -> tuple[tb.Trace, ...]:
    return tuple(tb.load_traces(path))


def met(trace: tb.Trace) -> tuple[tuple[int, ...], bool]:
    """The launches of the group, and whether they met."""
    groups = met_groups(trace.extra)
    assert groups is not None
    (group,) = groups
    return group


def predict(trace: tb.Trace, device: str, state: tb.InitialState | None = None) -> tb.Trace:
    timed = trace.sequence.timed
    times = [STEP * number for number in range(len(trace))] if timed else None
    return tb.predict(trace.sequence, device, initial_state=state, issue_times=times)


def alike(trace: tb.Trace, predicted: tb.Trace) -> bool:
    pairs = zip(shown(trace), shown(predicted), strict=True)
    return all(np.array_equal(one, other) for one, other in pairs)


def disagrees(trace: tb.Trace, device: str) -> bool:
    group, found = met(trace)
    return hang(predict(trace, device), group) == found


def wrong(path: Path) -> list[str]:
    """What no latent state explains, but for races."""
    return [
        trace.id
        for trace in runs(path)
        if disagrees(trace, "h200")
        and not is_race(predict(trace, "h200"))
        and not any(alike(trace, predict(trace, "h200", state)) for state in H200.initial_states())
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_group_meets_where_the_model_places_all_its_blocks(path: Path) -> None:
    assert len(runs(path)) >= 1000
    hangs = sum(not met(trace)[1] for trace in runs(path))
    assert 0.4 < hangs / len(runs(path)) < 0.7
    assert wrong(path) == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_block_is_where_the_model_puts_it_from_one_of_the_states(path: Path) -> None:
    traces = [trace for trace in runs(path)[:EXACT] if not is_race(predict(trace, "h200"))]
    states = H200.initial_states()
    assert len(traces) > 0.9 * EXACT
    for trace in traces:
        assert any(alike(trace, predict(trace, "h200", state)) for state in states), trace.id


@pytest.mark.parametrize(
    "ablation",
    ["no-configuration", "clusters-in-halves", "no-processing-blocks", "no-cluster-slots"],
)
def test_the_runs_show_what_a_model_without_a_mechanism_gets_wrong(ablation: str) -> None:
    assert sum(disagrees(trace, f"h200-{ablation}") for trace in runs(FILES[0])) >= 10
