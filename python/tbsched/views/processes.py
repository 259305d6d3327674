"""Several processes on one GPU: what each does, and who has the GPU when."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from markupsafe import Markup

from tbsched.counting import counted
from tbsched.prediction.processes import Processes
from tbsched.traces.trace import Trace
from tbsched.views.assumed import assumed_html, assumed_lines
from tbsched.views.cards import (
    card,
    folded_html,
    table_html,
)
from tbsched.views.layout.colours import PALETTE, TRANSFER_COLOUR, colours_of
from tbsched.views.layout.lanes import spans_by_stream, spans_of
from tbsched.views.plain import fields
from tbsched.views.svg.timeline import Frame, Names, timeline_html
from tbsched.views.tables import Lines, Table, table_of
from tbsched.views.traces import (
    BY_STREAM,
    LAUNCHES_SHOWN,
    timeline_names,
    trace_data,
    trace_head,
)
from tbsched.views.words import more_of, seconds_words, size_of

_PROCESSES_DRAWN = 8


def processes_short(processes: Processes) -> str:
    """Returns how many processes there are, how long they take, and on what, in words."""
    words = counted(len(processes.traces), "process", "processes")
    how = ", clients of one MPS server" if processes.seen else ""
    return f"{words}{how}, {seconds_words(processes.makespan)} on {trace_head(processes.traces[0])}"


def processes_text(processes: Processes) -> Lines:
    """Returns a table with a row for each process, and one with a row for each turn."""
    turns: Lines = ["", turns_table(processes)] if len(processes.turns) else []
    assumed = assumed_lines(processes.assumed_rules, processes.traces[0].device)
    return [processes_short(processes), *assumed, processes_table(processes), *turns]


def processes_table(processes: Processes) -> Table:
    """Returns when the blocks of each process ran, and how long it had the GPU."""
    rows = []
    take_turns = len(processes.turns) > 0
    for process, trace in enumerate(processes.traces):
        process_turns = processes.turns[processes.turns["process"] == process]
        ran = trace.timeline if len(trace) else np.zeros(1, trace.timeline.dtype)
        times = (
            ran["start_ns"].min(),
            ran["end_ns"].max(),
            (process_turns["end_ns"] - process_turns["begin_ns"]).sum(),
        )
        start, end, turn_words = (seconds_words(int(ns) / 1e9) for ns in times)
        size = size_of(trace.sequence.launches)
        turns = (str(len(process_turns)), turn_words) if take_turns else ()
        rows.append((str(process), size, start, end, *turns))
    headings = ("process", "launches", "start", "end")
    return table_of((*headings, *(("turns", "had the GPU") if take_turns else ())), rows, (1,))


def turns_table(processes: Processes) -> Table:
    """Returns who had the GPU when."""
    shown = processes.turns[:LAUNCHES_SHOWN].tolist()
    rows = [
        (str(process), *(seconds_words(ns / 1e9) for ns in (begin, end, end - begin)))
        for process, begin, end in shown
    ]
    more = more_of(len(processes.turns), len(shown), "turn")
    return table_of(("turn of", "begin", "end", "took"), rows, (), more)


def processes_html(processes: Processes) -> str:
    """Returns HTML: a row per process; who had the GPU when, and what ran then."""
    traces = dict(enumerate(processes.traces[:_PROCESSES_DRAWN]))
    times = [trace.timeline for trace in traces.values() if len(trace)]
    end_ns = max([int(rows["end_ns"].max(initial=1)) for rows in times], default=1)
    end_ns = max(end_ns, int(processes.turns["end_ns"].max(initial=1)))
    drawn = [folded_html("Turns over time", _turns(processes, end_ns), is_open=True)]
    turns = [table_html(turns_table(processes), "Turns")]
    return card(
        processes_short(processes),
        table_html(processes_table(processes), "Processes"),
        *(drawn if len(processes.turns) else []),
        *(
            folded_html(
                f"Launches of process {process} over time, by stream",
                _launches_until(trace, end_ns, f"launches of process {process}"),
                is_open=True,
            )
            for process, trace in traces.items()
        ),
        *(turns if len(processes.turns) else []),
        assumed_html(processes.assumed_rules, processes.traces[0].device),
    )


def _launches_until(trace: Trace, end_ns: int, heading: str) -> Markup:
    """Returns the timeline of a process's launches, on the time axis of the turns."""
    colours = colours_of(trace.sequence.launches)
    names = timeline_names(trace, colours + [TRANSFER_COLOUR] * len(trace.sequence.transfers), None)
    spans = replace(spans_by_stream(trace), zero_ns=0, length_ns=end_ns)
    return timeline_html(Frame(spans, *BY_STREAM), names, heading)


def _turns(processes: Processes, end_ns: int) -> Markup:
    """Returns a picture of which process had the GPU when."""
    process = processes.turns["process"].astype(np.int64)
    titles = tuple(f"process {index}" for index in range(len(processes.traces)))
    times = (processes.turns["begin_ns"], processes.turns["end_ns"])
    spans = spans_of(titles, process, process, *times, f"{len(process):,} turns")
    spans = replace(spans, zero_ns=0, length_ns=end_ns)
    colours = [PALETTE[index % len(PALETTE)] for index in range(len(titles))]
    names = Names(colours, titles.__getitem__, titles.__getitem__)
    return timeline_html(Frame(spans, *BY_STREAM), names, "turns of the processes")


def processes_columns(processes: Processes) -> dict[str, Any]:
    """Which process had the GPU when."""
    return {name: processes.turns[name].copy() for name in ("process", "begin_ns", "end_ns")}


def processes_data(processes: Processes) -> dict[str, Any]:
    """Returns JSON data: what each process does, who had the GPU when, and the SM numbers that MPS
    clients read."""
    traces, observed = (
        list(map(trace_data, group)) for group in (processes.traces, processes.seen)
    )
    return {**fields(processes, "makespan turns assumed_rules"), "traces": traces, "seen": observed}
