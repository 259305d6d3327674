"""Traces: where their blocks are or when they ran, why, and what launches waited for."""

from __future__ import annotations

from typing import Any

import numpy as np
from markupsafe import Markup

from tbsched.counting import counted
from tbsched.program.arrays import Int32Array, Int64Array, StructuredArray, numbered_blocks, objects
from tbsched.program.events.launch import Launch
from tbsched.program.events.transfers import Copy, Memset
from tbsched.traces.annotations import NEVER_NS
from tbsched.traces.timeline import has_times, shares_of, span_of, waited_ns
from tbsched.traces.trace import Trace
from tbsched.views.assumed import assumed_html, assumed_lines
from tbsched.views.cards import (
    card,
    folded_html,
    legend_html,
    note_html,
    table_html,
    text_html,
    tiles_html,
)
from tbsched.views.layout.colours import TRANSFER_COLOUR, colours_of
from tbsched.views.layout.graphs import launched_and_released, words_of
from tbsched.views.layout.lanes import (
    MOST_ROWS,
    blocks_that_ran,
    spans_by_sm,
    spans_by_stream,
    streams_of,
)
from tbsched.views.layout.names import cut, label, span_names
from tbsched.views.layout.sms import standing
from tbsched.views.plain import fields
from tbsched.views.svg.levels import Level, levels_html
from tbsched.views.svg.moments import moments_html
from tbsched.views.svg.standing import standing_html
from tbsched.views.svg.timeline import Frame, Names, Waiting, timeline_html, without_idle
from tbsched.views.tables import Lines, Table, table_of
from tbsched.views.terminal import visible, visible_lines
from tbsched.views.waits import Waits
from tbsched.views.words import (
    launch_words,
    limiter_words,
    more_of,
    seconds_words,
    size_of,
    source_words,
    transfer_kinds,
    transfer_name,
    transfer_words,
)

MAP_LEGEND = "'.' none, 1-9, a=10 to z=35, '#' more"
_DIGITS = np.frombuffer(b".123456789abcdefghijklmnopqrstuvwxyz#", np.uint8)
_MAP_COLUMNS = 66
LAUNCHES_SHOWN = 50
_LEVELS_SHOWN = 24
_WAITS_SHOWN = 12
_UNKNOWN_SHOWN = 3
_WAITS_DRAWN = 600
_NAME, _SHORT = 40, 20
_BY_SM = (640, 26, 4)  # pixels: of all rows, and of one at most and at least
BY_STREAM = (420, 34, 13)
_LANE = 2  # pixels, the least that can be seen


def trace_short(trace: Trace) -> str:
    """How much of it there is, on what, and who says so."""
    return f"{size_of(trace.sequence.launches)} on {trace_head(trace)}"


def _has_times(trace: Trace) -> bool:
    """Returns whether there is something to show over time."""
    return trace.sequence.timed and has_times(trace)


def trace_text(trace: Trace) -> Lines:
    """What ``print`` shows of a trace."""
    return _timed_text(trace) if _has_times(trace) else _held_text(trace)


def occupancy_map(blocks_per_sm: Int64Array) -> list[str]:
    """Lines of one character per SM (see :data:`MAP_LEGEND`)."""
    text = _DIGITS[np.minimum(blocks_per_sm, len(_DIGITS) - 1)].tobytes().decode()
    return [text[begin : begin + _MAP_COLUMNS] for begin in range(0, len(text), _MAP_COLUMNS)]


def _held_text(trace: Trace) -> Lines:
    """Returns a table of the launches, and a map of the blocks on each SM."""
    sms = trace.device.sms
    maps = []
    for index, placement in enumerate(trace):
        maps += [
            f"{f'launch {index}' if row == 0 else '':<12}SM {row * _MAP_COLUMNS:<4}{text}"
            for row, text in enumerate(occupancy_map(placement.occupancy(sms)))
        ]
    legend = f"Blocks on each SM, before the next event ({MAP_LEGEND}):"
    return [*head_lines(trace), held_table(trace, len(trace)), "", legend, *maps]


def held_table(trace: Trace, shown: int = LAUNCHES_SHOWN) -> Table:
    """Returns the launches of a held sequence: how many blocks were placed, and why others wait."""
    launches, limiters = trace.sequence.launches[:shown], trace.limiters
    rows = []
    for index, (launch, placement) in enumerate(zip(launches, trace, strict=False)):
        waits = " and ".join(limiter_words(cause, trace.device) for cause in limiters[index])
        cells = _launch_cells(index, launch, launch_words(launch))
        rows.append((*cells, str(placement.placed), waits))
    return _launch_table(("placed", "waits because"), rows, len(trace), left=(4,))


def _launch_cells(index: int, launch: Launch, words: str) -> tuple[str, ...]:
    return str(index), launch.name or "", words


def _launch_table(
    headings: tuple[str, ...], rows: list[tuple[str, ...]], launches: int, left: tuple[int, ...]
) -> Table:
    """Returns a table with a row per launch; with its name, if any has one."""
    more = more_of(launches, len(rows), "launch", "launches")
    columns = ("launch", "name", "blocks x threads", *headings)
    if any(row[1] for row in rows):
        return table_of(columns, rows, (1, 2, *left), more)
    return table_of(
        (columns[0], *columns[2:]),
        [(row[0], *row[2:]) for row in rows],
        (1, *(position - 1 for position in left)),
        more,
    )


def head_lines(trace: Trace) -> Lines:
    """What a trace is of, and what is assumed."""
    return [trace_head(trace), *assumed_lines(trace.assumed_rules, trace.device)]


def trace_head(trace: Trace) -> str:
    """Returns what a trace is of."""
    if trace.others:
        return visible(
            f"{len(trace.devices)} GPUs: "
            + "; ".join(f"{d.name}, {d.sms} SMs, {source_words(d)}" for d in trace.devices)
        )
    return visible(f"{trace.device.name}, {trace.device.sms} SMs, {source_words(trace.device)}")


def _timed_text(trace: Trace) -> Lines:
    """Returns a table of the launches over time, and why they waited."""
    shown = range(min(len(trace), LAUNCHES_SHOWN))
    waits = None if trace.waits is None else Waits(trace)
    lines: Lines = [*head_lines(trace), timed_table(trace, waits)]
    if trace.transfer_ns is not None and len(trace.transfer_ns):
        lines += ["", _transfers_table(trace)]
        if unknown := unmeasured_words(trace):
            lines.append(unknown)
    if trace.hang is None:
        lines += ["", f"makespan {seconds_words(trace.makespan)}{_with_transfers(trace)}"]
    else:
        lines += ["", *visible_lines(trace.hang.text).splitlines()]
    if waits is not None:
        lines += [waits.explanation(launch) for launch in shown if len(waits.of(launch))]
    return lines


def _transfers_table(trace: Trace) -> Table:
    """Returns when copies and memsets moved their bytes."""
    assert trace.transfer_ns is not None
    times = trace.transfer_ns[:LAUNCHES_SHOWN].tolist()
    rows = [
        (transfer_name(index, transfer), transfer_words(transfer), *map(_time_words, span))
        for index, (transfer, span) in enumerate(zip(trace.sequence.transfers, times, strict=False))
    ]
    hidden = len(trace.transfer_ns) - len(rows)
    more = f"and {hidden:,} {transfer_kinds(trace.sequence.transfers)} more" if hidden else ""
    return table_of(("", "bytes", "start", "end"), rows, (0, 1), more)


def _with_transfers(trace: Trace) -> str:
    """Returns how long all work takes, if copies or memsets run before or after all blocks."""
    if trace.transfer_ns is None or not len(trace.transfer_ns):
        return ""
    ran = blocks_that_ran(trace)
    begin = np.append(ran["start_ns"], trace.transfer_ns[:, 0]).min()
    end = np.append(ran["end_ns"], trace.transfer_ns[:, 1]).max()
    seconds = int(end - begin) / 1e9
    if seconds <= trace.makespan:
        return ""
    return (
        f" of the kernels; {seconds_words(seconds)} with {transfer_kinds(trace.sequence.transfers)}"
    )


def unmeasured_words(trace: Trace) -> str:
    """Returns a sentence that names the copies and memsets whose time nobody knows; empty if there
    are none."""
    if trace.transfer_ns is None:
        return ""
    took = (trace.transfer_ns[:, 1] - trace.transfer_ns[:, 0]).tolist()
    unknown = [
        transfer_name(index, transfer)
        for index, (transfer, ns) in enumerate(zip(trace.sequence.transfers, took, strict=True))
        if ns == 0 and isinstance(transfer, Copy | Memset) and transfer.duration is None
    ]
    if not unknown:
        return ""
    names, more = ", ".join(unknown[:_UNKNOWN_SHOWN]), len(unknown) - _UNKNOWN_SHOWN
    names += f" and {counted(more, 'other')}" if more > 0 else ""
    takes = "it takes" if len(unknown) == 1 else "they take"
    return (
        f"no time was measured on this device for {names}: {takes} 0 ns, unless Copy(duration=) or "
        "Memset(duration=) gives one"
    )


def timed_table(trace: Trace, waits: Waits | None, shown: int = LAUNCHES_SHOWN) -> Table:
    """Returns the launches of a timed sequence: when they ran, and what they waited for."""
    headings = ("start", "end", "waited", "mostly for")
    words = words_of(trace.sequence)
    rows = [_timed_row(trace, k, words(k), waits) for k in range(min(len(trace), shown))]
    return _launch_table(headings, rows, len(trace), left=())


def _timed_row(trace: Trace, index: int, words: str, waits: Waits | None) -> tuple[str, ...]:
    """Returns the table row of a launch of a timed trace."""
    begin, end = map(_time_words, span_of(index, trace[index]))
    waited, mostly = "", ""
    if waits is not None and len(launch_waits := waits.of(index)):
        waited = seconds_words(waited_ns(launch_waits) / 1e9)
        (mostly, _), _ = shares_of(launch_waits)[0]
    launch = trace.sequence.launches[index]
    return *_launch_cells(index, launch, words), begin, end, waited, mostly


def _time_words(time_ns: int) -> str:
    return "never" if time_ns == NEVER_NS else seconds_words(time_ns / 1e9)


def trace_html(trace: Trace) -> str:
    """What ``print`` says, with pictures."""
    return _timed_html(trace) if _has_times(trace) else _held_html(trace)


def _held_html(trace: Trace) -> str:
    """Returns HTML of a held trace."""
    launches = trace.sequence.launches
    placed = sum(placement.placed for placement in trace)
    blocks = sum(launch.blocks for launch in launches)
    colours = colours_of(launches)
    pictures = [] if trace.sequence.timed else _standing(trace, colours)
    return card(
        trace_head(trace),
        tiles_html(
            (f"{len(launches):,}", "launch" if len(launches) == 1 else "launches"),
            (f"{blocks:,}", "blocks"),
            (f"{placed:,}", "placed before the next event"),
        ),
        legend_html(launches),
        *pictures,
        _levels(trace, colours),
        table_html(held_table(trace), "Launches", marks=colours),
        assumed_html(trace.assumed_rules, trace.device),
    )


def _standing(trace: Trace, colours: list[str]) -> list[Markup]:
    """Which blocks are where at an event that is worth seeing, and at others."""
    at = _worth_seeing(trace)
    return [standing_html(trace, standing(trace, at), colours, at=at), _moments(trace, colours)]


def _moments(trace: Trace, colours: list[str], ran: StructuredArray | None = None) -> Markup:
    pictures = moments_html(trace, colours, ran)
    words = "Blocks on each SM, moment by moment: choose one, then use the arrow keys"
    return folded_html(words, pictures) if pictures else pictures


def _levels(trace: Trace, colours: list[str]) -> Markup:
    """Returns the first launches that have blocks, SM by SM."""
    rows: list[Level] = []
    for index, (launch, placement) in enumerate(zip(trace.sequence.launches, trace, strict=True)):
        if len(rows) < _LEVELS_SHOWN and placement.placed:
            blocks = placement.occupancy(trace.device.sms)
            name = f"launch {index}" + (f" {label(launch, _NAME)}" if launch.name else "")
            rows.append(Level(f"launch {index}", name, colours[index], blocks))
    if not rows:
        return Markup()
    hidden = sum(placement.placed > 0 for placement in trace) - len(rows)
    note = "The stronger the colour, the more blocks the SM has."
    if hidden:
        note += f" And {counted(hidden, 'launch', 'launches')} more."
    heading = "Blocks of each launch on each SM, before the next event"
    return levels_html(rows, heading, note)


def _worth_seeing(trace: Trace) -> int:
    """Returns after how many events the map of the SMs is shown: after all, or after the last
    launch."""
    launched, released = launched_and_released(trace.sequence)
    if not len(trace) or (released < 0).any():
        return len(trace.sequence)
    return 1 + int(launched.max())


def _timed_html(trace: Trace) -> str:
    """Returns HTML of a timed trace."""
    launches = trace.sequence.launches
    ran = blocks_that_ran(trace)
    waits = None if trace.waits is None else Waits(trace)
    colours = colours_of(launches)
    of_spans = colours + [TRANSFER_COLOUR] * len(trace.sequence.transfers)
    names = timeline_names(trace, of_spans, waits)
    blocks = sum([launch.blocks for launch in launches])
    return card(
        trace_head(trace),
        tiles_html(
            (seconds_words(trace.makespan), "makespan"),
            (f"{len(launches):,}", "launch" if len(launches) == 1 else "launches"),
            (f"{blocks:,}", "block" if blocks == 1 else "blocks"),
        ),
        *([] if trace.hang is None else [text_html(trace.hang.text.splitlines(), "Why it hangs")]),
        legend_html(launches),
        folded_html(
            "Launches over time, by stream",
            _stream_timeline(trace, ran, names, waits),
            is_open=True,
        ),
        folded_html("Blocks over time, by SM", _sm_timeline(trace, ran, names), is_open=True),
        *(_maps_of_one(trace, ran, colours, waits)),
        table_html(timed_table(trace, waits), "Launches", marks=colours),
        note_html(unknown) if (unknown := unmeasured_words(trace)) else Markup(),
        assumed_html(trace.assumed_rules, trace.device),
        Markup() if waits is None else _waits_html(trace, waits, colours),
    )


def _maps_of_one(
    trace: Trace, ran: StructuredArray, colours: list[str], waits: Waits | None
) -> list[Markup]:
    """Returns HTML: maps of what is on the SMs; for several GPUs a note how to ask for each."""
    if trace.others:
        return [note_html("What is on the SMs of one GPU: trace.residents(at, gpu=…).")]
    return [
        standing_html(trace, standing(trace, ran=ran), colours, waits=waits),
        _moments(trace, colours, ran),
    ]


def _sm_timeline(trace: Trace, ran: StructuredArray, names: Names) -> Markup:
    """Returns HTML: when each block ran, in rows by SM; in bins if blocks would be too thin to be
    seen."""
    spans, notes = without_idle(spans_by_sm(trace, ran=ran))
    if not spans.note and Frame(spans, *_BY_SM).pitch < _LANE * int(spans.lanes.max(initial=1)):
        spans, notes = without_idle(spans_by_sm(trace, most_spans=0, ran=ran))
    return timeline_html(Frame(spans, *_BY_SM), names, "blocks over time, by SM", notes=notes)


def timeline_names(trace: Trace, colours: list[str], waits: Waits | None) -> Names:
    """Returns the names and colours of what a timeline shows."""
    launches, words = trace.sequence.launches, words_of(trace.sequence)

    short = span_names(trace.sequence, _NAME)

    def title(launch_index: int) -> str:
        """Returns words for a launch, for the tooltip of its span."""
        if launch_index >= len(launches):
            return _transfer_title(trace, launch_index - len(launches))
        launch = launches[launch_index]
        begin, end = (
            seconds_words(time / 1e9) for time in span_of(launch_index, trace[launch_index])
        )
        name = f": {short(launch_index)}" if launch.name else ""
        lines = [f"launch {launch_index}{name}", words(launch_index), f"ran from {begin} to {end}"]
        if waits is not None and len(launch_waits := waits.of(launch_index)):
            (cause, _), _ = shares_of(launch_waits)[0]
            waited = seconds_words(waited_ns(launch_waits) / 1e9)
            lines.append(f"waited {waited}, mostly for {cause}")
        return "\n".join(lines)

    return Names(colours, short, title)


def _transfer_title(trace: Trace, index: int) -> str:
    """Returns words for a copy or memset, its bytes and its time."""
    assert trace.transfer_ns is not None
    transfer = trace.sequence.transfers[index]
    begin, end = (seconds_words(time / 1e9) for time in trace.transfer_ns[index].tolist())
    name = transfer_name(index, transfer)
    return f"{name}\n{transfer_words(transfer)}\nran from {begin} to {end}"


def _stream_timeline(
    trace: Trace, ran: StructuredArray, names: Names, waits: Waits | None
) -> Markup:
    """Returns HTML: when each launch ran, and when it waited, in rows by stream."""
    spans = spans_by_stream(trace, ran=ran)
    waiting, notes = None, []
    if waits is not None and trace.waits is not None and len(trace.waits):
        launch, first = np.unique(trace.waits["launch"], return_index=True)
        if len(launch) <= _WAITS_DRAWN and not spans.note:
            begin = np.minimum.reduceat(trace.waits["begin_ns"], first)
            end = np.maximum.reduceat(trace.waits["end_ns"], first)
            _, row = streams_of(trace.sequence, MOST_ROWS)
            begin = np.maximum(begin, spans.zero_ns)
            waiting = Waiting(row[launch], launch.astype(np.int64), begin, np.maximum(end, begin))
            notes.append("A thin line below a launch: it waited, or part of its blocks did.")
    frame = Frame(spans, *BY_STREAM)
    return timeline_html(frame, names, "launches over time, by stream", waiting, notes)


def _waits_html(trace: Trace, waits: Waits, colours: list[str]) -> Markup:
    """Returns HTML: the launches that waited longest, what for, and behind whom."""
    rows = trace.waits
    if rows is None or not len(rows):
        return note_html("No launch waited.")
    launch, first = np.unique(rows["launch"], return_index=True)
    waited = np.add.reduceat(rows["end_ns"] - rows["begin_ns"], first)
    longest = launch[np.argsort(-waited, kind="stable")[:_WAITS_SHOWN]].tolist()
    headings = ("launch", "name", "waited", "most of it", "because", "behind")
    more = more_of(len(launch), len(longest), "launch that waited", "launches that waited")
    table = table_of(headings, [_wait_row(trace, waits, k) for k in longest], (1, 4, 5), more)
    marks = [colours[k] for k in longest]
    return Markup("\n").join(
        [
            table_html(table, "Waits, the longest first", marks=marks),
            folded_html(
                "Each wait in words, and what would have shortened it",
                text_html([waits.explanation(k) for k in longest]),
            ),
        ]
    )


def _wait_row(trace: Trace, waits: Waits, launch: int) -> tuple[str, ...]:
    """Returns the table row of one wait."""
    launch_waits = waits.of(launch)
    (cause, behind), longest = shares_of(launch_waits)[0]
    total = waited_ns(launch_waits)
    launches = trace.sequence.launches
    waiter = ""
    if behind >= 0:
        name = launches[behind].name
        waiter = f"launch {behind}" + (f" {cut(name, _SHORT)}" if name else "")
    elif behind < -1:
        waiter = transfer_name(-2 - behind, trace.sequence.transfers[-2 - behind])
    return (
        str(launch), launches[launch].name or "", seconds_words(total / 1e9),
        f"{100 * longest / max(total, 1):.0f} %", limiter_words(cause, trace.device), waiter,
    )  # fmt: skip


def trace_columns(trace: Trace) -> dict[str, Any]:
    """Returns columns: SM and times of each block, or what its launch waited for."""
    launches = trace.sequence.launches
    sizes = np.array([launch.blocks for launch in launches], np.int64)
    launch, block = (blocks.astype(np.int32) for blocks in numbered_blocks(sizes))
    names = objects(launch.name for launch in launches)
    limiters = objects(placement.limiter for placement in trace)
    columns: dict[str, Any] = {"launch": launch, "name": names[launch], "block": block}
    if has_times(trace):
        rows = trace.timeline
        if trace.others:
            columns["gpu"] = np.array(trace.sequence.launch_gpus, np.int32)[launch]
        columns |= {key: rows[key].copy() for key in ("sm", "start_ns", "end_ns")}
        columns["limiter"] = limiters[launch]
    else:
        columns["smid"] = _joined([placement.smid for placement in trace])
        final = [p.final_smid for p in trace if p.final_smid is not None]
        if len(final) == len(trace):
            columns["final_smid"] = _joined(final)
        columns["limiter"] = np.where(columns["smid"] < 0, limiters[launch], objects([None]))
    queues = [placement.hardware_queue for placement in trace]
    if queues and None not in queues:
        columns["hardware_queue"] = np.array(queues, np.int32)[launch]
    return columns


def _joined(smids: list[Int32Array]) -> Int32Array:
    return np.concatenate([np.empty(0, np.int32), *smids])


def trace_data(trace: Trace) -> dict[str, Any]:
    """Returns JSON data: where and when blocks of each launch ran, and what launches waited for."""
    placement_fields, limiters = "smid final_smid start_ns end_ns warp_slots", trace.limiters
    launches = [
        {
            "launch": index,
            **fields(launch, "name blocks"),
            **fields(placement, "placed limiter"),
            "limiters": list(limiters[index]),
            **fields(placement, f"hardware_queue {placement_fields}"),
        }
        for index, (launch, placement) in enumerate(
            zip(trace.sequence.launches, trace, strict=True)
        )
    ]
    return {
        **fields(trace, "id device events=sequence"),
        "launches": launches,
        "makespan": trace.makespan
        if len(trace) and has_times(trace) and trace.hang is None
        else None,
        **fields(trace, "transfer_ns waits assumed_rules"),
        **({} if trace.hang is None else fields(trace, "hang")),
        **(fields(trace, "devices") if trace.others else {}),
    }
