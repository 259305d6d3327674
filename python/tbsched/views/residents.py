"""What every SM holds at one moment."""

from __future__ import annotations

from typing import Any

import numpy as np
from markupsafe import Markup

from tbsched.counting import counted
from tbsched.program.arrays import Int64Array, objects
from tbsched.traces.residents import Residents
from tbsched.views.cards import card, keys_html
from tbsched.views.layout.colours import colours_of_names
from tbsched.views.layout.names import cut, cut_apart
from tbsched.views.layout.sms import fullest, usage_of
from tbsched.views.layout.topology import topology_of
from tbsched.views.plain import fields
from tbsched.views.svg.sm_map import Fill, Tile, map_html
from tbsched.views.tables import Lines, Table, table_of
from tbsched.views.words import few_words, more_of, seconds_words, size_words

_KINDS_SHOWN = 20
_NAME = 36
_KEYS_SHOWN = 12
_LAUNCHES_SHOWN = 6


def residents_short(held: Residents) -> str:
    """Returns how many blocks are where, and when."""
    blocks, busy = int(held.used_slots.sum()), int(np.count_nonzero(held.used_slots))
    at = held.at
    when = f"after {counted(at, 'event')}" if isinstance(at, int) else f"at {seconds_words(at)}"
    return f"{counted(blocks, 'block')} on {busy} of {held.device.sms} SMs {when}"


def residents_text(held: Residents) -> Lines:
    """A row for each kind of SM: those that hold the same."""
    return [residents_short(held), kinds_table(held)]


def kinds_table(held: Residents) -> Table:
    """Returns a table with a row for each kind of SM, the most frequent first."""
    kinds: dict[tuple[str, ...], list[int]] = {}
    for sm, words in enumerate(_words_of_each_sm(held)):
        kinds.setdefault(words, []).append(sm)
    most_first = sorted(kinds.items(), key=lambda item: -len(item[1]))
    rows = [(str(len(sms)), few_words(sms), *words) for words, sms in most_first[:_KINDS_SHOWN]]
    headings = ("SMs", "which", "launches x blocks", "slots", "warps", "registers", "shared memory")
    left = len(kinds) - len(rows)
    more = f"and {counted(left, 'kind')} of SM more" if left else ""
    return table_of(headings, rows, (1, 2), more)


def _words_of_each_sm(held: Residents) -> list[tuple[str, ...]]:
    """Returns the table cells of each SM: its blocks, warps, registers and memory."""
    limits, configured = held.limits, held.configured.tolist()
    memory = held.used_shared_memory.tolist()
    return [
        (
            there or "nothing",
            f"{slots} of {limits.block_slots}",
            f"{warps} of {limits.warp_slots}",
            f"{registers} of {limits.registers}",
            f"{size_words(used)} of {size_words(of) if of else 'any'}",
        )
        for there, slots, warps, registers, used, of in zip(
            _launches_of_each_sm(held),
            held.used_slots.tolist(),
            _per_processing_block(held.used_warps),
            _per_processing_block(held.used_registers),
            memory,
            configured,
            strict=True,
        )
    ]


def _per_processing_block(amounts: Int64Array) -> list[str]:
    """Returns one number where all processing blocks of the SM have as much."""
    return [
        str(each[0]) if len(set(each)) == 1 else "+".join(map(str, each))
        for each in amounts.tolist()
    ]


def _launches_of_each_sm(held: Residents) -> list[str]:
    names = [f"{k} {cut(name)}" if name else str(k) for k, name in enumerate(held.names)]
    return [", ".join(f"{names[k]} x {blocks}" for k, blocks in sm.items()) for sm in _blocks(held)]


def _blocks(held: Residents) -> list[dict[int, int]]:
    """Returns how many blocks each SM holds of each launch."""
    found: list[dict[int, int]] = [{} for _ in range(held.device.sms)]
    columns = (held.rows[name].tolist() for name in ("launch", "sm", "blocks"))
    for launch, sm, blocks in zip(*columns, strict=True):
        found[sm][launch] = found[sm].get(launch, 0) + blocks
    return found


def residents_html(held: Residents) -> str:
    """A map with what each SM holds, and a row for each kind of SM."""
    return card(residents_short(held), keys_html(_keys(held)), _map(held), kinds_table(held))


def _keys(held: Residents) -> list[tuple[str, str]]:
    """Returns the colour and the name of each launch that is there."""
    colours, names = colours_of_names(held.names), _names(held)
    keys = {}
    for launch in dict.fromkeys(held.rows["launch"].tolist()):
        keys[held.names[launch] or launch] = (colours[launch], names[launch])
    return list(keys.values())[:_KEYS_SHOWN]


def _names(held: Residents) -> list[str]:
    """What each launch is called."""
    short = cut_apart([name or "" for name in held.names], _NAME)
    return [name or f"launch {launch}" for launch, name in enumerate(short)]


def _map(held: Residents) -> Markup:
    """Returns a map with the blocks on each SM."""
    topology = topology_of(held.device)
    colours, names = colours_of_names(held.names), _names(held)
    usage = usage_of(held)
    most = max(int(held.used_slots.max(initial=0)), 1)
    tiles = []
    for sm, own in enumerate(_blocks(held)):
        lines = [topology.place_of(sm)]
        for launch, blocks in list(own.items())[:_LAUNCHES_SHOWN]:
            lines.append(f"{names[launch]}: {counted(blocks, 'block')}")
        if len(own) > _LAUNCHES_SHOWN:
            lines.append(more_of(len(own), _LAUNCHES_SHOWN, "launch", "launches"))
        lines += [f"{one.used[sm]:,} of {one.limit[sm]:,} {one.what}" for one in usage if own]
        lines.append(fullest(usage, sm) or "idle")
        fills = tuple(Fill(blocks / most, colours[launch]) for launch, blocks in own.items())
        tiles.append(Tile("\n".join(lines), fills))
    note = f"A full tile is {counted(most, 'block')}, the most on any SM."
    return map_html(topology, tiles, "Blocks on each SM", [note])


def residents_columns(held: Residents) -> dict[str, Any]:
    """Returns columns: resident blocks and warps, and the registers and memory they take."""
    rows = held.rows
    launch, blocks = rows["launch"].copy(), rows["blocks"].copy()
    warps = rows["warps"].sum(axis=1)
    return {
        "launch": launch,
        "name": objects(held.names)[launch],
        "sm": rows["sm"].copy(),
        "blocks": blocks,
        "warps": warps,
        "registers": warps * held.registers_per_warp[launch],
        "shared_memory": blocks * held.shared_memory[launch],
    }


def residents_data(held: Residents) -> dict[str, Any]:
    """Returns JSON data: what every SM holds at one moment."""
    return fields(
        held,
        "device at names limits rows pieces configured turn registers_per_warp shared_memory",
    )
