"""Why a program hangs."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from tbsched.counting import counted
from tbsched.hangs.hang import HangReport, NeverStarts, OnGpu
from tbsched.views.capacity import limits_table
from tbsched.views.cards import card, keys_html, note_html, table_html
from tbsched.views.layout.colours import colours_of_names
from tbsched.views.layout.names import cut
from tbsched.views.layout.topology import topology_of
from tbsched.views.plain import columns_of, fields
from tbsched.views.svg.sm_map import Fill, Tile, map_html
from tbsched.views.tables import Lines, Table, table_of
from tbsched.views.words import few_words

_KINDS = {
    "room": "HANGS, no room",
    "queue": "HANGS, behind another launch in a hardware queue",
    "legacy_stream": "HANGS, at the legacy default stream",
    "loading": "HANGS, while a kernel is loaded",
    "order_of_ranks": "HANGS, ranks wait in different collectives",
    "host": "HANGS, the GPU waits for a host",
    "inside_kernel": "HANGS, inside a kernel",
    "not_hanging": "does not hang",
    "not_known": "HANGS, why is not known",
}
_NAME = 40
_MOST_ROWS = 12
_WIDE = 190


def _heading(found: HangReport) -> str:
    kind = "not known whether it hangs" if found.may_be_slow else _KINDS[found.kind]
    return f"{kind}: {found.reason}"


def hang_report_short(found: HangReport) -> str:
    """The kind, and the reason in one sentence."""
    return cut(_heading(found), _WIDE)


def hang_report_text(found: HangReport) -> Lines:
    """Returns lines: the answer, what is resident, what never starts, changes, and notes."""
    lines: Lines = [_heading(found)]
    if found.resident:
        lines += ["", _resident_words(found), resident_table(found)]
    if found.stranded:
        lines += ["", "Never start:", stranded_table(found)]
        first = found.stranded[0]
        if first.limits and found.device is not None:
            lines += ["", f"{_limits_words(first)}:", limits_table(first.limits, found.device)]
    if found.calls:
        lines += ["", "Calls that have not returned:", calls_table(found)]
    if found.fixes:
        lines += ["", _FIXES, fixes_table(found)]
    for heading, sentences in (("Proof:", found.proof), ("Not seen:", found.unseen)):
        if sentences:
            lines += ["", heading, *[f"- {each}" for each in sentences]]
    return lines


_FIXES = "Each of these alone ends it, by the model:"


def _resident_words(found: HangReport) -> str:
    """Returns the heading of the table of resident kernels."""
    seen = {row.seen for row in found.resident}
    return (
        "On the GPU, as the debugger sees it:"
        if seen == {"debugger"}
        else ("On the GPU, by the model:")
    )


def _limits_words(row: NeverStarts) -> str:
    return f"Why SMs refuse one more block of {row.name}"


def resident_table(found: HangReport) -> Table:
    """Returns a table with a row per kernel on the GPU."""
    rows = [
        (
            row.name,
            f"{row.running:,} of {row.blocks:,}",
            f"{len(row.sms)}: {few_words([sm for sm, _ in row.sms])}" if row.sms else "",
            {"unknown": ""}.get(row.does, row.does),
            str(row.counters) if row.counters else "",
            row.line,
        )
        for row in found.resident[:_MOST_ROWS]
    ]
    more = len(found.resident) - len(rows)
    headings = ("kernel", "blocks that run", "SMs", "it", "program counters", "line")
    last = f"and {counted(more, 'kernel')} more" if more else ""
    return table_of(headings, rows, (0, 1, 2, 3, 5), last)


def stranded_table(found: HangReport) -> Table:
    """Returns a table with a row per launch of which blocks never start."""
    rows = [
        (row.name, f"{row.missing:,} of {row.blocks:,}", row.cause, row.behind or "")
        for row in found.stranded[:_MOST_ROWS]
    ]
    more = len(found.stranded) - len(rows)
    last = f"and {counted(more, 'launch', 'launches')} more" if more else ""
    return table_of(("launch", "blocks", "cause", "behind"), rows, (0, 1, 2, 3), last)


def calls_table(found: HangReport) -> Table:
    """Returns a table with a row per call."""
    rows = [
        ("" if call.thread is None else str(call.thread), call.function, call.words,
         " < ".join(call.callers[:3]))
        for call in found.calls[:_MOST_ROWS]
    ]  # fmt: skip
    return table_of(("thread", "call", "it", "called by"), rows, (0, 1, 2, 3))


def fixes_table(found: HangReport) -> Table:
    """A row per change."""
    return table_of(("kind", "what to change"), [(x.kind, x.text) for x in found.fixes], (0, 1))


def hang_report_html(found: HangReport) -> str:
    """Returns HTML: the answer with a picture of the SMs."""
    parts: list[Markup | Table] = []
    if found.resident:
        parts += _map(found)
        parts.append(table_html(resident_table(found), _resident_words(found)))
    if found.stranded:
        parts.append(table_html(stranded_table(found), "Never start"))
        first = found.stranded[0]
        if first.limits and found.device is not None:
            table = limits_table(first.limits, found.device)
            parts.append(table_html(table, _limits_words(first)))
    if found.calls:
        parts.append(table_html(calls_table(found), "Calls that have not returned"))
    if found.fixes:
        parts.append(table_html(fixes_table(found), _FIXES))
    parts += [note_html(each) for each in (*found.proof, *found.unseen)]
    return card(hang_report_short(found), *parts)


def _map(found: HangReport) -> list[Markup | Table]:
    """Returns the blocks on each SM, if they are known."""
    if found.device is None:
        return []
    topology = topology_of(found.device)
    colours = colours_of_names([row.name for row in found.resident])
    held: list[list[tuple[int, OnGpu, int]]] = [[] for _ in range(found.device.sms)]
    for number, row in enumerate(found.resident):
        for sm, blocks in row.sms:
            if sm < len(held):
                held[sm].append((number, row, blocks))
    most = max((sum(max(own[2], 1) for own in each) for each in held), default=1)
    tiles = []
    for sm, own in enumerate(held):
        words = [topology.place_of(sm)]
        words += [
            f"{cut(row.name, _NAME)}: {counted(blocks, 'block') if blocks else 'some blocks'}"
            for _, row, blocks in own
        ]
        fills = tuple(
            [Fill(max(blocks, 1) / max(most, 1), colours[number]) for number, _, blocks in own]
        )
        tiles.append(Tile("\n".join(words if own else [*words, "idle"]), fills))
    keys = [(colours[number], cut(row.name, _NAME)) for number, row in enumerate(found.resident)]
    note = f"A full tile is {counted(most, 'block')}, the most on any SM."
    drawn = map_html(topology, tiles, "Blocks on each SM", [note])
    return [keys_html(keys[:_MOST_ROWS]), drawn]


def hang_report_columns(found: HangReport) -> dict[str, Any]:
    """A row per launch of which blocks never start."""
    return columns_of(found.stranded, "name missing blocks cause behind")


def hang_report_data(found: HangReport) -> dict[str, Any]:
    """Returns JSON data: the whole answer."""
    return {
        **fields(found, "kind may_be reason process device"),
        "resident": [
            fields(row, "name running started blocks sms does counters line seen")
            for row in found.resident
        ],
        "stranded": [
            fields(row, "name missing blocks cause behind limits") for row in found.stranded
        ],
        "calls": [fields(row, "function kind thread call callers") for row in found.calls],
        "fixes": [fields(row, "kind text") for row in found.fixes],
        **fields(found, "proof unseen"),
    }
