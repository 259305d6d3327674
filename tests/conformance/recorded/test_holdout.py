"""The H200 against sequences that were only scored while the model was made, never looked at."""

from __future__ import annotations

import pytest

from conformance.recorded.recordings import HOLDOUT, scored_only


@pytest.mark.parametrize(
    "name", ["plain", "carve", "long", "cluster", "mixed", "local", "balanced"]
)
def test_every_block_of_every_launch_is_where_the_h200_put_it(name: str) -> None:
    assert scored_only(HOLDOUT / f"{name}.jsonl.xz").unexplained() == []


def test_campaign_of_fifty_thousand_launches_agrees_in_every_block() -> None:
    campaign = scored_only(HOLDOUT / "big.jsonl.xz")
    assert campaign.unexplained() == []
    assert len(campaign.table.launch_blocks) > 50_000
