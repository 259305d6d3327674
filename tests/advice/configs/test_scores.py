"""Advice is scored on recorded times of real kernels."""

from __future__ import annotations

import pytest

from advice.configs import score

RECORDED = [gpu for gpu in score.GPUS if (score.HERE / f"{gpu}.jsonl.xz").exists()]


@pytest.mark.parametrize("gpu", RECORDED)
def test_the_advised_configuration_is_near_the_best(gpu: str) -> None:
    """On the kernels that no rule was made with."""
    kernels = [each for each in score.timed(gpu) if each.real.held_out]
    assert len(kernels) >= 50
    advised = score.scored(kernels, score.advised)
    assert advised["kernels"] == len(kernels)
    assert advised["median"] <= score.NEAR
    for name in ("always 256 threads", "the driver's suggestion", "any"):
        assert advised["mean"] < score.scored(kernels, score.CHOICES[name])["mean"], name


@pytest.mark.parametrize("gpu", RECORDED)
def test_each_rule_is_scored_on_its_own(gpu: str) -> None:
    kernels = [each for each in score.timed(gpu) if each.real.held_out]
    rows = {row["rule"]: row for row in score.rule_scores(kernels)}
    assert rows["warps for dependences"]["right"] > 0.6
    # Hopper refutes it: the configurations that it is for are the slower ones.
    assert rows["T_b"]["right"] < 0.4
    assert score.scored(kernels, score.CHOICES["S_lc, the thesis's filter"])["kernels"] == 0


def test_kernels_are_split_by_their_names() -> None:
    assert sum(real.held_out for real in score.KERNELS) == 74
    assert len({real.name for real in score.KERNELS}) == len(score.KERNELS)
