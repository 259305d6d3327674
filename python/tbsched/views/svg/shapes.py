"""Paths of rectangles, marks of a time axis, and colours on colours."""

from __future__ import annotations

import math
from collections.abc import Iterable

from tbsched.views.words import seconds_words

# Width of a letter, as a share of its height.
_LETTER = 0.62


def boxes(rectangles: Iterable[tuple[float, float, float, float]]) -> str:
    """Returns the path of rectangles, each (left, top, width, height)."""
    parts = []
    for x, y, width, height in rectangles:
        w = coordinate(width)
        parts.append(f"M{coordinate(x)} {coordinate(y)}h{w}v{coordinate(height)}h-{w}z")
    return "".join(parts)


def whole_boxes(rectangles: Iterable[tuple[int, int, int, int]]) -> str:
    """Returns an SVG path of many boxes (x, y, width, height) with whole coordinates."""
    return "".join([f"M{x} {y}h{w}v{h}h-{w}z" for x, y, w, h in rectangles])


def coordinate(value: float) -> str:
    """A coordinate: pixels, with a tenth at most."""
    return f"{value:.1f}".removesuffix(".0")


def time_marks(length_ns: int, max_marks: int = 8) -> list[tuple[float, str]]:
    """Returns round times from 0 to a length, each as its share of the length and in words."""
    rough = length_ns / max_marks
    power = 10.0 ** math.floor(math.log10(max(rough, 1)))
    step = next(power * k for k in (1, 2, 5, 10) if power * k >= rough)
    marks = []
    for k in range(int(length_ns / step) + 1):
        marks.append((k * step / length_ns, seconds_words(k * step / 1e9) if k else "0"))
    return marks


def fits(text: str, width: float, size: float) -> bool:
    """Whether a text of a font size is not wider than so many pixels."""
    return len(text) * size * _LETTER <= width


def is_bright(colour: str) -> bool:
    """Returns whether dark letters can be read on a colour better than light ones."""
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    red, green, blue = (x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.19
