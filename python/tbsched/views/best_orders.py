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


def best_order_short(best_order: BestOrder) -> str:
    """Returns how long the best order takes, and how long the given one, in words."""
    shorter = seconds_words(best_order.makespan)
    launches = counted(len(best_order.order), "launch", "launches")
    return f"{launches} in {shorter}, as given {seconds_words(best_order.given_makespan)}"


def best_order_text(best_order: BestOrder) -> str:
    """Returns the order, and what it saves."""
    how = "the best of all orders" if best_order.exact else "the best found"
    in_order = best_order.order == tuple(range(len(best_order.order)))
    moved = "; launches are called sooner or later among other calls, in the same order"
    return (
        f"order {', '.join(map(str, best_order.order))}: "
        f"{seconds_words(best_order.makespan)}, {how} in "
        f"{counted(best_order.predictions, 'prediction')}; "
        f"as given {seconds_words(best_order.given_makespan)}"
        f"{moved if in_order and best_order.makespan < best_order.given_makespan else ''}"
    )


def best_order_html(best_order: BestOrder) -> str:
    """Returns HTML: the order, and what it saves."""
    launches = best_order.sequence.launches
    rows = [
        (str(index), str(number), launch.name or "", launch_words(launch))
        for index, (number, launch) in enumerate(zip(best_order.order, launches, strict=True))
    ][:_LAUNCHES_SHOWN]
    return card(
        best_order_short(best_order),
        text_html([best_order_text(best_order)]),
        bars_html(
            [
                (heading, makespan, seconds_words(makespan))
                for heading, makespan in (
                    ("as given", best_order.given_makespan),
                    ("in this order", best_order.makespan),
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


def best_order_columns(best_order: BestOrder) -> dict[str, Any]:
    """Returns columns with a row per kernel, in the order that was found."""
    launches = best_order.sequence.launches
    return {
        "position": list(range(len(launches))),
        "kernel": list(best_order.order),
        **columns_of(launches, "name"),
        "stream": [None if x.stream is None else str(x.stream) for x in launches],
    }


def best_order_data(best_order: BestOrder) -> dict[str, Any]:
    """The order, and what it saves."""
    return fields(best_order, "order events=sequence makespan given_makespan exact predictions")
