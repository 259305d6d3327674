"""Whether a program of several GPUs can hang, however late its ranks are."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from tbsched.advice.together.ranks.coresident import RankCoresidency
from tbsched.counting import counted
from tbsched.views.assumed import assumed_lines
from tbsched.views.cards import card, note_html, table_html
from tbsched.views.coresidency import fixes_table, fixes_words, shortened, verdict
from tbsched.views.plain import columns_of, fields
from tbsched.views.tables import Lines, Table, table_of
from tbsched.views.words import seconds_words

_LATE = 50  # calls that are listed


def rank_coresidency_short(coresidency: RankCoresidency) -> str:
    """Whether it can hang, and why."""
    return shortened(verdict(coresidency))


def rank_coresidency_text(coresidency: RankCoresidency) -> Lines:
    """Returns the answer with its reason; unless it is yes, what hangs, and what to change."""
    lines: Lines = [verdict(coresidency)]
    if coresidency.hang is not None:
        lines += ["", *coresidency.hang.text.splitlines()]
        if any(coresidency.host or ()):
            lines += ["", "How late calls are:", late_table(coresidency)]
    if not coresidency.safe:
        lines += [
            "",
            fixes_words(coresidency),
            *([fixes_table(coresidency)] if coresidency.fixes else []),
        ]
    notes = rank_coresidency_notes(coresidency)
    return [*lines, "", *notes] if notes else lines


def rank_coresidency_notes(coresidency: RankCoresidency) -> list[str]:
    """Returns what the answer rests on that a measurement may show otherwise."""
    devices_by_name = {info.name: info for info in coresidency.devices}
    return [
        line
        for info in devices_by_name.values()
        for line in assumed_lines(coresidency.assumed_rules, info)
    ]


def late_table(coresidency: RankCoresidency) -> Table:
    """Returns a table with a row per call of the witness that is late."""
    rows = [
        (str(index), str(getattr(event, "host", 0)), str(getattr(event, "gpu", 0)),
         getattr(event, "name", None) or type(event).__name__, seconds_words(late))
        for index, (event, late) in enumerate(
            zip(coresidency.sequence, coresidency.host or (), strict=True)
        )
        if late
    ]  # fmt: skip
    hidden = len(rows) - _LATE
    more = f"and {counted(hidden, 'call')} more" if hidden > 0 else ""
    return table_of(("event", "host", "GPU", "what", "late by"), rows[:_LATE], (3,), more)


def rank_coresidency_html(coresidency: RankCoresidency) -> str:
    """Returns HTML: the answer with its reason, what hangs, and what to change."""
    parts: list[Markup] = []
    if coresidency.hang is not None:
        parts += map(note_html, coresidency.hang.text.splitlines())
        if any(coresidency.host or ()):
            parts.append(table_html(late_table(coresidency), "How late calls are"))
    if coresidency.fixes:
        parts.append(table_html(fixes_table(coresidency), fixes_words(coresidency)))
    elif not coresidency.safe:
        parts.append(note_html(fixes_words(coresidency)))
    notes = map(note_html, rank_coresidency_notes(coresidency))
    return card(rank_coresidency_short(coresidency), *parts, *notes)


def rank_coresidency_columns(coresidency: RankCoresidency) -> dict[str, Any]:
    """A row per fix."""
    return columns_of(coresidency.fixes, "kind text")


def rank_coresidency_data(coresidency: RankCoresidency) -> dict[str, Any]:
    """Returns JSON data: the answer with its reason; if it is no, what hangs, and what to
    change.
    """
    fixes = [fields(fix, "kind text sequence") for fix in coresidency.fixes]
    answer = "devices sequence groups safe argument proof in_order witness host hang assumed_rules"
    return {**fields(coresidency, answer), "fixes": fixes, "plays": coresidency.plays}
