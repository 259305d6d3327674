"""The H200 against sequences that were only scored while the model was made, never looked at."""

from __future__ import annotations

from pathlib import Path

import pytest

from tbsched.comparison.verify import verify
from tbsched.traces.files import load_traces

HOLDOUT = Path(__file__).parents[1] / "traces" / "h200-holdout"


@pytest.mark.parametrize("name", ["plain", "carve", "long", "cluster", "mixed", "local"])
def test_every_block_of_every_launch_is_where_the_h200_put_it(name: str) -> None:
    score = verify(load_traces(HOLDOUT / f"{name}.jsonl.xz"), "h200")
    assert not score.skipped
    assert score.occupancy == score.launches
    assert score.exact == score.launches


def test_campaign_of_fifty_thousand_launches_agrees_in_every_block() -> None:
    # A tenth of it here; `tbsched verify` on the file takes a minute.
    score = verify(load_traces(HOLDOUT / "big.jsonl.xz")[::10], "h200")
    assert score.launches > 5000
    assert score.exact == score.launches
