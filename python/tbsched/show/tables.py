"""Tables as plain text."""

from __future__ import annotations

import io
from collections.abc import Iterable

from rich.console import Console
from rich.table import Table


def render(table: Table, width: int = 100) -> str:
    """A table as plain text, no line longer than ``width``."""
    out = io.StringIO()
    Console(file=out, width=width, color_system=None, highlight=False).print(table)
    return "\n".join(line.rstrip() for line in out.getvalue().rstrip("\n").splitlines())


def table_of(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> Table:
    """A table whose columns after the first are aligned to the right."""
    table = Table(box=None, pad_edge=False)
    for position, heading in enumerate(headings):
        table.add_column(heading, justify="right" if position else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table
