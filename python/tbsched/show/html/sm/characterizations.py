"""Measured instructions, as HTML."""

from __future__ import annotations

from tbsched.show.html.pages import card
from tbsched.show.html.parts import table_html, text_html
from tbsched.show.text.sm.characterizations import characterization_short, figures_table, notes
from tbsched.sm.characterization import Characterization


def characterization_html(found: Characterization) -> str:
    """A row per opcode, and what was not measured."""
    parts = [table_html(figures_table(found))]
    lines = notes(found)
    return card(characterization_short(found), *parts, *([text_html(lines)] if lines else []))
