"""Elements of HTML and SVG; all text in them is escaped."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from typing import TypeAlias

from markupsafe import Markup, escape

# Kernels may be called anything. Of other characters no HTML is made, and what turns the direction
# of writing would turn what stands around it, too.
_NOT_IN_HTML = re.compile(
    "[^\t\n\r\u0020-\u007e\u00a0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
    "|[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
Attribute: TypeAlias = str | float | None
_ALONE = {"input", "meta", "path"}  # that have no content


def element(name: str, /, *content: str, **attributes: Attribute) -> Markup:
    """Returns an element.

    Args:
        name: such as ``text``.
        content: one after another; what is no markup is escaped.
        attributes: ``text_anchor`` is ``text-anchor``, ``class_`` is ``class``; what is None or
            False is left out, and True has no value.
    """
    written = ""
    for key, value in attributes.items():
        if value is not None and value is not False:
            text = "" if value is True else _escaped(value) if isinstance(value, str) else value
            written += f' {_attribute(key)}="{text}"'
    if name in _ALONE:
        return Markup(f"<{name}{written}/>")
    return Markup(f"<{name}{written}>{''.join(map(_escaped, content))}</{name}>")


def lines(*parts: str) -> Markup:
    """Parts below each other; those that are empty are left out."""
    return Markup("\n".join([_escaped(part) for part in parts if part]))


def block(name: str, parts: Iterable[str], /, **attributes: Attribute) -> Markup:
    """An element with parts in lines of their own."""
    return element(name, Markup("\n"), lines(*parts), Markup("\n"), **attributes)


def drawing(width: float, height: float, about: str, parts: Iterable[str]) -> Markup:
    """Returns a picture of so many pixels.

    Args:
        width, height: pixels.
        about: for those who cannot see it.
        parts: its elements, the lowest first.
    """
    box = f"0 0 {width} {height}"
    return block(
        "svg", parts, viewBox=box, width=width, height=height, role="img", aria_label=about
    )


def titled(title: str, *content: str, **attributes: Attribute) -> Markup:
    """Shapes with a text that is shown when the mouse is over them."""
    return element("g", element("title", title), *content, **attributes)


@functools.cache
def _attribute(key: str) -> str:
    return key.rstrip("_").replace("_", "-")


def _escaped(text: str) -> Markup:
    """Returns a text with what HTML does not allow escaped or replaced; markup stays as it is."""
    if isinstance(text, Markup):
        return text
    plain = text.isascii() and text.isprintable()
    return escape(text if plain else _NOT_IN_HTML.sub("\ufffd", text))
