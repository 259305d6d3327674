"""Programs out of profiles: when they ran, their kernels and streams, and what was assumed."""

from __future__ import annotations

from typing import Any

import numpy as np
from markupsafe import Markup

from tbsched.counting import counted
from tbsched.program.events.launch import Launch
from tbsched.program.events.streams import LEGACY_STREAM
from tbsched.program.program import Program
from tbsched.program.sequence import Event, GraphLaunch, HostFunction
from tbsched.views.cards import card, legend_html, table_html, text_html
from tbsched.views.layout.colours import TRANSFER_COLOUR, colours_of
from tbsched.views.layout.lanes import Spans, spans_measured
from tbsched.views.layout.names import cut_apart, span_names
from tbsched.views.plain import columns_of, fields
from tbsched.views.ranks import ranks_table, ranks_words
from tbsched.views.svg.timeline import Frame, Names, timeline_html
from tbsched.views.tables import Lines, Table, table_of
from tbsched.views.words import more_of, seconds_words

_SPAN_NAME = 40
_STREAMS = (420, 30, 13)  # pixels: of all rows, and of one at most and at least
KERNELS_SHOWN = 30
_STREAMS_SHOWN = 20


def measured_html(program: Program) -> list[Markup]:
    """When the profile says that each launch ran, by stream."""
    spans = streams_timeline(spans_measured(program), program_names(program), "as measured")
    return [legend_html(program.sequence.launches), spans]


def streams_timeline(spans: Spans, names: Names, heading: str) -> Markup:
    """Spans in rows by stream."""
    return timeline_html(Frame(spans, *_STREAMS), names, heading)


def program_names(program: Program) -> Names:
    """Returns what launches, copies and memsets are called, and their colours."""
    sequence = program.sequence
    colours = colours_of(sequence.launches) + [TRANSFER_COLOUR] * len(sequence.transfers)
    name_of = span_names(sequence, _SPAN_NAME)
    return Names(colours, name_of, name_of)


def program_short(program: Program) -> str:
    """Returns how much a program has, how long it took, and where, in words."""
    if program.ranks:
        return ranks_words(program)
    rows = program.measured
    launches = program.sequence.launches
    kernels = counted(len({launch.name for launch in launches}), "kernel")
    took = int(rows["end_ns"].max() - rows["start_ns"].min()) if len(rows) else 0
    on = "" if program.device is None else f" on {program.device}"
    launch_words = f"{counted(len(launches), 'launch', 'launches')} of {kernels}"
    transfers = program.sequence.transfers
    functions = sum(isinstance(transfer, HostFunction) for transfer in transfers)
    moved = len(transfers) - functions
    copies = f", {counted(moved, 'copy or memset', 'copies and memsets')}" if moved else ""
    copies += f", {counted(functions, 'host function')}" if functions else ""
    return f"{launch_words}{copies}, {seconds_words(took / 1e9)}{on}, from a {program.format}"


def program_text(program: Program) -> Lines:
    """Returns a row for each kernel and for each stream, then what was assumed."""
    kernels = kernels_table(program)
    lines: Lines = [program_short(program), kernels, *([] if kernels.more else [""]), ""]
    assumed = [f"- {sentence}" for sentence in program.assumed]
    heading = ["", "What the profile does not say:"] if assumed else []
    if program.ranks:
        return [program_short(program), ranks_table(program), *heading, *assumed]
    return [*lines, streams_table(program), *heading, *assumed]


def kernels_table(program: Program) -> Table:
    """Returns a table with a row for each kernel, the longest in all first."""
    seconds = (program.measured["end_ns"] - program.measured["start_ns"]) / 1e9
    of_kernel: dict[str | None, list[int]] = {}
    for index, launch in enumerate(program.sequence.launches):
        of_kernel.setdefault(launch.name, []).append(index)
    totals = {
        name: float(seconds[kernel_launches].sum()) for name, kernel_launches in of_kernel.items()
    }
    longest = sorted(of_kernel, key=lambda name: -totals[name])
    shown = longest[:KERNELS_SHOWN]
    rows = [
        (
            short,
            f"{len(of_kernel[name]):,}",
            *_shape([program.sequence.launches[index] for index in of_kernel[name]]),
            seconds_words(totals[name]),
            seconds_words(totals[name] / len(of_kernel[name])),
        )
        for name, short in zip(shown, cut_apart([name or "" for name in shown], 72), strict=True)
    ]
    headings = ("name", "launches", "blocks", "threads", "registers", "time", "each")
    return table_of(headings, rows, more=more_of(len(longest), len(rows), "kernel"))


def _shape(launches: list[Launch]) -> tuple[str, ...]:
    """Returns blocks, threads and registers, from the least to the most."""
    ranges = []
    for field in ("blocks", "threads", "registers"):
        values = [getattr(launch, field) for launch in launches]
        low, high = min(values), max(values)
        ranges.append(f"{low:,}" if low == high else f"{low:,} to {high:,}")
    return tuple(ranges)


def streams_table(program: Program) -> Table:
    """Returns a table with a row for each stream that has kernels."""
    streams = program.measured["stream"]
    seconds = (program.measured["end_ns"] - program.measured["start_ns"]) / 1e9
    kinds = np.array([words for event in program.sequence for words in _kinds_of_stream(event)])
    rows = []
    for stream in np.unique(streams).tolist()[:_STREAMS_SHOWN]:
        is_of_stream = streams == stream
        words = ", ".join(filter(None, np.unique(kinds[is_of_stream]).tolist()))
        rows.append(
            (
                str(stream),
                words,
                f"{is_of_stream.sum():,}",
                seconds_words(seconds[is_of_stream].sum()),
            )
        )
    return table_of(("stream", "kind", "launches", "time"), rows)


def _kinds_of_stream(event: Event) -> list[str]:
    """Returns for each launch of an event what is special about its stream."""
    words = ""
    if isinstance(event, GraphLaunch):
        words = "node of a graph"
    elif getattr(event, "stream", None) == LEGACY_STREAM:
        words = "legacy"
    return [words] * len(event.launches)


def program_html(program: Program) -> str:
    """Returns HTML: when it ran, a row per kernel and per stream, and what was assumed."""
    tables = (
        [table_html(ranks_table(program), "Ranks")]
        if program.ranks
        else [
            *measured_html(program),
            table_html(kernels_table(program), "Kernels"),
            table_html(streams_table(program), "Streams"),
        ]
    )
    return card(
        program_short(program),
        *tables,
        text_html(program.assumed, "What the profile does not say", style="note"),
    )


def program_columns(program: Program) -> dict[str, Any]:
    """Returns columns: launches, when they were called, when they ran, and block durations."""
    launches, measured = program.sequence.launches, program.measured
    durations = [launch.block_durations() for launch in launches]
    return {
        "launch": np.arange(len(launches)),
        **{name: measured[name].copy() for name in measured.dtype.names or ()},
        **columns_of(launches, "blocks threads registers shared_memory cluster priority host"),
        "duration": [
            None if duration is None else float(duration.mean()) for duration in durations
        ],
        "fitted": list(program.fitted) or [None] * len(launches),
    }


def program_data(program: Program) -> dict[str, Any]:
    """Returns JSON data: what was launched, what was measured, and what was assumed."""
    program_fields = fields(
        program,
        "format device sms streams events=sequence host measured transfers fitted kernel_overhead "
        "sources assumed",
    )
    return {
        **program_fields,
        "ranks": [rank._asdict() for rank in program.ranks],
        "gpus": program.gpus,
    }
