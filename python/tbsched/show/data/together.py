"""Whether launches fit beside each other, as what JSON can hold."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from tbsched.advice.together.capacities import Capacities
from tbsched.advice.together.capacity import Capacity
from tbsched.advice.together.coresident import Coresidency
from tbsched.advice.together.fixes.fix import Fix
from tbsched.advice.together.limits import Limit
from tbsched.program.events.launch import Launch, launch_to_data
from tbsched.program.sequence import events_to_data
from tbsched.show.data.traces import info_data


def capacity_data(found: Capacity) -> dict[str, Any]:
    """How many blocks fit, where, and what binds each class of SMs."""
    return {
        "device": info_data(found.device),
        "launch": launch_to_data(found.launch),
        "beside": _launches(found.beside),
        "state": found.state.components(),
        "blocks": found.blocks,
        "clusters": found.clusters,
        "fits": found.fits,
        "smid": found.smid.tolist(),
        "per_sm": found.per_sm.tolist(),
        "beside_per_sm": found.beside_per_sm.tolist(),
        "idle_sms": list(found.idle_sms),
        "limits": _limits(found.limits),
    }


def _launches(launches: Iterable[Launch]) -> list[dict[str, Any]]:
    return [launch_to_data(launch) for launch in launches]


def _limits(limits: Iterable[Limit]) -> list[dict[str, Any]]:
    return [{**asdict(row), "sms": list(row.sms)} for row in limits]


def capacities_data(found: Capacities) -> dict[str, Any]:
    """Each choice, the one with most blocks first."""
    choices = [{**asdict(row), "launch": launch_to_data(row.launch)} for row in found.choices]
    device, beside = info_data(found.device), _launches(found.beside)
    return {"device": device, "beside": beside, "choices": choices}


def coresidency_data(found: Coresidency) -> dict[str, Any]:
    """The answer with its reason; if it is no, what strands a block, and what to change."""
    return {
        "device": info_data(found.device),
        "launches": _launches(found.launches),
        "groups": [list(group) for group in found.groups],
        "after": [list(pair) for pair in found.after],
        "safe": found.safe,
        "argument": found.argument,
        "proof": found.proof,
        "full_sms": [asdict(row) for row in found.full_sms],
        "witness": None if found.witness is None else events_to_data(found.witness),
        "issue_times": None if found.issue_times is None else list(found.issue_times),
        "order": list(found.order),
        "state": None if found.state is None else found.state.components(),
        "stranded": found.stranded,
        "waiting": found.waiting,
        "cause": found.cause,
        "behind": found.behind,
        "limits": _limits(found.limits),
        "fixes": [_fix(fix) for fix in found.fixes],
        "plays": found.plays,
    }


def _fix(fix: Fix) -> dict[str, Any]:
    return {
        "kind": fix.kind,
        "text": fix.text,
        "launches": _launches(fix.launches),
        "after": [list(pair) for pair in fix.after],
    }
