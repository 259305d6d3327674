"""The map of SMs: a tile per SM, by TPC and GPC."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from tbsched.views.cards import heading_html, note_html
from tbsched.views.layout.topology import Row, Topology
from tbsched.views.svg.markup import drawing, element, lines, titled
from tbsched.views.svg.shapes import boxes, fits

_MARGIN = 58
_WIDTH = 916
_LABELLED = 18  # pixels; smaller tiles have no label
_SIZES = ((160, 32), (400, 20), (2**20, 14))  # pixels of a tile, by the largest number of SMs


@dataclass(frozen=True, slots=True)
class Fill:
    """A part of a tile, from its bottom up.

    Attributes:
        share: of the tile's height.
        colour: ``#rrggbb``, or empty.
        style: a class of the style sheet, in place of a colour.
    """

    share: float
    colour: str = ""
    style: str = ""


@dataclass(frozen=True, slots=True)
class Tile:
    """An SM.

    Attributes:
        title: what is shown when the mouse is over it.
        fills: from the bottom up.
        label: a few letters on it.
        style: of the label.
    """

    title: str
    fills: tuple[Fill, ...] = ()
    label: str = ""
    style: str = "in"


def map_html(
    topology: Topology, tiles: Sequence[Tile], heading: str, notes: Iterable[str] = ()
) -> Markup:
    """Returns HTML: the map of a device.

    Args:
        topology: where the SMs are.
        tiles: one per SM.
        heading: above it.
        notes: below it.
    """
    size = next(pixels for max_sms, pixels in _SIZES if len(tiles) <= max_sms)
    corners, titles, width, height = map_corners(topology, size)
    drawn, fills = [], dict[tuple[str, str], list[tuple[float, float, float, float]]]()
    for sm, tile in enumerate(tiles):
        x, y = corners[sm]
        bottom = y + size
        for fill in tile.fills:
            tall = fill.share * size
            bottom -= tall
            fills.setdefault((fill.colour, fill.style), []).append((x, bottom, size, tall))
        outline = element("path", class_="over", d=boxes([(x, y, size, size)]))
        label: str = ""
        if tile.label and size >= _LABELLED and fits(tile.label, size, 10):
            label = element(
                "text", tile.label, class_=tile.style, x=x + size / 2, y=y + size / 2 + 4,
                text_anchor="middle",
            )  # fmt: skip
        drawn.append(titled(tile.title, outline, label))
    paths = [
        element(
            "path", class_=f"still {style}".strip(), fill=colour or None, d=boxes(boxes_of_colour)
        )
        for (colour, style), boxes_of_colour in fills.items()
    ]
    names = [element("text", title, x=_MARGIN - 10, y=y, text_anchor="end") for title, y in titles]
    every = boxes((*corners[sm], size, size) for sm in range(len(tiles)))
    parts = [*names, element("path", class_="box", d=every), *paths, *drawn]
    picture = drawing(round(width), round(height), heading, parts)
    return lines(heading_html(heading), picture, *map(note_html, (*notes, topology.source)))


def map_corners(
    topology: Topology, size: int
) -> tuple[dict[int, tuple[float, float]], list[tuple[str, float]], float, float]:
    """Returns, in pixels, the left and upper corner of the tile of each SM; the title of each row
    with its lower end; and the width and the height of the map."""
    gap, between = (2, 8) if size > 16 else (1, 3)
    corners: dict[int, tuple[float, float]] = {}
    titles = []
    y, widest = 0.0, 0.0
    for row in topology.rows:
        titles.append((row.title, y + size / 2 + 4))
        for tpcs in _lines(row, (_WIDTH - _MARGIN) // (size + between)):
            x = float(_MARGIN)
            for tpc in tpcs:
                for sm in tpc:
                    corners[sm] = (x, y)
                    x += size + gap
                x += between - gap
            widest = max(widest, x)
            y += size + gap
        y += between if topology.gpc_of else 1
    return corners, titles, widest, y


def _lines(row: Row, max_sms: int) -> list[tuple[tuple[int, ...], ...]]:
    """Returns the TPCs of a row in lines of about one length, with at most so many SMs."""
    sms = sum(map(len, row.tpcs))
    lines = max(1, -(-sms // max_sms))
    tpcs_per_line = max(1, -(-len(row.tpcs) // lines))
    return [
        row.tpcs[first : first + tpcs_per_line] for first in range(0, len(row.tpcs), tpcs_per_line)
    ]
