"""The greatest number for which something is proved."""

from __future__ import annotations

from collections.abc import Callable


def greatest_holding(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """Returns the greatest number for which a monotone condition holds, by bisection.

    Args:
        low: a number for which it holds, or one that says that there is none.
        high: the greatest number that is tried, at least ``low``.
        holds: false for all numbers above one for which it is false.
    """
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if holds(middle) else (low, middle - 1)
    return low
