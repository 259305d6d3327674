"""Why a program of a profile took so long, as HTML."""

from __future__ import annotations

from tbsched.advice.explain.explanation import Explanation
from tbsched.show.html.pages import card, rendered
from tbsched.show.html.parts import folded_html, note_html, table_html, text_html, tiles_html
from tbsched.show.html.svg.programs import explained_html
from tbsched.show.text.explanations import (
    cause_word,
    changes_table,
    explanation_short,
    gaps_table,
    model_words,
    no_gaps_words,
)
from tbsched.show.words import seconds_words

_SHOWN = 20  # gaps, and changes


def explanation_html(found: Explanation) -> str:
    """What kept the GPU idle, the gaps, and what would shorten the program."""
    gaps, more_gaps = gaps_table(found, _SHOWN)
    changes, more_changes = changes_table(found, _SHOWN)
    longest = max(found.idle.values(), default=0.0) or 1.0
    bars = [
        (cause_word(cause), 100 * seconds / longest, seconds_words(seconds))
        for cause, seconds in found.idle.items()
    ]
    parts = [
        tiles_html(
            (seconds_words(found.makespan), "measured"),
            (seconds_words(found.prediction.makespan), "predicted"),
            (seconds_words(sum(found.idle.values())), "idle"),
            (f"{len(found.gaps):,}", "gaps"),
        ),
        note_html(model_words(found)),
        rendered("bars.html", bars=bars),
        *explained_html(found),
        table_html(changes, "What would shorten it", more="".join(more_changes))
        if found.changes
        else note_html("No change that was tried would shorten it."),
        table_html(gaps, "Gaps", more="".join(more_gaps))
        if found.gaps
        else note_html(no_gaps_words(found)),
    ]
    if found.program.assumed:
        told = text_html(found.program.assumed, style="note")
        parts.append(folded_html("What the profile does not say", told))
    return card(explanation_short(found), *parts)
