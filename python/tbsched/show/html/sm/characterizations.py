"""Measured instructions, as HTML."""

from __future__ import annotations

from markupsafe import Markup

from tbsched.show.html.pages import card, rendered
from tbsched.show.html.parts import folded_html, table_html, text_html
from tbsched.show.text.sm.characterizations import characterization_short, figures_table, notes
from tbsched.sm.characterization import Characterization, Measured


def characterization_html(found: Characterization) -> str:
    """A row per opcode, what was not measured, and bars of the two figures that matter most."""
    lines = notes(found)
    throughput = [(each.opcode, each.throughput) for each in found.figures]
    waits = [(each.opcode, each.dependence_wait) for each in found.figures]
    return card(
        characterization_short(found),
        table_html(figures_table(found)),
        *([text_html(lines)] if lines else []),
        *_bars("Results a clock, of one SM", throughput),
        *_bars("Clocks until a result can be read", waits),
    )


def _bars(heading: str, rows: list[tuple[str, Measured | None]]) -> list[Markup]:
    """A bar for each opcode that was measured; nothing if none was."""
    known = [(opcode, each.value) for opcode, each in rows if each is not None]
    longest = max((value for _, value in known), default=0.0)
    if longest <= 0:
        return []
    bars = [(opcode, 100 * value / longest, f"{value:.1f}") for opcode, value in known]
    return [folded_html(heading, rendered("bars.html", bars=bars), is_open=True)]
