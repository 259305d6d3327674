"""Traces as text: a table of the launches, and where their blocks are, or when they ran."""

from __future__ import annotations

import numpy as np
from rich.table import Table

from tbsched.launcher.meet import Meeting
from tbsched.prediction.processes import Processes
from tbsched.program.arrays import Int64Array
from tbsched.program.events.launch import Launch
from tbsched.show.layout.graphs import words_of
from tbsched.show.text.tables import render, table_of
from tbsched.show.waits import Waits
from tbsched.show.words import (
    counted,
    launch_words,
    limiter_words,
    seconds_words,
    size_of,
    source_words,
    transfer_name,
    transfer_words,
)
from tbsched.traces.timeline import shares_of, span_of, waited_ns
from tbsched.traces.trace import Trace

MAP_LEGEND = "'.' none, 1-9, a=10 to z=35, '#' more"
_DIGITS = np.frombuffer(b".123456789abcdefghijklmnopqrstuvwxyz#", np.uint8)
_MAP_COLUMNS = 66
LAUNCHES_SHOWN = 50


def trace_short(trace: Trace) -> str:
    """How much of it there is, on what, and who says so."""
    return f"{size_of(trace.sequence.launches)} on {trace_head(trace)}"


def trace_text(trace: Trace) -> str:
    """What ``print`` shows of a trace."""
    return _timed_text(trace) if trace.sequence.timed else _held_text(trace)


def occupancy_map(blocks_per_sm: Int64Array) -> list[str]:
    """Lines of one character per SM (see :data:`MAP_LEGEND`)."""
    text = _DIGITS[np.minimum(blocks_per_sm, len(_DIGITS) - 1)].tobytes().decode()
    return [text[begin : begin + _MAP_COLUMNS] for begin in range(0, len(text), _MAP_COLUMNS)]


def _held_text(trace: Trace) -> str:
    """A table of the launches, and a map of the blocks on each SM."""
    sms = trace.device.sms
    maps = []
    for number, placement in enumerate(trace):
        maps += [
            f"{f'launch {number}' if row == 0 else '':<12}SM {row * _MAP_COLUMNS:<4}{text}"
            for row, text in enumerate(occupancy_map(placement.occupancy(sms)))
        ]
    table = held_table(trace, len(trace))
    legend = f"Blocks on each SM, before the next event ({MAP_LEGEND}):"
    return "\n".join([trace_head(trace), render(table), "", legend, *maps])


def held_table(trace: Trace, shown: int = LAUNCHES_SHOWN) -> Table:
    """The launches of a held sequence: how many blocks were placed, and why others wait."""
    launches = trace.sequence.launches[:shown]
    rows = []
    for number, (launch, placement) in enumerate(zip(launches, trace, strict=False)):
        waits = limiter_words(placement.limiter or "", trace.device)
        cells = _launch_cells(number, launch, launch_words(launch))
        rows.append((*cells, str(placement.placed), waits))
    return _launch_table(("placed", "waits because"), rows, left=(4,))


def _launch_cells(number: int, launch: Launch, words: str) -> tuple[str, ...]:
    return str(number), launch.name or "", words


def _launch_table(
    headings: tuple[str, ...], rows: list[tuple[str, ...]], left: tuple[int, ...]
) -> Table:
    """A row per launch; with its name, if any has one."""
    columns = ("launch", "name", "blocks x threads", *headings)
    if any(row[1] for row in rows):
        return table_of(columns, rows, left=(1, 2, *left))
    return table_of(
        (columns[0], *columns[2:]),
        [(row[0], *row[2:]) for row in rows],
        left=(1, *(position - 1 for position in left)),
    )


def trace_head(trace: Trace) -> str:
    """What a trace is of."""
    return f"{trace.device.name}, {trace.device.sms} SMs, {source_words(trace.device)}"


def _timed_text(trace: Trace) -> str:
    """A table of the launches over time, and why they waited."""
    shown = range(min(len(trace), LAUNCHES_SHOWN))
    waits = None if trace.waits is None else Waits(trace)
    lines = [trace_head(trace), render(timed_table(trace, waits))]
    if len(trace) > len(shown):
        lines.append(f"and {counted(len(trace) - len(shown), 'launch', 'launches')} more")
    if trace.transfer_ns is not None and len(trace.transfer_ns):
        lines += ["", *_transfer_lines(trace)]
    lines += ["", f"makespan {seconds_words(trace.makespan)}"]
    if waits is not None:
        lines += [waits.explanation(number) for number in shown if len(waits.of(number))]
    return "\n".join(lines)


def _transfer_lines(trace: Trace) -> list[str]:
    """When copies and memsets moved their bytes."""
    assert trace.transfer_ns is not None
    times = trace.transfer_ns[:LAUNCHES_SHOWN].tolist()
    rows = [
        (transfer_name(number, own), transfer_words(own), *(seconds_words(ns / 1e9) for ns in span))
        for number, (own, span) in enumerate(zip(trace.sequence.transfers, times, strict=False))
    ]
    lines = [render(table_of(("", "bytes", "start", "end"), rows, left=(0, 1)))]
    more = len(trace.transfer_ns) - len(rows)
    return [*lines, *([f"and {more:,} copies and memsets more"] if more else [])]


def timed_table(trace: Trace, waits: Waits | None, shown: int = LAUNCHES_SHOWN) -> Table:
    """The launches of a timed sequence: when they ran, and what they waited for."""
    headings = ("start", "end", "waited", "mostly for")
    words = words_of(trace.sequence)
    rows = [_timed_row(trace, k, words(k), waits) for k in range(min(len(trace), shown))]
    return _launch_table(headings, rows, left=())


def _timed_row(trace: Trace, number: int, words: str, waits: Waits | None) -> tuple[str, ...]:
    begin, end = (seconds_words(time / 1e9) for time in span_of(number, trace[number]))
    waited, mostly = "", ""
    if waits is not None and len(own := waits.of(number)):
        waited = seconds_words(waited_ns(own) / 1e9)
        (mostly, _), _ = shares_of(own)[0]
    launch = trace.sequence.launches[number]
    return *_launch_cells(number, launch, words), begin, end, waited, mostly


def meeting_short(found: Meeting) -> str:
    """How many groups have met, and on what."""
    groups = counted(len(found.groups), "group", "groups")
    return f"{sum(found.met)} of {groups} met on {trace_head(found.trace)}"


def meeting_text(found: Meeting) -> str:
    """Whether each group has met; if not, which blocks never came."""
    lines = []
    for number, (group, met) in enumerate(zip(found.groups, found.met, strict=True)):
        launches = f"{'launch' if len(group) == 1 else 'launches'} {', '.join(map(str, group))}"
        missing = [
            f"; of launch {launch} {found.missing[launch]} of {len(found.trace[launch].smid)} "
            "blocks never came"
            for launch in group
            if launch in found.missing
        ]
        words = "has met" if met else "hangs"
        lines.append(f"group {number} {words}: {launches}{''.join(missing)}")
    return "\n".join(lines)


def processes_short(found: Processes) -> str:
    """How many there are, how long they take, and on what."""
    several = counted(len(found.traces), "process", "processes")
    how = ", clients of one MPS server" if found.seen else ""
    return f"{several}{how}, {seconds_words(found.makespan)} on {trace_head(found.traces[0])}"


def processes_text(found: Processes) -> str:
    """A row for each process, and for each turn."""
    lines = [processes_short(found), render(processes_table(found))]
    if len(found.turns):
        table, more = turns_table(found)
        lines += ["", render(table), *([more] if more else [])]
    return "\n".join(lines)


def processes_table(found: Processes) -> Table:
    """When the blocks of each process ran, and how long it had the GPU."""
    rows = []
    for process, trace in enumerate(found.traces):
        own = found.turns[found.turns["process"] == process]
        ran = trace.timeline if len(trace) else np.zeros(1, trace.timeline.dtype)
        times = (
            ran["start_ns"].min(),
            ran["end_ns"].max(),
            (own["end_ns"] - own["begin_ns"]).sum(),
        )
        start, end, had = (seconds_words(int(ns) / 1e9) for ns in times)
        size = size_of(trace.sequence.launches)
        rows.append((str(process), size, start, end, *((str(len(own)), had) if len(own) else ())))
    headings = ("process", "launches", "start", "end")
    return table_of(
        (*headings, *(("turns", "had the GPU") if len(found.turns) else ())), rows, (1,)
    )


def turns_table(found: Processes) -> tuple[Table, str]:
    """Who had the GPU when; and how many turns are left out, in words."""
    shown = found.turns[:LAUNCHES_SHOWN].tolist()
    rows = [
        (str(process), *(seconds_words(ns / 1e9) for ns in (begin, end, end - begin)))
        for process, begin, end in shown
    ]
    left = len(found.turns) - len(shown)
    more = f"and {counted(left, 'turn')} more" if left else ""
    return table_of(("turn of", "begin", "end", "took"), rows, ()), more
