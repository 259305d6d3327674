"""Benchmarks, by ``make bench``: a table on the screen and in ``docs/performance.md``."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from rich.console import Console

from bench.measure import Figure, machine
from bench.predictor import figures
from tbsched.report import table_of

PAGE = Path(__file__).parents[2] / "docs" / "performance.md"
HEADINGS = ("ratio", "median", "least", "greatest", "wanted", "to")
BEGIN, END = "<!-- predictor:begin -->", "<!-- predictor:end -->"


def written(rows: list[tuple[str, ...]]) -> str:
    """The table as the page has it."""
    lines = [HEADINGS, ("---", "---:", "---:", "---:", "---", "---"), *rows]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"{BEGIN}\nOn {machine()}.\n\n{table}\n{END}"


def main() -> None:
    """Measures, shows and writes."""
    rows: list[tuple[str, ...]] = []
    for figure in figures():
        rows.append(Figure.cells(figure))
        print(*rows[-1], sep="  ", flush=True)
    Console().print(table_of(HEADINGS, rows))
    page = PAGE.read_text("utf-8")
    before, after = page.split(BEGIN)[0], page.split(END)[1]
    PAGE.write_text(f"{before}{written(rows)}{after}", "utf-8")


if __name__ == "__main__":
    main()
