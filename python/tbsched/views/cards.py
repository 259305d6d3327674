"""What every view is in, a card or a page of its own, and the parts that cards are made of."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterable, Sequence
from importlib import resources

import numpy as np
from markupsafe import Markup

from tbsched import shown, storage
from tbsched.program.events.launch import Launch
from tbsched.views.layout.colours import colours_of
from tbsched.views.layout.names import cut, cut_apart, kernels_of, labels_of
from tbsched.views.svg.markup import block, element, lines
from tbsched.views.tables import Table
from tbsched.views.words import launch_words

_PAGE_STYLE = (
    "body { margin: 0; padding: 24px; background: light-dark(#eef0f3, #0d0f12); } "
    "body > .tbsched { margin: 0 auto; }"
)
_KERNELS_SHOWN = 12
_INDENT = "  "
_NAMES = "name"  # of the column of kernels' names, which are cut
_WIDEST = 36  # characters of them; the whole is shown when the mouse is over it
_LONGEST = 2000  # characters of any other cell
_WHOLE = 300  # characters of a name when the mouse is over it: there may be many
_SENTENCE = 40  # characters from which on words are broken into lines


def to_html(value: object, path: str | os.PathLike[str] | None = None) -> str:
    """Returns HTML: a whole page that shows a value.

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
    head = [
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", shown.short(value)),
        element("style", Markup(_PAGE_STYLE)),
    ]
    parts = [block("head", head), block("body", [Markup(shown.html(value))])]
    page = f"<!DOCTYPE html>\n{block('html', parts, lang='en')}"
    if path is not None:
        with storage.replacing(storage.as_path(path)) as out:
            out.write(page.encode())
    return page


def card(title: str, *parts: Markup | Table, sub: str = "") -> str:
    """Returns a view: a heading, and what is under it; with the style that it needs."""
    drawn = [table_html(part) if isinstance(part, Table) else part for part in parts]
    below = element("p", sub, class_="sub") if sub else ""
    head = [element("style", Markup(_style())), element("h2", title), below]
    return str(block("div", [*head, *drawn], class_="tbsched"))


@functools.cache
def _style() -> str:
    """The style sheet. Of a notebook's cells each has a copy: no blanks that say nothing."""
    sheet = (resources.files("tbsched.views") / "style.css").read_text("utf-8")
    return re.sub(r"\s*([{};,])\s*", r"\1", sheet).strip()


def table_html(
    table: Table, heading: str = "", *, marks: Sequence[str] = (), styles: Sequence[str] = ()
) -> Markup:
    """Returns HTML: a table as it is shown in a terminal.

    Args:
        table: of strings.
        heading: above it.
        marks: a colour per row, before the text of its first column; empty: none.
        styles: a class per row for its last column; empty: none.
    """
    columns = []
    for index, title in enumerate(table.headings):
        column_cells = [row[index] for row in table.rows]
        is_name, is_at_left = title == _NAMES, index in table.left
        is_wide = any(len(text) > _SENTENCE and " " in text for text in column_cells)
        style = "r" if not is_at_left else "w" if is_wide and not is_name else ""
        short = (
            cut_apart(column_cells, _WIDEST)
            if is_name
            else [cut(text, _LONGEST) for text in column_cells]
        )
        columns.append(
            [(text, cell, style) for text, cell in zip(column_cells, short, strict=True)]
        )
    head = [
        element("th", title, class_=None if index in table.left else "r")
        for index, title in enumerate(table.headings)
    ]
    rows = []
    for row_index, row in enumerate(zip(*columns, strict=True)):
        cells = []
        for index, (text, short, style) in enumerate(row):
            cell_style = styles[row_index] if styles and index == len(row) - 1 else ""
            classes = f"{style} {cell_style}".strip() or None
            full_text = None if short == text else cut(text, _WHOLE)
            is_part = index in table.left and text.startswith(_INDENT)  # of the row above it
            classes = f"{classes or ''} part".strip() if is_part else classes
            mark = _mark(marks[row_index]) if marks and index == 0 else ""
            cells.append(element("td", mark, short, class_=classes, title=full_text))
        rows.append(element("tr", *cells))
    body = [element("thead", element("tr", *head)), block("tbody", rows)]
    return lines(
        heading_html(heading),
        element("div", block("table", body), class_="wide"),
        note_html(table.more),
    )


def _mark(colour: str) -> Markup:
    return element("span", class_="key", style=f"background:{colour}")


def heading_html(heading: str) -> Markup:
    """A heading within a card; nothing if it is empty."""
    return element("h3", heading) if heading else Markup()


def tiles_html(*tiles: tuple[str, str]) -> Markup:
    """Returns HTML: numbers, and what each of them is."""
    drawn = [
        element("div", element("b", value), element("span", meaning), class_="tile")
        for value, meaning in tiles
    ]
    return block("div", drawn, class_="tiles")


def legend_html(launches: Sequence[Launch]) -> Markup:
    """Returns HTML: the colour of each kernel; of launches without a name of each launch."""
    first = np.unique(kernels_of(launches)).tolist()
    colours = colours_of(launches)
    keys = []
    labels = labels_of(launches)
    for index in first[:_KERNELS_SHOWN]:
        launch = launches[index]
        if launch.name:
            keys.append((colours[index], labels(index), cut(launch.name, _WHOLE)))
        else:
            keys.append((colours[index], f"launch {index}", launch_words(launch)))
    hidden = len(first) - len(keys)
    return keys_html(keys, f"and {hidden:,} more" if hidden else "")


def keys_html(keys: Iterable[tuple[str, ...]], more: str = "") -> Markup:
    """Returns HTML: a legend.

    Args:
        keys: a colour, what it is, and as a third what is shown when the mouse is over it.
        more: at the end.
    """
    spans = [
        element(
            "span",
            element("i", class_="key", style=f"background:{colour}"),
            words,
            title=title[0] if title else None,
        )
        for colour, words, *title in keys
    ]
    return block("div", [*spans, element("span", more) if more else ""], class_="legend")


def text_html(texts: Iterable[str], heading: str = "", style: str = "text") -> Markup:
    """Paragraphs."""
    return lines(heading_html(heading), *(element("p", text, class_=style) for text in texts))


def note_html(note: str) -> Markup:
    """A remark; nothing if it is empty."""
    return text_html([note] if note else [], style="note")


def code_html(code: str) -> Markup:
    """Text in which every blank counts."""
    return element("pre", code)


def folded_html(summary: str, *parts: Markup, is_open: bool = False) -> Markup:
    """Parts that a click unfolds."""
    return block("details", [element("summary", summary), *parts], open=is_open)


def bars_html(rows: Iterable[tuple[str, float, str]], longest: float | None = None) -> Markup:
    """Returns HTML: bars.

    Args:
        rows: what each is, how long it is, and that in words.
        longest: what a bar of full length is; None: the longest one.
    """
    listed = list(rows)
    full = max((long for _, long, _ in listed), default=0.0) if longest is None else longest
    drawn = [_bar(label, 100 * long / (full or 1.0), words) for label, long, words in listed]
    return block("div", drawn, class_="bars")


def _bar(label: str, percent: float, words: str) -> Markup:
    bar = element("span", element("i", style=f"width:{percent:.1f}%"))
    return element("span", label) + bar + element("span", words, class_="r")
