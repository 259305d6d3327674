"""What sits on each SM at several moments, of which the reader chooses one: no script is needed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup

from tbsched.program.arrays import StructuredArray
from tbsched.traces.trace import Trace
from tbsched.views.layout.sms import Standing, standing
from tbsched.views.layout.topology import topology_of
from tbsched.views.svg.markup import block, drawing, element
from tbsched.views.svg.shapes import boxes
from tbsched.views.svg.sm_map import map_corners
from tbsched.views.words import seconds_words

_MOMENTS = 10  # the style sheet has a rule for each
_SIZE = 20  # pixels of an SM
_MAX_SMS, _MAX_EVENTS, _MAX_BLOCKS = 400, 200, 200_000  # of larger traces a page would be slow
_Box = tuple[float, float, float, float]


def moments_html(
    trace: Trace, colours: Sequence[str], ran: StructuredArray | None = None
) -> Markup:
    """Returns HTML: a map for each of some moments, evenly chosen; nothing where there is only one.

    Args:
        trace: predicted or observed.
        colours: of the launches.
        ran: of a trace with times, the blocks that ran.
    """
    moments = _moments(trace, ran)
    if len(moments) < 2 or trace.device.sms > _MAX_SMS:
        return Markup()
    moments_drawn = [standing(trace, at, ran=ran) for at, _ in moments]
    max_blocks = max(
        1, *(int(residents.blocks_per_sm.max(initial=0)) for residents in moments_drawn)
    )
    corners, titles, width, height = map_corners(topology_of(trace.device), _SIZE)
    every = range(trace.device.sms)
    choices = [
        element(
            "label",
            element("input", type="radio", name="moment", class_=f"r{k}",
                    checked=k == len(moments) - 1),
            words,
        )
        for k, (_, words) in enumerate(moments)
    ]  # fmt: skip
    names = [element("text", title, x=48, y=y, text_anchor="end") for title, y in titles]
    tiles = element("path", class_="box", d=boxes((*corners[sm], _SIZE, _SIZE) for sm in every))
    shown = []
    for k, residents in enumerate(moments_drawn):
        fills = _fills(residents, max_blocks, corners, colours).items()
        paths = [
            element("path", fill=colour, d=boxes(boxes_of_colour))
            for colour, boxes_of_colour in fills
        ]
        shown.append(element("g", *paths, class_=f"m m{k}"))
    about = "blocks on each SM at a chosen moment"
    picture = drawing(round(width), round(height), about, [*names, tiles, *shown])
    return block("form", [*choices, picture], class_="moments")


def _moments(trace: Trace, ran: StructuredArray | None) -> list[tuple[float, str]]:
    """Returns what ``standing`` takes, and the moment in a word or two."""
    if ran is None:
        events = len(trace.sequence)
        if events > _MAX_EVENTS:
            return []
        chosen = np.unique(np.linspace(1, events, _MOMENTS).round().astype(int)).tolist()
        return [(index, f"after event {index}") for index in chosen]
    if not 1 < len(ran) <= _MAX_BLOCKS:
        return []
    first, last = int(ran["start_ns"].min()), int(ran["end_ns"].max())
    times = np.unique(np.linspace(first, last, _MOMENTS, endpoint=False).astype(np.int64)).tolist()
    return [(time / 1e9, seconds_words((time - first) / 1e9) if time > first else "0 s")
            for time in times]  # fmt: skip


def _fills(
    residents: Standing,
    max_blocks: int,
    corners: dict[int, tuple[float, float]],
    colours: Sequence[str],
) -> dict[str, list[_Box]]:
    """Returns rectangles by colour; a full tile has the most blocks of any SM at any time."""
    fills: dict[str, list[_Box]] = {}
    filled: dict[int, float] = {}
    rows = zip(
        residents.sm.tolist(), residents.launch.tolist(), residents.blocks.tolist(), strict=True
    )
    for sm, launch, blocks in rows:
        tall = _SIZE * blocks / max_blocks
        x, y = corners[sm]
        filled[sm] = filled.get(sm, 0.0) + tall
        box = (x, y + _SIZE - filled[sm], _SIZE, tall)
        fills.setdefault(colours[launch], []).append(box)
    return fills
