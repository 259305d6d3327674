"""Durations of blocks that are drawn from a distribution."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tbsched.errors import did_you_mean, shown
from tbsched.program.arrays import Float64Array
from tbsched.program.checks import MAX_SECONDS, integer, seconds


@dataclass(frozen=True, slots=True)
class Drawn:
    """Durations that are drawn per block from a distribution.

    Equal seeds draw equal durations (NumPy's ``default_rng(seed)``). A draw above 1e9 seconds
    becomes 1e9 seconds.

    Attributes:
        distribution: ``uniform`` (mean - spread to mean + spread), ``normal`` (spread is the
            standard deviation; draws below 0 are drawn again, which raises the mean),
            ``lognormal`` (spread is the standard deviation of the durations themselves, not of
            their logarithms) or ``exponential`` (spread must be 0). Two draw nothing: ``falling``
            (evenly from mean + spread, of the first block, to mean - spread, of the last one) and
            ``last`` (mean, and mean + spread of the last block).
        mean: seconds, more than 0.
        spread: seconds.
        seed: 0 to 2**63 - 1. Two launches of equal seed draw equal durations.

    Raises:
        TypeError, ValueError: a field out of its range; names the field, the value and the limit.

    Example:
        >>> drawn = tb.Drawn("lognormal", mean=1e-4, spread=2e-5, seed=1)
        >>> tb.Launch(264, 256, 32, duration=drawn).duration.mean
        0.0001
    """

    distribution: str
    mean: float
    spread: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.distribution, str):
            raise TypeError(f"Drawn.distribution: a name is needed, got {shown(self.distribution)}")
        if self.distribution not in _DRAW:
            raise ValueError(
                f"Drawn.distribution: {shown(self.distribution)} is not one of {', '.join(_DRAW)}"
                f"{did_you_mean(self.distribution, _DRAW)}"
            )
        for field in ("mean", "spread"):
            object.__setattr__(self, field, seconds("Drawn", field, getattr(self, field)))
        object.__setattr__(self, "seed", integer("Drawn", "seed", self.seed, 0, 2**63 - 1))
        if self.mean == 0:
            raise ValueError("Drawn.mean: 0.0 must be more than 0 seconds")
        limits = {"uniform": self.mean, "falling": self.mean, "exponential": 0.0}
        limit = limits.get(self.distribution, math.inf)
        if self.spread > limit:
            raise ValueError(
                f"Drawn.spread: {self.spread} is more than {limit}, the most that distribution "
                f"{self.distribution!r} of mean {self.mean} allows"
            )

    def draw(self, blocks: int) -> Float64Array:
        """Draws a duration for each block: float64 (blocks,), seconds.

        Args:
            blocks: how many, 0 to 2**31 - 1.

        Raises:
            TypeError, ValueError: not a number of blocks.

        Example:
            >>> tb.Drawn("uniform", mean=1e-5, spread=0.0).draw(3).tolist()
            [1e-05, 1e-05, 1e-05]
        """
        integer("Drawn.draw", "blocks", blocks, 0, 2**31 - 1)
        drawn = _DRAW[self.distribution](np.random.default_rng(self.seed), self, blocks)
        return np.minimum(drawn, MAX_SECONDS)


def _uniform(rng: np.random.Generator, drawn: Drawn, blocks: int) -> Float64Array:
    return rng.uniform(drawn.mean - drawn.spread, drawn.mean + drawn.spread, blocks)


def _normal(rng: np.random.Generator, drawn: Drawn, blocks: int) -> Float64Array:
    """Returns normal durations of the given mean and standard deviation, float64 (blocks,), in
    seconds."""
    values = rng.normal(drawn.mean, drawn.spread, blocks)
    while (below := values < 0).any():
        values[below] = rng.normal(drawn.mean, drawn.spread, np.count_nonzero(below))
    return values


def _lognormal(rng: np.random.Generator, drawn: Drawn, blocks: int) -> Float64Array:
    """Returns lognormal durations of the given mean and standard deviation, in seconds."""
    ratio = drawn.spread / drawn.mean
    if ratio < 1e100:
        variance = math.log1p(ratio**2)
    else:  # its square may be beyond a float
        variance = 2 * (math.log(drawn.spread) - math.log(drawn.mean))
    return rng.lognormal(math.log(drawn.mean) - variance / 2, math.sqrt(variance), blocks)


def _exponential(rng: np.random.Generator, drawn: Drawn, blocks: int) -> Float64Array:
    return rng.exponential(drawn.mean, blocks)


def _last(rng: np.random.Generator, drawn: Drawn, blocks: int) -> Float64Array:
    latest = np.full(blocks, drawn.mean)
    latest[-1:] += drawn.spread
    return latest


def _falling(rng: np.random.Generator, drawn: Drawn, blocks: int) -> Float64Array:
    return np.linspace(drawn.mean + drawn.spread, drawn.mean - drawn.spread, blocks)


_DRAW: dict[str, Callable[[np.random.Generator, Drawn, int], Float64Array]] = {
    "uniform": _uniform,
    "normal": _normal,
    "lognormal": _lognormal,
    "exponential": _exponential,
    "falling": _falling,
    "last": _last,
}
