"""Advice as tables: a row per block size, per change or per kernel."""

from __future__ import annotations

from typing import Any

from tbsched.advice.launch_configs import LaunchConfig, LaunchConfigs
from tbsched.advice.orders import BestOrder
from tbsched.advice.what_if import WhatIf
from tbsched.show.text.advice import speedup

_OF_LAUNCH = ("threads", "blocks", "registers", "shared_memory")


def launch_configs_columns(configs: LaunchConfigs) -> dict[str, Any]:
    """A row per block size."""
    rows = list(map(_launch_config, configs))
    return {name: [row[name] for row in rows] for name in _launch_config_names()}


def _launch_config_names() -> tuple[str, ...]:
    room = ("least_per_sm", "most_per_sm", "fit_an_sm", "limiter", "even")
    return (*_OF_LAUNCH, *room, "accepted", "rejected", "estimate")


def _launch_config(row: LaunchConfig) -> dict[str, Any]:
    found = row.evenness
    share = (None, None) if found is None else found.share
    return {
        **{name: getattr(row.launch, name) for name in _OF_LAUNCH},
        "least_per_sm": share[0],
        "most_per_sm": share[1],
        "fit_an_sm": None if found is None else found.blocks_per_sm,
        "limiter": None if found is None else found.limiter,
        "even": None if found is None else found.forced,
        "accepted": row.accepted,
        "rejected": "; ".join(row.rejected) or None,
        "estimate": row.estimate,
    }


def best_order_columns(found: BestOrder) -> dict[str, Any]:
    """A row per kernel, in the order that was found."""
    launches = found.sequence.launches
    return {
        "position": list(range(len(launches))),
        "kernel": list(found.order),
        "name": [launch.name for launch in launches],
        "stream": [None if x.stream is None else str(x.stream) for x in launches],
    }


def what_if_columns(found: WhatIf) -> dict[str, Any]:
    """A row per change, the program as it is before them."""
    rows = (found.given, *found.changes)
    return {
        "change": [row.what for row in rows],
        "makespan": [row.makespan for row in rows],
        "times_as_fast": [speedup(found.given, row) for row in rows],
    }
