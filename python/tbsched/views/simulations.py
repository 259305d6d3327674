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


def blocks_on_cores(simulation: Simulation) -> Stays:
    """Returns which block was on which core from when until when."""
    core = simulation.core.astype(np.int64)
    return _stays(
        core, np.arange(len(core)), simulation.start, simulation.end, simulation.config["core_mhz"]
    )


def warps_of(simulation: Simulation, core: int) -> Stays:
    """Returns from when until when each warp of a core could issue; nothing if that was not asked
    for."""
    if simulation.warps is None:
        nothing = np.empty(0, np.int64)
        return Stays(nothing, nothing, nothing, nothing)
    core_rows = simulation.warps[simulation.warps["core"] == core]
    warp = core_rows["warp"].astype(np.int64)
    return _stays(warp, warp, core_rows["begin"], core_rows["end"], simulation.config["core_mhz"])


def open_rows(simulation: Simulation, controller: int) -> Stays:
    """Returns from when until when banks kept rows open; nothing if commands were not recorded."""
    if simulation.commands is None:
        nothing = np.empty(0, np.int64)
        return Stays(nothing, nothing, nothing, nothing)
    controller_rows = simulation.commands[simulation.commands["controller"] == controller]
    return _stays(*_open_rows(controller_rows), simulation.config["dram_mhz"])


def _stays(
    row: Int64Array,
    name: Int64Array,
    begin: Int64Array,
    end: Int64Array,
    clock_mhz: float,
) -> Stays:
    """Returns what was at which row from when until when, with times in ns. ``begin`` and ``end``
    are in cycles of a clock."""
    times = (np.asarray(np.round(cycles * (1000 / clock_mhz)), np.int64) for cycles in (begin, end))
    return Stays(row, name, *times)


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


def simulation_short(simulation: Simulation) -> str:
    """Returns what ran, and how fast."""
    return (
        f"{simulation.workload} with {simulation.scheduler} on {simulation.config.name}: "
        f"{simulation.ipc:.3f} warp "
        f"instructions a cycle"
    )


def simulation_text(simulation: Simulation) -> Lines:
    """A row per figure."""
    return [simulation_short(simulation), figures_table(simulation)]


def figures_table(simulation: Simulation) -> Table:
    """Returns what it counted, and what follows from it."""
    share = [
        ("issue slots without an instruction", simulation.inactive),
        ("time that all warps of a core wait for memory", simulation.memory_blocked),
        ("time that a core has no warp", simulation.without_warps),
        ("L1 misses, of lines loaded", simulation.l1_miss_rate),
        ("L2 hits, of lines asked for", simulation.l2_hit_rate),
        ("row hits, of lines read and written", simulation.row_hit_rate),
    ]
    rows = [(share_name, f"{100 * value:.1f} %") for share_name, value in share]
    rows += [
        ("banks with requests, while any has", f"{simulation.bank_parallelism:.1f}"),
        ("core cycles from an L1 miss to its line", f"{simulation.latency:.0f}"),
        ("DRAM cycles from a read's arrival to its command", f"{simulation.queueing:.0f}"),
    ]
    counts = ((name.replace("_", " "), f"{value:,}") for name, value in simulation.counts.items())
    return table_of(("figure", "value"), [*rows, *counts])


def simulations_short(simulations: Simulations) -> str:
    """How many there are."""
    return counted(len(simulations), "simulation")


def simulations_text(simulations: Simulations) -> Lines:
    """A row per simulation."""
    return [simulations_table(simulations)]


def simulations_table(simulations: Simulations) -> Table:
    """Returns a table with a row per simulation."""
    rows = [
        (
            row.workload, row.config.name, row.scheduler, f"{row.ipc:.3f}",
            f"{simulations.speedup(index):.2f}", f"{100 * row.l1_miss_rate:.1f}",
            f"{100 * row.l2_hit_rate:.1f}", f"{100 * row.row_hit_rate:.1f}",
            f"{row.bank_parallelism:.1f}", f"{row.latency:.0f}",
            f"{100 * row.memory_blocked:.1f}",
        )
        for index, row in enumerate(simulations.rows[:_ROWS_SHOWN])
    ]  # fmt: skip
    headings = (
        "workload", "config", "scheduler", "IPC", "to the first", "L1 misses, %", "L2 hits, %",
        "row hits, %", "banks", "latency", "blocked, %",
    )  # fmt: skip
    return table_of(headings, rows, (0, 1, 2), more_of(len(simulations), len(rows), "simulation"))


def cores_html(simulation: Simulation) -> Markup:
    """Returns HTML: a row per core, a span per block."""
    stays = blocks_on_cores(simulation)
    titles = tuple(f"core {index}" for index in range(int(simulation.config["cores"])))
    content = counted(len(stays.what), "block")
    return _timeline(stays, titles, simulation, ("block", content, "blocks on the cores"))


def warps_html(simulation: Simulation) -> Markup:
    """Returns HTML: a row per warp of the first core; a span is a time in which it could issue."""
    stays = warps_of(simulation, 0)
    titles = _titles("warp", stays)
    content = counted(len(stays.what), "time")
    return _timeline(stays, titles, simulation, ("warp", content, "warps that can issue"))


def rows_html(simulation: Simulation) -> Markup:
    """Returns HTML: a row per bank of the first memory controller; a span is a DRAM row while it is
    open."""
    stays = open_rows(simulation, 0)
    content = f"{len(stays.what):,} open rows"
    return _timeline(
        stays, _titles("bank", stays), simulation, ("row", content, "open rows of DRAM")
    )


def _titles(word: str, stays: Stays) -> tuple[str, ...]:
    return tuple(f"{word} {index}" for index in range(int(stays.place.max(initial=0)) + 1))


def _timeline(
    stays: Stays, titles: tuple[str, ...], simulation: Simulation, words: tuple[str, str, str]
) -> Markup:
    """Returns a picture of stays whose axis has the whole time of the kernel.

    Args:
        stays: what is shown.
        titles: of the rows.
        simulation: whose time it is.
        words: what a span is, how many there are, and the heading.
    """
    word, content, heading = words
    spans = spans_of(titles, stays.place, stays.what, stays.begin_ns, stays.end_ns, content)
    end_ns = round(simulation.counts["cycles"] * 1000 / int(simulation.config["core_mhz"]))
    last_ns = int(spans.end_ns.max(initial=1))
    spans = dataclasses.replace(spans, zero_ns=0, length_ns=max(end_ns, last_ns))
    count = int(stays.what.max(initial=0)) + 1
    colours = [PALETTE[row % len(PALETTE)] for row in range(count)]
    names = Names(colours, lambda row: f"{word} {row}", lambda row: f"{word} {row}")
    return timeline_html(Frame(spans, *_ROWS), names, heading)


def simulation_html(simulation: Simulation) -> str:
    """Returns HTML: main figures, when blocks ran and DRAM rows were open, all figures."""
    pictures = [folded_html("Blocks over time, by core", cores_html(simulation), is_open=True)]
    if simulation.warps is not None and len(simulation.warps):
        words = "Warps of core 0 over time: coloured while they can issue; else they wait"
        pictures.append(folded_html(words, warps_html(simulation), is_open=True))
    if simulation.commands is not None and len(simulation.commands):
        words = "Open DRAM rows over time, by bank of the first memory controller"
        pictures.append(folded_html(words, rows_html(simulation), is_open=True))
    return card(
        simulation_short(simulation),
        tiles_html(
            (f"{simulation.ipc:.3f}", "warp instructions a cycle"),
            (f"{100 * simulation.l1_miss_rate:.1f} %", "L1 misses"),
            (f"{100 * simulation.row_hit_rate:.1f} %", "row hits"),
            (f"{simulation.bank_parallelism:.1f}", "banks with requests"),
        ),
        *pictures,
        folded_html("All figures", table_html(figures_table(simulation))),
    )


def simulations_html(simulations: Simulations) -> str:
    """A row per simulation."""
    return card(simulations_short(simulations), simulations_table(simulations))


def simulation_columns(simulation: Simulation) -> dict[str, Any]:
    """A row per block."""
    times = {name: getattr(simulation, name) for name in ("core", "start", "end")}
    return {"block": list(range(len(simulation.core))), **times}


def simulations_columns(simulations: Simulations) -> dict[str, Any]:
    """Returns columns with a row per simulation."""
    return {
        **columns_of(simulations, f"workload scheduler ipc {_FIGURES} config=config.name"),
        "speedup": [simulations.speedup(index) for index in range(len(simulations))],
        **{name: [row.counts[name] for row in simulations] for name in ("cycles", "instructions")},
    }


def simulation_data(simulation: Simulation) -> dict[str, Any]:
    """What ran, the figures, the counts, and when each block ran."""
    field_names = "workload scheduler config=config.name ipc"
    return fields(simulation, f"{field_names} {_FIGURES} counts core start end")


def simulations_data(simulations: Simulations) -> list[dict[str, Any]]:
    """Returns JSON data of each simulation, with its speedup over the first of its workload."""
    return [
        {**simulation_data(row), "speedup": simulations.speedup(index)}
        for index, row in enumerate(simulations)
    ]
