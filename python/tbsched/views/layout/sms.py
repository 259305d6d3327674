"""What sits on each SM at a moment, and why it is there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tbsched.counting import counted
from tbsched.program.arrays import HoldsArrays, Int64Array, StructuredArray
from tbsched.program.checks import integer, seconds
from tbsched.traces.residents import Residents
from tbsched.traces.timeline import busiest_ns
from tbsched.traces.trace import Trace
from tbsched.views.layout.graphs import launched_and_released
from tbsched.views.layout.lanes import blocks_that_ran
from tbsched.views.words import seconds_words

# Most launches x SMs for which the room is computed: it takes long, and fills the memory.
_MAX_CAPACITIES = 2**18
_MAX_REPLAYED = 200_000  # blocks


@dataclass(frozen=True, eq=False, slots=True)
class Standing(HoldsArrays):
    """What sits on each SM at a moment: a row for each SM and launch with blocks on it.

    Attributes:
        when: the moment, in words, such as ``after the last event``.
        sm, launch, blocks: int64 (rows,), by SM and then by launch.
        since_ns: int64 (rows,), when the first of those blocks started; None of a held sequence.
        until_ns: int64 (rows,), when the last of them ended; likewise.
        waiting: int64 (launches that wait, 2): a launch, and how many of its blocks wait.
        sms: of the device.
        note: what is not known of the moment, in words to be shown; empty if nothing is missing.
    """

    when: str
    sm: Int64Array
    launch: Int64Array
    blocks: Int64Array
    since_ns: Int64Array | None
    until_ns: Int64Array | None
    waiting: Int64Array
    sms: int
    note: str = ""

    @property
    def blocks_per_sm(self) -> Int64Array:
        """All launches together, int64 (sms,)."""
        return np.bincount(self.sm, weights=self.blocks, minlength=self.sms).astype(np.int64)

    def on(self, sm: int) -> slice:
        """The rows of an SM."""
        first, last = np.searchsorted(self.sm, [sm, sm + 1]).tolist()
        return slice(first, last)


def standing(
    trace: Trace, at: float | None = None, *, ran: StructuredArray | None = None
) -> Standing:
    """Returns what sits on each SM at a moment.

    Args:
        trace: predicted or observed.
        at: of a held sequence after how many events; None: after all. Of a trace with times
            seconds on its clock; None: when most blocks are resident.
        ran: of a trace with times, what :func:`blocks_that_ran` returned, if it was asked before.

    Raises:
        TypeError, ValueError: no such event, or no time.
    """
    if trace.sequence.timed:
        return _at_time(trace, at, blocks_that_ran(trace) if ran is None else ran)
    return _after_events(trace, at)


def _at_time(trace: Trace, at: float | None, ran: StructuredArray) -> Standing:
    """Returns what sits on each SM at a time; None: when most blocks are resident."""
    zero = int(ran["start_ns"].min()) if len(ran) else 0
    if at is None:
        at_ns, why = busiest_ns(ran), ", when most blocks are resident"
    elif isinstance(at, int | float) and zero <= at * 1e9 < 0:  # such a clock may be recorded
        at_ns, why = round(at * 1e9), ""
    else:
        at_ns, why = round(seconds("standing", "at", at) * 1e9), ""
    resident = ran[(ran["start_ns"] <= at_ns) & (ran["end_ns"] > at_ns)]
    resident = resident[np.lexsort((resident["launch"], resident["sm"]))]
    sm, launch, blocks, first = _grouped(resident["sm"], resident["launch"])
    since = until = np.zeros(0, np.int64)
    if len(first):
        since = np.minimum.reduceat(resident["start_ns"], first)
        until = np.maximum.reduceat(resident["end_ns"], first)
    later = at_ns - zero
    after = seconds_words(later / 1e9) if later > 0 else "0 s"
    begun = "at the start" if later == 0 else f"{after} after the first block's start"
    return Standing(
        f"{begun}{why}", sm, launch, blocks, since, until, _waiting_at(trace, at_ns, ran),
        trace.device.sms,
    )  # fmt: skip


def _waiting_at(trace: Trace, at_ns: int, ran: StructuredArray) -> Int64Array:
    """Returns the launches that wait at a time, each with how many of its blocks have not started,
    int64 (launches, 2)."""
    if trace.waits is None:
        return np.zeros((0, 2), np.int64)
    waits = trace.waits
    now = np.unique(waits["launch"][(waits["begin_ns"] <= at_ns) & (waits["end_ns"] > at_ns)])
    later = np.bincount(ran["launch"][ran["start_ns"] > at_ns], minlength=len(trace))
    return np.stack([now, later[now]], axis=1).astype(np.int64)


def _after_events(trace: Trace, at: float | None) -> Standing:
    """Returns what sits on each SM after so many events; None: after all."""
    every = len(trace.sequence)
    events = every if at is None else integer("standing", "at", at, 0, every)
    alive, freed = _unreleased(trace, events)
    if trace.replay is None:
        sms, launches, unsure = _recorded(trace, alive, freed, at_end=events == every)
    else:
        rows = trace.residents(events).rows
        blocks = rows["blocks"]
        sms, launches, unsure = rows["sm"].repeat(blocks), rows["launch"].repeat(blocks), False
    order = np.lexsort((launches, sms))
    sm, launch, blocks, _ = _grouped(sms[order], launches[order])
    placed = np.bincount(launch, weights=blocks, minlength=len(trace)).astype(np.int64)
    missing = {k: trace.sequence.launches[k].blocks - int(placed[k]) for k in alive}
    waiting = [(k, blocks) for k, blocks in missing.items() if blocks]
    moment_words = (
        "after the last event" if events == every else f"after {events} of {every} events"
    )
    note = "Blocks that waited and came later are missing: nobody recorded when they came."
    return Standing(
        moment_words, sm, launch, blocks, None, None,
        np.array(waiting, np.int64).reshape(len(waiting), 2), trace.device.sms,
        note if unsure else "",
    )  # fmt: skip


def _recorded(
    trace: Trace, alive: dict[int, int], freed: int, *, at_end: bool
) -> tuple[Int64Array, Int64Array, bool]:
    """Returns the SM and the launch of each block that is there, and whether some blocks may be
    missing.

    Blocks that waited came with a release. After which one only the end tells. So the third says
    whether some may be missing.
    """
    parts, owners = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    unsure = False
    for k, issued in alive.items():
        placement = trace[k]
        final = placement.final_smid if at_end else None
        smid = placement.smid if final is None else final
        placed = smid[smid >= 0]
        parts.append(placed.astype(np.int64))
        owners.append(np.full(len(placed), k, np.int64))
        unsure |= final is None and freed > issued and len(placed) < len(smid)
    return np.concatenate(parts), np.concatenate(owners), unsure


def _unreleased(trace: Trace, events: int) -> tuple[dict[int, int], int]:
    """Returns which launches are not released after so many events, and the last releasing event.

    The former has the event that issued each launch; the latter is -1 if none was released.
    """
    launched, released = launched_and_released(trace.sequence)
    is_released = (released >= 0) & (released < events)
    alive = np.flatnonzero((launched < events) & ~is_released)
    freed = int(released[is_released].max(initial=-1))
    return dict(zip(alive.tolist(), launched[alive].tolist(), strict=True)), freed


def _grouped(
    sms: Int64Array, launches: Int64Array
) -> tuple[Int64Array, Int64Array, Int64Array, Int64Array]:
    """Returns the distinct pairs of SM and launch, in two arrays, how often each occurs, and the
    index at which each begins. The given pairs are sorted."""
    sm, launch = sms.astype(np.int64), launches.astype(np.int64)
    changes = (np.diff(sm, prepend=-1) != 0) | (np.diff(launch, prepend=-1) != 0)
    first = np.flatnonzero(changes)
    return sm[first], launch[first], np.diff(np.append(first, len(sm))), first


@dataclass(frozen=True, eq=False, slots=True)
class Rooms:
    """What room each SM had for each launch when it came; of a prediction of held launches.

    Attributes:
        blocks: int64 (launches, sms).
        limiter: per launch and SM, what bound that number.
    """

    blocks: Int64Array
    limiter: tuple[tuple[str, ...], ...]

    def why(self, launch: int, sm: int) -> str:
        """Returns words for why a launch's blocks are on the SM: its room among all SMs."""
        room = int(self.blocks[launch, sm])
        more = int((self.blocks[launch] > room).sum())
        equal = int((self.blocks[launch] == room).sum()) - 1
        if more:
            rank = f"{counted(more, 'SM')} had more"
        elif equal:
            rank = f"the most, as {counted(equal, 'other SM')} had"
        else:
            rank = "the most of all SMs"
        return f"room for {counted(room, 'block')} when it came, {rank}"

    def bound_by(self, launch: int, sm: int) -> str:
        """What bound the room that the SM had for the launch."""
        return self.limiter[launch][sm]


def rooms_of(trace: Trace) -> Rooms | None:
    """Returns the room each SM had; None if it is unknown, or of too many launches."""
    if trace.capacities is None or len(trace) * trace.device.sms > _MAX_CAPACITIES:
        return None
    rooms = trace.capacities()
    blocks = np.array([room.blocks for room in rooms], np.int64)
    return Rooms(
        blocks.reshape(len(rooms), trace.device.sms), tuple(room.limiter for room in rooms)
    )


@dataclass(frozen=True, eq=False, slots=True)
class Usage(HoldsArrays):
    """How much of a resource each SM uses.

    Attributes:
        what: the resource in words.
        used: int64 (sms,); of warps and registers in the processing block that uses most.
        limit: int64 (sms,), how much there is; of shared memory as the SM is configured.
    """

    what: str
    used: Int64Array
    limit: Int64Array

    def share(self, sm: int) -> float:
        """Returns the used share of what an SM has, 0 to 1."""
        return int(self.used[sm]) / max(int(self.limit[sm]), 1)


def usage_of(residents: Residents) -> tuple[Usage, ...]:
    """Returns how much of slots, warps, registers and shared memory each SM uses."""
    limits = residents.limits
    per_block = " of its fullest processing block" if limits.processing_blocks > 1 else ""

    memory = np.where(residents.configured > 0, residents.configured, limits.shared_memory)

    def of_all(limit: int) -> Int64Array:
        return np.full(residents.device.sms, limit, np.int64)

    return (
        Usage("thread block slots", residents.used_slots, of_all(limits.block_slots)),
        Usage(
            f"warp slots{per_block}", residents.used_warps.max(axis=1), of_all(limits.warp_slots)
        ),
        Usage(
            f"registers{per_block}", residents.used_registers.max(axis=1), of_all(limits.registers)
        ),
        Usage("bytes of shared memory", residents.used_shared_memory, memory.astype(np.int64)),
    )


def usage_at(trace: Trace, at: float | None = None) -> tuple[Usage, ...] | None:
    """Returns the use of SMs at a moment of a prediction; None: unknown, or slow to compute."""
    blocks = sum([launch.blocks for launch in trace.sequence.launches])
    if trace.replay is None or blocks > _MAX_REPLAYED:
        return None
    return usage_of(trace.residents(at))


def fullest(usage: Sequence[Usage], sm: int) -> str:
    """Returns words for the resource of which an SM has least left; empty if it is idle."""
    fullest_usage = max(usage, key=lambda item: item.share(sm))
    if not fullest_usage.used[sm]:
        return ""
    percent = f"{100 * fullest_usage.share(sm):.0f} %"
    used, limit = fullest_usage.used[sm], fullest_usage.limit[sm]
    return f"bound most by {fullest_usage.what}: {used:,} of {limit:,} ({percent})"
