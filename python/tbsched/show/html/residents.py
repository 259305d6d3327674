"""What every SM holds at one moment, as HTML."""

from __future__ import annotations

from markupsafe import Markup

from tbsched.show.html.pages import card
from tbsched.show.html.parts import keys_html, more_of, table_html
from tbsched.show.html.svg.sm_map import Fill, Tile, map_html
from tbsched.show.layout.colours import colours_of_names
from tbsched.show.layout.names import cut
from tbsched.show.layout.sms import fullest, usage_of
from tbsched.show.layout.topology import topology_of
from tbsched.show.text.residents import kinds_table, residents_short
from tbsched.show.words import counted
from tbsched.traces.residents import Residents

_NAME = 36
_KEYS_SHOWN = 12
_LAUNCHES_SHOWN = 6


def residents_html(held: Residents) -> str:
    """A map with what each SM holds, and a row for each kind of SM."""
    table, more = kinds_table(held)
    return card(
        residents_short(held), keys_html(_keys(held)), _map(held), table_html(table, more=more)
    )


def _keys(held: Residents) -> list[tuple[str, str]]:
    """The colour and the name of each launch that is there."""
    colours = colours_of_names(held.names)
    keys = {}
    for launch in dict.fromkeys(held.rows["launch"].tolist()):
        keys[held.names[launch] or launch] = (colours[launch], _name(held, launch))
    return list(keys.values())[:_KEYS_SHOWN]


def _name(held: Residents, launch: int) -> str:
    name = held.names[launch]
    return cut(name, _NAME) if name else f"launch {launch}"


def _map(held: Residents) -> Markup:
    topology = topology_of(held.device)
    colours = colours_of_names(held.names)
    usage = usage_of(held)
    most = max(int(held.used_slots.max(initial=0)), 1)
    of_sms: list[dict[int, int]] = [{} for _ in range(held.device.sms)]
    columns = (held.rows[name].tolist() for name in ("launch", "sm", "blocks"))
    for launch, sm, blocks in zip(*columns, strict=True):
        of_sms[sm][launch] = of_sms[sm].get(launch, 0) + blocks
    tiles = []
    for sm, own in enumerate(of_sms):
        lines = [topology.place_of(sm)]
        for launch, blocks in list(own.items())[:_LAUNCHES_SHOWN]:
            lines.append(f"{_name(held, launch)}: {counted(blocks, 'block')}")
        if len(own) > _LAUNCHES_SHOWN:
            lines.append(more_of(len(own), _LAUNCHES_SHOWN, "launch", "launches"))
        lines += [f"{one.used[sm]:,} of {one.limit[sm]:,} {one.what}" for one in usage if own]
        lines.append(fullest(usage, sm) or "idle")
        fills = tuple(Fill(blocks / most, colours[launch]) for launch, blocks in own.items())
        tiles.append(Tile("\n".join(lines), fills))
    note = f"A full tile is {counted(most, 'block')}, the most on any SM."
    return map_html(topology, tiles, "Blocks on each SM", [note])
