"""How many blocks of each launch are on each SM: a row per launch, a column per SM."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from tbsched.counting import counted
from tbsched.program.arrays import Int64Array
from tbsched.views.cards import heading_html, note_html
from tbsched.views.svg.markup import drawing, element, lines, titled
from tbsched.views.svg.shapes import boxes, coordinate

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


def levels_html(rows: Sequence[Level], heading: str, note: str) -> Markup:
    """Returns HTML: the rows; the more blocks an SM has, the stronger its colour is.

    Args:
        rows: one per launch, all of as many SMs.
        heading: above them.
        note: below them.
    """
    sms = len(rows[0].blocks)
    width = (_WIDTH - _MARGIN) / sms
    max_blocks = max(int(row.blocks.max()) for row in rows) or 1
    shades = []
    for index, row in enumerate(rows):
        for blocks in np.unique(row.blocks[row.blocks > 0]).tolist():
            edges = np.flatnonzero(np.diff(row.blocks == blocks, prepend=False, append=False))
            runs = edges.reshape(-1, 2).tolist()
            path = boxes(
                (_MARGIN + first * width, index * (_ROW + _GAP), (end - first) * width, _ROW)
                for first, end in runs
            )
            sm_count = int((row.blocks == blocks).sum())
            each_words = " each" if sm_count > 1 else ""
            title = (
                f"{row.name}\n{counted(sm_count, 'SM')} with {counted(blocks, 'block')}{each_words}"
            )
            opacity = f"{0.3 + 0.7 * blocks / max_blocks:.2f}"
            shape = element("path", opacity=opacity, d=path)
            shades.append(titled(title, shape, class_="span", fill=row.colour))
    height = len(rows) * (_ROW + _GAP)
    step = max(1, round(sms / _MARKS))
    tops = [index * (_ROW + _GAP) for index in range(len(rows))]
    titles = [
        element("text", row.title, x=_MARGIN - 8, y=top + 12, text_anchor="end")
        for row, top in zip(rows, tops, strict=True)
    ]
    marks = [
        element("text", f"SM {sm}", x=coordinate(_MARGIN + sm * width), y=height + _AXIS - 5)
        for sm in range(0, sms - step // 2, step)
    ]
    bands = boxes((_MARGIN, top, _WIDTH - _MARGIN, _ROW) for top in tops)
    parts = [element("path", class_="band", d=bands), *titles, *shades, *marks]
    picture = drawing(_WIDTH, height + _AXIS, heading, parts)
    return lines(heading_html(heading), picture, note_html(note))
