"""Whether launches fit beside each other, as HTML."""

from __future__ import annotations

from tbsched.advice.together.capacities import Capacities
from tbsched.advice.together.capacity import Capacity
from tbsched.advice.together.coresident import Coresidency
from tbsched.show.html.pages import card
from tbsched.show.html.parts import keys_html, legend_html, note_html, table_html, tiles_html
from tbsched.show.html.svg.sm_map import Fill, Tile, map_html
from tbsched.show.layout.colours import PALETTE, colours_of
from tbsched.show.layout.topology import topology_of
from tbsched.show.text.sequences import rows_of, rows_table
from tbsched.show.text.together import (
    capacities_short,
    capacities_table,
    capacity_short,
    cause_words,
    coresidency_short,
    fixes_table,
    fixes_words,
    limits_table,
    limits_words,
    named,
    witness_words,
)
from tbsched.show.words import counted

_OWN, _OTHERS = PALETTE[0], "#808890"


def capacity_html(found: Capacity) -> str:
    """A map with what each SM takes, and a row per class of SMs."""
    table, more = limits_table(found.limits, found.device)
    topology = topology_of(found.device)
    most = max(int((found.per_sm + found.beside_per_sm).max(initial=0)), 1)
    causes = {sm: row.cause for row in found.limits for sm in row.sms}
    tiles = []
    columns = zip(found.per_sm.tolist(), found.beside_per_sm.tolist(), strict=True)
    for sm, (own, others) in enumerate(columns):
        why = f"one more: {cause_words(causes[sm], found.device)}"
        lines = [topology.place_of(sm), f"{counted(own, 'block')}, {others} beside", why]
        fills = (Fill(others / most, _OTHERS), Fill(own / most, _OWN))
        tiles.append(Tile("\n".join(lines), tuple(fill for fill in fills if fill.share)))
    note = f"A full tile is {counted(most, 'block')}, the most on any SM."
    keys = [(_OWN, named(found.launch))]
    if found.beside:
        keys.append((_OTHERS, "blocks of the launches beside it"))
    return card(
        capacity_short(found),
        tiles_html(
            (f"{found.blocks:,}", "blocks fit"),
            (f"{found.clusters:,}", "clusters"),
            (f"{len(found.idle_sms):,}", "idle SMs"),
        ),
        keys_html(keys),
        map_html(topology, tiles, "Blocks on each SM", [note]),
        table_html(table, more=more),
    )


def capacities_html(found: Capacities) -> str:
    """A row per choice."""
    table, more = capacities_table(found)
    return card(capacities_short(found), table_html(table, more=more))


def coresidency_html(found: Coresidency) -> str:
    """The answer with its reason; if it is no, what strands a block, and what to change."""
    parts = [legend_html(found.launches)]
    if found.witness is not None:
        rows = [*rows_of(found.witness)]
        colours = colours_of(found.witness.launches)
        marks = ["transparent" if row.launch is None else colours[row.launch] for row in rows]
        parts.append(table_html(rows_table(rows), witness_words(found), marks=marks))
        if found.limits:
            table, more = limits_table(found.limits, found.device)
            parts.append(table_html(table, limits_words(found), more))
        if found.fixes:
            parts.append(table_html(fixes_table(found), fixes_words(found)))
        else:
            parts.append(note_html(fixes_words(found)))
    return card(coresidency_short(found), *parts)
