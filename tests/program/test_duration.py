"""Durations: one, one per block, or drawn; the same seed draws the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tbsched.program.duration import Drawn
from tbsched.program.sequence import Launch

BLOCKS = 100_000
DRAWN = (
    Drawn("uniform", 2.0, spread=1.0),
    Drawn("normal", 2.0, spread=0.5),
    Drawn("lognormal", 2.0, spread=1.0),
    Drawn("exponential", 2.0),
)


def durations(duration: Any, blocks: int = BLOCKS) -> np.typing.NDArray[np.float64]:
    found = Launch(blocks, 32, 16, duration=duration).block_durations()
    assert found is not None
    assert found.shape == (blocks,)
    assert found.dtype == np.float64
    return found


def test_launch_that_is_held_has_no_durations() -> None:
    assert Launch(3, 32, 16).block_durations() is None


def test_one_number_is_for_every_block() -> None:
    assert durations(1, 3).tolist() == [1.0, 1.0, 1.0]


def test_tuple_has_a_number_for_each_block() -> None:
    assert durations((1, 2.5), 2).tolist() == [1.0, 2.5]
    for wrong in ((1.0,), (1.0, 2.0, 3.0), ()):
        with pytest.raises(ValueError, match=rf"duration: {len(wrong)} numbers for 2 blocks"):
            durations(wrong, 2)
    with pytest.raises(ValueError, match=r"Launch\.duration\[1\]: -1 is outside 0\.\.1e9 seconds"):
        durations((1, -1), 2)


@pytest.mark.parametrize("drawn", DRAWN, ids=lambda drawn: drawn.distribution)
def test_drawn_durations_have_the_mean_and_the_spread_and_repeat(drawn: Drawn) -> None:
    values = durations(drawn)
    spread = {"uniform": drawn.spread / np.sqrt(3), "exponential": 2.0}
    assert values.min() >= 0
    assert values.mean() == pytest.approx(2.0, rel=0.02)
    assert values.std() == pytest.approx(spread.get(drawn.distribution, drawn.spread), rel=0.05)
    assert (durations(drawn) == values).all()
    assert (durations(Drawn(drawn.distribution, 2.0, drawn.spread, seed=1)) != values).any()


def test_uniform_stays_within_its_spread() -> None:
    values = durations(Drawn("uniform", 2.0, spread=2.0))
    assert 0 <= values.min() < 0.01
    assert 3.99 < values.max() <= 4.0


def test_normal_below_zero_is_drawn_again() -> None:
    values = durations(Drawn("normal", 1.0, spread=2.0))
    assert values.min() > 0
    assert values.mean() > 1.5


@pytest.mark.parametrize("mean", [5e-324, 1e-200])
@pytest.mark.parametrize("distribution", [drawn.distribution for drawn in DRAWN])
def test_draws_of_the_least_mean_are_numbers(distribution: str, mean: float) -> None:
    spread = {"uniform": mean, "exponential": 0.0}.get(distribution, 1e9)
    values = durations(Drawn(distribution, mean, spread), 100)
    assert ((values >= 0) & (values <= 1e9)).all()


def test_durations_that_fall_and_a_long_last_one() -> None:
    assert durations(Drawn("falling", 2.0, spread=1.0), 5).tolist() == [3.0, 2.5, 2.0, 1.5, 1.0]
    assert durations(Drawn("last", 2.0, spread=3.0), 3).tolist() == [2.0, 2.0, 5.0]
    for distribution in ("falling", "last"):
        assert Drawn(distribution, 2.0, spread=1.0).draw(0).tolist() == []


def test_draw_beyond_the_limit_becomes_the_limit() -> None:
    assert durations(Drawn("exponential", 1e9)).max() == 1e9


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"distribution": "gamma"}, r"Drawn\.distribution: 'gamma' is not one of uniform, normal"),
        ({"mean": 0}, r"Drawn\.mean: 0\.0 must be more than 0"),
        ({"mean": 2e9}, r"Drawn\.mean: 2000000000\.0 is outside"),
        ({"spread": -1}, r"Drawn\.spread: -1 is outside"),
        ({"spread": 1.1}, r"Drawn\.spread: 1\.1 is more than 1\.0"),
        ({"distribution": "falling", "spread": 1.1}, r"Drawn\.spread: 1\.1 is more than 1\.0"),
        ({"distribution": "exponential", "spread": 0.1}, r"Drawn\.spread: 0\.1 is more than 0\.0"),
        ({"seed": -1}, r"Drawn\.seed: -1 is outside"),
    ],
)
def test_wrong_value_is_named(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Drawn(**{"distribution": "uniform", "mean": 1.0, **given})
