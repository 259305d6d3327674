"""Why a program of a profile took so long, as HTML."""

from __future__ import annotations

from tbsched.advice.explain.explanation import Explanation
from tbsched.show.html.pages import card, rendered
from tbsched.show.html.parts import folded_html, note_html, table_html, text_html, tiles_html
from tbsched.show.html.svg.programs import explained_html
from tbsched.show.text.explanations import (
    account_table,
    assumed_words,
    cause_word,
    changes_table,
    explanation_short,
    gaps_table,
    gpu_words,
    gpus_shown,
    model_words,
    no_gaps_words,
)
from tbsched.show.words import seconds_words

_SHOWN = 20  # gaps, and changes


def explanation_html(found: Explanation) -> str:
    """Where the time went, the gaps, and what would shorten the program."""
    gaps, more_gaps = gaps_table(found, _SHOWN)
    changes, more_changes = changes_table(found, _SHOWN)
    longest = max(found.idle.values(), default=0.0) or 1.0
    bars = [
        (cause_word(cause), 100 * seconds / longest, seconds_words(seconds))
        for cause, seconds in found.idle.items()
    ]
    tiles = [(seconds_words(found.span), "measured")]
    notes = [note_html(note) for note in found.notes]
    drawn = []
    if found.prediction is not None:
        tiles.append((seconds_words(found.prediction.makespan), "predicted"))
        notes.insert(0, note_html(model_words(found)))
        drawn = explained_html(found)
    tiles += [(seconds_words(sum(found.idle.values())), "idle"), (f"{len(found.gaps):,}", "gaps")]
    accounts = []
    for gpu in gpus_shown(found):
        table, more = account_table(found, gpu, _SHOWN)
        title = " ".join(["Where the time went", *gpu_words(found, gpu)])
        accounts.append(table_html(table, title, more="".join(more)))
    parts = [
        tiles_html(*tiles),
        *notes,
        rendered("bars.html", bars=bars),
        *accounts,
        *drawn,
        table_html(changes, "What would shorten it", more="".join(more_changes))
        if found.changes
        else note_html(
            "No change is told." if found.notes else "No change that was tried would shorten it."
        ),
        table_html(gaps, "Gaps", more="".join(more_gaps))
        if found.gaps
        else note_html(no_gaps_words(found)),
    ]
    assumed = assumed_words(found)
    if assumed:
        told = text_html(assumed, style="note")
        parts.append(folded_html("What the profile does not say", told))
    return card(explanation_short(found), *parts)
