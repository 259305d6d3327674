"""Variants of a kernel and their times, as HTML."""

from __future__ import annotations

from tbsched.show.html.pages import card
from tbsched.show.html.parts import table_html
from tbsched.show.text.sm.variants import (
    search_short,
    search_table,
    variants_short,
    variants_table,
)
from tbsched.sm.rewriting import Search, Variants


def variants_html(found: Variants) -> str:
    """A row per variant."""
    return card(variants_short(found), table_html(variants_table(found)))


def search_html(found: Search) -> str:
    """A row per variant, under whether the fastest one is really faster."""
    return card(search_short(found), table_html(search_table(found)))
