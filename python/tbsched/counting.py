"""Numbers with what is counted: ``1 block``, ``2 blocks``."""

from __future__ import annotations


def counted(number: int, one: str, many: str | None = None) -> str:
    """Returns a number and what is counted.

    Args:
        number: how many.
        one: the noun, or words that begin with it, such as ``SM has``.
        many: their plural; None: with an ``s``.
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"
