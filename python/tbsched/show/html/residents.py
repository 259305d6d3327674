"""What sits on each SM at a moment, and on hover why it is there and what binds the SM."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup

from tbsched.show.html.sm_map import Fill, Tile, map_html
from tbsched.show.layout.names import label
from tbsched.show.layout.sms import Rooms, Standing, rooms_of
from tbsched.show.layout.topology import Topology, topology_of
from tbsched.show.waits import Waits
from tbsched.show.words import counted, limiter_words, seconds_words
from tbsched.traces.timeline import shares_of, waited_ns
from tbsched.traces.trace import Trace

_LAUNCHES_SHOWN = 5  # of an SM
_WAITING_SHOWN = 4
_NAME = 32


def standing_html(
    trace: Trace, found: Standing, colours: Sequence[str], waits: Waits | None = None
) -> Markup:
    """The map of what sits on each SM, a colour per launch.

    Args:
        trace: predicted or observed.
        found: the moment.
        colours: of the launches.
        waits: of a timed prediction.
    """
    topology = topology_of(trace.device)
    rooms = rooms_of(trace)
    per_sm = found.blocks_per_sm
    most = int(per_sm.max(initial=0))
    tiles = []
    for sm in range(trace.device.sms):
        own = found.on(sm)
        fills = tuple(
            Fill(blocks / most, colours[launch])
            for launch, blocks in zip(
                found.launch[own].tolist(), found.blocks[own].tolist(), strict=True
            )
        )
        title = _title(trace, found, topology, rooms, waits, sm)
        tiles.append(Tile(title, fills))
    notes = [found.note]
    if most:
        notes.insert(0, f"A full tile is {counted(most, 'block')}, the most on any SM.")
    notes.append(_waiting_words(trace, found))
    return map_html(topology, tiles, f"Blocks on each SM, {found.when}", notes)


def _title(
    trace: Trace,
    found: Standing,
    topology: Topology,
    rooms: Rooms | None,
    waits: Waits | None,
    sm: int,
) -> str:
    """What is shown of an SM when the mouse is over it."""
    own = found.on(sm)
    launches = found.launch[own].tolist()
    total = int(found.blocks[own].sum())
    lines = [f"{topology.place_of(sm)}: {counted(total, 'block') if total else 'idle'}"]
    for row in range(own.start, min(own.stop, own.start + _LAUNCHES_SHOWN)):
        lines.append(_resident(trace, found, rooms, waits, row))
    if len(launches) > _LAUNCHES_SHOWN:
        lines.append(f"and {counted(len(launches) - _LAUNCHES_SHOWN, 'launch', 'launches')} more")
    lines.append(topology.preference_of(sm))
    if rooms is not None:
        lines.append(_binding(trace, found, rooms, sm))
    return "\n".join(filter(None, lines))


def _resident(
    trace: Trace, found: Standing, rooms: Rooms | None, waits: Waits | None, row: int
) -> str:
    """Blocks of a launch on an SM, and why they are there."""
    launch = int(found.launch[row])
    given = trace.sequence.launches[launch]
    name = f" {label(given, _NAME)}" if given.name else ""
    words = f"launch {launch}{name}: {counted(int(found.blocks[row]), 'block')}"
    if rooms is not None:
        words += f"; {rooms.why(launch, int(found.sm[row]))}"
    if found.since_ns is not None and found.until_ns is not None:
        begin, end = (
            seconds_words(int(times[row]) / 1e9) for times in (found.since_ns, found.until_ns)
        )
        words += f"; from {begin} to {end}"
    if waits is not None and len(own := waits.of(launch)):
        (cause, _), _ = shares_of(own)[0]
        words += f"; waited {seconds_words(waited_ns(own) / 1e9)}, mostly for {cause}"
    return words


def _binding(trace: Trace, found: Standing, rooms: Rooms, sm: int) -> str:
    """What binds the SM for the launch that came last."""
    there = np.union1d(found.launch, found.waiting[:, 0])
    if not len(there):
        return ""
    last = int(there[-1])
    own = found.on(sm)
    here = int(found.blocks[own][found.launch[own] == last].sum())
    left = int(rooms.blocks[last, sm]) - here
    if left > 0:
        return f"room for {counted(left, 'block')} more of launch {last}"
    return f"no room for more of launch {last}: " + limiter_words(
        rooms.bound_by(last, sm), trace.device
    )


def _waiting_words(trace: Trace, found: Standing) -> str:
    """Which launches wait, and why."""
    parts = []
    for launch, blocks in found.waiting[:_WAITING_SHOWN].tolist():
        given = trace.sequence.launches[launch]
        name = f" ({label(given, _NAME)})" if given.name else ""
        words = f"{counted(blocks, 'block')} of launch {launch}{name}"
        limiter = trace[launch].limiter
        if limiter is not None and not trace.sequence.timed:
            words += f": {limiter_words(limiter, trace.device)}"
        parts.append(words)
    if len(found.waiting) > _WAITING_SHOWN:
        parts.append(f"{counted(len(found.waiting) - _WAITING_SHOWN, 'launch', 'launches')} more")
    return f"Waiting: {'; '.join(parts)}." if parts else ""
