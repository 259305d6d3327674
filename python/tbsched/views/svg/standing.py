"""What sits on each SM at a moment, and on hover why it is there and what binds the SM."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from tbsched.counting import counted
from tbsched.traces.timeline import shares_of, waited_ns
from tbsched.traces.trace import Trace
from tbsched.views.layout.names import label
from tbsched.views.layout.sms import Rooms, Standing, Usage, fullest, rooms_of, usage_at
from tbsched.views.layout.topology import Topology, topology_of
from tbsched.views.svg.sm_map import Fill, Tile, map_html
from tbsched.views.waits import Waits
from tbsched.views.words import limiter_words, seconds_words

_FEW = 400  # SMs; of more the tiles are small, and say less
_LAUNCHES_SHOWN, _FEWER_SHOWN = 6, 3
_WAITING_SHOWN = 4
_NAME, _SHORT_NAME = 36, 16


def standing_html(
    trace: Trace,
    standing: Standing,
    colours: Sequence[str],
    *,
    at: float | None = None,
    waits: Waits | None = None,
) -> Markup:
    """Returns HTML: the map of what sits on each SM, a colour per launch.

    Args:
        trace: predicted or observed.
        standing: the moment.
        colours: of the launches.
        at: the moment as ``trace.residents`` takes it.
        waits: of a timed prediction.
    """
    few = trace.device.sms <= _FEW
    topology = topology_of(trace.device)
    usage = usage_at(trace, at)
    sms = _Sms(trace, standing, topology, rooms_of(trace), usage, waits if few else None, few)
    max_blocks = int(standing.blocks_per_sm.max(initial=0))
    tiles = [
        Tile(sms.title(sm), sms.fills(sm, max_blocks, colours)) for sm in range(trace.device.sms)
    ]
    notes = [standing.note]
    if max_blocks:
        full = f"A full tile is {counted(max_blocks, 'block')}, the most on any SM."
        rest = f" Each has the {_FEWER_SHOWN} colours of most blocks; the rest is grey."
        notes.insert(0, full if few else full + rest)
    if sms.usage is None and trace.replay is not None:
        notes.append("The program is too large to say here what binds each SM.")
    if sms.rooms is None and trace.capacities is not None:
        notes.append("It has too many launches to say here what room each SM had for them.")
    notes.append(_waiting_words(trace, standing))
    return map_html(topology, tiles, f"Blocks on each SM, {standing.when}", notes)


@dataclass(frozen=True, slots=True)
class _Sms:
    """What there is to say of each SM.

    Attributes:
        rooms: what room each SM had for each launch, if that is known.
        usage: what each SM uses, if that is known.
        waits: what launches waited for, if that is known.
        few: whether there is room for many words.
    """

    trace: Trace
    found: Standing
    topology: Topology
    rooms: Rooms | None
    usage: tuple[Usage, ...] | None
    waits: Waits | None
    few: bool

    def fills(self, sm: int, max_blocks: int, colours: Sequence[str]) -> tuple[Fill, ...]:
        """Returns the colours of a tile; of very small ones only those of most blocks."""
        rows = self.found.on(sm)
        launches, blocks = self.found.launch[rows].tolist(), self.found.blocks[rows].tolist()
        of_colour: dict[str, int] = {}
        for launch, count in zip(launches, blocks, strict=True):
            of_colour[colours[launch]] = of_colour.get(colours[launch], 0) + count
        pairs = list(of_colour.items())
        if not self.few and len(pairs) > _FEWER_SHOWN:
            pairs.sort(key=lambda pair: -pair[1])
            rest = sum(count for _, count in pairs[_FEWER_SHOWN:])
            shown = (Fill(count / max_blocks, colour) for colour, count in pairs[:_FEWER_SHOWN])
            return *shown, Fill(rest / max_blocks, style="rest")
        return tuple(Fill(count / max_blocks, colour) for colour, count in pairs)

    def title(self, sm: int) -> str:
        """Returns what is shown when the mouse is over it."""
        rows = self.found.on(sm)
        total = int(self.found.blocks[rows].sum())
        blocks_words = counted(total, "block") if total else "idle"
        lines = [f"{self.topology.place_of(sm)}: {blocks_words}"]
        shown = _LAUNCHES_SHOWN if self.few else _FEWER_SHOWN
        lines += [
            self._resident(row) for row in range(rows.start, min(rows.stop, rows.start + shown))
        ]
        if rows.stop - rows.start > shown:
            more = counted(rows.stop - rows.start - shown, "launch", "launches")
            lines.append(f"and {more} more")
        lines.append(self.topology.preference_of(sm))
        if self.usage is not None:
            lines.append(fullest(self.usage, sm))
        if self.rooms is not None:
            lines.append(self._room_left(sm, self.rooms))
        return "\n".join(filter(None, lines))

    def _resident(self, row: int) -> str:
        """Returns blocks of a launch on an SM, and why they are there."""
        found, launch = self.found, int(self.found.launch[row])
        resident_launch = self.trace.sequence.launches[launch]
        name = (
            f" {label(resident_launch, _NAME if self.few else _SHORT_NAME)}"
            if resident_launch.name
            else ""
        )
        words = f"launch {launch}{name}: {counted(int(found.blocks[row]), 'block')}"
        if self.rooms is not None:
            words += f"; {self.rooms.why(launch, int(found.sm[row]))}"
        if self.few and found.since_ns is not None and found.until_ns is not None:
            times = (found.since_ns, found.until_ns)
            begin, end = (seconds_words(int(time[row]) / 1e9) for time in times)
            words += f"; from {begin} to {end}"
        if self.waits is not None and len(waits_of_launch := self.waits.of(launch)):
            (cause, _), _ = shares_of(waits_of_launch)[0]
            words += (
                f"; waited {seconds_words(waited_ns(waits_of_launch) / 1e9)}, mostly for {cause}"
            )
        return words

    def _room_left(self, sm: int, rooms: Rooms) -> str:
        """Returns what keeps a launch that waits off the SM; nothing if none waits."""
        if not len(self.found.waiting):
            return ""
        first = int(self.found.waiting[0, 0])
        rows = self.found.on(sm)
        placed = int(self.found.blocks[rows][self.found.launch[rows] == first].sum())
        if placed < int(rooms.blocks[first, sm]):
            return ""
        limiter = limiter_words(rooms.bound_by(first, sm), self.trace.device)
        return f"no more of launch {first}, which waits, came here: {limiter}"


def _waiting_words(trace: Trace, standing: Standing) -> str:
    """Returns which launches wait, and why."""
    parts = []
    for launch, blocks in standing.waiting[:_WAITING_SHOWN].tolist():
        waiting_launch = trace.sequence.launches[launch]
        name = f" ({label(waiting_launch, _NAME)})" if waiting_launch.name else ""
        words = f"{counted(blocks, 'block')} of launch {launch}{name}"
        limiter = trace[launch].limiter
        if limiter is not None and not trace.sequence.timed:
            words += f": {limiter_words(limiter, trace.device)}"
        parts.append(words)
    if len(standing.waiting) > _WAITING_SHOWN:
        more = counted(len(standing.waiting) - _WAITING_SHOWN, "launch", "launches")
        parts.append(f"and {more} more")
    return f"Waiting: {'; '.join(parts)}." if parts else ""
