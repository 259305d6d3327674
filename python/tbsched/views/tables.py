"""Tables as plain text."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from rich.cells import cell_len
from rich.table import Table


def render(table: Table) -> str:
    """A table of strings as plain text; nothing is cut, however wide it is.

    rich would take a hundred times as long, and in a notebook display it besides.
    """
    columns = []
    for column in table.columns:
        cells = [str(column.header), *map(str, column.cells)]
        widths = [cell_len(cell) for cell in cells]
        widest = max(widths)
        gaps = [" " * (widest - width) for width in widths]
        if column.justify == "right":
            columns.append([gap + cell for gap, cell in zip(gaps, cells, strict=True)])
        else:
            columns.append([cell + gap for gap, cell in zip(gaps, cells, strict=True)])
    return "\n".join("  ".join(row).rstrip() for row in zip(*columns, strict=True))


def table_of(
    headings: Iterable[str], rows: Iterable[Iterable[str]], left: Collection[int] = (0,)
) -> Table:
    """A table whose columns are aligned to the right, but for those at ``left``."""
    table = Table(box=None, pad_edge=False)
    for position, heading in enumerate(headings):
        table.add_column(heading, justify="left" if position in left else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table
