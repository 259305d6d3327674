"""The H200 against sequences that were only scored while the model was made, never looked at."""

from __future__ import annotations

import pytest

from helpers import TRACES, explained
from tbsched.hardware.catalogue import device
from tbsched.traces.files import load_traces

HOLDOUT = TRACES.with_name("h200-holdout")
H200 = device("h200")


@pytest.mark.parametrize(
    "name", ["plain", "carve", "long", "cluster", "mixed", "local", "balanced"]
)
def test_every_block_of_every_launch_is_where_the_h200_put_it(name: str) -> None:
    for trace in load_traces(HOLDOUT / f"{name}.jsonl.xz"):
        assert explained(trace, H200), trace.id


def test_campaign_of_fifty_thousand_launches_agrees_in_every_block() -> None:
    launches = 0
    for trace in load_traces(HOLDOUT / "big.jsonl.xz"):
        assert explained(trace, H200), trace.id
        launches += len(trace.placements)
    assert launches > 50_000
