"""Which variant of a kernel is fastest: timed in turns, and asked again before it is believed."""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from numbers import Real

from tbsched.errors import shown
from tbsched.program.checks import integer, items, seconds
from tbsched.progress import bar
from tbsched.shown import Shown
from tbsched.sm.rewriting.making import Variant

CONFIDENCE = 0.95
FEWEST = 6  # runs that say anything with it
Load = Callable[[Variant], Callable[[], float | None]]


@dataclass(frozen=True, slots=True)
class Ratio:
    """A median of ratios.

    Attributes:
        value: the median.
        low: it lies above with 95 % confidence; too few ratios: 0.
        high: and below; too few ratios: infinity.

    Example:
        >>> tb.sm.Ratio.of([1.1, 1.2, 1.3, 1.2, 1.1, 1.2, 1.2])
        Ratio(value=1.2, low=1.1, high=1.3)
    """

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, ratios: Iterable[float]) -> Ratio:
        """Returns the ratio with its interval, for any distribution of the given ratios.

        The median lies above the k-th of n values unless fewer than k of them were below it.

        Raises:
            TypeError, ValueError: no list of numbers from 0, or none in it.

        Example:
            >>> tb.sm.Ratio.of([1.1, 1.2]).high
            inf
        """
        drawn = sorted(_ratio(item) for item in items("Ratio", "ratios", ratios))
        if not drawn:
            raise ValueError("Ratio.ratios: none; one or more are needed")
        count = len(drawn)
        tail, k = 0.0, 0
        of_all = math.lgamma(count + 1) - count * math.log(2)
        while k < count:
            tail += math.exp(of_all - math.lgamma(k + 1) - math.lgamma(count - k + 1))
            if tail > (1 - CONFIDENCE) / 2:
                break
            k += 1
        low, high = (drawn[k - 1], drawn[count - k]) if k else (0.0, math.inf)
        return cls(statistics.median(drawn), low, high)


def _ratio(value: object) -> float:
    """Returns a ratio of times, checked."""
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(f"Ratio.ratios: a number is needed, got {shown(value)}")
    ratio = float(value)
    if not ratio >= 0:
        raise ValueError(f"Ratio.ratios: {shown(value)} is less than 0, or no number")
    return ratio


@dataclass(frozen=True, slots=True)
class Timing:
    """Measured times of a variant.

    Attributes:
        variant: that was timed.
        seconds: of each run, in the order of the rounds.
        ratio: of its times to the original's in the same rounds.
        dropped: whether it was given up early, as it is slower than another.

    Example:
        >>> found = tb.sm.search(variants, load)  # doctest: +SKIP
        >>> found.original.median, found.timings[1].dropped  # doctest: +SKIP
        (2.04e-05, True)
    """

    variant: Variant
    seconds: tuple[float, ...]
    ratio: Ratio
    dropped: bool = False

    @property
    def least(self) -> float:
        """The shortest run, in seconds."""
        return min(self.seconds)

    @property
    def median(self) -> float:
        """Median of all runs, in seconds."""
        return statistics.median(self.seconds)

    @property
    def mean(self) -> float:
        """Mean of all runs, in seconds."""
        return statistics.fmean(self.seconds)

    @property
    def spread(self) -> float:
        """Returns the interquartile range of the runs, as a share of the median."""
        if len(self.seconds) < 2:
            return 0.0
        first, _, third = statistics.quantiles(self.seconds, n=4, method="inclusive")
        return (third - first) / self.median


@dataclass(frozen=True, slots=True, repr=False)
class Search(Shown):
    """Times of variants, and whether the fastest one is really faster. Prints as a table.

    Attributes:
        timings: of each variant, in the order in which they were given; the original first.
        best: the one with the least median, among those that are not the original.
        gain: the original's time as a ratio to that of ``best``, from runs that did not choose it.

    Example:
        >>> found = tb.sm.search(variants, load)  # doctest: +SKIP
        >>> found.better, found.best.variant.name  # doctest: +SKIP
        (True, '65 registers')
    """

    timings: tuple[Timing, ...]
    best: Timing
    gain: Ratio

    @property
    def original(self) -> Timing:
        """The first one, which the others are compared with."""
        return self.timings[0]

    @property
    def better(self) -> bool:
        """Whether ``best`` is faster than the original by more than noise."""
        return self.gain.low > 1.0


def search(
    variants: Iterable[Variant],
    load: Load,
    *,
    rounds: int = 20,
    again: int = 20,
    limit: float = 60.0,
    seed: int = 0,
    progress: bool = True,
) -> Search:
    """Returns how fast the variants of a kernel are, and the fastest one, by timing them in turns.

    Each round runs every variant once, in an order drawn by chance, so that a drift of the clock
    meets all. A variant is given up when it is slower than another with 95 % confidence. The
    fastest one was chosen because it seemed fast; so fresh rounds compare it with the original.

    Args:
        variants: of one kernel, the original first: as :func:`variants` gives them.
        load: takes a variant and returns a function that runs it once and waits for it. That
            returns the seconds that it took, or None: then its call is timed. :func:`launcher`
            makes one.
        rounds: in which all variants are timed, 6 to 10,000.
        again: fresh rounds of the original and the fastest one, 6 to 10,000.
        limit: seconds after which no other round begins; at least six rounds of each are run.
        seed: of what is drawn.
        progress: whether a bar is shown.

    Raises:
        TypeError, ValueError: fewer than two variants; numbers that cannot be; a time that is not
            positive.

    Example:
        >>> from types import SimpleNamespace
        >>> two = [SimpleNamespace(us=9), SimpleNamespace(us=8)]
        >>> found = tb.sm.search(two, lambda variant: lambda: variant.us * 1e-6)
        >>> found.better, found.gain.value
        (True, 1.125)
    """
    listed = list(variants)
    if len(listed) < 2:
        raise ValueError("search.variants: the original and at least one other are needed")
    rounds = integer("search", "rounds", rounds, FEWEST, 10_000)
    again = integer("search", "again", again, FEWEST, 10_000)
    until = time.monotonic() + seconds("search", "limit", limit)
    runs = [_Runs(load(variant)) for variant in listed]
    draw = random.Random(seed)
    for run in runs:
        run.once()  # what is slow only once
    with bar("Timing variants", rounds + again if progress else 0) as advance:
        for round_index in range(rounds):
            if round_index >= FEWEST and time.monotonic() > until:
                break
            _round([run for run in runs if not run.dropped], draw)
            _drop(runs)
            advance(round_index + 1)
        timings = tuple(
            Timing(variant, tuple(run.seconds), run.ratio(runs[0]), run.dropped)
            for variant, run in zip(listed, runs, strict=True)
        )
        best = min(
            (k for k in range(1, len(runs)) if not runs[k].dropped),
            key=lambda k: timings[k].median,
        )
        fresh = [_Runs(runs[k].once) for k in (0, best)]
        for round_index in range(again):
            if round_index >= FEWEST and time.monotonic() > until:
                break
            _round(fresh, draw)
            advance(rounds + round_index + 1)
    return Search(timings, timings[best], fresh[0].ratio(fresh[1]))


class _Runs:
    """Times of a variant, round by round."""

    def __init__(self, run: Callable[[], float | None]) -> None:
        self._run = run
        self.seconds: list[float] = []
        self.dropped = False

    def once(self) -> float:
        """Runs the variant once, and returns how long it took in seconds."""
        start = time.perf_counter()
        reported = self._run()
        took = time.perf_counter() - start if reported is None else float(reported)
        if not 0 < took < math.inf:
            raise ValueError(f"search.load: a run took {took} seconds; a positive time is needed")
        return took

    def ratio(self, other: _Runs) -> Ratio:
        """Returns the ratio of its times to those of another variant in the same rounds."""
        return Ratio.of(a / b for a, b in zip(self.seconds, other.seconds, strict=False))


def _round(runs: Sequence[_Runs], draw: random.Random) -> None:
    for run in draw.sample(runs, len(runs)):
        run.seconds.append(run.once())


def _drop(runs: list[_Runs]) -> None:
    """Gives up the variants that are surely slower than the fastest; never the original, nor the
    last other one."""
    others = [run for run in runs[1:] if not run.dropped]
    best = min(others, key=lambda run: statistics.median(run.seconds))
    for run in others:
        if run is not best:
            run.dropped = max(run.ratio(best).low, run.ratio(runs[0]).low) > 1.0
