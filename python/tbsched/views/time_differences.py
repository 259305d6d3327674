"""How far a prediction with times is from what ran."""

from __future__ import annotations

from typing import Any

from tbsched.comparison.times import TimeDiff
from tbsched.views.cards import (
    card,
    table_html,
    text_html,
    tiles_html,
)
from tbsched.views.plain import columns_of, plain
from tbsched.views.tables import table_of
from tbsched.views.words import more_of, seconds_words

_ROWS_SHOWN = 50


def time_diff_short(diff: TimeDiff) -> str:
    """Shares of pairs and blocks that agree."""
    pairs, starts = (diff.pairs_agreeing, diff.pairs), (diff.starts_agreeing, diff.blocks)
    return f"{_share(*pairs)} of pairs concurrent alike, {_share(*starts)} of starts"


def time_diff_text(diff: TimeDiff) -> str:
    """Returns the shares of pairs and blocks that agree, and the makespans."""
    return (
        f"{_share(diff.pairs_agreeing, diff.pairs)} of {diff.pairs} pairs of launches "
        f"concurrent alike, {_share(diff.starts_agreeing, diff.blocks)} of {diff.blocks} "
        f"blocks start within {100 * diff.tolerance:g} % of their launch's duration, makespan "
        f"{100 * diff.makespan_error:+.2f} % of {seconds_words(diff.makespan)}"
    )


def _share(part: int, total: int) -> str:
    return f"{100 * part / total:.2f} %" if total else "all"


def time_diff_html(diff: TimeDiff) -> str:
    """Returns HTML: the shares of pairs and blocks that agree, and a row per launch."""
    rows = [
        (str(index), *(f"{100 * x:+.2f} %" for x in (launch.start_error, launch.end_error)),
         f"{100 * launch.starts:.1f} %")
        for index, launch in enumerate(diff.launches[:_ROWS_SHOWN])
    ]  # fmt: skip
    headings = ("launch", "start", "end", "blocks that start alike")
    return card(
        time_diff_short(diff),
        text_html([time_diff_text(diff)]),
        tiles_html(
            (f"{diff.pairs_agreeing:,} of {diff.pairs:,}", "pairs concurrent alike"),
            (f"{diff.starts_agreeing:,} of {diff.blocks:,}", "blocks start alike"),
            (f"{100 * diff.makespan_error:+.2f} %", f"of makespan {seconds_words(diff.makespan)}"),
        ),
        table_html(
            table_of(
                headings, rows, (), more_of(len(diff.launches), len(rows), "launch", "launches")
            ),
            "Predicted less observed, in durations of the launch's blocks",
        ),
    )


def time_diff_columns(diff: TimeDiff) -> dict[str, Any]:
    """How far each launch ran from when it was predicted to."""
    launches = list(range(len(diff.launches)))
    return {"launch": launches, **columns_of(diff.launches, "start_error end_error starts")}


def time_diff_data(diff: TimeDiff) -> dict[str, Any]:
    """How far a timed prediction is from what ran."""
    rows = [{"launch": index, **plain(row)} for index, row in enumerate(diff.launches)]
    return {**plain(diff), "launches": rows}
