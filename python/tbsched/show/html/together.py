"""Whether launches fit beside each other, as HTML."""

from __future__ import annotations

from markupsafe import Markup

from tbsched.advice.together.capacities import Capacities
from tbsched.advice.together.capacity import Capacity
from tbsched.advice.together.coresident import Coresidency
from tbsched.advice.together.limits import Limit
from tbsched.show.html.pages import card
from tbsched.show.html.parts import keys_html, legend_html, note_html, table_html, tiles_html
from tbsched.show.html.svg.sm_map import Fill, Tile, map_html
from tbsched.show.layout.colours import PALETTE, colours_of
from tbsched.show.layout.names import cut
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
    stranded_words,
    witness_words,
)
from tbsched.show.words import counted
from tbsched.traces.placement import DeviceInfo

_OWN, _OTHERS = PALETTE[0], "#808890"
_NAME = 40


def capacity_html(found: Capacity) -> str:
    """A map with what each SM takes, and a row per class of SMs."""
    table, more = limits_table(found.limits, found.device)
    others = "blocks of the launches beside it" if found.beside else ""
    return card(
        capacity_short(found),
        tiles_html(
            (f"{found.blocks:,}", "blocks fit"),
            (f"{found.clusters:,}", "clusters"),
            (f"{len(found.idle_sms):,}", "idle SMs"),
        ),
        *_map_html(found.device, found.limits, (_OWN, named(found.launch)), others),
        table_html(table, more=more),
    )


def _map_html(
    device: DeviceInfo, limits: tuple[Limit, ...], own: tuple[str, str], others: str
) -> tuple[Markup, Markup]:
    """A legend, and the blocks on each SM.

    Args:
        device: the device.
        limits: what each class of SMs holds.
        own: colour and name of the launch that is asked about.
        others: what the grey blocks are; empty where there are none.
    """
    most = max([row.blocks + row.beside for row in limits] + [1])
    topology = topology_of(device)
    tiles = [Tile(topology.place_of(sm)) for sm in range(device.sms)]
    for row in limits:
        held = f"{counted(row.blocks, 'block')}, {row.beside} beside"
        why = f"one more: {cause_words(row.cause, device)}"
        fills = (Fill(row.beside / most, _OTHERS), Fill(row.blocks / most, own[0]))
        drawn = tuple(fill for fill in fills if fill.share)
        for sm in row.sms:
            tiles[sm] = Tile(f"{topology.place_of(sm)}\n{held}\n{why}", drawn)
    keys = [own] + ([(_OTHERS, others)] if others else [])
    note = f"A full tile is {counted(most, 'block')}, the most on any SM."
    return keys_html(keys), map_html(topology, tiles, "Blocks on each SM", [note])


def capacities_html(found: Capacities) -> str:
    """A row per choice."""
    table, more = capacities_table(found)
    return card(capacities_short(found), table_html(table, more=more))


def coresidency_html(found: Coresidency) -> str:
    """The answer with its reason; unless it is yes, what strands a block, and what to change."""
    parts = [legend_html(found.launches)]
    if found.witness is not None:
        rows = [*rows_of(found.witness)]
        colours = colours_of(found.witness.launches)
        marks = ["transparent" if row.launch is None else colours[row.launch] for row in rows]
        parts.append(table_html(rows_table(rows), witness_words(found), marks=marks))
        if found.limits:
            table, more = limits_table(found.limits, found.device)
            own = (
                colours_of(found.launches)[found.stranded or 0],
                cut(stranded_words(found), _NAME),
            )
            others = "blocks of the other launches"
            parts += _map_html(found.device, found.limits, own, others)
            parts.append(table_html(table, limits_words(found), more))
    if found.fixes:
        parts.append(table_html(fixes_table(found), fixes_words(found)))
    elif not found.safe:
        parts.append(note_html(fixes_words(found)))
    return card(coresidency_short(found), *parts)
