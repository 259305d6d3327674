"""The order of launches that takes the least time."""

from __future__ import annotations

from typing import Any

from tbsched.advice.orders import BestOrder
from tbsched.counting import counted
from tbsched.views.cards import (
    bars_html,
    card,
    table_html,
    text_html,
)
from tbsched.views.layout.colours import colours_of
from tbsched.views.plain import columns_of, fields
from tbsched.views.tables import table_of
from tbsched.views.words import launch_words, more_of, seconds_words

_LAUNCHES_SHOWN = 50


def best_order_short(found: BestOrder) -> str:
    """How long it takes, and how long as given."""
    shorter = seconds_words(found.makespan)
    several = counted(len(found.order), "launch", "launches")
    return f"{several} in {shorter}, as given {seconds_words(found.given_makespan)}"


def best_order_text(found: BestOrder) -> str:
    """Returns the order, and what it saves."""
    how = "the best of all orders" if found.exact else "the best found"
    in_order = found.order == tuple(range(len(found.order)))
    moved = "; launches are called sooner or later among other calls, in the same order"
    return (
        f"order {', '.join(map(str, found.order))}: {seconds_words(found.makespan)}, {how} in "
        f"{counted(found.predictions, 'prediction')}; "
        f"as given {seconds_words(found.given_makespan)}"
        f"{moved if in_order and found.makespan < found.given_makespan else ''}"
    )


def best_order_html(found: BestOrder) -> str:
    """Returns HTML: the order, and what it saves."""
    launches = found.sequence.launches
    rows = [
        (str(place), str(number), launch.name or "", launch_words(launch))
        for place, (number, launch) in enumerate(zip(found.order, launches, strict=True))
    ][:_LAUNCHES_SHOWN]
    return card(
        best_order_short(found),
        text_html([best_order_text(found)]),
        bars_html(
            [
                (what, makespan, seconds_words(makespan))
                for what, makespan in (
                    ("as given", found.given_makespan),
                    ("in this order", found.makespan),
                )
            ]
        ),
        table_html(
            table_of(
                ("place", "launch", "name", "blocks x threads"),
                rows,
                (2, 3),
                more_of(len(launches), len(rows), "launch", "launches"),
            ),
            marks=colours_of(launches),
        ),
    )


def best_order_columns(found: BestOrder) -> dict[str, Any]:
    """Returns columns with a row per kernel, in the order that was found."""
    launches = found.sequence.launches
    return {
        "position": list(range(len(launches))),
        "kernel": list(found.order),
        **columns_of(launches, "name"),
        "stream": [None if x.stream is None else str(x.stream) for x in launches],
    }


def best_order_data(found: BestOrder) -> dict[str, Any]:
    """The order, and what it saves."""
    return fields(found, "order events=sequence makespan given_makespan exact predictions")
