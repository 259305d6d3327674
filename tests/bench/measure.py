"""Ratios of times taken side by side, and the machine they were taken on.

Competitors run in turn, A B A B, and the median of the ratios counts, so that a machine whose speed
drifts favours neither.
"""

from __future__ import annotations

import ctypes
import math
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

Work = Callable[[], object]
ROUNDS = 7


@dataclass(frozen=True)
class Figure:
    """A row of the table.

    Attributes:
        name: what is compared.
        values: the ratio of each round.
        wanted: what it should be.
        floor: what bounds it, or what it is compared with.
    """

    name: str
    values: tuple[float, ...]
    wanted: str
    floor: str

    def cells(self) -> tuple[str, ...]:
        """Name, median, least, greatest, wanted, floor."""
        numbers = (statistics.median(self.values), min(self.values), max(self.values))
        return (self.name, *(f"{number:.3g}" for number in numbers), self.wanted, self.floor)


def seconds(work: Work) -> float:
    """One timed call."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def give_memory_back() -> None:
    """Gives the system what has been freed, so that memory that is allocated next is new.

    The C library keeps what a run has freed or does not, by how much there was; where it does, who
    comes next is spared most of the time that new memory takes.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def ratios(
    slow: Work,
    fast: Work,
    *,
    rounds: int = ROUNDS,
    times: int = 1,
    before: Work = lambda: None,
) -> tuple[float, ...]:
    """slow / fast of each round, of so many calls of each, after a round that does not count.

    ``before`` goes before each of the two, untimed.
    """

    def timed(work: Work) -> float:
        before()
        return seconds(lambda: [work() for _ in range(times)])

    slow(), fast()
    return tuple(timed(slow) / timed(fast) for _ in range(rounds))


def slopes(works: Iterable[tuple[int, Work]], rounds: int = 3) -> tuple[float, ...]:
    """Returns each round's slope of log(time) over log(size): 1 where time is linear in size."""
    pairs = list(works)
    sizes = [math.log(size) for size, _ in pairs]
    for _, work in pairs[:-1]:
        work()

    def slope() -> float:
        # Small ones are repeated, as one of them is shorter than the clock can tell.
        times = []
        for size, work in pairs:
            calls = max(1, pairs[-1][0] // size // 50)
            times.append(math.log(seconds(lambda w=work, n=calls: [w() for _ in range(n)]) / calls))
        return statistics.linear_regression(sizes, times).slope

    return tuple(slope() for _ in range(rounds))


def machine() -> str:
    """Processor, cores and versions, in words."""
    processor = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        named = [line for line in info.read_text("utf-8").splitlines() if "model name" in line]
        processor = named[0].partition(":")[2].strip() if named else processor
    return (
        f"{processor}, {os.cpu_count()} cores, {platform.system()}, "
        f"Python {platform.python_version()}, NumPy {np.__version__}"
    )
