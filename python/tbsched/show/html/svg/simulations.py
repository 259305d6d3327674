"""What a simulated GPU did over time: blocks on its cores, and open rows of its DRAM."""

from __future__ import annotations

import dataclasses

import numpy as np
from markupsafe import Markup

from tbsched.program.arrays import Int64Array, StructuredArray
from tbsched.show.html.svg.timeline import Frame, Names, timeline_html
from tbsched.show.layout.colours import PALETTE
from tbsched.show.layout.lanes import Spans, spans_of
from tbsched.sm.results import Simulation

_ROWS = (420, 26, 13)  # pixels: of all rows, and of one at most and at least
_ACTIVATE, _PRECHARGE = 0, 3  # of the kinds of commands


def cores_html(found: Simulation) -> Markup:
    """A row per core, a span per block."""
    clock = int(found.config["core_mhz"])
    core = found.core.astype(np.int64)
    titles = tuple(f"core {number}" for number in range(int(found.config["cores"])))
    blocks = np.arange(len(core))
    times = (_ns(found.start, clock), _ns(found.end, clock))
    spans = spans_of(titles, core, blocks, *times, f"{len(core):,} blocks")
    return _timeline(spans, found, "block", len(core), "blocks on the cores")


def rows_html(found: Simulation) -> Markup:
    """A row per bank of the first memory controller; a span is a DRAM row while it is open."""
    assert found.commands is not None
    own = found.commands[found.commands["controller"] == 0]
    bank, row, begin, end = _open_rows(own)
    clock = int(found.config["dram_mhz"])
    titles = tuple(f"bank {number}" for number in range(int(bank.max(initial=0)) + 1))
    times = (_ns(begin, clock), _ns(end, clock))
    spans = spans_of(titles, bank, row, *times, f"{len(row):,} open rows")
    return _timeline(spans, found, "row", int(row.max(initial=0)) + 1, "open rows of DRAM")


def _ns(cycles: Int64Array, clock_mhz: int) -> Int64Array:
    return np.asarray(np.round(cycles * (1000 / clock_mhz)), np.int64)


def _timeline(spans: Spans, found: Simulation, what: str, count: int, heading: str) -> Markup:
    """Both pictures have the whole time of the kernel on their axis."""
    end_ns = round(found.counts["cycles"] * 1000 / int(found.config["core_mhz"]))
    last_ns = int(spans.end_ns.max(initial=1))
    spans = dataclasses.replace(spans, zero_ns=0, length_ns=max(end_ns, last_ns))
    colours = [PALETTE[number % len(PALETTE)] for number in range(count)]
    names = Names(colours, lambda number: f"{what} {number}", lambda number: f"{what} {number}")
    return timeline_html(Frame(spans, *_ROWS), names, heading)


def _open_rows(commands: StructuredArray) -> tuple[Int64Array, Int64Array, Int64Array, Int64Array]:
    """From each activate to the next activate or precharge of its bank: bank, row, begin, end."""
    kind = commands["kind"]
    moves = commands[(kind == _ACTIVATE) | (kind == _PRECHARGE)]
    moves = moves[np.argsort(moves["bank"], kind="stable")]
    bank, cycle = moves["bank"].astype(np.int64), moves["cycle"].astype(np.int64)
    last = int(commands["cycle"].max(initial=0))
    end = np.append(cycle[1:], last)
    end[:-1][bank[1:] != bank[:-1]] = last
    opened = moves["kind"] == _ACTIVATE
    return bank[opened], moves["row"].astype(np.int64)[opened], cycle[opened], end[opened]
