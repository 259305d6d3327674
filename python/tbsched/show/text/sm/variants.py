"""Variants of a kernel and their times, as text."""

from __future__ import annotations

from rich.table import Table

from tbsched.show.text.tables import render, table_of
from tbsched.show.words import counted
from tbsched.sm.rewriting import Ratio, Search, Timing, Variants

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


def variants_short(found: Variants) -> str:
    """The kernel, and how many there are."""
    return f"{found.kernel}, {counted(len(found), 'variant')}"


def variants_text(found: Variants) -> str:
    """A row per variant."""
    return "\n".join([variants_short(found), render(variants_table(found))])


def variants_table(found: Variants) -> Table:
    """A row per variant."""
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
    """Whether the fastest one is really faster."""
    name = found.best.variant.name
    gain = f"{found.gain.value:.3f} times as fast as the original ({_between(found.gain)})"
    if found.better:
        return f"{name}: {gain}"
    return f"none is faster by more than noise; best {name}, {gain}"


def search_text(found: Search) -> str:
    """A row per variant, and whether the fastest one is really faster."""
    return "\n".join([render(search_table(found)), "", search_short(found)])


def search_table(found: Search) -> Table:
    """A row per variant."""
    return table_of(SEARCH, map(_row, found.timings), left=(0, 7))


def _row(found: Timing) -> tuple[str, ...]:
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
