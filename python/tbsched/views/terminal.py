"""Text of others, such as names of kernels and devices, as a terminal may get it.

A terminal obeys escape sequences, and characters that turn the direction of writing let a line say
something else than it does. So none of them reaches one: all views go through here.
"""

from __future__ import annotations

_MARK = "\ufffd"


def visible(text: str) -> str:
    """Returns a text on one line: with spaces for line ends and tabs, and a mark for what cannot be
    seen."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else " " if c.isspace() else _MARK for c in text)


def visible_lines(text: str) -> str:
    """Returns text of several lines so that no terminal obeys it; the ends of lines stay."""
    return text if text.isprintable() else "\n".join(map(visible, text.split("\n")))
