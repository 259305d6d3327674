"""How many blocks of each launch are on each SM: a row per launch, a column per SM."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from tbsched.program.arrays import Int64Array
from tbsched.views.cards import rendered
from tbsched.views.svg.shapes import boxes, coordinate
from tbsched.views.words import counted

_WIDTH, _MARGIN = 916, 96
_ROW, _GAP = 16, 3
_AXIS = 20
_MARKS = 8  # of SMs below


@dataclass(frozen=True, slots=True)
class Level:
    """A launch.

    Attributes:
        title: of its row.
        name: of the launch, shown when the mouse is over it.
        colour: ``#rrggbb``.
        blocks: int64 (sms,).
    """

    title: str
    name: str
    colour: str
    blocks: Int64Array


@dataclass(frozen=True, slots=True)
class _Shade:
    colour: str
    opacity: str
    path: str
    title: str


def levels_html(rows: Sequence[Level], heading: str, note: str) -> Markup:
    """The rows; the more blocks an SM has, the stronger its colour is.

    Args:
        rows: one per launch, all of as many SMs.
        heading: above them.
        note: below them.
    """
    sms = len(rows[0].blocks)
    wide = (_WIDTH - _MARGIN) / sms
    most = max(int(row.blocks.max()) for row in rows) or 1
    shades = []
    for place, row in enumerate(rows):
        for blocks in np.unique(row.blocks[row.blocks > 0]).tolist():
            there = np.flatnonzero(np.diff(row.blocks == blocks, prepend=False, append=False))
            runs = there.reshape(-1, 2).tolist()
            path = boxes(
                (_MARGIN + first * wide, place * (_ROW + _GAP), (end - first) * wide, _ROW)
                for first, end in runs
            )
            alike = int((row.blocks == blocks).sum())
            each = " each" if alike > 1 else ""
            title = f"{row.name}\n{counted(alike, 'SM')} with {counted(blocks, 'block')}{each}"
            opacity = f"{0.3 + 0.7 * blocks / most:.2f}"
            shades.append(_Shade(row.colour, opacity, path, title))
    height = len(rows) * (_ROW + _GAP)
    step = max(1, round(sms / _MARKS))
    return rendered(
        "levels.html",
        heading=heading,
        note=note,
        width=_WIDTH,
        height=height + _AXIS,
        margin=_MARGIN,
        bands=boxes(
            (_MARGIN, place * (_ROW + _GAP), _WIDTH - _MARGIN, _ROW) for place in range(len(rows))
        ),
        titles=[(row.title, place * (_ROW + _GAP) + 12) for place, row in enumerate(rows)],
        shades=shades,
        marks=[
            (coordinate(_MARGIN + sm * wide), f"SM {sm}") for sm in range(0, sms - step // 2, step)
        ],
    )
