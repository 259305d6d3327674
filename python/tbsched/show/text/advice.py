"""Advice as text."""

from __future__ import annotations

from rich.table import Table

from tbsched.advice.change import Change
from tbsched.advice.evenness import Evenness
from tbsched.advice.launch_configs import LaunchConfig, LaunchConfigs
from tbsched.advice.orders import BestOrder
from tbsched.advice.what_if import WhatIf
from tbsched.show.text.tables import render, table_of
from tbsched.show.words import counted, seconds_words


def launch_configs_short(configs: LaunchConfigs) -> str:
    """How many are accepted, and which one is advised."""
    advised = configs.advised
    kind = "configurations" if configs.kernel.loops else "block sizes"
    return f"{configs.device}: {len(configs.accepted)} of {len(configs)} {kind} are accepted" + (
        "" if advised is None else f"; advised: {_blocks_words(advised)}"
    )


def launch_configs_text(configs: LaunchConfigs) -> str:
    """A row per block size: each SM's share, what an SM holds, and what speaks against it."""
    table = render(configs_table(configs))
    return "\n".join([launch_configs_short(configs), table, *advised_lines(configs)])


def configs_table(configs: LaunchConfigs) -> Table:
    """A row per block size; with an estimate, as times the least one, where there is any."""
    headings = ["threads", "blocks", "per SM", "fit an SM", "bound by", "verdict"]
    least = min((row.estimate for row in configs if row.estimate is not None), default=None)
    if least is None:
        return table_of(tuple(headings), map(_launch_config_row, configs), left=(0, 5))
    headings.insert(5, "estimate")
    return table_of(tuple(headings), (_estimated_row(row, least) for row in configs), left=(0, 6))


def advised_lines(configs: LaunchConfigs) -> list[str]:
    """What the machine code says for and against the advised configuration."""
    if configs.advised is None:
        return []
    marks = {True: "+", False: "-", None: " "}
    return [
        f"{_blocks_words(configs.advised)}:",
        *(f"{marks[each.holds]} {each.rule}: {each.words}" for each in configs.advised.reasons),
    ]


def _blocks_words(row: LaunchConfig) -> str:
    return f"{row.launch.threads} threads in {counted(row.launch.blocks, 'block')}"


def _estimated_row(row: LaunchConfig, least: float) -> tuple[str, ...]:
    *words, verdict = _launch_config_row(row)
    return *words, "-" if row.estimate is None else f"{row.estimate / least:.2f}", verdict


def _launch_config_row(row: LaunchConfig) -> tuple[str, ...]:
    found = row.evenness
    room = ("-", "-", "-")
    if found is not None:
        least, most = found.share
        share = str(most) if least == most else f"{least}-{most}"
        room = (share, str(found.blocks_per_sm), found.limiter)
    words = "; ".join(row.rejected) or "accepted"
    return str(row.launch.threads), str(row.launch.blocks), *room, words


def evenness_short(found: Evenness) -> str:
    """As the text."""
    return evenness_text(found)


def evenness_text(found: Evenness) -> str:
    """Whether an even spread is certain, and why."""
    return f"{'even' if found.forced else 'not guaranteed to be even'}: {found.reason}"


def best_order_short(found: BestOrder) -> str:
    """How long it takes, and how long as given."""
    shorter = seconds_words(found.makespan)
    several = counted(len(found.order), "launch", "launches")
    return f"{several} in {shorter}, as given {seconds_words(found.given_makespan)}"


def best_order_text(found: BestOrder) -> str:
    """The order, and what it saves."""
    how = "the best of all orders" if found.exact else "the best found"
    in_order = found.order == tuple(range(len(found.order)))
    moved = "; launches are called sooner or later among other calls, in the same order"
    return (
        f"order {', '.join(map(str, found.order))}: {seconds_words(found.makespan)}, {how} in "
        f"{found.predictions} predictions; as given {seconds_words(found.given_makespan)}"
        f"{moved if in_order and found.makespan < found.given_makespan else ''}"
    )


def what_if_short(found: WhatIf) -> str:
    """How many changes were tried, and what the best one gives."""
    best = min(found.changes, key=lambda row: row.makespan, default=found.given)
    return f"{len(found.changes)} changes, the best {speedup(found.given, best):.3g} times as fast"


def what_if_text(found: WhatIf) -> str:
    """A row per change, the program as it is before them."""
    return render(changes_table(found))


def changes_table(found: WhatIf) -> Table:
    """A row per change, the program as it is before them."""
    rows = [
        (row.what, seconds_words(row.makespan), f"{speedup(found.given, row):.3g}")
        for row in (found.given, *found.changes)
    ]
    return table_of(("change", "makespan", "times as fast"), rows)


def speedup(given: Change, row: Change) -> float:
    """How many times as fast a change makes the program."""
    return given.makespan / row.makespan if row.makespan else 1.0
