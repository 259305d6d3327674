"""What changes of a program would give."""

from __future__ import annotations

from typing import Any

from tbsched.advice.change import Change
from tbsched.advice.what_if import WhatIf
from tbsched.counting import counted
from tbsched.views.cards import (
    bars_html,
    card,
    legend_html,
    note_html,
)
from tbsched.views.plain import columns_of, fields
from tbsched.views.tables import Lines, Table, table_of
from tbsched.views.words import WORTH, is_worth_it, more_of, percent_words, seconds_words

_CHANGES_SHOWN = 40


def what_if_short(found: WhatIf) -> str:
    """Returns how many changes were tried, and what the best one gives."""
    if not found.changes:
        return "no change of those asked for applies"
    tried = counted(len(found.changes), "change")
    best = min(found.changes, key=lambda row: row.makespan)
    saved = found.given.makespan - best.makespan
    if not is_worth_it(saved, found.given.makespan):
        return f"{tried} tried, nothing worth changing: none saves {100 * WORTH:g} % or more"
    return f"{tried} tried, the best saves {_saved_words(found, best)}"


def what_if_text(found: WhatIf) -> Lines:
    """A row per change, the program as it is before them; then whether one is worth its work."""
    return [changes_table(found), "", what_if_short(found)]


def changes_table(found: WhatIf) -> Table:
    """Returns a table with a row per change, the program as it is before them."""
    rows = [
        (row.what, seconds_words(row.makespan), *_saved(found, row))
        for row in (found.given, *found.changes)
    ]
    return table_of(("change", "makespan", "saves", "%"), rows)


def _saved(found: WhatIf, row: Change) -> tuple[str, str]:
    """Returns the time that a change saves, and its percentage; negative: it takes longer."""
    saved, whole = found.given.makespan - row.makespan, found.given.makespan
    sign = "-" if saved < 0 else ""
    share = percent_words(round(1e9 * abs(saved)), round(1e9 * whole)) if whole else "0.00"
    return f"{sign}{seconds_words(abs(saved))}", f"{sign}{share}"


def _saved_words(found: WhatIf, row: Change) -> str:
    saved, share = _saved(found, row)
    return f"{saved} ({share} %)"


def speedup(given: Change, row: Change) -> float:
    """How many times as fast a change makes the program."""
    return given.makespan / row.makespan if row.makespan else 1.0


def what_if_html(found: WhatIf) -> str:
    """Returns HTML: a row per change, the program as it is before them."""
    rows = (found.given, *found.changes)[:_CHANGES_SHOWN]
    words = changes_table(found).rows
    return card(
        what_if_short(found),
        legend_html(found.given.sequence.launches),
        bars_html(
            [
                (what, row.makespan, f"{makespan}, saves {saved} ({share} %)")
                for row, (what, makespan, saved, share) in zip(rows, words, strict=False)
            ]
        ),
        note_html(more_of(len(found.changes) + 1, len(rows), "change")),
    )


def what_if_columns(found: WhatIf) -> dict[str, Any]:
    """A row per change, the program as it is before them."""
    rows = (found.given, *found.changes)
    faster = [speedup(found.given, row) for row in rows]
    return {**columns_of(rows, "change=what makespan"), "times_as_fast": faster}


def what_if_data(found: WhatIf) -> dict[str, Any]:
    """Returns JSON data: the program as it is, and each change."""
    given, *changes = (
        fields(row, "change=what makespan events=sequence") for row in (found.given, *found.changes)
    )
    return {"given": given, "changes": changes}
