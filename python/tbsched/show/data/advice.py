"""Advice as what JSON can hold."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from tbsched.advice.change import Change
from tbsched.advice.evenness import Evenness
from tbsched.advice.launch_configs import LaunchConfig, LaunchConfigs
from tbsched.advice.orders import BestOrder
from tbsched.advice.what_if import WhatIf
from tbsched.program.events.launch import launch_to_data
from tbsched.program.sequence import events_to_data


def launch_configs_data(configs: LaunchConfigs) -> dict[str, Any]:
    """The kernel, and each block size with what speaks against it."""
    return {
        "device": configs.device,
        "kernel": asdict(configs.kernel),
        "configs": list(map(_launch_config, configs)),
        "code": None if configs.code is None else asdict(configs.code),
        "advised": None if configs.advised is None else configs.rows.index(configs.advised),
    }


def _launch_config(row: LaunchConfig) -> dict[str, Any]:
    return {
        "launch": launch_to_data(row.launch),
        "accepted": row.accepted,
        "rejected": list(row.rejected),
        "reasons": [asdict(reason) for reason in row.reasons],
        "estimate": row.estimate,
        "evenness": None if row.evenness is None else evenness_data(row.evenness),
    }


def evenness_data(found: Evenness) -> dict[str, Any]:
    """Whether an even spread is certain, and why."""
    return {**asdict(found), "share": list(found.share)}


def best_order_data(found: BestOrder) -> dict[str, Any]:
    """The order, and what it saves."""
    return {
        "order": list(found.order),
        "events": events_to_data(found.sequence),
        "makespan": found.makespan,
        "given_makespan": found.given_makespan,
        "exact": found.exact,
        "predictions": found.predictions,
    }


def what_if_data(found: WhatIf) -> dict[str, Any]:
    """The program as it is, and each change."""
    return {"given": _change(found.given), "changes": list(map(_change, found.changes))}


def _change(row: Change) -> dict[str, Any]:
    events = events_to_data(row.sequence)
    return {"change": row.what, "makespan": row.makespan, "events": events}
