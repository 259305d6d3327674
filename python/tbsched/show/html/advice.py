"""Advice as HTML."""

from __future__ import annotations

from markupsafe import Markup

from tbsched.advice.evenness import Evenness
from tbsched.advice.launch_configs import LaunchConfigs
from tbsched.advice.orders import BestOrder
from tbsched.advice.what_if import WhatIf
from tbsched.show.html.pages import card, rendered
from tbsched.show.html.parts import (
    legend_html,
    more_of,
    note_html,
    table_html,
    text_html,
    tiles_html,
)
from tbsched.show.layout.colours import colours_of
from tbsched.show.text.advice import (
    advised_lines,
    best_order_short,
    best_order_text,
    changes_table,
    configs_table,
    evenness_text,
    launch_configs_short,
    what_if_short,
)
from tbsched.show.text.tables import table_of
from tbsched.show.words import launch_words, seconds_words

_LAUNCHES_SHOWN = 50
_CHANGES_SHOWN = 40


def launch_configs_html(configs: LaunchConfigs) -> str:
    """A row per block size."""
    styles = ["good" if row.accepted else "" for row in configs]
    return card(
        launch_configs_short(configs),
        table_html(configs_table(configs), styles=styles),
        text_html(advised_lines(configs)),
    )


def evenness_html(found: Evenness) -> str:
    """Whether an even spread is certain, and why."""
    least, most = found.share
    return card(
        evenness_text(found),
        tiles_html(
            (f"{found.blocks:,}", "blocks"),
            (f"{found.sms:,}", "SMs"),
            (str(most) if least == most else f"{least} or {most}", "per SM if even"),
            (str(found.blocks_per_sm), f"fit an SM, by {found.limiter}"),
        ),
    )


def best_order_html(found: BestOrder) -> str:
    """The order, and what it saves."""
    launches = found.sequence.launches
    rows = [
        (str(place), str(number), launch.name or "", launch_words(launch))
        for place, (number, launch) in enumerate(zip(found.order, launches, strict=True))
    ][:_LAUNCHES_SHOWN]
    return card(
        best_order_short(found),
        text_html([best_order_text(found)]),
        _bars(
            [
                (what, makespan, seconds_words(makespan))
                for what, makespan in (
                    ("as given", found.given_makespan),
                    ("in this order", found.makespan),
                )
            ]
        ),
        table_html(
            table_of(("place", "launch", "name", "blocks x threads"), rows, left=(2, 3)),
            more=more_of(len(launches), len(rows), "launch", "launches"),
            marks=colours_of(launches),
        ),
    )


def what_if_html(found: WhatIf) -> str:
    """A row per change, the program as it is before them."""
    rows = (found.given, *found.changes)[:_CHANGES_SHOWN]
    words = zip(*(column.cells for column in changes_table(found).columns), strict=True)
    return card(
        what_if_short(found),
        legend_html(found.given.sequence.launches),
        _bars(
            [
                (what, row.makespan, f"{makespan}, {speed} times as fast")
                for row, (what, makespan, speed) in zip(rows, words, strict=False)
            ]
        ),
        note_html(more_of(len(found.changes) + 1, len(rows), "change")),
    )


def _bars(rows: list[tuple[str, float, str]]) -> Markup:
    """Makespans as bars, and in words."""
    longest = max((makespan for _, makespan, _ in rows), default=0.0) or 1.0
    bars = [(what, 100 * makespan / longest, words) for what, makespan, words in rows]
    return rendered("bars.html", bars=bars)
