"""Variants of a kernel and their times, as what JSON can hold."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from tbsched.sm.rewriting import Ratio, Search, Variant, Variants

OF_VARIANT = ("name", "kernel", "registers", "order", "moved", "resident")


def variants_data(found: Variants) -> dict[str, Any]:
    """The kernel, and an object for each variant."""
    return {"kernel": found.kernel, "variants": [_variant(each) for each in found]}


def search_data(found: Search) -> dict[str, Any]:
    """An object for each variant with all of its times, and what the search says."""
    return {
        "timings": [
            {
                "variant": _variant(row.variant),
                "seconds": list(row.seconds),
                "ratio": _ratio(row.ratio),
                "dropped": row.dropped,
            }
            for row in found.timings
        ],
        "best": found.best.variant.name,
        "gain": _ratio(found.gain),
        "better": found.better,
    }


def _variant(found: Variant) -> dict[str, Any]:
    return {name: getattr(found, name) for name in OF_VARIANT}


def _ratio(found: Ratio) -> dict[str, float | None]:
    return {name: value if math.isfinite(value) else None for name, value in asdict(found).items()}
