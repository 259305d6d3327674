"""Whether launches fit beside each other, as tables."""

from __future__ import annotations

from typing import Any

from tbsched.advice.together.capacities import Capacities
from tbsched.advice.together.capacity import Capacity
from tbsched.advice.together.coresident import Coresidency


def capacity_columns(found: Capacity) -> dict[str, Any]:
    """A row per SM."""
    causes = {sm: row.cause for row in found.limits for sm in row.sms}
    sms = range(found.device.sms)
    return {
        "sm": list(sms),
        "blocks": found.per_sm,
        "beside": found.beside_per_sm,
        "limiter": [causes[sm] for sm in sms],
    }


def capacities_columns(found: Capacities) -> dict[str, Any]:
    """A row per choice, the one with most blocks first."""
    rows = found.choices
    return {
        **{
            name: [getattr(row.launch, name) for row in rows]
            for name in ("threads", "carveout", "cluster")
        },
        "blocks": [row.blocks for row in rows],
        "clusters": [row.clusters for row in rows],
        "threads_in_all": [row.threads for row in rows],
        "idle_sms": [row.idle_sms for row in rows],
        "limiter": [row.limiter or None for row in rows],
        "refused": [row.refused for row in rows],
    }


def coresidency_columns(found: Coresidency) -> dict[str, Any]:
    """A row per fix."""
    return {
        "kind": [fix.kind for fix in found.fixes],
        "text": [fix.text for fix in found.fixes],
        "after": [str(list(map(list, fix.after))) for fix in found.fixes],
    }
