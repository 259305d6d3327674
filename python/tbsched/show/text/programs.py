"""Programs out of profiles as text: their kernels, their streams, and what was assumed."""

from __future__ import annotations

import numpy as np
from rich.table import Table

from tbsched.program.events.launch import Launch
from tbsched.program.program import Program
from tbsched.program.sequence import Event, GraphLaunch
from tbsched.show.layout.names import cut
from tbsched.show.text.tables import render, table_of
from tbsched.show.words import counted, seconds_words

KERNELS_SHOWN = 30
_STREAMS_SHOWN = 20


def program_short(program: Program) -> str:
    """How much is in it, how long it took, and where."""
    rows = program.measured
    launches = program.sequence.launches
    kernels = counted(len({launch.name for launch in launches}), "kernel")
    took = int(rows["end_ns"].max() - rows["start_ns"].min()) if len(rows) else 0
    on = "" if program.device is None else f" on {program.device}"
    several = f"{counted(len(launches), 'launch', 'launches')} of {kernels}"
    moved = len(program.transfers)
    copies = f", {counted(moved, 'copy or memset', 'copies and memsets')}" if moved else ""
    return f"{several}{copies}, {seconds_words(took / 1e9)}{on}, from a {program.format}"


def program_text(program: Program) -> str:
    """A row for each kernel and for each stream, then what was assumed."""
    kernels, more = kernels_table(program)
    assumed = [f"- {sentence}" for sentence in program.assumed]
    heading = ["What the profile does not say:"] if assumed else []
    parts = [
        program_short(program), render(kernels), more, "", render(streams_table(program)), "",
        *heading, *assumed,
    ]  # fmt: skip
    return "\n".join(parts).rstrip()


def kernels_table(program: Program) -> tuple[Table, str]:
    """A row for each kernel, the longest in all first; and how many are left out, in words."""
    seconds = (program.measured["end_ns"] - program.measured["start_ns"]) / 1e9
    of_kernel: dict[str | None, list[int]] = {}
    for number, launch in enumerate(program.sequence.launches):
        of_kernel.setdefault(launch.name, []).append(number)
    totals = {name: float(seconds[own].sum()) for name, own in of_kernel.items()}
    longest = sorted(of_kernel, key=lambda name: -totals[name])
    rows = [
        (
            cut(name or "", 72),
            f"{len(of_kernel[name]):,}",
            *_shape([program.sequence.launches[number] for number in of_kernel[name]]),
            seconds_words(totals[name]),
            seconds_words(totals[name] / len(of_kernel[name])),
        )
        for name in longest[:KERNELS_SHOWN]
    ]
    headings = ("name", "launches", "blocks", "threads", "registers", "time", "each")
    left = len(longest) - len(rows)
    return table_of(headings, rows), f"and {counted(left, 'kernel')} more" if left > 0 else ""


def _shape(launches: list[Launch]) -> tuple[str, ...]:
    """Blocks, threads and registers, from the least to the most."""
    found = []
    for field in ("blocks", "threads", "registers"):
        values = [getattr(launch, field) for launch in launches]
        low, high = min(values), max(values)
        found.append(f"{low:,}" if low == high else f"{low:,} to {high:,}")
    return tuple(found)


def streams_table(program: Program) -> Table:
    """A row for each stream that has kernels."""
    streams = program.measured["stream"]
    seconds = (program.measured["end_ns"] - program.measured["start_ns"]) / 1e9
    here = np.array([words for event in program.sequence for words in _streams_here(event)])
    rows = []
    for stream in np.unique(streams).tolist()[:_STREAMS_SHOWN]:
        own = streams == stream
        words = ", ".join(np.unique(here[own]).tolist())
        rows.append((str(stream), words, f"{own.sum():,}", seconds_words(seconds[own].sum())))
    return table_of(("stream", "here", "launches", "time"), rows)


def _streams_here(event: Event) -> list[str]:
    """Of each launch of an event where it is in the sequence."""
    words = (
        "node of a graph" if isinstance(event, GraphLaunch) else str(getattr(event, "stream", ""))
    )
    return [words] * len(event.launches)
