"""What a simulated GPU did over time: blocks on its cores, warps of one, and open rows of DRAM."""

from __future__ import annotations

import dataclasses

from markupsafe import Markup

from tbsched.show.html.svg.timeline import Frame, Names, timeline_html
from tbsched.show.layout.colours import PALETTE
from tbsched.show.layout.lanes import spans_of
from tbsched.show.layout.simulated import Stays, blocks_on_cores, open_rows, warps_of
from tbsched.sm.results import Simulation

_ROWS = (420, 26, 13)  # pixels: of all rows, and of one at most and at least


def cores_html(found: Simulation) -> Markup:
    """A row per core, a span per block."""
    stays = blocks_on_cores(found)
    titles = tuple(f"core {number}" for number in range(int(found.config["cores"])))
    what = f"{len(stays.what):,} blocks"
    return _timeline(stays, titles, found, ("block", what, "blocks on the cores"))


def warps_html(found: Simulation) -> Markup:
    """A row per warp of the first core; a span is a time in which it could issue."""
    stays = warps_of(found, 0)
    titles = _titles("warp", stays)
    what = f"{len(stays.what):,} times"
    return _timeline(stays, titles, found, ("warp", what, "warps that can issue"))


def rows_html(found: Simulation) -> Markup:
    """A row per bank of the first memory controller; a span is a DRAM row while it is open."""
    stays = open_rows(found, 0)
    what = f"{len(stays.what):,} open rows"
    return _timeline(stays, _titles("bank", stays), found, ("row", what, "open rows of DRAM"))


def _titles(word: str, stays: Stays) -> tuple[str, ...]:
    return tuple(f"{word} {number}" for number in range(int(stays.place.max(initial=0)) + 1))


def _timeline(
    stays: Stays, titles: tuple[str, ...], found: Simulation, words: tuple[str, str, str]
) -> Markup:
    """All pictures have the whole time of the kernel on their axis.

    Args:
        stays: what is shown.
        titles: of the rows.
        found: whose time it is.
        words: what a span is, how many there are, and the heading.
    """
    word, what, heading = words
    spans = spans_of(titles, stays.place, stays.what, stays.begin_ns, stays.end_ns, what)
    end_ns = round(found.counts["cycles"] * 1000 / int(found.config["core_mhz"]))
    last_ns = int(spans.end_ns.max(initial=1))
    spans = dataclasses.replace(spans, zero_ns=0, length_ns=max(end_ns, last_ns))
    count = int(stays.what.max(initial=0)) + 1
    colours = [PALETTE[number % len(PALETTE)] for number in range(count)]
    names = Names(colours, lambda number: f"{word} {number}", lambda number: f"{word} {number}")
    return timeline_html(Frame(spans, *_ROWS), names, heading)
