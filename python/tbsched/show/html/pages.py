"""Templates, and what every view is in: a card, or a page of its own."""

from __future__ import annotations

import functools
import os
import re
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup

from tbsched import storage, views

# Of other characters no HTML is made, and kernels may be called anything.
_NOT_IN_HTML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


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
    body = Markup(views.html(value))
    title = views.short(value)
    page = str(rendered("page.html", body=body, title=title))
    if path is not None:
        with storage.replacing(storage.as_path(path)) as out:
            out.write(page.encode())
    return page


def card(title: str, *parts: Markup, sub: str = "") -> str:
    """A view: a heading, and what is under it; with the style that it needs."""
    style = Markup(_style())
    return str(rendered("card.html", title=title, sub=sub, parts=parts, style=style))


def rendered(template: str, **values: Any) -> Markup:
    """A template of this folder with values in it, all of which are escaped."""
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
    return (resources.files("tbsched.show.html") / "templates" / name).read_text("utf-8")


@functools.cache
def _style() -> str:
    # Of a notebook's cells each has a copy: no blanks that say nothing.
    return re.sub(r"\s*([{};,])\s*", r"\1", _source("style.css")).strip()


def _clean(value: object) -> object:
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return _NOT_IN_HTML.sub("\ufffd", value)
