"""The turns after which a partial last level is found are those of the recordings.

A sequence ``partial2_k`` is one launch of nine whole levels and k + 1 blocks. It is explained by no
other number of turns for a search that ends at its last SM:
docs/explanation/how-hopper-was-dissected.md.
"""

from __future__ import annotations

import functools

import pytest

from helpers import TRACES
from tbsched.comparison.verify import best_diff
from tbsched.hardware.catalogue import device
from tbsched.traces.files import load_traces
from tbsched.traces.trace import Trace

H200 = device("h200")


@functools.cache
def levels() -> dict[str, Trace]:
    return {trace.id: trace for trace in load_traces(TRACES / "levels.jsonl.xz")}


@pytest.mark.parametrize("looked_at", range(8))
def test_search_that_ends_outside_the_gpcs(looked_at: int) -> None:
    assert H200.sm_preference[looked_at] in range(124, 132)
    agrees(looked_at)


@pytest.mark.parametrize("looked_at", range(8, 16))
def test_search_that_ends_at_one_of_the_first_sms_of_the_gpcs(looked_at: int) -> None:
    assert H200.sm_preference[looked_at] < 124
    agrees(looked_at)


def agrees(looked_at: int) -> None:
    trace = levels()[f"partial2_{looked_at}"]
    (only,) = trace.sequence.launches
    assert only.blocks == 9 * H200.sms + looked_at + 1
    diff = best_diff(trace, H200)
    assert diff.exact, str(diff)
