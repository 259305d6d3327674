"""Benchmarks: ratios measured side by side in one run. Run by ``make bench``.

Each pair of competitors runs in turn, A B A B, and the median of the ratios is printed, so that a
machine whose speed drifts does not favour either.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

import tbsched as tb
from tbsched.report import table_of

TRACES = Path(__file__).parent.parent / "traces" / "h200"
ROUNDS = 7


def seconds(work: Callable[[], object]) -> float:
    """One timed call."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def ratio(slow: Callable[[], object], fast: Callable[[], object]) -> tuple[float, float, float]:
    """Least, median and greatest of slow/fast over the rounds, after one that does not count."""
    slow(), fast()
    ratios = sorted(seconds(slow) / seconds(fast) for _ in range(ROUNDS))
    return ratios[0], statistics.median(ratios), ratios[-1]


def predictor_cases() -> list[tuple[str, list[tb.Sequence]]]:
    """Named workloads for the predictor."""
    recorded = [trace.sequence for trace in tb.load_traces(TRACES / "rall.jsonl.xz")]
    small = tb.Sequence([tb.Launch(blocks=5, threads=128, registers=32) for _ in range(5)])
    grid = tb.Sequence([tb.Launch(blocks=4224, threads=32, registers=16)])
    return [
        ("recorded mixed launches", recorded[:200]),
        ("5 launches of 5 blocks", [small] * 200),
        ("one launch that fills the GPU", [grid] * 20),
    ]


def main() -> None:
    """Prints the table."""
    rows = []
    for name, sequences in predictor_cases():

        def work(policy: str, sequences: list[tb.Sequence] = sequences) -> None:
            for sequence in sequences:
                tb.predict(sequence, "h200", policy=policy)

        for fast in ("ampere", "hopper"):
            least, median, greatest = ratio(lambda: work("algorithm1"), lambda p=fast: work(p))
            rows.append(
                (
                    f"{name}: {fast} over algorithm1",
                    *(f"{x:.1f}" for x in (median, least, greatest)),
                )
            )
    Console().print(table_of(("times as fast", "median", "least", "greatest"), rows))


if __name__ == "__main__":
    main()
