"""Parts that several views are made of: tables, tiles with numbers, legends, text to unfold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup
from rich.table import Table

from tbsched.program.events.launch import Launch
from tbsched.show.html.pages import rendered
from tbsched.show.layout.colours import colours_of
from tbsched.show.layout.names import cut, kernels_of, label
from tbsched.show.words import counted, launch_words

_KERNELS_SHOWN = 12
_NAMES = "name"  # of the column of kernels' names, which are cut
_WIDEST = 36  # characters of them; the whole is shown when the mouse is over it
_LONGEST = 2000  # characters of any other cell
_WHOLE = 300  # characters of a name when the mouse is over it: there may be many
_SENTENCE = 40  # characters from which on words are broken into lines


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table.

    Attributes:
        text: shown.
        style: classes of the style sheet.
        title: the whole text, where it is cut.
        colour: of a mark before the text.
    """

    text: str
    style: str = ""
    title: str = ""
    colour: str = ""


@dataclass(frozen=True, slots=True)
class _Column:
    title: str
    right: bool


def table_html(
    table: Table,
    heading: str = "",
    more: str = "",
    marks: Sequence[str] = (),
    styles: Sequence[str] = (),
) -> Markup:
    """A table as it is shown in a terminal.

    Args:
        table: of strings.
        heading: above it.
        more: below it, such as how many rows are left out.
        marks: a colour per row, before the text of its first column; empty: none.
        styles: a class per row for its last column; empty: none.
    """
    columns = [_Column(str(x.header), x.justify == "right") for x in table.columns]
    texts = [[str(cell) for cell in column.cells] for column in table.columns]
    wide = [
        column.title != _NAMES
        and not column.right
        and any(len(text) > _SENTENCE and " " in text for text in own)
        for column, own in zip(columns, texts, strict=True)
    ]
    rows = []
    for number, row in enumerate(zip(*texts, strict=True)):
        cells = []
        for position, text in enumerate(row):
            style = "r" if columns[position].right else "w" if wide[position] else ""
            if styles and position == len(row) - 1:
                style = f"{style} {styles[number]}".strip()
            colour = marks[number] if marks and position == 0 else ""
            is_name = columns[position].title == _NAMES
            cells.append(_cell(text, style, colour, _WIDEST if is_name else _LONGEST))
        rows.append(cells)
    return rendered("table.html", columns=columns, rows=rows, heading=heading, more=more)


def _cell(text: str, style: str, colour: str, longest: int) -> Cell:
    shown = cut(text, longest)
    return Cell(shown, style, "" if shown == text else cut(text, _WHOLE), colour)


def tiles_html(*tiles: tuple[str, str]) -> Markup:
    """Numbers, and what each of them is."""
    return rendered("tiles.html", tiles=tiles)


def legend_html(launches: Sequence[Launch]) -> Markup:
    """The colour of each kernel; of launches without a name of each launch."""
    first = np.unique(kernels_of(launches)).tolist()
    colours = colours_of(launches)
    keys = []
    for number in first[:_KERNELS_SHOWN]:
        launch = launches[number]
        if launch.name:
            keys.append((colours[number], label(launch), cut(launch.name, _WHOLE)))
        else:
            keys.append((colours[number], f"launch {number}", launch_words(launch)))
    left = len(first) - len(keys)
    return rendered("legend.html", keys=keys, more=f"and {left:,} more" if left else "")


def keys_html(keys: Iterable[tuple[str, str]]) -> Markup:
    """A legend of colours and words."""
    return rendered("legend.html", keys=[(*key, "") for key in keys], more="")


def text_html(lines: Iterable[str], heading: str = "", style: str = "text") -> Markup:
    """Paragraphs."""
    return rendered("text.html", lines=list(lines), heading=heading, style=style)


def note_html(note: str) -> Markup:
    """A remark; nothing if it is empty."""
    return text_html([note] if note else [], style="note")


def code_html(code: str) -> Markup:
    """Text in which every blank counts."""
    return rendered("code.html", code=code)


def folded_html(summary: str, *parts: Markup, is_open: bool = False) -> Markup:
    """Parts that a click unfolds."""
    body = Markup("\n").join(parts)
    return rendered("folded.html", summary=summary, body=body, open=is_open)


def more_of(count: int, shown: int, one: str, many: str | None = None) -> str:
    """``and 12 launches more``; nothing if all are shown."""
    return f"and {counted(count - shown, one, many)} more" if count > shown else ""
