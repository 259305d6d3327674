"""Block sizes for a kernel, and what speaks for and against each."""

from __future__ import annotations

from typing import Any

from tbsched.advice.launch_configs import LaunchConfig, LaunchConfigs
from tbsched.counting import counted
from tbsched.views.cards import (
    card,
    table_html,
    text_html,
)
from tbsched.views.evenness import evenness_data
from tbsched.views.plain import columns_of, fields, plain
from tbsched.views.tables import Lines, Table, table_of


def launch_configs_short(configs: LaunchConfigs) -> str:
    """Returns how many configurations are accepted, and which one is advised, in words."""
    advised = configs.advised
    kind = "configurations" if configs.kernel.loops else "block sizes"
    return f"{configs.device}: {len(configs.accepted)} of {len(configs)} {kind} are accepted" + (
        "" if advised is None else f"; advised: {_blocks_words(advised)}"
    )


def launch_configs_text(configs: LaunchConfigs) -> Lines:
    """A row per block size: each SM's share, what an SM holds, and what speaks against it."""
    return [launch_configs_short(configs), configs_table(configs), *advised_lines(configs)]


def configs_table(configs: LaunchConfigs) -> Table:
    """Returns a table with a row per block size, with relative estimates if there are any."""
    headings = ["threads", "blocks", "per SM", "fit an SM", "bound by", "verdict"]
    best_estimate = min((row.estimate for row in configs if row.estimate is not None), default=None)
    if best_estimate is None:
        return table_of(tuple(headings), map(_launch_config_row, configs), left=(0, 5))
    headings.insert(5, "estimate")
    return table_of(
        tuple(headings), (_estimated_row(row, best_estimate) for row in configs), left=(0, 6)
    )


def advised_lines(configs: LaunchConfigs) -> list[str]:
    """Returns what the machine code says for and against the advised configuration."""
    if configs.advised is None:
        return []
    marks = {True: "+", False: "-", None: " "}
    return [
        f"{_blocks_words(configs.advised)}:",
        *(
            f"{marks[reason.holds]} {reason.rule}: {reason.words}"
            for reason in configs.advised.reasons
        ),
    ]


def _blocks_words(row: LaunchConfig) -> str:
    return f"{row.launch.threads} threads in {counted(row.launch.blocks, 'block')}"


def _estimated_row(row: LaunchConfig, best_estimate: float) -> tuple[str, ...]:
    *words, verdict = _launch_config_row(row)
    return *words, "-" if row.estimate is None else f"{row.estimate / best_estimate:.2f}", verdict


def _launch_config_row(row: LaunchConfig) -> tuple[str, ...]:
    """Returns the table row of one block size."""
    evenness = row.evenness
    room = ("-", "-", "-")
    if evenness is not None:
        low, high = evenness.share
        share = str(high) if low == high else f"{low}-{high}"
        room = (share, str(evenness.blocks_per_sm), evenness.limiter)
    words = "; ".join(row.rejected) or "accepted"
    return str(row.launch.threads), str(row.launch.blocks), *room, words


def launch_configs_html(configs: LaunchConfigs) -> str:
    """Returns HTML: a row per block size."""
    styles = ["good" if row.accepted else "" for row in configs]
    return card(
        launch_configs_short(configs),
        table_html(configs_table(configs), styles=styles),
        text_html(advised_lines(configs)),
    )


def launch_configs_columns(configs: LaunchConfigs) -> dict[str, Any]:
    """Returns columns with a row per block size."""
    rooms = [row.evenness for row in configs]
    return {
        **columns_of((row.launch for row in configs), "threads blocks registers shared_memory"),
        "least_per_sm": [None if room is None else room.share[0] for room in rooms],
        "most_per_sm": [None if room is None else room.share[1] for room in rooms],
        "fit_an_sm": [None if room is None else room.blocks_per_sm for room in rooms],
        "limiter": [None if room is None else room.limiter for room in rooms],
        "even": [None if room is None else room.forced for room in rooms],
        **columns_of(configs, "accepted"),
        "rejected": ["; ".join(row.rejected) or None for row in configs],
        **columns_of(configs, "estimate"),
    }


def launch_configs_data(configs: LaunchConfigs) -> dict[str, Any]:
    """Returns JSON data: the kernel, and each block size with what speaks against it."""
    rows = [
        {
            **fields(row, "launch accepted rejected reasons estimate"),
            "evenness": None if row.evenness is None else evenness_data(row.evenness),
        }
        for row in configs
    ]
    return {
        **fields(configs, "device kernel"),
        "configs": rows,
        "code": plain(configs.code),
        "advised": None if configs.advised is None else configs.rows.index(configs.advised),
    }
