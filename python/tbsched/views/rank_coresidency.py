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


def rank_coresidency_short(found: RankCoresidency) -> str:
    """Whether it can hang, and why."""
    return shortened(verdict(found))


def rank_coresidency_text(found: RankCoresidency) -> Lines:
    """Returns the answer with its reason; unless it is yes, what hangs, and what to change."""
    lines: Lines = [verdict(found)]
    if found.hang is not None:
        lines += ["", *found.hang.text.splitlines()]
        if any(found.host or ()):
            lines += ["", "How late calls are:", late_table(found)]
    if not found.safe:
        lines += ["", fixes_words(found), *([fixes_table(found)] if found.fixes else [])]
    notes = rank_coresidency_notes(found)
    return [*lines, "", *notes] if notes else lines


def rank_coresidency_notes(found: RankCoresidency) -> list[str]:
    """What the answer rests on that a measurement may show otherwise."""
    seen = {info.name: info for info in found.devices}
    return [line for info in seen.values() for line in assumed_lines(found.assumed_rules, info)]


def late_table(found: RankCoresidency) -> Table:
    """Returns a table with a row per call of the witness that is late."""
    rows = [
        (str(number), str(getattr(event, "host", 0)), str(getattr(event, "gpu", 0)),
         getattr(event, "name", None) or type(event).__name__, seconds_words(late))
        for number, (event, late) in enumerate(zip(found.sequence, found.host or (), strict=True))
        if late
    ]  # fmt: skip
    left = len(rows) - _LATE
    more = f"and {counted(left, 'call')} more" if left > 0 else ""
    return table_of(("event", "host", "GPU", "what", "late by"), rows[:_LATE], (3,), more)


def rank_coresidency_html(found: RankCoresidency) -> str:
    """Returns HTML: the answer with its reason, what hangs, and what to change."""
    parts: list[Markup] = []
    if found.hang is not None:
        parts += map(note_html, found.hang.text.splitlines())
        if any(found.host or ()):
            parts.append(table_html(late_table(found), "How late calls are"))
    if found.fixes:
        parts.append(table_html(fixes_table(found), fixes_words(found)))
    elif not found.safe:
        parts.append(note_html(fixes_words(found)))
    notes = map(note_html, rank_coresidency_notes(found))
    return card(rank_coresidency_short(found), *parts, *notes)


def rank_coresidency_columns(found: RankCoresidency) -> dict[str, Any]:
    """A row per fix."""
    return columns_of(found.fixes, "kind text")


def rank_coresidency_data(found: RankCoresidency) -> dict[str, Any]:
    """The answer with its reason; if it is no, what hangs, and what to change."""
    fixes = [fields(fix, "kind text sequence") for fix in found.fixes]
    answer = "devices sequence groups safe argument proof in_order witness host hang assumed_rules"
    return {**fields(found, answer), "fixes": fixes, "plays": found.plays}
