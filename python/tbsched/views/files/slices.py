"""What Perfetto shows of a trace: slices of blocks, launches, waits, copies and calls."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tbsched.program.arrays import HoldsArrays, Int64Array, numbered_blocks
from tbsched.program.events.launch import Launch
from tbsched.program.events.streams import Stream
from tbsched.program.sequence import GraphLaunch, Release
from tbsched.traces.trace import Trace
from tbsched.views.layout.drawn import drawn
from tbsched.views.layout.graphs import launched_and_released
from tbsched.views.layout.lanes import blocks_that_ran, lanes_of, launch_spans

Flags = npt.NDArray[np.bool_]
_EVENT_NS = 10**9
_MAX_REPLAYED = 200  # releases: each takes a prediction of all that comes before it
NO_TIMES = (
    "The blocks are held until they are released, so there are no times: event n of the sequence "
    "is at second n. Blocks are left out where nobody knows after which event they came."
)


@dataclass(frozen=True, eq=False, slots=True)
class Blocks(HoldsArrays):
    """When blocks were resident, int64 (rows,) each.

    Attributes:
        launch, sm: of the blocks of the row.
        first, last: the lowest and the highest number among them.
        count: how many there are.
        begin_ns, end_ns: when they came and left; from 0 on.
    """

    launch: Int64Array
    sm: Int64Array
    first: Int64Array
    last: Int64Array
    count: Int64Array
    begin_ns: Int64Array
    end_ns: Int64Array


@dataclass(frozen=True, eq=False, slots=True)
class Runs(HoldsArrays):
    """The launches of which a block ran, int64 (rows,) each.

    Attributes:
        launch: ascending.
        begin_ns, end_ns: the start of its first block, and the end of its last.
    """

    launch: Int64Array
    begin_ns: Int64Array
    end_ns: Int64Array


@dataclass(frozen=True, eq=False, slots=True)
class Waits(HoldsArrays):
    """What launches waited for while nothing of their stream ran before them.

    Attributes:
        launch: int64 (rows,).
        behind: what it waited for, int64 (rows,), as in :attr:`tbsched.Trace.waits`.
        cause: a word of :attr:`tbsched.Placement.limiter`, str (rows,).
        begin_ns, end_ns: int64 (rows,).
    """

    launch: Int64Array
    behind: Int64Array
    cause: npt.NDArray[np.str_]
    begin_ns: Int64Array
    end_ns: Int64Array

    def chosen(self, rows: npt.NDArray[np.bool_]) -> Waits:
        """Returns the waits for which ``rows`` is True."""
        if rows.all():
            return self
        return Waits(
            self.launch[rows], self.behind[rows], self.cause[rows], self.begin_ns[rows],
            self.end_ns[rows],
        )  # fmt: skip


@dataclass(frozen=True, eq=False, slots=True)
class Slices(HoldsArrays):
    """What a trace shows. Time begins with the first thing that is known to happen.

    Attributes:
        transfers: when copies and memsets moved their bytes; ``launch`` is their number among those
            of the sequence.
        calls: when the hosts called; ``launch`` is the number of the event.
        issue_ns: when each launch reached the GPU, int64 (launches,); -1: nobody knows.
        release_ns: when the host released each launch, int64 (launches,); -1: never.
    """

    blocks: Blocks
    runs: Runs
    waits: Waits
    transfers: Runs
    calls: Runs
    issue_ns: Int64Array
    release_ns: Int64Array


def resident(row: Int64Array, blocks: Blocks) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Returns how many blocks are resident, whenever that changes: three arrays with the row, the
    time in ns, and the number from then on; by row and time."""
    rows, times = np.tile(row, 2), np.concatenate([blocks.begin_ns, blocks.end_ns])
    order = np.lexsort((times, rows))
    rows, times = rows[order], times[order]
    # A row ends with none, so that all can be added up together.
    count = np.cumsum(np.concatenate([blocks.count, -blocks.count])[order])
    last = np.ones(len(rows), np.bool_)
    last[:-1] = (rows[1:] != rows[:-1]) | (times[1:] != times[:-1])
    rows, times, count = rows[last], times[last], count[last]
    changed = np.ones(len(rows), np.bool_)
    changed[1:] = (rows[1:] != rows[:-1]) | (count[1:] != count[:-1])
    return rows[changed], times[changed], count[changed]


def in_lanes(
    row: Int64Array, begin_ns: Int64Array, end_ns: Int64Array
) -> tuple[Int64Array, Int64Array]:
    """Returns the track of each slice, int64 (slices,), and the row that each track is in. Slices
    of a track do not overlap."""
    lane, lanes = lanes_of(row, begin_ns, end_ns)
    first = np.cumsum(lanes) - lanes
    return (first[row] + lane if len(row) else row), np.repeat(np.arange(len(lanes)), lanes)


def timed_slices(trace: Trace, zero_ns: int | None = None) -> Slices:
    """Returns when the blocks of a timed sequence ran.

    Args:
        trace: of a timed sequence, or observed.
        zero_ns: where time begins; None: with the first thing that is known to happen.

    Raises:
        ValueError: nobody recorded it.
    """
    if trace.others:
        raise ValueError("to_perfetto: a trace of several GPUs; it knows one")
    trace = drawn(trace)
    rows = blocks_that_ran(trace)
    names = ("launch", "block", "sm", "start_ns", "end_ns")
    launch, block, sm, begin_ns, end_ns = (rows[name].astype(np.int64) for name in names)
    waits = _timed_waits(trace)
    moved = np.empty((0, 2), np.int64) if trace.transfer_ns is None else trace.transfer_ns
    called = np.empty((0, 2), np.int64) if trace.call_ns is None else trace.call_ns
    times = (begin_ns, waits.begin_ns, moved, called)
    known = min((int(x.min()) for x in times if len(x)), default=0)
    zero = known if zero_ns is None else min(known, zero_ns)
    begun_ns, over_ns = (moved - zero).T
    called_ns, returned_ns = (called - zero).T
    begin_ns, end_ns = begin_ns - zero, end_ns - zero
    waits = replace(waits, begin_ns=waits.begin_ns - zero, end_ns=waits.end_ns - zero)
    end_ns = np.maximum(end_ns, begin_ns + 1)  # to Perfetto an end comes behind its beginning
    launches, first_ns, last_ns = launch_spans(rows)
    runs = Runs(launches, first_ns - zero, np.maximum(last_ns, first_ns + 1) - zero)
    issue_ns = np.full(len(trace), -1)
    issue_ns[runs.launch] = runs.begin_ns
    waited, first = np.unique(waits.launch, return_index=True)
    issue_ns[waited] = waits.begin_ns[first]
    return Slices(
        blocks=together(launch, block, sm, begin_ns, end_ns),
        runs=runs,
        waits=_alone_in_stream(trace, runs, waits),
        transfers=Runs(np.arange(len(moved)), begun_ns, np.maximum(over_ns, begun_ns + 1)),
        calls=Runs(np.arange(len(called)), called_ns, np.maximum(returned_ns, called_ns + 1)),
        issue_ns=issue_ns,
        release_ns=np.full(len(trace), -1),
    )


def _timed_waits(trace: Trace) -> Waits:
    """Returns the waits of a timed trace; none if it has none."""
    if trace.waits is None:
        nothing = np.empty(0, np.int64)
        return Waits(nothing, nothing, np.empty(0, np.str_), nothing, nothing)
    rows = trace.waits
    names = ("launch", "behind", "begin_ns", "end_ns")
    launch, behind, begin_ns, end_ns = (rows[name].astype(np.int64) for name in names)
    return Waits(launch, behind, rows["cause"], begin_ns, end_ns)


def together(
    launch: Int64Array, block: Int64Array, sm: Int64Array, begin_ns: Int64Array, end_ns: Int64Array
) -> Blocks:
    """Returns one row for the blocks of a launch that come to an SM, and leave it, together."""
    order = np.lexsort((end_ns, launch, begin_ns, sm))
    columns = [column[order] for column in (launch, sm, begin_ns, end_ns)]
    new = np.ones(len(order), np.bool_)
    new[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    first = np.flatnonzero(new)
    bounds = np.append(first, len(order))
    launch, sm, begin_ns, end_ns = (column[first] for column in columns)
    block = block[order]
    last = block[bounds[1:] - 1]
    return Blocks(launch, sm, block[first], last, np.diff(bounds), begin_ns, end_ns)


def _alone_in_stream(trace: Trace, runs: Runs, waits: Waits) -> Waits:
    """Returns the waits without the time in which a launch before it in its stream had not ended.

    The stream's track shows that launch then. Of thousands of launches that are issued at once,
    each waits for all that are before it. What waits for something else while that launch runs, as
    dependent launches do, is shown.
    """
    ended = np.zeros(len(trace), np.int64)
    ended[runs.launch] = runs.end_ns
    free_ns = np.zeros(len(trace), np.int64)
    free_by_stream: dict[Stream, int] = {}
    first = 0
    for event in trace.sequence:
        of_event = slice(first, first := first + len(event.launches))
        if isinstance(event, Launch | GraphLaunch) and event.stream is not None:
            free_ns[of_event] = free = free_by_stream.get(event.stream, 0)
            free_by_stream[event.stream] = int(ended[of_event].max(initial=free))
    free_ns = np.where(waits.cause == "stream", free_ns[waits.launch], 0)
    shortened = replace(waits, begin_ns=np.maximum(waits.begin_ns, free_ns))
    return shortened.chosen(shortened.begin_ns < shortened.end_ns)


def held_slices(trace: Trace) -> Slices:
    """Returns which blocks were resident from which event to which."""
    issued_at, released_at = launched_and_released(trace.sequence)
    stays = np.where(released_at >= 0, released_at, len(trace.sequence))
    blocks = _blocks(trace)
    at_once = blocks["smid"] >= 0
    event = np.where(at_once, issued_at[blocks["launch"]], -1)
    sm = np.where(at_once, blocks["smid"], blocks["final_smid"])
    if trace.replay is not None:
        _find_later(trace, blocks["launch"], sm, at_once, event)
    has_come = event >= 0
    launch, block, sm, begin = (
        blocks["launch"][has_come],
        blocks["block"][has_come],
        sm[has_come],
        event[has_come],
    )
    launches = np.unique(launch)
    return Slices(
        blocks=together(launch, block, sm, begin * _EVENT_NS, stays[launch] * _EVENT_NS),
        runs=Runs(launches, issued_at[launches] * _EVENT_NS, stays[launches] * _EVENT_NS),
        waits=_waits(trace, issued_at, stays, launch, begin),
        transfers=Runs(launches[:0], launches[:0], launches[:0]),
        calls=Runs(launches[:0], launches[:0], launches[:0]),
        issue_ns=issued_at * _EVENT_NS,
        release_ns=np.where(released_at >= 0, released_at * _EVENT_NS, -1),
    )


def _blocks(trace: Trace) -> dict[str, Int64Array]:
    """Returns columns with a row per block: its launch, its number there, its SM before the next
    event, and its final SM."""
    smid = [placement.smid for placement in trace]
    launch, block = numbered_blocks(np.array([len(x) for x in smid], np.int64))
    final = [p.smid if p.final_smid is None else p.final_smid for p in trace]
    nothing = np.empty(0, np.int64)
    return {
        "launch": launch,
        "block": block,
        "smid": np.concatenate([nothing, *smid]),
        "final_smid": np.concatenate([nothing, *final]),
    }


def _find_later(
    trace: Trace, launch: Int64Array, sm: Int64Array, at_once: Flags, event: Int64Array
) -> None:
    """Sets in ``event`` which event blocks came behind that were not placed before the event after
    their launch.

    They come at releases, and a prediction knows what each SM holds after one. Of blocks of one
    launch on one SM those with the lowest numbers come first.
    """
    cell = launch * trace.device.sms + sm
    late = np.flatnonzero(~at_once & (sm >= 0))
    late = late[np.argsort(cell[late], kind="stable")]
    cells, first, key = np.unique(cell[late], return_index=True, return_inverse=True)
    rank = np.arange(len(late)) - first[key]
    held_at_once = _counted(cells, cell[at_once], np.ones(np.count_nonzero(at_once), np.int64))
    arrived = np.zeros_like(held_at_once)
    releases = [n for n, item in enumerate(trace.sequence) if isinstance(item, Release)]
    for release in releases[:_MAX_REPLAYED]:
        waits = event[late] < 0
        if not waits.any():
            break
        rows = trace.residents(release + 1).rows
        resident_cell = rows["launch"].astype(np.int64) * trace.device.sms + rows["sm"]
        arrived = np.maximum(arrived, _counted(cells, resident_cell, rows["blocks"]) - held_at_once)
        event[late[waits & (rank < arrived[key])]] = release


def _counted(cells: Int64Array, cell: Int64Array, blocks: Int64Array) -> Int64Array:
    """Returns how many blocks each cell has, int64 (cells,).

    Args:
        cells: keys of cells, each for a launch on an SM, ascending and distinct.
        cell, blocks: of each row its cell and how many blocks it stands for. Rows of other cells
            are ignored.
    """
    counts = np.zeros(len(cells), np.int64)
    at = np.searchsorted(cells, cell)
    known = at < len(cells)
    known[known] = cells[at[known]] == cell[known]
    np.add.at(counts, at[known], blocks[known])
    return counts


def _waits(
    trace: Trace, issued_at: Int64Array, stays: Int64Array, launch: Int64Array, begin: Int64Array
) -> Waits:
    """Returns one wait for each launch that a limiter kept from entering whole.

    It lasts from the launch to its last block, or to its release if some never entered.
    """
    waiting_launches = np.array(
        [k for k, placement in enumerate(trace) if placement.limiter], np.int64
    )
    until = issued_at + 1
    np.maximum.at(until, launch, begin)
    for launch_index in waiting_launches.tolist():
        final = trace[launch_index].final_smid
        if final is not None and (final < 0).any():
            until[launch_index] = stays[launch_index]  # some of its blocks never came
    words = np.array([trace[launch_index].limiter for launch_index in waiting_launches], np.str_)
    behind = np.full(len(waiting_launches), -1)
    return Waits(
        waiting_launches,
        behind,
        words,
        issued_at[waiting_launches] * _EVENT_NS,
        until[waiting_launches] * _EVENT_NS,
    )
