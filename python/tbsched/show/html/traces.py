"""Traces as HTML: what sits on each SM and why, when it ran, and what it waited for."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
from markupsafe import Markup

from tbsched.launcher.meet import Meeting
from tbsched.prediction.processes import Processes
from tbsched.program.arrays import StructuredArray
from tbsched.show.html.pages import card
from tbsched.show.html.parts import (
    folded_html,
    legend_html,
    more_of,
    note_html,
    table_html,
    text_html,
    tiles_html,
)
from tbsched.show.html.svg.levels import Level, levels_html
from tbsched.show.html.svg.moments import moments_html
from tbsched.show.html.svg.standing import standing_html
from tbsched.show.html.svg.timeline import Frame, Names, Waiting, timeline_html, without_idle
from tbsched.show.layout.colours import PALETTE, TRANSFER_COLOUR, colours_of
from tbsched.show.layout.events import launched_and_released
from tbsched.show.layout.graphs import words_of
from tbsched.show.layout.lanes import blocks_that_ran, spans_by_sm, spans_by_stream, spans_of
from tbsched.show.layout.names import cut, label, span_name
from tbsched.show.layout.sms import standing
from tbsched.show.text.tables import table_of
from tbsched.show.text.traces import (
    LAUNCHES_SHOWN,
    held_table,
    meeting_short,
    meeting_text,
    processes_short,
    processes_table,
    timed_table,
    trace_head,
    turns_table,
)
from tbsched.show.waits import Waits
from tbsched.show.words import (
    counted,
    limiter_words,
    seconds_words,
    transfer_name,
    transfer_words,
)
from tbsched.traces.timeline import shares_of, span_of, waited_ns
from tbsched.traces.trace import Trace

_LEVELS_SHOWN = 24
_WAITS_SHOWN = 12
_WAITS_DRAWN = 600
_PROCESSES_DRAWN = 8
_NAME, _SHORT = 40, 20
_BY_SM = (640, 26, 4)  # pixels: of all rows, and of one at most and at least
_BY_STREAM = (420, 34, 13)
_LANE = 2  # pixels, the least that can be seen


def trace_html(trace: Trace) -> str:
    """What ``print`` says, with pictures."""
    return _timed_html(trace) if trace.sequence.timed else _held_html(trace)


def _held_html(trace: Trace) -> str:
    launches = trace.sequence.launches
    placed = sum(placement.placed for placement in trace)
    blocks = sum(launch.blocks for launch in launches)
    colours = colours_of(launches)
    at = _worth_seeing(trace)
    more = more_of(len(trace), LAUNCHES_SHOWN, "launch", "launches")
    return card(
        trace_head(trace),
        tiles_html(
            (f"{len(launches):,}", "launch" if len(launches) == 1 else "launches"),
            (f"{blocks:,}", "blocks"),
            (f"{placed:,}", "placed before the next event"),
        ),
        legend_html(launches),
        standing_html(trace, standing(trace, at), colours, at=at),
        _moments(trace, colours),
        _levels(trace, colours),
        table_html(held_table(trace), "Launches", more=more, marks=colours),
    )


def _moments(trace: Trace, colours: list[str], ran: StructuredArray | None = None) -> Markup:
    pictures = moments_html(trace, colours, ran)
    words = "Blocks on each SM, moment by moment: choose one, then use the arrow keys"
    return folded_html(words, pictures) if pictures else pictures


def _levels(trace: Trace, colours: list[str]) -> Markup:
    """The first launches that have blocks, SM by SM."""
    rows: list[Level] = []
    for number, (launch, placement) in enumerate(zip(trace.sequence.launches, trace, strict=True)):
        if len(rows) < _LEVELS_SHOWN and placement.placed:
            blocks = placement.occupancy(trace.device.sms)
            name = f"launch {number}" + (f" {label(launch, _NAME)}" if launch.name else "")
            rows.append(Level(f"launch {number}", name, colours[number], blocks))
    if not rows:
        return Markup()
    left = sum(placement.placed > 0 for placement in trace) - len(rows)
    note = "The stronger the colour, the more blocks the SM has."
    if left:
        note += f" And {counted(left, 'launch', 'launches')} more."
    heading = "Blocks of each launch on each SM, before the next event"
    return levels_html(rows, heading, note)


def _worth_seeing(trace: Trace) -> int:
    """After how many events: all; if all is released then, those up to the last launch."""
    launched, released = launched_and_released(trace.sequence)
    if not len(trace) or (released < 0).any():
        return len(trace.sequence)
    return 1 + int(launched.max())


def _timed_html(trace: Trace) -> str:
    launches = trace.sequence.launches
    ran = blocks_that_ran(trace)
    waits = None if trace.waits is None else Waits(trace)
    colours = colours_of(launches)
    of_spans = colours + [TRANSFER_COLOUR] * len(trace.sequence.transfers)
    names = _names(trace, of_spans, waits)
    blocks = sum([launch.blocks for launch in launches])
    return card(
        trace_head(trace),
        tiles_html(
            (seconds_words(trace.makespan), "makespan"),
            (f"{len(launches):,}", "launch" if len(launches) == 1 else "launches"),
            (f"{blocks:,}", "block" if blocks == 1 else "blocks"),
        ),
        legend_html(launches),
        folded_html(
            "Launches over time, by stream",
            _stream_timeline(trace, ran, names, waits),
            is_open=True,
        ),
        folded_html("Blocks over time, by SM", _sm_timeline(trace, ran, names), is_open=True),
        standing_html(trace, standing(trace, ran=ran), colours, waits=waits),
        _moments(trace, colours, ran),
        table_html(
            timed_table(trace, waits),
            "Launches",
            more=more_of(len(trace), LAUNCHES_SHOWN, "launch", "launches"),
            marks=colours,
        ),
        Markup() if waits is None else _waits_html(trace, waits, colours),
    )


def _sm_timeline(trace: Trace, ran: StructuredArray, names: Names) -> Markup:
    """Block by block; in bins where blocks side by side would be too thin to be seen."""
    found, notes = without_idle(spans_by_sm(trace, ran=ran))
    if not found.note and Frame(found, *_BY_SM).pitch < _LANE * int(found.lanes.max(initial=1)):
        found, notes = without_idle(spans_by_sm(trace, most_spans=0, ran=ran))
    return timeline_html(Frame(found, *_BY_SM), names, "blocks over time, by SM", notes=notes)


def _names(trace: Trace, colours: list[str], waits: Waits | None) -> Names:
    launches, words = trace.sequence.launches, words_of(trace.sequence)

    @functools.cache
    def short(number: int) -> str:
        return span_name(trace.sequence, number, _NAME)

    def title(number: int) -> str:
        if number >= len(launches):
            return _transfer_title(trace, number - len(launches))
        launch = launches[number]
        begin, end = (seconds_words(time / 1e9) for time in span_of(number, trace[number]))
        name = f": {short(number)}" if launch.name else ""
        lines = [f"launch {number}{name}", words(number), f"ran from {begin} to {end}"]
        if waits is not None and len(own := waits.of(number)):
            (cause, _), _ = shares_of(own)[0]
            waited = seconds_words(waited_ns(own) / 1e9)
            lines.append(f"waited {waited}, mostly for {cause}")
        return "\n".join(lines)

    return Names(colours, short, title)


def _transfer_title(trace: Trace, number: int) -> str:
    assert trace.transfer_ns is not None
    transfer = trace.sequence.transfers[number]
    begin, end = (seconds_words(time / 1e9) for time in trace.transfer_ns[number].tolist())
    name = transfer_name(number, transfer)
    return f"{name}\n{transfer_words(transfer)}\nran from {begin} to {end}"


def _stream_timeline(
    trace: Trace, ran: StructuredArray, names: Names, waits: Waits | None
) -> Markup:
    """Launch by launch, and when each of them waited."""
    spans = spans_by_stream(trace, ran=ran)
    waiting, notes = None, []
    if waits is not None and trace.waits is not None and len(trace.waits):
        number, first = np.unique(trace.waits["launch"], return_index=True)
        if len(number) <= _WAITS_DRAWN and not spans.note:
            begin = np.minimum.reduceat(trace.waits["begin_ns"], first)
            end = np.maximum.reduceat(trace.waits["end_ns"], first)
            row_of = dict(zip(spans.launch.tolist(), spans.row.tolist(), strict=True))
            row = np.array([row_of[k] for k in number.tolist()], np.int64)
            begin = np.maximum(begin, spans.zero_ns)
            waiting = Waiting(row, number.astype(np.int64), begin, np.maximum(end, begin))
            notes.append("A thin line below a launch: it waited, or part of its blocks did.")
    frame = Frame(spans, *_BY_STREAM)
    return timeline_html(frame, names, "launches over time, by stream", waiting, notes)


def _waits_html(trace: Trace, waits: Waits, colours: list[str]) -> Markup:
    """The launches that waited longest, what for, and behind whom."""
    rows = trace.waits
    if rows is None or not len(rows):
        return note_html("No launch waited.")
    number, first = np.unique(rows["launch"], return_index=True)
    waited = np.add.reduceat(rows["end_ns"] - rows["begin_ns"], first)
    longest = number[np.argsort(-waited, kind="stable")[:_WAITS_SHOWN]].tolist()
    headings = ("launch", "name", "waited", "most of it", "because", "behind")
    table = table_of(headings, [_wait_row(trace, waits, k) for k in longest], left=(1, 4, 5))
    more = more_of(len(number), len(longest), "launch that waited", "launches that waited")
    marks = [colours[k] for k in longest]
    return Markup("\n").join(
        [
            table_html(table, "Waits, the longest first", more=more, marks=marks),
            folded_html(
                "Each wait in words, and what would have shortened it",
                text_html([waits.explanation(k) for k in longest]),
            ),
        ]
    )


def _wait_row(trace: Trace, waits: Waits, launch: int) -> tuple[str, ...]:
    own = waits.of(launch)
    (cause, behind), longest = shares_of(own)[0]
    total = waited_ns(own)
    launches = trace.sequence.launches
    who = ""
    if behind >= 0:
        name = launches[behind].name
        who = f"launch {behind}" + (f" {cut(name, _SHORT)}" if name else "")
    elif behind < -1:
        who = transfer_name(-2 - behind, trace.sequence.transfers[-2 - behind])
    return (
        str(launch), launches[launch].name or "", seconds_words(total / 1e9),
        f"{100 * longest / max(total, 1):.0f} %", limiter_words(cause, trace.device), who,
    )  # fmt: skip


def meeting_html(found: Meeting) -> str:
    """Whether each group has met; if not, which blocks never came."""
    return card(meeting_short(found), text_html(meeting_text(found).splitlines()))


def processes_html(found: Processes) -> str:
    """A row for each process; who had the GPU when, what ran then, and a row for each turn."""
    table, more = turns_table(found)
    traces = dict(enumerate(found.traces[:_PROCESSES_DRAWN]))
    times = [trace.timeline for trace in traces.values() if len(trace)]
    end_ns = max([int(rows["end_ns"].max(initial=1)) for rows in times], default=1)
    end_ns = max(end_ns, int(found.turns["end_ns"].max(initial=1)))
    drawn = [folded_html("Turns over time", _turns(found, end_ns), is_open=True)]
    turns = [table_html(table, "Turns", more=more)]
    return card(
        processes_short(found),
        table_html(processes_table(found), "Processes"),
        *(drawn if len(found.turns) else []),
        *(
            folded_html(
                f"Launches of process {number} over time, by stream",
                _launches_until(trace, end_ns, f"launches of process {number}"),
                is_open=True,
            )
            for number, trace in traces.items()
        ),
        *(turns if len(found.turns) else []),
    )


def _launches_until(trace: Trace, end_ns: int, heading: str) -> Markup:
    """On a clock that begins at 0, as that of the turns does."""
    colours = colours_of(trace.sequence.launches)
    names = _names(trace, colours + [TRANSFER_COLOUR] * len(trace.sequence.transfers), None)
    spans = replace(spans_by_stream(trace), zero_ns=0, length_ns=end_ns)
    return timeline_html(Frame(spans, *_BY_STREAM), names, heading)


def _turns(found: Processes, end_ns: int) -> Markup:
    process = found.turns["process"].astype(np.int64)
    titles = tuple(f"process {number}" for number in range(len(found.traces)))
    times = (found.turns["begin_ns"], found.turns["end_ns"])
    spans = spans_of(titles, process, process, *times, f"{len(process):,} turns")
    spans = replace(spans, zero_ns=0, length_ns=end_ns)
    colours = [PALETTE[number % len(PALETTE)] for number in range(len(titles))]
    names = Names(colours, titles.__getitem__, titles.__getitem__)
    return timeline_html(Frame(spans, *_BY_STREAM), names, "turns of the processes")
