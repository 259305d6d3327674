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
_MAX_ROWS = 12
_WIDE = 190


def _heading(report: HangReport) -> str:
    kind = "not known whether it hangs" if report.may_be_slow else _KINDS[report.kind]
    return f"{kind}: {report.reason}"


def hang_report_short(report: HangReport) -> str:
    """The kind, and the reason in one sentence."""
    return cut(_heading(report), _WIDE)


def hang_report_text(report: HangReport) -> Lines:
    """Returns lines: the answer, what is resident, what never starts, changes, and notes."""
    lines: Lines = [_heading(report)]
    if report.resident:
        lines += ["", _resident_words(report), resident_table(report)]
    if report.stranded:
        lines += ["", "Never start:", stranded_table(report)]
        first = report.stranded[0]
        if first.limits and report.device is not None:
            lines += ["", f"{_limits_words(first)}:", limits_table(first.limits, report.device)]
    if report.calls:
        lines += ["", "Calls that have not returned:", calls_table(report)]
    if report.fixes:
        lines += ["", _FIXES, fixes_table(report)]
    for heading, sentences in (("Proof:", report.proof), ("Not seen:", report.unseen)):
        if sentences:
            lines += ["", heading, *[f"- {sentence}" for sentence in sentences]]
    return lines


_FIXES = "Each of these alone ends it, by the model:"


def _resident_words(report: HangReport) -> str:
    """Returns the heading of the table of resident kernels."""
    times_seen = {row.seen for row in report.resident}
    return (
        "On the GPU, as the debugger sees it:"
        if times_seen == {"debugger"}
        else ("On the GPU, by the model:")
    )


def _limits_words(row: NeverStarts) -> str:
    return f"Why SMs refuse one more block of {row.name}"


def resident_table(report: HangReport) -> Table:
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
        for row in report.resident[:_MAX_ROWS]
    ]
    more = len(report.resident) - len(rows)
    headings = ("kernel", "blocks that run", "SMs", "it", "program counters", "line")
    last = f"and {counted(more, 'kernel')} more" if more else ""
    return table_of(headings, rows, (0, 1, 2, 3, 5), last)


def stranded_table(report: HangReport) -> Table:
    """Returns a table with a row per launch of which blocks never start."""
    rows = [
        (row.name, f"{row.missing:,} of {row.blocks:,}", row.cause, row.behind or "")
        for row in report.stranded[:_MAX_ROWS]
    ]
    more = len(report.stranded) - len(rows)
    last = f"and {counted(more, 'launch', 'launches')} more" if more else ""
    return table_of(("launch", "blocks", "cause", "behind"), rows, (0, 1, 2, 3), last)


def calls_table(report: HangReport) -> Table:
    """Returns a table with a row per call."""
    rows = [
        ("" if call.thread is None else str(call.thread), call.function, call.words,
         " < ".join(call.callers[:3]))
        for call in report.calls[:_MAX_ROWS]
    ]  # fmt: skip
    return table_of(("thread", "call", "it", "called by"), rows, (0, 1, 2, 3))


def fixes_table(report: HangReport) -> Table:
    """A row per change."""
    return table_of(("kind", "what to change"), [(x.kind, x.text) for x in report.fixes], (0, 1))


def hang_report_html(report: HangReport) -> str:
    """Returns HTML: the answer with a picture of the SMs."""
    parts: list[Markup | Table] = []
    if report.resident:
        parts += _map(report)
        parts.append(table_html(resident_table(report), _resident_words(report)))
    if report.stranded:
        parts.append(table_html(stranded_table(report), "Never start"))
        first = report.stranded[0]
        if first.limits and report.device is not None:
            table = limits_table(first.limits, report.device)
            parts.append(table_html(table, _limits_words(first)))
    if report.calls:
        parts.append(table_html(calls_table(report), "Calls that have not returned"))
    if report.fixes:
        parts.append(table_html(fixes_table(report), _FIXES))
    parts += [note_html(sentence) for sentence in (*report.proof, *report.unseen)]
    return card(hang_report_short(report), *parts)


def _map(report: HangReport) -> list[Markup | Table]:
    """Returns the blocks on each SM, if they are known."""
    if report.device is None:
        return []
    topology = topology_of(report.device)
    colours = colours_of_names([row.name for row in report.resident])
    residents_by_sm: list[list[tuple[int, OnGpu, int]]] = [[] for _ in range(report.device.sms)]
    for kernel_index, row in enumerate(report.resident):
        for sm, blocks in row.sms:
            if sm < len(residents_by_sm):
                residents_by_sm[sm].append((kernel_index, row, blocks))
    max_slots = max(
        (sum(max(resident[2], 1) for resident in residents) for residents in residents_by_sm),
        default=1,
    )
    tiles = []
    for sm, resident in enumerate(residents_by_sm):
        words = [topology.place_of(sm)]
        words += [
            f"{cut(row.name, _NAME)}: {counted(blocks, 'block') if blocks else 'some blocks'}"
            for _, row, blocks in resident
        ]
        fills = tuple(
            [
                Fill(max(blocks, 1) / max(max_slots, 1), colours[kernel_index])
                for kernel_index, _, blocks in resident
            ]
        )
        tiles.append(Tile("\n".join(words if resident else [*words, "idle"]), fills))
    keys = [
        (colours[kernel_index], cut(row.name, _NAME))
        for kernel_index, row in enumerate(report.resident)
    ]
    note = f"A full tile is {counted(max_slots, 'block')}, the most on any SM."
    drawn = map_html(topology, tiles, "Blocks on each SM", [note])
    return [keys_html(keys[:_MAX_ROWS]), drawn]


def hang_report_columns(report: HangReport) -> dict[str, Any]:
    """A row per launch of which blocks never start."""
    return columns_of(report.stranded, "name missing blocks cause behind")


def hang_report_data(report: HangReport) -> dict[str, Any]:
    """Returns JSON data: the whole answer."""
    return {
        **fields(report, "kind may_be reason process device"),
        "resident": [
            fields(row, "name running started blocks sms does counters line seen")
            for row in report.resident
        ],
        "stranded": [
            fields(row, "name missing blocks cause behind limits") for row in report.stranded
        ],
        "calls": [fields(row, "function kind thread call callers") for row in report.calls],
        "fixes": [fields(row, "kind text") for row in report.fixes],
        **fields(report, "proof unseen"),
    }
