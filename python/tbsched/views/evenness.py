"""Whether blocks are sure to be spread evenly."""

from __future__ import annotations

from typing import Any

from tbsched.advice.evenness import Evenness
from tbsched.views.cards import (
    card,
    tiles_html,
)
from tbsched.views.plain import fields, plain


def evenness_short(found: Evenness) -> str:
    """Whether an even spread is certain, and why, in one line."""
    return evenness_text(found)


def evenness_text(found: Evenness) -> str:
    """Whether an even spread is certain, and why."""
    return f"{'even' if found.forced else 'not guaranteed to be even'}: {found.reason}"


def evenness_html(found: Evenness) -> str:
    """Returns HTML: whether an even spread is certain, and why."""
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


def evenness_data(found: Evenness) -> dict[str, Any]:
    """Whether an even spread is certain, and why."""
    return {**plain(found), **fields(found, "share")}
