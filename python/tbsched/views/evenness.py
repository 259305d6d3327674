"""Whether blocks are sure to be spread evenly."""

from __future__ import annotations

from typing import Any

from tbsched.advice.evenness import Evenness
from tbsched.views.cards import (
    card,
    tiles_html,
)
from tbsched.views.plain import fields, plain


def evenness_short(evenness: Evenness) -> str:
    """Whether an even spread is certain, and why, in one line."""
    return evenness_text(evenness)


def evenness_text(evenness: Evenness) -> str:
    """Whether an even spread is certain, and why."""
    return f"{'even' if evenness.forced else 'not guaranteed to be even'}: {evenness.reason}"


def evenness_html(evenness: Evenness) -> str:
    """Returns HTML: whether an even spread is certain, and why."""
    low, high = evenness.share
    return card(
        evenness_text(evenness),
        tiles_html(
            (f"{evenness.blocks:,}", "blocks"),
            (f"{evenness.sms:,}", "SMs"),
            (str(high) if low == high else f"{low} or {high}", "per SM if even"),
            (str(evenness.blocks_per_sm), f"fit an SM, by {evenness.limiter}"),
        ),
    )


def evenness_data(evenness: Evenness) -> dict[str, Any]:
    """Whether an even spread is certain, and why."""
    return {**plain(evenness), **fields(evenness, "share")}
