"""What changes of a program would give."""

from __future__ import annotations

from typing import Any

from tbsched.advice.change import Change
from tbsched.advice.what_if import WhatIf
from tbsched.views.cards import (
    bars_html,
    card,
    legend_html,
    note_html,
)
from tbsched.views.plain import columns_of, fields
from tbsched.views.tables import Lines, Table, table_of
from tbsched.views.words import more_of, seconds_words

_CHANGES_SHOWN = 40


def what_if_short(found: WhatIf) -> str:
    """How many changes were tried, and what the best one gives."""
    best = min(found.changes, key=lambda row: row.makespan, default=found.given)
    return f"{len(found.changes)} changes, the best {speedup(found.given, best):.3g} times as fast"


def what_if_text(found: WhatIf) -> Lines:
    """A row per change, the program as it is before them."""
    return [changes_table(found)]


def changes_table(found: WhatIf) -> Table:
    """A row per change, the program as it is before them."""
    rows = [
        (row.what, seconds_words(row.makespan), f"{speedup(found.given, row):.3g}")
        for row in (found.given, *found.changes)
    ]
    return table_of(("change", "makespan", "times as fast"), rows)


def speedup(given: Change, row: Change) -> float:
    """How many times as fast a change makes the program."""
    return given.makespan / row.makespan if row.makespan else 1.0


def what_if_html(found: WhatIf) -> str:
    """A row per change, the program as it is before them."""
    rows = (found.given, *found.changes)[:_CHANGES_SHOWN]
    words = changes_table(found).rows
    return card(
        what_if_short(found),
        legend_html(found.given.sequence.launches),
        bars_html(
            [
                (what, row.makespan, f"{makespan}, {speed} times as fast")
                for row, (what, makespan, speed) in zip(rows, words, strict=False)
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
    """The program as it is, and each change."""
    given, *changes = (
        fields(row, "change=what makespan events=sequence") for row in (found.given, *found.changes)
    )
    return {"given": given, "changes": changes}
