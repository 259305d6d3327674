"""Variants of a kernel and their times, as tables."""

from __future__ import annotations

from typing import Any

from tbsched.show.data.sm.variants import OF_VARIANT
from tbsched.sm.rewriting import Search, Variants

_OF_TIMING = ("median", "mean", "least", "spread", "dropped")


def variants_columns(found: Variants) -> dict[str, Any]:
    """A row per variant."""
    return {name: [getattr(each, name) for each in found] for name in OF_VARIANT}


def search_columns(found: Search) -> dict[str, Any]:
    """A row per variant."""
    rows = found.timings
    return {
        "name": [row.variant.name for row in rows],
        "runs": [len(row.seconds) for row in rows],
        **{name: [getattr(row, name) for row in rows] for name in _OF_TIMING},
        "ratio": [row.ratio.value for row in rows],
        "ratio_low": [row.ratio.low for row in rows],
        "ratio_high": [row.ratio.high for row in rows],
    }
