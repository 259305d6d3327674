"""How many blocks of a launch fit beside others, for one or several choices."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from markupsafe import Markup

from tbsched.advice.together.capacities import Capacities, Choice
from tbsched.advice.together.capacity import Capacity
from tbsched.advice.together.limits import DRIVER_LIMIT, NO_CLUSTER, Limit
from tbsched.counting import counted
from tbsched.program.events.launch import Launch
from tbsched.traces.placement import DeviceInfo
from tbsched.views.assumed import assumed_lines
from tbsched.views.cards import card, keys_html, note_html, tiles_html
from tbsched.views.layout.colours import PALETTE
from tbsched.views.layout.names import cut
from tbsched.views.layout.topology import topology_of
from tbsched.views.plain import columns_of, fields
from tbsched.views.svg.sm_map import Fill, Tile, map_html
from tbsched.views.tables import Lines, Table, table_of
from tbsched.views.words import launch_words, limiter_words, more_of, sms_words

_LIMITS_SHOWN = 12
_CHOICES_SHOWN = 50
_NAMES_SHOWN = 4
_NAME = 36
_MAX_SMS_CHARACTERS = 30  # characters that name SMs
_CAUSES = {
    NO_CLUSTER: "no whole cluster fits",
    DRIVER_LIMIT: "the driver refuses a larger cooperative launch",
}


def capacity_short(capacity: Capacity) -> str:
    """Returns how many blocks fit."""
    launch, blocks = capacity.launch, counted(capacity.blocks, "block")
    words = f"{blocks} of {named(launch)} fit"
    if launch.cluster > 1:
        words += f", {counted(capacity.clusters, 'cluster')} of {launch.cluster}"
    if capacity.beside:
        words += f", beside {launches_words(capacity.beside)}"
    idle = counted(len(capacity.idle_sms), "SM") if capacity.idle_sms else "no SM"
    return f"{words}; {idle} of {capacity.device.sms} idle"


def capacity_text(capacity: Capacity) -> Lines:
    """How many blocks fit, and what binds each class of SMs."""
    table = limits_table(capacity.limits, capacity.device)
    return [capacity_short(capacity), table, *capacity_notes(capacity)]


def capacity_notes(capacity: Capacity) -> list[str]:
    """Returns what the answer rests on that another board, or a measurement, may show otherwise."""
    notes = board_lines((capacity.launch, *capacity.beside), capacity.device)
    if capacity.driver_limit is not None and capacity.driver_limit < capacity.blocks:
        notes.append(
            f"The driver refuses cooperative launches of more than {capacity.driver_limit:,} such "
            "blocks: it counts with the least shared memory that the carveout allows."
        )
    return notes + assumed_lines(capacity.assumed_rules, capacity.device)


def board_lines(launches: Iterable[Launch], device: DeviceInfo) -> list[str]:
    """That another board may hold other clusters; empty: there are none."""
    words = board_words(device)
    return [words] if any(launch.cluster > 1 for launch in launches) else []


def board_words(device: DeviceInfo) -> str:
    """Returns a sentence: the device's map of GPCs is that of one board."""
    return (
        f"This is the map of GPCs of {device.details['model']}: boards of one kind differ in it, "
        "and so in how many clusters they hold."
    )


def limits_table(limits: tuple[Limit, ...], device: DeviceInfo) -> Table:
    """Returns a table with a row per class of SMs."""
    rows = [
        (str(len(row.sms)), str(row.beside), str(row.blocks), causes_words(row.causes, device),
         _sms_cut(row.sms))
        for row in limits[:_LIMITS_SHOWN]
    ]  # fmt: skip
    headings = ("SMs", "of others", "blocks", "what refuses one more", "which")
    hidden = len(limits) - len(rows)
    more = f"and {counted(hidden, 'class', 'classes')} of SMs more" if hidden else ""
    return table_of(headings, rows, (3, 4), more)


def _sms_cut(sms: tuple[int, ...]) -> str:
    words = sms_words(sms)
    first = words[:_MAX_SMS_CHARACTERS].rpartition(", ")[0]
    return words if len(words) <= _MAX_SMS_CHARACTERS else f"{first}, ..."


def cause_words(cause: str, device: DeviceInfo) -> str:
    """What refuses one block more on an SM."""
    return _CAUSES.get(cause) or limiter_words(cause, device)


def causes_words(causes: tuple[str, ...], device: DeviceInfo) -> str:
    """All that refuses one block more on an SM."""
    return " and ".join(cause_words(cause, device) for cause in causes)


def named(launch: Launch) -> str:
    """A launch by its name, or by what it asks for."""
    return cut(launch.name, _NAME) if launch.name else launch_words(launch)


def launches_words(launches: tuple[Launch, ...]) -> str:
    """Returns launches in words: by name, or by what they ask for."""
    hidden = len(launches) - _NAMES_SHOWN
    words = "; ".join(map(named, launches[:_NAMES_SHOWN]))
    return f"{words}; and {hidden} more" if hidden > 0 else words


def capacities_short(capacities: Capacities) -> str:
    """How many choices there are, and the most blocks."""
    max_blocks = max((row.blocks for row in capacities), default=0)
    return f"{counted(len(capacities), 'choice')}; at most {counted(max_blocks, 'block')} fit"


def capacities_text(capacities: Capacities) -> Lines:
    """Returns a table with a row per choice, and notes."""
    return [
        capacities_short(capacities),
        capacities_table(capacities),
        *capacities_notes(capacities),
    ]


def capacities_notes(capacities: Capacities) -> list[str]:
    """Returns the same as :func:`capacity_notes`, of all choices."""
    launches = (*capacities.beside, *(row.launch for row in capacities.choices))
    notes = board_lines(launches, capacities.device)
    return notes + assumed_lines(capacities.assumed_rules, capacities.device)


def capacities_table(capacities: Capacities) -> Table:
    """Returns a table with a row per choice."""
    rows = [_choice(row, capacities.device) for row in capacities.choices[:_CHOICES_SHOWN]]
    headings = (
        "threads", "carveout", "cluster", "blocks", "clusters", "threads in all", "idle SMs",
        "what refuses one more on most SMs",
    )  # fmt: skip
    return table_of(headings, rows, (7,), more_of(len(capacities), len(rows), "choice"))


def _choice(row: Choice, device: DeviceInfo) -> tuple[str, ...]:
    """Returns the table row of one choice of block size, carveout and cluster."""
    launch = row.launch
    return (
        str(launch.threads),
        "-" if launch.carveout is None else str(launch.carveout),
        *(str(n) for n in (launch.cluster, row.blocks, row.clusters, row.threads, row.idle_sms)),
        row.refused or cause_words(row.limiter, device),
    )


_OWN, _OTHERS = PALETTE[0], "#808890"


def capacity_html(capacity: Capacity) -> str:
    """Returns HTML: a map with what each SM takes, and a row per class of SMs."""
    others_words = "blocks of the launches beside it" if capacity.beside else ""
    return card(
        capacity_short(capacity),
        tiles_html(
            (f"{capacity.blocks:,}", "blocks fit"),
            (f"{capacity.clusters:,}", "clusters"),
            (f"{len(capacity.idle_sms):,}", "idle SMs"),
        ),
        *limits_map(capacity.device, capacity.limits, (_OWN, named(capacity.launch)), others_words),
        limits_table(capacity.limits, capacity.device),
        *map(note_html, capacity_notes(capacity)),
    )


def limits_map(
    device: DeviceInfo, limits: tuple[Limit, ...], own_style: tuple[str, str], others_style: str
) -> tuple[Markup, Markup]:
    """Returns a legend, and the blocks on each SM.

    Args:
        device: the device.
        limits: what each class of SMs holds.
        own_style: colour and name of the launch that is asked about.
        others_style: what the grey blocks are; empty where there are none.
    """
    max_blocks = max([row.blocks + row.beside for row in limits] + [1])
    topology = topology_of(device)
    tiles = [Tile(topology.place_of(sm)) for sm in range(device.sms)]
    for row in limits:
        blocks_words = f"{counted(row.blocks, 'block')}, {row.beside} beside"
        why = f"one more: {causes_words(row.causes, device)}"
        fills = (
            Fill(row.beside / max_blocks, _OTHERS),
            Fill(row.blocks / max_blocks, own_style[0]),
        )
        drawn = tuple(fill for fill in fills if fill.share)
        for sm in row.sms:
            tiles[sm] = Tile(f"{topology.place_of(sm)}\n{blocks_words}\n{why}", drawn)
    keys = [own_style] + ([(_OTHERS, others_style)] if others_style else [])
    note = f"A full tile is {counted(max_blocks, 'block')}, the most on any SM."
    return keys_html(keys), map_html(topology, tiles, "Blocks on each SM", [note])


def capacities_html(capacities: Capacities) -> str:
    """A row per choice."""
    notes = map(note_html, capacities_notes(capacities))
    return card(capacities_short(capacities), capacities_table(capacities), *notes)


def capacity_columns(capacity: Capacity) -> dict[str, Any]:
    """Returns columns with a row per SM."""
    causes = {sm: row.cause for row in capacity.limits for sm in row.sms}
    sms = range(capacity.device.sms)
    return {
        "sm": list(sms),
        "blocks": capacity.per_sm,
        "beside": capacity.beside_per_sm,
        "limiter": [causes[sm] for sm in sms],
    }


def capacities_columns(capacities: Capacities) -> dict[str, Any]:
    """Returns columns with a row per choice, the one with most blocks first."""
    return {
        **columns_of((row.launch for row in capacities.choices), "threads carveout cluster"),
        **columns_of(capacities.choices, "blocks clusters threads_in_all=threads idle_sms"),
        "limiter": [row.limiter or None for row in capacities.choices],
        **columns_of(capacities.choices, "refused"),
    }


def capacity_data(capacity: Capacity) -> dict[str, Any]:
    """Returns JSON data: how many blocks fit, where, and what binds each class of SMs."""
    return fields(
        capacity,
        "device launch beside state blocks clusters fits smid per_sm beside_per_sm idle_sms limits "
        "driver_limit assumed_rules",
    )


def capacities_data(capacities: Capacities) -> dict[str, Any]:
    """Each choice, the one with most blocks first."""
    return fields(capacities, "device beside choices assumed_rules")
