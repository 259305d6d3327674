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


def variants_short(variants: Variants) -> str:
    """The kernel, and how many there are."""
    return f"{variants.kernel}, {counted(len(variants), 'variant')}"


def variants_text(variants: Variants) -> Lines:
    """A row per variant."""
    return [variants_short(variants), variants_table(variants)]


def variants_table(variants: Variants) -> Table:
    """Returns a table with a row per variant."""
    return table_of(
        VARIANTS,
        [
            (
                variant.name, str(variant.registers),
                _NONE if variant.resident is None else str(variant.resident),
                variant.order or _NONE, f"{variant.moved:,}",
            )
            for variant in variants
        ],
        left=(0, 3),
    )  # fmt: skip


def search_short(search: Search) -> str:
    """Returns whether the fastest one is really faster."""
    name = search.best.variant.name
    gain = f"{search.gain.value:.3f} times as fast as the original ({_between(search.gain)})"
    if search.better:
        return f"{name}: {gain}"
    return f"none is faster by more than noise; best {name}, {gain}"


def search_text(search: Search) -> Lines:
    """A row per variant, and whether the fastest one is really faster."""
    return [search_table(search), "", search_short(search)]


def search_table(search: Search) -> Table:
    """A row per variant."""
    return table_of(SEARCH, map(_row, search.timings), left=(0, 7))


def _row(timing: Timing) -> tuple[str, ...]:
    """Returns the table row of one variant."""
    return (
        timing.variant.name,
        str(len(timing.seconds)),
        f"{1e6 * timing.median:.2f}",
        f"{1e6 * timing.least:.2f}",
        f"{100 * timing.spread:.2f}",
        f"{timing.ratio.value:.3f}",
        _between(timing.ratio),
        "given up" if timing.dropped else "",
    )


def _between(ratio: Ratio) -> str:
    return f"{ratio.low:.3f} to {ratio.high:.3f}"


def variants_html(variants: Variants) -> str:
    """A row per variant."""
    return card(variants_short(variants), variants_table(variants))


def search_html(search: Search) -> str:
    """A row per variant, under whether the fastest one is really faster."""
    return card(search_short(search), search_table(search))


def variants_data(variants: Variants) -> dict[str, Any]:
    """Returns JSON data: the kernel, and an object for each variant."""
    return {
        "kernel": variants.kernel,
        "variants": [fields(variant, _VARIANT) for variant in variants],
    }


def search_data(search: Search) -> dict[str, Any]:
    """Returns JSON data: each variant with all of its times, and the result of the search."""
    timings = [
        {
            "variant": fields(row.variant, _VARIANT),
            "seconds": list(row.seconds),
            "ratio": _ratio(row.ratio),
            "dropped": row.dropped,
        }
        for row in search.timings
    ]
    best, gain = search.best.variant.name, _ratio(search.gain)
    return {"timings": timings, "best": best, "gain": gain, "better": search.better}


def _ratio(ratio: Ratio) -> dict[str, float | None]:
    known = plain(ratio).items()
    return {name: value if math.isfinite(value) else None for name, value in known}


def variants_columns(variants: Variants) -> dict[str, Any]:
    """A row per variant."""
    return columns_of(variants, _VARIANT)


def search_columns(search: Search) -> dict[str, Any]:
    """Returns columns with a row per variant."""
    rows = search.timings
    return {
        **columns_of(rows, "name=variant.name"),
        "runs": [len(row.seconds) for row in rows],
        **columns_of(rows, "median mean least spread dropped"),
        **columns_of(rows, "ratio=ratio.value ratio_low=ratio.low ratio_high=ratio.high"),
    }
