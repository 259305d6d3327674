"""How long a million blocks take to hand on, and how large the files are; by ``make bench``."""

from __future__ import annotations

import functools
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import tbsched as tb
from bench.measure import seconds
from tbsched.views.tables import render, table_of

BLOCKS, LAUNCHES = 10**6, 20
FILES = ("html", "perfetto", "parquet", "csv")


def program(blocks: int, alike: bool) -> tb.Sequence:
    """Launches in four streams. Blocks of a launch last as long, or each its own time."""
    durations = [1e-4 if alike else tb.Drawn("uniform", 1e-4, 5e-5, k) for k in range(LAUNCHES)]
    return tb.Sequence(
        tb.Launch(blocks // LAUNCHES, 128, 32, stream=k % 4, duration=durations[k], name=f"k{k}")
        for k in range(LAUNCHES)
    )


def rows_of(trace: tb.Trace, folder: Path) -> list[tuple[str, str, str]]:
    """Per output its name, seconds and megabytes."""
    rows = [("pandas", f"{seconds(trace.to_pandas):.2f}", "")]
    for kind in FILES:
        path = folder / kind
        taken = seconds(functools.partial(getattr(tb.show, f"to_{kind}"), trace, path))
        rows.append((kind, f"{taken:.2f}", f"{path.stat().st_size / 1e6:.1f}"))
    return rows


def main() -> None:
    """Shows a row per kind of output."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        rows_of(tb.predict(program(LAUNCHES, True), "h200"), Path(folder))  # imports libraries
        for words, alike in (("equal", True), ("drawn", False)):
            trace = tb.predict(program(BLOCKS, alike), "h200")
            rows += [(words, *row) for row in rows_of(trace, Path(folder))]
    print(f"{BLOCKS:,} blocks:")
    print(render(table_of(("durations", "output", "seconds", "MB"), rows, left=(0, 1))))


if __name__ == "__main__":
    main()
