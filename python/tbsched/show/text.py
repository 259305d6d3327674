"""Traces and differences as text that a person reads."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console
from rich.table import Table

from tbsched.comparison.compare import Diff, Divergence
from tbsched.program.duration import Drawn
from tbsched.program.sequence import Launch
from tbsched.traces.trace import Int64Array, Trace

if TYPE_CHECKING:
    from tbsched.advice.launch_configs import LaunchConfig, LaunchConfigs

MAP_LEGEND = "'.' none, 1-9, a=10 to z=35, '#' more"
_DIGITS = ".123456789abcdefghijklmnopqrstuvwxyz"
_MAP_COLUMNS = 66
_ROWS_SHOWN = 12

LIMITER_WORDS = {
    "none": "nothing",
    "slots": "no thread block slot is free",
    "warps": "no warp slot is free in the processing block whose turn it is",
    "registers": "too few registers in the processing block whose turn it is",
    "shared_memory": "too little shared memory",
    "configuration": "the TPC's shared-memory configuration does not suit the launch",
    "local_memory": "the GPU must be idle to set up more local memory",
    "queue": "an earlier launch that waits holds it up",
    "stream": "the launch before it in its stream has not finished",
    "priority": "a more urgent launch that waits holds it up",
    "hardware_queue": "other streams' work is ahead of it in its hardware queue",
    "event": "the event that it waits for has not happened",
    "turn": "the thread block scheduler is still with another launch",
    "legacy_stream": "work of the legacy stream and other work wait for each other",
    "grids": "the GPU takes no more grids at once",
}


def launch_words(launch: Launch) -> str:
    """A launch in a few words: blocks x threads, registers, and what is not the default."""
    words = f"{launch.blocks} x {launch.threads}, {launch.registers} regs"
    if launch.shared_memory:
        words += f", {size_words(launch.shared_memory)} shared"
    if launch.local_memory:
        words += f", {size_words(launch.local_memory)} local"
    if launch.carveout is not None:
        words += f", carveout {launch.carveout}"
    if launch.cluster != 1:
        words += f", cluster {launch.cluster}"
    if launch.stream is not None:
        words += f", stream {launch.stream}"
    if launch.priority:
        words += f", priority {launch.priority}"
    if launch.duration is not None:
        words += f", {duration_words(launch.duration)}"
    return words


def duration_words(duration: float | tuple[float, ...] | Drawn) -> str:
    """How long blocks run, in a few words."""
    if isinstance(duration, Drawn):
        return f"{duration.distribution} of mean {seconds_words(duration.mean)}"
    if isinstance(duration, tuple):
        return f"{seconds_words(min(duration))} to {seconds_words(max(duration))}"
    return seconds_words(duration)


def seconds_words(seconds: float) -> str:
    """A time with the unit that suits it."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.4g} {unit}"
    return f"{seconds * 1e9:.4g} ns"


def size_words(size: int) -> str:
    """A number of bytes, in KB where it is a whole number of them."""
    return f"{size // 1024} KB" if size and size % 1024 == 0 else f"{size} B"


def occupancy_map(blocks_per_sm: Int64Array) -> list[str]:
    """Lines of one character per SM (see :data:`MAP_LEGEND`)."""
    text = "".join(_DIGITS[count] if count < len(_DIGITS) else "#" for count in blocks_per_sm)
    return [text[begin : begin + _MAP_COLUMNS] for begin in range(0, len(text), _MAP_COLUMNS)]


def trace_text(trace: Trace) -> str:
    """A table of the launches, and a map of the blocks on each SM."""
    sms = trace.device.sms
    table = Table(box=None, pad_edge=False)
    for heading in ("launch", "blocks x threads", "placed", "waits because"):
        table.add_column(heading, justify="right" if heading in ("launch", "placed") else "left")
    for number, (launch, placement) in enumerate(zip(trace.sequence.launches, trace, strict=True)):
        waits = "" if placement.limiter is None else LIMITER_WORDS[placement.limiter]
        table.add_row(str(number), launch_words(launch), str(placement.placed), waits)
    lines = [
        trace_head(trace),
        render(table),
        "",
        f"Blocks on each SM, before the next event ({MAP_LEGEND}):",
    ]
    for number, placement in enumerate(trace):
        rows = occupancy_map(placement.occupancy(sms))
        lines += [
            f"{f'launch {number}' if row == 0 else '':<12}SM {row * _MAP_COLUMNS:<4}{text}"
            for row, text in enumerate(rows)
        ]
    return "\n".join(lines)


def trace_head(trace: Trace) -> str:
    """What a trace is of."""
    policy = trace.device.details.get("policy")
    source = f"policy {policy}" if policy else "observed"
    return f"{trace.device.name}, {trace.device.sms} SMs, {source}"


def diff_text(diff: Diff) -> str:
    """Whether two traces agree, and where they first do not, explained."""
    found = diff.first_divergence
    total = len(diff.launches)
    if found is None:
        return f"{_who(diff.a)} and {_who(diff.b)} agree on every block of {total} launches."
    same = {
        level: sum(getattr(launch, level) for launch in diff.launches)
        for level in ("occupancy", "exact")
    }
    head = (
        f"{_who(diff.a)} (a) and {_who(diff.b)} (b) agree in {same['occupancy']} of {total} "
        f"launches on the blocks of each SM, in {same['exact']} on every block."
    )
    launch = diff.a.sequence.launches[found.launch]
    first = f"First difference: launch {found.launch} ({launch_words(launch)})."
    body = (
        _occupancy_words(diff, found) if found.level == "occupancy" else _order_words(diff, found)
    )
    return "\n".join([head, first, *body])


def _who(trace: Trace) -> str:
    model = trace.device.details.get("model")
    return f"model {model}/{trace.device.details.get('policy')}" if model else trace.device.name


def _occupancy_words(diff: Diff, found: Divergence) -> list[str]:
    a, b = diff.a[found.launch], diff.b[found.launch]
    lines = [f"placed before the next event: {a.placed} blocks in a, {b.placed} in b"]
    for letter, placement in (("a", a), ("b", b)):
        if placement.limiter is not None:
            lines.append(f"{letter}: blocks wait because {LIMITER_WORDS[placement.limiter]}")
    table = Table(box=None, pad_edge=False)
    for heading in ("SM", "a", "b"):
        table.add_column(heading, justify="right")
    capacity = found.capacity
    if capacity is not None:
        table.add_column("room", justify="right")
        table.add_column("bound by")
    for sm in found.sms[:_ROWS_SHOWN]:
        row = [str(sm), str(found.a_blocks[sm]), str(found.b_blocks[sm])]
        if capacity is not None:
            row += [str(capacity.blocks[sm]), capacity.limiter[sm]]
        table.add_row(*row)
    lines.append(render(table))
    if len(found.sms) > _ROWS_SHOWN:
        lines.append(f"and {len(found.sms) - _ROWS_SHOWN} SMs more")
    if capacity is not None:
        lines.append("room: blocks of this launch that the model had room for when it came")
        lines.append(_candidates(capacity.blocks, capacity.limiter))
    return lines


def _candidates(blocks: np.typing.NDArray[np.int32], limiter: tuple[str, ...]) -> str:
    kinds: dict[tuple[int, str], list[int]] = {}
    for sm, (room, bound) in enumerate(zip(blocks.tolist(), limiter, strict=True)):
        kinds.setdefault((room, bound), []).append(sm)
    parts = [
        f"{len(sms)} with room for {room} ({bound}; SM {_few(sms)})"
        for (room, bound), sms in sorted(kinds.items(), reverse=True)
    ]
    return "SMs in all: " + "; ".join(parts[:_ROWS_SHOWN])


def _few(sms: list[int]) -> str:
    return ", ".join(map(str, sms[:4])) + (", ..." if len(sms) > 4 else "")


def _order_words(diff: Diff, found: Divergence) -> list[str]:
    a, b = diff.a[found.launch].smid, diff.b[found.launch].smid
    table = Table(box=None, pad_edge=False)
    for heading in ("block", "SM in a", "SM in b"):
        table.add_column(heading, justify="right")
    for block in found.blocks[:_ROWS_SHOWN]:
        table.add_row(str(block), str(a[block]), str(b[block]))
    lines = ["each SM has the same number of blocks, in another order:", render(table)]
    if len(found.blocks) > _ROWS_SHOWN:
        lines.append(f"and {len(found.blocks) - _ROWS_SHOWN} blocks more")
    return lines


def launch_configs_text(configs: LaunchConfigs) -> str:
    """A row per block size: each SM's share, what an SM holds, and what speaks against it."""
    table = table_of(
        ("threads", "blocks", "per SM", "fit an SM", "bound by", "verdict"),
        map(_launch_config_row, configs),
    )
    table.columns[-1].justify = "left"
    count = len(configs.accepted)
    head = f"{configs.device}: {count} of {len(configs)} block sizes are accepted"
    return f"{head}\n{render(table, width=160)}"


def _launch_config_row(row: LaunchConfig) -> tuple[str, ...]:
    found = row.evenness
    room = ("-", "-", "-")
    if found is not None:
        least, most = found.share
        share = str(most) if least == most else f"{least}-{most}"
        room = (share, str(found.blocks_per_sm), found.limiter)
    words = "; ".join(row.rejected) or "accepted"
    return str(row.launch.threads), str(row.launch.blocks), *room, words


def render(table: Table, width: int = 100) -> str:
    """A table as plain text, no line longer than ``width``."""
    out = io.StringIO()
    Console(file=out, width=width, color_system=None, highlight=False).print(table)
    return "\n".join(line.rstrip() for line in out.getvalue().rstrip("\n").splitlines())


def table_of(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> Table:
    """A table whose columns after the first are aligned to the right."""
    table = Table(box=None, pad_edge=False)
    for position, heading in enumerate(headings):
        table.add_column(heading, justify="right" if position else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table
