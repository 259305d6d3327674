"""Numbers with what is counted, and lists, in sentences: ``2 blocks``, ``a, b and c``."""

from __future__ import annotations

from collections.abc import Iterable


def counted(number: int, one: str, many: str | None = None) -> str:
    """Returns a number and what is counted.

    Args:
        number: how many.
        one: the noun, or words that begin with it, such as ``SM has``.
        many: their plural; None: with an ``s``.
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def listed(words: Iterable[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``; ``nothing``, if there are none."""
    *most, last = [*words] or ["nothing"]
    return f"{', '.join(most)} and {last}" if most else last


def first_listed(words: Iterable[str], most: int) -> str:
    """Returns ``a, b``; of more words than ``most``, such as 2: ``a, b and 3 more``."""
    found = [*words]
    some = ", ".join(found[:most])
    return some if len(found) <= most else f"{some} and {len(found) - most} more"
