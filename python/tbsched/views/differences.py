"""Comparisons: whether two traces agree, and where they first do not."""

from __future__ import annotations

from typing import Any

import numpy as np
from markupsafe import Markup

from tbsched.comparison.compare import LEVELS, Diff, Divergence
from tbsched.counting import counted
from tbsched.program.arrays import Int32Array
from tbsched.traces.trace import Trace
from tbsched.views.cards import (
    card,
    heading_html,
    keys_html,
    note_html,
    table_html,
    text_html,
)
from tbsched.views.layout.names import cut, label
from tbsched.views.layout.topology import topology_of
from tbsched.views.plain import columns_of, fields, plain
from tbsched.views.svg.markup import drawing, element, lines, titled
from tbsched.views.svg.sm_map import Fill, Tile, map_html
from tbsched.views.tables import Lines, Table, table_of
from tbsched.views.words import few_words, launch_words, limiter_words, more_of

_ROWS_SHOWN = 12
_LAUNCHES_DRAWN = 2_000
_ACROSS, _MARK = 76, 12  # marks in a row, and pixels from one to the next
_STATES = (  # a class of the style sheet, its colour, what it is, and in more words
    ("fine", "#009e73", "every block alike", "every block is on the same SM"),
    ("mid", "#e69f00", "another order", "each SM has the same number of blocks, in another order"),
    ("off", "#c8322b", "other numbers of blocks", "SMs have different numbers of blocks"),
)


def diff_short(diff: Diff) -> str:
    """Returns how many launches agree, and how closely."""
    total = len(diff.launches)
    levels = ((level, sum(getattr(x, level) for x in diff.launches)) for level in LEVELS)
    launches = counted(total, "launch", "launches")
    return ", ".join(f"{level} {agreeing} of {launches}" for level, agreeing in levels)


def diff_text(diff: Diff) -> Lines:
    """Whether two traces agree, and where they first do not, explained."""
    lines, table, more = diff_parts(diff)
    return [*lines, *([] if table is None else [table]), *more]


def diff_parts(diff: Diff) -> tuple[list[str], Table | None, list[str]]:
    """Returns the text before the table, the table if there is one, and the text after it."""
    divergence = diff.first_divergence
    total = len(diff.launches)
    if divergence is None:
        launches = counted(total, "launch", "launches")
        return [f"{who(diff.a)} and {who(diff.b)} agree on every block of {launches}."], None, []
    agreeing = {level: sum(getattr(launch, level) for launch in diff.launches) for level in LEVELS}
    head = (
        f"{who(diff.a)} (a) and {who(diff.b)} (b) agree in {agreeing['occupancy']} of {total} "
        f"launches on the blocks of each SM, in {agreeing['exact']} on every block."
    )
    launch = diff.a.sequence.launches[divergence.launch]
    name = f"{cut(launch.name)}, " if launch.name else ""
    first = f"First difference: launch {divergence.launch} ({name}{launch_words(launch)})."
    of_kind = _occupancy_parts if divergence.level == "occupancy" else _order_parts
    before, table, more = of_kind(diff, divergence)
    return [head, first, *before], table, more


def who(trace: Trace) -> str:
    """Who says where the blocks went: a model and its policy, or a GPU."""
    model = trace.device.details.get("model")
    return f"model {model}/{trace.device.details.get('policy')}" if model else trace.device.name


def _occupancy_parts(diff: Diff, divergence: Divergence) -> tuple[list[str], Table, list[str]]:
    """Returns text and table for a launch with other numbers of blocks on some SMs."""
    a, b = diff.a[divergence.launch], diff.b[divergence.launch]
    lines = [f"placed before the next event: {counted(a.placed, 'block')} in a, {b.placed} in b"]
    for letter, trace, placement in (("a", diff.a, a), ("b", diff.b, b)):
        if placement.limiter is not None:
            why = limiter_words(placement.limiter, trace.device)
            lines.append(f"{letter}: blocks wait because {why}")
    capacity = divergence.capacity
    rows = []
    for sm in divergence.sms[:_ROWS_SHOWN]:
        rows.append([str(sm), str(divergence.a_blocks[sm]), str(divergence.b_blocks[sm])])
        if capacity is not None:
            rows[-1] += [str(capacity.blocks[sm]), capacity.limiter[sm]]
    headings = ("SM", "a", "b", "room", "bound by")[: 3 if capacity is None else 5]
    more = []
    if len(divergence.sms) > _ROWS_SHOWN:
        more.append(f"and {len(divergence.sms) - _ROWS_SHOWN} SMs more")
    if capacity is not None:
        more.append("room: blocks of this launch that the model had room for when it came")
        more.append(_candidates(capacity.blocks, capacity.limiter))
    return lines, table_of(headings, rows, left=(4,)), more


def _candidates(blocks: Int32Array, limiter: tuple[str, ...]) -> str:
    """Returns how many SMs had room for how many blocks, and what bound them, in words."""
    kinds: dict[tuple[int, str], list[int]] = {}
    for sm, (room, bound) in enumerate(zip(blocks.tolist(), limiter, strict=True)):
        kinds.setdefault((room, bound), []).append(sm)
    parts = [
        f"{len(sms)} with room for {room} ({bound}; SM {few_words(sms)})"
        for (room, bound), sms in sorted(kinds.items(), reverse=True)
    ]
    return "SMs in all: " + "; ".join(parts[:_ROWS_SHOWN])


def _order_parts(diff: Diff, divergence: Divergence) -> tuple[list[str], Table, list[str]]:
    """Returns text and table for a launch whose blocks are on other SMs in equal numbers."""
    a, b = diff.a[divergence.launch].smid, diff.b[divergence.launch].smid
    rows = [(str(block), str(a[block]), str(b[block])) for block in divergence.blocks[:_ROWS_SHOWN]]
    more = []
    if len(divergence.blocks) > _ROWS_SHOWN:
        more.append(f"and {counted(len(divergence.blocks) - _ROWS_SHOWN, 'block')} more")
    lines = ["each SM has the same number of blocks, in another order:"]
    return lines, table_of(("block", "SM in a", "SM in b"), rows, left=()), more


def diff_html(diff: Diff) -> str:
    """What ``print`` says, each launch as a mark, and a map of the first difference."""
    return card(diff_short(diff), diff_part(diff))


def diff_part(diff: Diff) -> Markup:
    """Returns a comparison within another view."""
    lines, table, more = diff_parts(diff)
    divergence = diff.first_divergence
    parts = [text_html(lines), _launch_marks(diff)]
    if divergence is not None and len(divergence.sms):
        parts.append(_difference_map(diff, divergence))
    if table is not None:
        parts += [table_html(table, "Where they differ"), text_html(more, style="note")]
    return Markup("\n").join(parts)


def _launch_marks(diff: Diff) -> Markup:
    """Returns a mark per launch: agreement on every block, on each SM's number, or neither."""
    shapes = []
    for index, (launch, same) in enumerate(
        zip(diff.a.sequence.launches[:_LAUNCHES_DRAWN], diff.launches, strict=False)
    ):
        style, _, _, words = _STATES[0 if same.exact else 1 if same.occupancy else 2]
        row, column = divmod(index, _ACROSS)
        shape = element("path", class_=style, d=f"M{column * _MARK} {row * _MARK}h10v10h-10z")
        shapes.append(titled(f"launch {index}: {label(launch)}\n{words}", shape))
    height = -(-len(shapes) // _ACROSS) * _MARK
    legend = keys_html((colour, meaning) for _, colour, meaning, _ in _STATES)
    more = more_of(len(diff.launches), _LAUNCHES_DRAWN, "launch", "launches")
    marks = drawing(_ACROSS * _MARK, height, "Launches", shapes)
    return lines(heading_html("Launches"), marks, legend, note_html(more))


def _difference_map(diff: Diff, divergence: Divergence) -> Markup:
    """Returns a map of the SMs with more blocks in a, or in b, of the first launch that differs."""
    topology = topology_of(diff.a.device)
    apart = divergence.b_blocks - divergence.a_blocks
    max_difference = max(int(abs(apart).max(initial=0)), 1)
    tiles = []
    for sm, by in enumerate(apart.tolist()):
        a, b = int(divergence.a_blocks[sm]), int(divergence.b_blocks[sm])
        lines = [topology.place_of(sm), f"{counted(a, 'block')} in a, {b} in b"]
        if divergence.capacity is not None:
            room, bound = divergence.capacity.blocks[sm], divergence.capacity.limiter[sm]
            lines.append(f"the model had room for {room}, bound by {bound}")
        fills = (Fill(abs(by) / max_difference, style="less" if by < 0 else "more"),) if by else ()
        style = "flip" if abs(by) > 0.6 * max_difference else "in"
        tiles.append(Tile("\n".join(lines), fills, f"{by:+}" if by else "", style))
    keys = (("var(--less)", "more blocks in a"), ("var(--more)", "more blocks in b"))
    heading = f"Launch {divergence.launch}: blocks on each SM in b, less those in a"
    return map_html(topology, tiles, heading) + keys_html(keys)


def diff_columns(diff: Diff) -> dict[str, Any]:
    """Returns columns: how closely the two traces agree on each launch."""
    launches, sms = diff.a.sequence.launches, diff.a.device.sms
    placements = list(zip(diff.a, diff.b, strict=True))
    return {
        "launch": list(range(len(launches))),
        **columns_of(launches, "name blocks"),
        **columns_of(diff.launches, "occupancy exact"),
        **columns_of(diff.a, "a_placed=placed"),
        **columns_of(diff.b, "b_placed=placed"),
        **columns_of(diff.a, "a_limiter=limiter"),
        **columns_of(diff.b, "b_limiter=limiter"),
        "different_blocks": [int(np.count_nonzero(a.smid != b.smid)) for a, b in placements],
        "different_sms": [
            0 if launch.occupancy else int(np.count_nonzero(a.occupancy(sms) != b.occupancy(sms)))
            for launch, (a, b) in zip(diff.launches, placements, strict=True)
        ],
    }


def diff_data(diff: Diff) -> dict[str, Any]:
    """Returns JSON data: how closely two traces agree, and where they first do not."""
    launches = diff.a.sequence.launches
    return {
        **fields(diff, "id=b.id a=a.device b=b.device occupancy exact"),
        "launches": [
            {"launch": index, "name": launch.name, **plain(same)}
            for index, (launch, same) in enumerate(zip(launches, diff.launches, strict=True))
        ],
        "first_divergence": _divergence(diff),
    }


def _divergence(diff: Diff) -> dict[str, Any] | None:
    """Returns JSON data of the first divergence; None if the traces agree."""
    divergence = diff.first_divergence
    if divergence is None:
        return None
    room = fields(divergence.capacity, "room=blocks bound_by=limiter") if divergence.capacity else {
        "room": None, "bound_by": None,
    }  # fmt: skip
    name = diff.a.sequence.launches[divergence.launch].name
    divergence_fields = fields(divergence, "level blocks sms a_blocks b_blocks")
    return {"launch": divergence.launch, "name": name, **divergence_fields, **room}
