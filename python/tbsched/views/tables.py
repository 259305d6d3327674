"""Tables of text, and what is printed: lines and tables."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from rich.cells import cell_len

from tbsched.views.layout.names import cut, cut_apart
from tbsched.views.terminal import visible_lines

_LONGEST = 5000  # characters of a cell: a name may have megabytes
_WIDEST = 120  # characters of a line of a cell that is broken into lines
_MIN_CHARACTERS = 12  # characters that are left of a cell


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells, each of which is one line.

    Attributes:
        headings: of the columns.
        rows: each as long as the headings.
        left: the columns that are aligned to the left, and can be cut; others go to the right.
        more: the line below the rows, such as how many are left out; empty: none.
        wrapped: those of ``left`` that are broken into lines, and not cut.
    """

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left: frozenset[int]
    more: str = ""
    wrapped: frozenset[int] = frozenset()

    def text(self, width: int | None = None) -> str:
        """Returns the headings and the rows. rich would take a hundred times as long.

        Args:
            width: columns of the terminal, to which cells are cut or wrapped; None: none is cut.
                Numbers are not: columns of them that find no room stand below, behind the same
                names.
        """
        columns = [list(column) for column in zip(self.headings, *self.rows, strict=True)]
        if width is not None:
            room = width - 2 * (len(columns) - 1)
            if sum(max(map(cell_len, column)) for column in columns) > room:
                columns = _with_low_headings(columns)
            self._cut(columns, room)
        columns = self._in_lines(columns)
        aligned = [_aligned(own, position in self.left) for position, own in enumerate(columns)]
        parts = [range(len(columns))] if width is None else self._parts(aligned, width)
        return "\n\n".join(
            "\n".join(
                "  ".join(row).rstrip()
                for row in zip(*[aligned[position] for position in part], strict=True)
            ).lstrip("\n")  # lines of the headings of other parts
            for part in parts
        )

    def _parts(self, aligned: list[list[str]], width: int) -> list[Iterable[int]]:
        """Returns the columns that stand side by side, with those at the left in each part."""
        widths = [cell_len(column[0]) + 2 for column in aligned]
        if sum(widths) <= width + 2:
            return [range(len(aligned))]
        names = sorted(self.left)
        parts: list[list[int]] = []
        for position in range(len(aligned)):
            if position in self.left:
                continue
            if not parts or sum(widths[k] for k in [*parts[-1], position]) > width + 2:
                parts.append([*names])
            parts[-1].append(position)
        return [sorted(part) for part in parts] or [names]

    def _cut(self, columns: list[list[str]], width: int) -> None:
        """Cuts the widest columns of words, until all columns together are not wider."""
        widths = [max(map(cell_len, column)) for column in columns]
        while sum(widths) > width:
            widest = max(self.left, key=widths.__getitem__, default=0)
            if not self.left or widths[widest] <= _MIN_CHARACTERS:
                break
            widths[widest] -= 1
        for position in self.left:
            if max(map(cell_len, columns[position])) <= widths[position]:
                continue
            if position in self.wrapped:
                columns[position] = [_broken(cell, widths[position]) for cell in columns[position]]
            else:
                columns[position] = cut_apart(columns[position], widths[position] - 1)

    def _in_lines(self, columns: list[list[str]]) -> list[list[str]]:
        """Returns the columns of cells, with a row of its own for each line of a broken cell."""
        if not self.wrapped:
            return columns
        for position in self.wrapped:
            columns[position] = [_broken(cell, _WIDEST) for cell in columns[position]]
        rows = [[cell.split("\n") for cell in row] for row in zip(*columns, strict=True)]
        parts = [part for row in rows for part in itertools.zip_longest(*row, fillvalue="")]
        return [list(column) for column in zip(*parts, strict=True)]


Lines: TypeAlias = list[str | Table]


def _with_low_headings(columns: list[list[str]]) -> list[list[str]]:
    """Returns the columns, with headings broken at their spaces where they are wider than what
    stands below them."""
    broken = []
    for heading, *cells in columns:
        width = max(map(cell_len, cells), default=cell_len(heading))
        broken.append(textwrap.wrap(heading, max(width, 1), break_long_words=False) or [""])
    lines = max(map(len, broken))
    return [
        [*[""] * (lines - len(heading)), *heading, *cells]
        for heading, (_, *cells) in zip(broken, columns, strict=True)
    ]


def _broken(cell: str, width: int) -> str:
    """Returns a cell with line breaks, between words where possible."""
    return "\n".join(
        part
        for line in cell.split("\n")
        for part in textwrap.wrap(line, width, break_on_hyphens=False) or [line]
    )


def _wrapped(text: str, width: int) -> list[str]:
    """Returns a line as lines that fit, below each other behind its indent or its dash."""
    if cell_len(text) <= width:
        return [text]
    begin = len(text) - len(text.lstrip(" "))
    indent = " " * (begin + 2 if text[begin:].startswith("- ") or begin else 0)
    return textwrap.wrap(
        text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )  # fmt: skip


def _aligned(cells: list[str], is_at_left: bool) -> list[str]:
    """Returns the cells of a column, filled with spaces to one width, at the left or at the
    right.
    """
    widths = list(map(cell_len, cells))
    gaps = [" " * (max(widths) - width) for width in widths]
    pairs = zip(gaps, cells, strict=True)
    return [cell + gap if is_at_left else gap + cell for gap, cell in pairs]


def table_of(
    headings: Iterable[str],
    rows: Iterable[Iterable[str]],
    left: Collection[int] = (0,),
    more: str = "",
    wrapped: Collection[int] = (),
) -> Table:
    """Returns a table of text; columns that are not in ``left`` are aligned to the right.

    Cells at ``wrapped`` are broken into lines where others are cut.
    """
    cells = tuple(tuple([cut(cell, _LONGEST) for cell in row]) for row in rows)
    return Table(tuple(headings), cells, frozenset(left), more, frozenset(wrapped))


def render(table: Table) -> str:
    """A table as text, however wide it is."""
    return table.text()


def _in_lines(text: str, width: int) -> list[str]:
    return [line for whole in text.split("\n") for line in _wrapped(whole, width)]


def written(parts: str | Lines, width: int | None = None) -> str:
    """Returns what is printed of lines and tables; nothing in it is obeyed by a terminal.

    Args:
        parts: lines, and tables between them.
        width: columns of the terminal, to which tables are cut and other lines wrapped; None:
            they stay as long as they are.
    """
    lines: list[str] = []
    for part in [parts] if isinstance(parts, str) else parts:
        if isinstance(part, Table):
            lines += [part.text(width), *([part.more] if part.more else [])]
        else:
            shown = visible_lines(part)
            lines += [shown] if width is None else _in_lines(shown, width)
    return "\n".join(lines)
