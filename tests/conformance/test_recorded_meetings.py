"""Groups of launches whose blocks wait for each other: they met, or hung, as the model says."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest

import tbsched as tb
from helpers import ROOT
from tbsched.traces.annotations import met_groups

FILES = sorted((ROOT / "tests" / "traces" / "meetings").glob("*.jsonl.xz"))
H200 = tb.device("h200")
EXACT = 150  # runs of which every block is looked at, from each latent state


@functools.cache
def runs(path: Path) -> tuple[tb.Trace, ...]:
    return tuple(tb.load_traces(path))


def met(trace: tb.Trace) -> bool:
    groups = met_groups(trace.extra)
    assert groups is not None
    ((_, found),) = groups
    return found


def all_placed(trace: tb.Trace, predicted: tb.Trace) -> bool:
    """Whether every block of the group that was recorded finds room in the prediction."""
    groups = met_groups(trace.extra)
    assert groups is not None
    ((group, _),) = groups
    finals = [predicted[number].final_smid for number in group]
    return all(smid is not None and bool((smid >= 0).all()) for smid in finals)


def wrong(path: Path, device: str) -> int:
    predictions = tb.predict_many([trace.sequence for trace in runs(path)], device)
    pairs = zip(runs(path), predictions, strict=True)
    return sum(met(trace) != all_placed(trace, predicted) for trace, predicted in pairs)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_group_meets_where_the_model_places_all_its_blocks(path: Path) -> None:
    assert len(runs(path)) >= 1000
    hangs = sum(not met(trace) for trace in runs(path))
    assert 0.4 < hangs / len(runs(path)) < 0.7
    assert wrong(path, "h200") == 0


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_block_is_where_the_model_puts_it_from_one_of_the_states(path: Path) -> None:
    traces = runs(path)[:EXACT]
    agree = np.zeros(EXACT, bool)
    for state in H200.initial_states():
        sequences = [trace.sequence for trace in traces]
        predictions = tb.predict_many(sequences, H200, initial_state=state)
        for number, (one, other) in enumerate(zip(traces, predictions, strict=True)):
            same = (np.array_equal(a.smid, b.smid) for a, b in zip(one, other, strict=True))
            agree[number] |= all(same)
    assert agree.all()


@pytest.mark.parametrize(
    "ablation",
    ["no-configuration", "clusters-in-halves", "no-processing-blocks", "no-cluster-slots"],
)
def test_the_runs_show_what_a_model_without_a_mechanism_gets_wrong(ablation: str) -> None:
    assert sum(wrong(path, f"h200-{ablation}") for path in FILES) >= 10
