"""Benchmarks, by ``make bench``: a table on the screen and in ``performance.md``."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from rich.progress import MofNCompleteColumn, Progress

from bench.measure import machine
from bench.predictor import figures
from bench.profiles import profiles
from tbsched.storage import replacing
from tbsched.views.tables import render, table_of

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "performance.md"
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
    on_page = PAGE.read_text("utf-8").split(BEGIN)[1].split(END)[0].count("\n| ") - 2
    with Progress(*Progress.get_default_columns(), MofNCompleteColumn(), transient=True) as bar:
        task = bar.add_task("measuring", total=on_page)
        for figure in itertools.chain(figures(), profiles()):
            rows.append(figure.cells())
            bar.console.print(*rows[-1], sep="  ", markup=False, highlight=False, soft_wrap=True)
            bar.update(task, advance=1, total=max(on_page, len(rows)))
    print(render(table_of(HEADINGS, rows)))
    page = PAGE.read_text("utf-8")
    before, after = page.split(BEGIN)[0], page.split(END)[1]
    with replacing(PAGE) as out:
        out.write(f"{before}{written(rows)}{after}".encode())


if __name__ == "__main__":
    main()
