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


def residents_short(residents: Residents) -> str:
    """Returns how many blocks are where, and when."""
    blocks, busy = int(residents.used_slots.sum()), int(np.count_nonzero(residents.used_slots))
    at = residents.at
    moment_words = (
        f"after {counted(at, 'event')}" if isinstance(at, int) else f"at {seconds_words(at)}"
    )
    return f"{counted(blocks, 'block')} on {busy} of {residents.device.sms} SMs {moment_words}"


def residents_text(residents: Residents) -> Lines:
    """A row for each kind of SM: those that hold the same."""
    return [residents_short(residents), kinds_table(residents)]


def kinds_table(residents: Residents) -> Table:
    """Returns a table with a row for each kind of SM, the most frequent first."""
    kinds: dict[tuple[str, ...], list[int]] = {}
    for sm, words in enumerate(_words_of_each_sm(residents)):
        kinds.setdefault(words, []).append(sm)
    most_first = sorted(kinds.items(), key=lambda item: -len(item[1]))
    rows = [(str(len(sms)), few_words(sms), *words) for words, sms in most_first[:_KINDS_SHOWN]]
    headings = ("SMs", "which", "launches x blocks", "slots", "warps", "registers", "shared memory")
    hidden = len(kinds) - len(rows)
    more = f"and {counted(hidden, 'kind')} of SM more" if hidden else ""
    return table_of(headings, rows, (1, 2), more)


def _words_of_each_sm(residents: Residents) -> list[tuple[str, ...]]:
    """Returns the table cells of each SM: its blocks, warps, registers and memory."""
    limits, configured = residents.limits, residents.configured.tolist()
    memory = residents.used_shared_memory.tolist()
    return [
        (
            launches or "nothing",
            f"{slots} of {limits.block_slots}",
            f"{warps} of {limits.warp_slots}",
            f"{registers} of {limits.registers}",
            f"{size_words(used)} of {size_words(limit) if limit else 'any'}",
        )
        for launches, slots, warps, registers, used, limit in zip(
            _launches_of_each_sm(residents),
            residents.used_slots.tolist(),
            _per_processing_block(residents.used_warps),
            _per_processing_block(residents.used_registers),
            memory,
            configured,
            strict=True,
        )
    ]


def _per_processing_block(amounts: Int64Array) -> list[str]:
    """Returns one number where all processing blocks of the SM have as much."""
    return [
        str(amount[0]) if len(set(amount)) == 1 else "+".join(map(str, amount))
        for amount in amounts.tolist()
    ]


def _launches_of_each_sm(residents: Residents) -> list[str]:
    """Returns, for each SM, its launches with how many blocks each has there, in words."""
    names = [f"{k} {cut(name)}" if name else str(k) for k, name in enumerate(residents.names)]
    return [
        ", ".join(f"{names[k]} x {blocks}" for k, blocks in sm.items()) for sm in _blocks(residents)
    ]


def _blocks(residents: Residents) -> list[dict[int, int]]:
    """Returns how many blocks each SM holds of each launch."""
    blocks_by_sm: list[dict[int, int]] = [{} for _ in range(residents.device.sms)]
    columns = (residents.rows[name].tolist() for name in ("launch", "sm", "blocks"))
    for launch, sm, blocks in zip(*columns, strict=True):
        blocks_by_sm[sm][launch] = blocks_by_sm[sm].get(launch, 0) + blocks
    return blocks_by_sm


def residents_html(residents: Residents) -> str:
    """Returns HTML: a map with what each SM holds, and a row for each kind of SM."""
    return card(
        residents_short(residents),
        keys_html(_keys(residents)),
        _map(residents),
        kinds_table(residents),
    )


def _keys(residents: Residents) -> list[tuple[str, str]]:
    """Returns the colour and the name of each launch that is there."""
    colours, names = colours_of_names(residents.names), _names(residents)
    keys = {}
    for launch in dict.fromkeys(residents.rows["launch"].tolist()):
        keys[residents.names[launch] or launch] = (colours[launch], names[launch])
    return list(keys.values())[:_KEYS_SHOWN]


def _names(residents: Residents) -> list[str]:
    """What each launch is called."""
    short = cut_apart([name or "" for name in residents.names], _NAME)
    return [name or f"launch {launch}" for launch, name in enumerate(short)]


def _map(residents: Residents) -> Markup:
    """Returns a map with the blocks on each SM."""
    topology = topology_of(residents.device)
    colours, names = colours_of_names(residents.names), _names(residents)
    usage = usage_of(residents)
    max_slots = max(int(residents.used_slots.max(initial=0)), 1)
    tiles = []
    for sm, blocks_by_launch in enumerate(_blocks(residents)):
        lines = [topology.place_of(sm)]
        for launch, blocks in list(blocks_by_launch.items())[:_LAUNCHES_SHOWN]:
            lines.append(f"{names[launch]}: {counted(blocks, 'block')}")
        if len(blocks_by_launch) > _LAUNCHES_SHOWN:
            lines.append(more_of(len(blocks_by_launch), _LAUNCHES_SHOWN, "launch", "launches"))
        lines += [
            f"{item.used[sm]:,} of {item.limit[sm]:,} {item.what}"
            for item in usage
            if blocks_by_launch
        ]
        lines.append(fullest(usage, sm) or "idle")
        fills = tuple(
            Fill(blocks / max_slots, colours[launch]) for launch, blocks in blocks_by_launch.items()
        )
        tiles.append(Tile("\n".join(lines), fills))
    note = f"A full tile is {counted(max_slots, 'block')}, the most on any SM."
    return map_html(topology, tiles, "Blocks on each SM", [note])


def residents_columns(residents: Residents) -> dict[str, Any]:
    """Returns columns: resident blocks and warps, and the registers and memory they take."""
    rows = residents.rows
    launch, blocks = rows["launch"].copy(), rows["blocks"].copy()
    warps = rows["warps"].sum(axis=1)
    return {
        "launch": launch,
        "name": objects(residents.names)[launch],
        "sm": rows["sm"].copy(),
        "blocks": blocks,
        "warps": warps,
        "registers": warps * residents.registers_per_warp[launch],
        "shared_memory": blocks * residents.shared_memory[launch],
    }


def residents_data(residents: Residents) -> dict[str, Any]:
    """Returns JSON data: what every SM holds at one moment."""
    return fields(
        residents,
        "device at names limits rows pieces configured turn registers_per_warp shared_memory",
    )
