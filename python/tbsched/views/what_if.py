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


def what_if_short(what_if: WhatIf) -> str:
    """Returns how many changes were tried, and what the best one gives."""
    if not what_if.changes:
        return "no change of those asked for applies"
    tried = counted(len(what_if.changes), "change")
    best = min(what_if.changes, key=lambda row: row.makespan)
    saved = what_if.given.makespan - best.makespan
    if not is_worth_it(saved, what_if.given.makespan):
        return f"{tried} tried, nothing worth changing: none saves {100 * WORTH:g} % or more"
    return f"{tried} tried, the best saves {_saved_words(what_if, best)}"


def what_if_text(what_if: WhatIf) -> Lines:
    """A row per change, the program as it is before them; then whether one is worth its work."""
    return [changes_table(what_if), "", what_if_short(what_if)]


def changes_table(what_if: WhatIf) -> Table:
    """Returns a table with a row per change, the program as it is before them."""
    rows = [
        (row.what, seconds_words(row.makespan), *_saved(what_if, row))
        for row in (what_if.given, *what_if.changes)
    ]
    return table_of(("change", "makespan", "saves", "%"), rows)


def _saved(what_if: WhatIf, row: Change) -> tuple[str, str]:
    """Returns the time that a change saves, and its percentage; negative: it takes longer."""
    saved, total = what_if.given.makespan - row.makespan, what_if.given.makespan
    sign = "-" if saved < 0 else ""
    share = percent_words(round(1e9 * abs(saved)), round(1e9 * total)) if total else "0.00"
    return f"{sign}{seconds_words(abs(saved))}", f"{sign}{share}"


def _saved_words(what_if: WhatIf, row: Change) -> str:
    saved, share = _saved(what_if, row)
    return f"{saved} ({share} %)"


def speedup(unchanged: Change, row: Change) -> float:
    """How many times as fast a change makes the program."""
    return unchanged.makespan / row.makespan if row.makespan else 1.0


def what_if_html(what_if: WhatIf) -> str:
    """Returns HTML: a row per change, the program as it is before them."""
    rows = (what_if.given, *what_if.changes)[:_CHANGES_SHOWN]
    words = changes_table(what_if).rows
    return card(
        what_if_short(what_if),
        legend_html(what_if.given.sequence.launches),
        bars_html(
            [
                (what, row.makespan, f"{makespan}, saves {saved} ({share} %)")
                for row, (what, makespan, saved, share) in zip(rows, words, strict=False)
            ]
        ),
        note_html(more_of(len(what_if.changes) + 1, len(rows), "change")),
    )


def what_if_columns(what_if: WhatIf) -> dict[str, Any]:
    """Returns columns with a row per change, the program as it is before them."""
    rows = (what_if.given, *what_if.changes)
    faster = [speedup(what_if.given, row) for row in rows]
    return {**columns_of(rows, "change=what makespan"), "times_as_fast": faster}


def what_if_data(what_if: WhatIf) -> dict[str, Any]:
    """Returns JSON data: the program as it is, and each change."""
    program_fields, *changes = (
        fields(row, "change=what makespan events=sequence")
        for row in (what_if.given, *what_if.changes)
    )
    return {"given": program_fields, "changes": changes}
