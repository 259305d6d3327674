"""Variants of real kernels, as recorded on GPUs."""

from __future__ import annotations

import pytest

from sm.variants import score


@pytest.mark.parametrize("gpu", score.GPUS)
def test_variants_wrote_what_the_original_did(gpu: str) -> None:
    rows = score.kernels(gpu)
    assert len(rows) > 100
    assert not [row["kernel"] for row in rows if score.wrong(row) or "failed" in row]
    variants = [v for row in rows for v in row["variants"]]
    assert all(v["registers"] == v["driver_registers"] for v in variants)
    assert all(v["resident"] == v["predicted"] for v in variants)


@pytest.mark.parametrize("gpu", score.GPUS)
def test_what_seems_faster_mostly_is(gpu: str) -> None:
    found = score.gains(gpu, score.is_other)
    seeming = [each for each in found if each.chosen.low > 1]
    assert sum(each.fresh.low > 1 for each in seeming) > 0.75 * len(seeming)
    # Most gain nothing that anyone would notice.
    assert sum(each.much for each in found) < 0.2 * len(found)


def test_a_wrong_output_counts_if_the_original_repeats_or_differs_by_far_less() -> None:
    same, near, far = (
        {"name": name, "same": name == "same", "differs": differs}
        for name, differs in (("same", 0.0), ("near", 2e-6), ("far", 2e-5))
    )
    row = {"variants": [same, same, near, far], "repeats": True, "own": 0.0}
    assert score.wrong(row) == ["near", "far"]
    assert score.wrong(row | {"repeats": False, "own": 1e-6}) == ["far"]
