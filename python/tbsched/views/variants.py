"""Variants of a kernel and their times."""

from __future__ import annotations

import math
from typing import Any

from tbsched.counting import counted
from tbsched.sm.rewriting import Ratio, Search, Timing, Variants
from tbsched.views.cards import card
from tbsched.views.plain import columns_of, fields, plain
from tbsched.views.tables import Lines, Table, table_of

_NONE = "–"
VARIANTS = ("variant", "registers", "blocks on an SM", "order", "moved")
SEARCH = (
    "variant",
    "runs",
    "median, us",
    "least, us",
    "spread, %",
    "times the original",
    "95 %",
    "",
)
_VARIANT = "name kernel registers order moved resident"


def variants_short(found: Variants) -> str:
    """The kernel, and how many there are."""
    return f"{found.kernel}, {counted(len(found), 'variant')}"


def variants_text(found: Variants) -> Lines:
    """A row per variant."""
    return [variants_short(found), variants_table(found)]


def variants_table(found: Variants) -> Table:
    """Returns a table with a row per variant."""
    return table_of(
        VARIANTS,
        [
            (
                each.name, str(each.registers),
                _NONE if each.resident is None else str(each.resident),
                each.order or _NONE, f"{each.moved:,}",
            )
            for each in found
        ],
        left=(0, 3),
    )  # fmt: skip


def search_short(found: Search) -> str:
    """Returns whether the fastest one is really faster."""
    name = found.best.variant.name
    gain = f"{found.gain.value:.3f} times as fast as the original ({_between(found.gain)})"
    if found.better:
        return f"{name}: {gain}"
    return f"none is faster by more than noise; best {name}, {gain}"


def search_text(found: Search) -> Lines:
    """A row per variant, and whether the fastest one is really faster."""
    return [search_table(found), "", search_short(found)]


def search_table(found: Search) -> Table:
    """A row per variant."""
    return table_of(SEARCH, map(_row, found.timings), left=(0, 7))


def _row(found: Timing) -> tuple[str, ...]:
    """Returns the table row of one variant."""
    return (
        found.variant.name,
        str(len(found.seconds)),
        f"{1e6 * found.median:.2f}",
        f"{1e6 * found.least:.2f}",
        f"{100 * found.spread:.2f}",
        f"{found.ratio.value:.3f}",
        _between(found.ratio),
        "given up" if found.dropped else "",
    )


def _between(found: Ratio) -> str:
    return f"{found.low:.3f} to {found.high:.3f}"


def variants_html(found: Variants) -> str:
    """A row per variant."""
    return card(variants_short(found), variants_table(found))


def search_html(found: Search) -> str:
    """A row per variant, under whether the fastest one is really faster."""
    return card(search_short(found), search_table(found))


def variants_data(found: Variants) -> dict[str, Any]:
    """The kernel, and an object for each variant."""
    return {"kernel": found.kernel, "variants": [fields(each, _VARIANT) for each in found]}


def search_data(found: Search) -> dict[str, Any]:
    """Returns JSON data: each variant with all of its times, and the result of the search."""
    timings = [
        {
            "variant": fields(row.variant, _VARIANT),
            "seconds": list(row.seconds),
            "ratio": _ratio(row.ratio),
            "dropped": row.dropped,
        }
        for row in found.timings
    ]
    best, gain = found.best.variant.name, _ratio(found.gain)
    return {"timings": timings, "best": best, "gain": gain, "better": found.better}


def _ratio(found: Ratio) -> dict[str, float | None]:
    known = plain(found).items()
    return {name: value if math.isfinite(value) else None for name, value in known}


def variants_columns(found: Variants) -> dict[str, Any]:
    """A row per variant."""
    return columns_of(found, _VARIANT)


def search_columns(found: Search) -> dict[str, Any]:
    """Returns columns with a row per variant."""
    rows = found.timings
    return {
        **columns_of(rows, "name=variant.name"),
        "runs": [len(row.seconds) for row in rows],
        **columns_of(rows, "median mean least spread dropped"),
        **columns_of(rows, "ratio=ratio.value ratio_low=ratio.low ratio_high=ratio.high"),
    }
