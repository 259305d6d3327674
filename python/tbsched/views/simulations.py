"""Simulated kernels: their figures, and what the GPU did over time."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup

from tbsched.counting import counted
from tbsched.program.arrays import HoldsArrays, Int64Array, StructuredArray
from tbsched.sm.results import Simulation, Simulations
from tbsched.views.cards import card, folded_html, table_html, tiles_html
from tbsched.views.layout.colours import PALETTE
from tbsched.views.layout.lanes import spans_of
from tbsched.views.plain import columns_of, fields
from tbsched.views.svg.timeline import Frame, Names, timeline_html
from tbsched.views.tables import Lines, Table, table_of
from tbsched.views.words import more_of

_ACTIVATE, _PRECHARGE = 0, 3  # of the kinds of commands
_ROWS_SHOWN = 60
_FIGURES = (
    "inactive memory_blocked without_warps l1_miss_rate l2_hit_rate row_hit_rate bank_parallelism "
    "latency queueing"
)
_ROWS = (420, 26, 13)  # pixels: of all rows, and of one at most and at least


@dataclass(frozen=True, eq=False, slots=True)
class Stays(HoldsArrays):
    """What was where, and for how long, int64 (rows,) each.

    Attributes:
        place: a core, a warp of it, or a bank.
        what: a block, a warp, or a DRAM row.
        begin_ns, end_ns: from the start of the kernel on.
    """

    place: Int64Array
    what: Int64Array
    begin_ns: Int64Array
    end_ns: Int64Array


def blocks_on_cores(found: Simulation) -> Stays:
    """The blocks of each core."""
    core = found.core.astype(np.int64)
    return _stays(core, np.arange(len(core)), found.start, found.end, found.config["core_mhz"])


def warps_of(found: Simulation, core: int) -> Stays:
    """Returns when each warp of a core could issue; nothing if nobody asked for it."""
    if found.warps is None:
        nothing = np.empty(0, np.int64)
        return Stays(nothing, nothing, nothing, nothing)
    own = found.warps[found.warps["core"] == core]
    warp = own["warp"].astype(np.int64)
    return _stays(warp, warp, own["begin"], own["end"], found.config["core_mhz"])


def open_rows(found: Simulation, controller: int) -> Stays:
    """Returns how long banks kept rows open; nothing if commands were not recorded."""
    if found.commands is None:
        nothing = np.empty(0, np.int64)
        return Stays(nothing, nothing, nothing, nothing)
    own = found.commands[found.commands["controller"] == controller]
    return _stays(*_open_rows(own), found.config["dram_mhz"])


def _stays(
    place: Int64Array, what: Int64Array, begin: Int64Array, end: Int64Array, clock_mhz: float
) -> Stays:
    times = (np.asarray(np.round(cycles * (1000 / clock_mhz)), np.int64) for cycles in (begin, end))
    return Stays(place, what, *times)


def _open_rows(commands: StructuredArray) -> tuple[Int64Array, Int64Array, Int64Array, Int64Array]:
    """Returns bank, row, begin and end in cycles of the DRAM clock."""
    kind = commands["kind"]
    moves = commands[(kind == _ACTIVATE) | (kind == _PRECHARGE)]
    moves = moves[np.argsort(moves["bank"], kind="stable")]
    bank, cycle = moves["bank"].astype(np.int64), moves["cycle"].astype(np.int64)
    last = int(commands["cycle"].max(initial=0))
    end = np.append(cycle[1:], last)
    end[:-1][bank[1:] != bank[:-1]] = last
    opened = moves["kind"] == _ACTIVATE
    return bank[opened], moves["row"].astype(np.int64)[opened], cycle[opened], end[opened]


def simulation_short(found: Simulation) -> str:
    """Returns what ran, and how fast."""
    return (
        f"{found.workload} with {found.scheduler} on {found.config.name}: {found.ipc:.3f} warp "
        f"instructions a cycle"
    )


def simulation_text(found: Simulation) -> Lines:
    """A row per figure."""
    return [simulation_short(found), figures_table(found)]


def figures_table(found: Simulation) -> Table:
    """Returns what it counted, and what follows from it."""
    share = [
        ("issue slots without an instruction", found.inactive),
        ("time that all warps of a core wait for memory", found.memory_blocked),
        ("time that a core has no warp", found.without_warps),
        ("L1 misses, of lines loaded", found.l1_miss_rate),
        ("L2 hits, of lines asked for", found.l2_hit_rate),
        ("row hits, of lines read and written", found.row_hit_rate),
    ]
    rows = [(what, f"{100 * value:.1f} %") for what, value in share]
    rows += [
        ("banks with requests, while any has", f"{found.bank_parallelism:.1f}"),
        ("core cycles from an L1 miss to its line", f"{found.latency:.0f}"),
        ("DRAM cycles from a read's arrival to its command", f"{found.queueing:.0f}"),
    ]
    counts = ((name.replace("_", " "), f"{value:,}") for name, value in found.counts.items())
    return table_of(("figure", "value"), [*rows, *counts])


def simulations_short(found: Simulations) -> str:
    """How many there are."""
    return counted(len(found), "simulation")


def simulations_text(found: Simulations) -> Lines:
    """A row per simulation."""
    return [simulations_table(found)]


def simulations_table(found: Simulations) -> Table:
    """Returns a table with a row per simulation."""
    rows = [
        (
            row.workload, row.config.name, row.scheduler, f"{row.ipc:.3f}",
            f"{found.speedup(number):.2f}", f"{100 * row.l1_miss_rate:.1f}",
            f"{100 * row.l2_hit_rate:.1f}", f"{100 * row.row_hit_rate:.1f}",
            f"{row.bank_parallelism:.1f}", f"{row.latency:.0f}",
            f"{100 * row.memory_blocked:.1f}",
        )
        for number, row in enumerate(found.rows[:_ROWS_SHOWN])
    ]  # fmt: skip
    headings = (
        "workload", "config", "scheduler", "IPC", "to the first", "L1 misses, %", "L2 hits, %",
        "row hits, %", "banks", "latency", "blocked, %",
    )  # fmt: skip
    return table_of(headings, rows, (0, 1, 2), more_of(len(found), len(rows), "simulation"))


def cores_html(found: Simulation) -> Markup:
    """Returns HTML: a row per core, a span per block."""
    stays = blocks_on_cores(found)
    titles = tuple(f"core {number}" for number in range(int(found.config["cores"])))
    what = counted(len(stays.what), "block")
    return _timeline(stays, titles, found, ("block", what, "blocks on the cores"))


def warps_html(found: Simulation) -> Markup:
    """Returns HTML: a row per warp of the first core; a span is a time in which it could issue."""
    stays = warps_of(found, 0)
    titles = _titles("warp", stays)
    what = counted(len(stays.what), "time")
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
    """Returns a picture of stays whose axis has the whole time of the kernel.

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


def simulation_html(found: Simulation) -> str:
    """Returns HTML: main figures, when blocks ran and DRAM rows were open, all figures."""
    pictures = [folded_html("Blocks over time, by core", cores_html(found), is_open=True)]
    if found.warps is not None and len(found.warps):
        words = "Warps of core 0 over time: coloured while they can issue; else they wait"
        pictures.append(folded_html(words, warps_html(found), is_open=True))
    if found.commands is not None and len(found.commands):
        words = "Open DRAM rows over time, by bank of the first memory controller"
        pictures.append(folded_html(words, rows_html(found), is_open=True))
    return card(
        simulation_short(found),
        tiles_html(
            (f"{found.ipc:.3f}", "warp instructions a cycle"),
            (f"{100 * found.l1_miss_rate:.1f} %", "L1 misses"),
            (f"{100 * found.row_hit_rate:.1f} %", "row hits"),
            (f"{found.bank_parallelism:.1f}", "banks with requests"),
        ),
        *pictures,
        folded_html("All figures", table_html(figures_table(found))),
    )


def simulations_html(found: Simulations) -> str:
    """A row per simulation."""
    return card(simulations_short(found), simulations_table(found))


def simulation_columns(found: Simulation) -> dict[str, Any]:
    """A row per block."""
    times = {name: getattr(found, name) for name in ("core", "start", "end")}
    return {"block": list(range(len(found.core))), **times}


def simulations_columns(found: Simulations) -> dict[str, Any]:
    """Returns columns with a row per simulation."""
    return {
        **columns_of(found, f"workload scheduler ipc {_FIGURES} config=config.name"),
        "speedup": [found.speedup(number) for number in range(len(found))],
        **{name: [row.counts[name] for row in found] for name in ("cycles", "instructions")},
    }


def simulation_data(found: Simulation) -> dict[str, Any]:
    """What ran, the figures, the counts, and when each block ran."""
    what = "workload scheduler config=config.name ipc"
    return fields(found, f"{what} {_FIGURES} counts core start end")


def simulations_data(found: Simulations) -> list[dict[str, Any]]:
    """Returns JSON data of each simulation, with its speedup over the first of its workload."""
    return [
        {**simulation_data(row), "speedup": found.speedup(number)}
        for number, row in enumerate(found)
    ]
