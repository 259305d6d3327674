"""How often a predictor is right."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tbsched.comparison.verify import Score
from tbsched.counting import counted
from tbsched.views.cards import (
    bars_html,
    card,
    folded_html,
    text_html,
    tiles_html,
)
from tbsched.views.differences import diff_part
from tbsched.views.plain import fields
from tbsched.views.tables import Lines, Table, table_of
from tbsched.views.words import percent_words


def score_short(score: Score) -> str:
    """Returns how often a predictor is right, in words."""
    share = percent_words(score.exact, score.launches)
    words = f"every block right in {score.exact:,} of {score.launches:,} launches ({share} %)"
    return f"{score.device}/{score.policy}: {words}"


def score_text(score: Score) -> Lines:
    """The shares, and what was not predicted or not right."""
    return [score_short(score), "", scores_table([score]), *score_notes(score)]


def scores_table(scores: Iterable[Score]) -> Table:
    """Returns a table with a row per predictor."""
    rows = [
        (
            f"{score.device}/{score.policy}",
            str(score.sequences),
            str(score.launches),
            percent_words(score.occupancy, score.launches),
            percent_words(score.exact, score.launches),
            percent_words(score.whole, score.sequences),
        )
        for score in scores
    ]
    return table_of(
        ("predictor", "sequences", "launches", "occupancy %", "exact %", "sequences %"), rows
    )


def score_notes(score: Score) -> list[str]:
    """Returns what was not predicted, and what differs, in words."""
    notes = []
    if score.skipped:
        refused = counted(len(score.skipped), "sequence")
        notes.append(f"not predicted: {refused}, the first: {score.skipped[0][1]}")
    if score.misses:
        differ = counted(len(score.misses), "sequence differs", "sequences differ")
        notes.append(f"{differ} in occupancy: Score.misses has them")
    return notes


def score_html(score: Score) -> str:
    """Returns HTML: the shares, and the first sequence that differs."""
    shares = [
        ("every block", score.exact, score.launches),
        ("blocks per SM", score.occupancy, score.launches),
        ("whole sequences", score.whole, score.sequences),
    ]
    bars = [
        (words, 100 * count / max(total, 1), f"{percent_words(count, total)} %")
        for words, count, total in shares
    ]
    parts = [
        tiles_html(
            (f"{score.sequences:,}", "sequences"),
            (f"{score.launches:,}", "launches"),
            (f"{len(score.skipped):,}", "not predicted"),
        ),
        bars_html(bars, 100),
        text_html(score_notes(score), style="note"),
    ]
    if score.misses:
        parts.append(folded_html("The first one that differs", diff_part(score.misses[0])))
    return card(score_short(score), *parts)


def score_data(score: Score) -> dict[str, Any]:
    """Returns JSON data: how often a predictor agrees with traces."""
    return {
        **fields(score, "device policy sequences launches occupancy exact whole agrees"),
        "skipped": [{"id": name, "reason": reason} for name, reason in score.skipped],
        "misses": [diff.b.id for diff in score.misses],
    }
