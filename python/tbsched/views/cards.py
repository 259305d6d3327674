"""What every view is in, a card or a page of its own, and the parts that cards are made of."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

import jinja2
import numpy as np
from markupsafe import Markup

from tbsched import shown, storage
from tbsched.program.events.launch import Launch
from tbsched.views.layout.colours import colours_of
from tbsched.views.layout.names import cut, cut_apart, kernels_of, labels_of
from tbsched.views.tables import Table
from tbsched.views.words import launch_words

# Kernels may be called anything. Of other characters no HTML is made, and what turns the direction
# of writing would turn what stands around it, too.
_NOT_IN_HTML = re.compile(
    "[^\t\n\r\u0020-\u007e\u00a0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
    "|[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
_KERNELS_SHOWN = 12
_NAMES = "name"  # of the column of kernels' names, which are cut
_WIDEST = 36  # characters of them; the whole is shown when the mouse is over it
_LONGEST = 2000  # characters of any other cell
_WHOLE = 300  # characters of a name when the mouse is over it: there may be many
_SENTENCE = 40  # characters from which on words are broken into lines


def to_html(value: object, path: str | os.PathLike[str] | None = None) -> str:
    """A whole page that shows a value.

    The page needs no network and no script. It is light or dark, as the reader's system is.

    Args:
        value: whatever shows itself: a sequence, a trace, a comparison, a device, a report, advice.
        path: where to write the page, in UTF-8; None writes nothing.

    Returns:
        The page.

    Raises:
        TypeError: no view is known of the value, or ``path`` is no path.
        ValueError, OSError: the page cannot be written there.

    Example:
        >>> import tbsched as tb
        >>> page = tb.show.to_html(tb.device("tx2"))
        >>> page.startswith("<!DOCTYPE html>")
        True
    """
    body = Markup(shown.html(value))
    title = shown.short(value)
    page = str(rendered("page.html", body=body, title=title))
    if path is not None:
        with storage.replacing(storage.as_path(path)) as out:
            out.write(page.encode())
    return page


def card(title: str, *parts: Markup | Table, sub: str = "") -> str:
    """A view: a heading, and what is under it; with the style that it needs."""
    style = Markup(_style())
    drawn = [table_html(part) if isinstance(part, Table) else part for part in parts]
    return str(rendered("card.html", title=title, sub=sub, parts=drawn, style=style))


def rendered(template: str, **values: Any) -> Markup:
    """A template with values in it, all of which are escaped."""
    return Markup(_environment().get_template(template).render(**values))


@functools.cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FunctionLoader(_source),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        finalize=_clean,
    )


def _source(name: str) -> str:
    return (resources.files("tbsched.views") / "templates" / name).read_text("utf-8")


@functools.cache
def _style() -> str:
    # Of a notebook's cells each has a copy: no blanks that say nothing.
    return re.sub(r"\s*([{};,])\s*", r"\1", _source("style.css")).strip()


def _clean(value: object) -> object:
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return _NOT_IN_HTML.sub("\ufffd", value)


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
    *,
    marks: Sequence[str] = (),
    styles: Sequence[str] = (),
) -> Markup:
    """A table as it is shown in a terminal.

    Args:
        table: of strings.
        heading: above it.
        marks: a colour per row, before the text of its first column; empty: none.
        styles: a class per row for its last column; empty: none.
    """
    columns = [
        _Column(title, position not in table.left) for position, title in enumerate(table.headings)
    ]
    texts = [list(column) for column in zip(*table.rows, strict=True)] or [[] for _ in columns]
    shown = [
        cut_apart(own, _WIDEST) if column.title == _NAMES else [cut(text, _LONGEST) for text in own]
        for column, own in zip(columns, texts, strict=True)
    ]
    wide = [
        column.title != _NAMES
        and not column.right
        and any(len(text) > _SENTENCE and " " in text for text in own)
        for column, own in zip(columns, texts, strict=True)
    ]
    rows = []
    for number, row in enumerate(table.rows):
        cells = []
        for position, text in enumerate(row):
            style = "r" if columns[position].right else "w" if wide[position] else ""
            if styles and position == len(row) - 1:
                style = f"{style} {styles[number]}".strip()
            colour = marks[number] if marks and position == 0 else ""
            short = shown[position][number]
            cells.append(Cell(short, style, "" if short == text else cut(text, _WHOLE), colour))
        rows.append(cells)
    return rendered("table.html", columns=columns, rows=rows, heading=heading, more=table.more)


def tiles_html(*tiles: tuple[str, str]) -> Markup:
    """Numbers, and what each of them is."""
    return rendered("tiles.html", tiles=tiles)


def legend_html(launches: Sequence[Launch]) -> Markup:
    """The colour of each kernel; of launches without a name of each launch."""
    first = np.unique(kernels_of(launches)).tolist()
    colours = colours_of(launches)
    keys = []
    labels = labels_of(launches)
    for number in first[:_KERNELS_SHOWN]:
        launch = launches[number]
        if launch.name:
            keys.append((colours[number], labels(number), cut(launch.name, _WHOLE)))
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


def bars_html(rows: list[tuple[str, float, str]]) -> Markup:
    """Makespans as bars, and in words."""
    longest = max((makespan for _, makespan, _ in rows), default=0.0) or 1.0
    bars = [(what, 100 * makespan / longest, words) for what, makespan, words in rows]
    return rendered("bars.html", bars=bars)
