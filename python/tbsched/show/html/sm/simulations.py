"""Simulated kernels, as HTML."""

from __future__ import annotations

from tbsched.show.html.pages import card
from tbsched.show.html.parts import folded_html, table_html, tiles_html
from tbsched.show.html.svg.simulations import cores_html, rows_html, warps_html
from tbsched.show.text.sm.simulations import (
    figures_table,
    simulation_short,
    simulations_short,
    simulations_table,
)
from tbsched.sm.results import Simulation, Simulations


def simulation_html(found: Simulation) -> str:
    """The main figures, when blocks ran and DRAM rows were open, and a row per figure."""
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
    table, more = simulations_table(found)
    return card(simulations_short(found), table_html(table, more=more))
