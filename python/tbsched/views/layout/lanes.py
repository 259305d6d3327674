"""When blocks ran on each SM, and launches in each stream: spans in rows, and lanes of a row."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from tbsched.counting import counted
from tbsched.program.arrays import Float64Array, HoldsArrays, Int64Array, StructuredArray
from tbsched.program.events.streams import LEGACY_STREAM, Stream
from tbsched.program.program import Program
from tbsched.program.sequence import Sequence
from tbsched.traces.trace import Trace
from tbsched.views.layout.drawn import drawn
from tbsched.views.layout.graphs import streams_used
from tbsched.views.words import stream_words

MOST_SPANS = 12_000
MOST_ROWS = 144
_COLUMNS = 240  # of bins, in a row, if there are few rows
_BINS = 10_000  # of many blocks; of few there are twice as many
_FEW = 200_000
_PART = 2**16


@dataclass(frozen=True, eq=False, slots=True)
class Spans(HoldsArrays):
    """What ran when, in rows; spans of one row that overlap are in different lanes.

    Attributes:
        titles: of the rows, such as ``SM 0``, ``SM 0-7`` or ``stream 2``.
        lanes: int64 (rows,), how many lanes each row has.
        row, lane: int64 (spans,).
        launch: int64 (spans,), the number of the launch; of a copy or memset its number among those
            of the sequence, behind all launches.
        begin_ns, end_ns: int64 (spans,), on the trace's own clock.
        zero_ns: where time begins, at the start of the first block, copy or memset.
        length_ns: of the whole.
        note: how spans were put together, in words to be shown; empty if each is by itself.
    """

    titles: tuple[str, ...]
    lanes: Int64Array
    row: Int64Array
    lane: Int64Array
    launch: Int64Array
    begin_ns: Int64Array
    end_ns: Int64Array
    zero_ns: int
    length_ns: int
    note: str = ""

    def drawn_until_ns(self, min_ns: float) -> Float64Array:
        """Returns the ends of spans as they are drawn, float64 ns (spans,): each at least
        ``min_ns`` long, so that none is lost.

        At least half of the time to the next span of the lane stays free, so that many short spans
        do not look like one.
        """
        order = np.lexsort((self.begin_ns, self.lane, self.row))
        follows = (np.diff(self.row[order]) == 0) & (np.diff(self.lane[order]) == 0)
        middle = np.full(len(order), np.inf)
        halfway = (self.end_ns[order][:-1] + self.begin_ns[order][1:]) / 2
        middle[order[:-1][follows]] = halfway[follows]
        drawn = np.maximum(self.end_ns, np.minimum(self.begin_ns + min_ns, middle))
        return np.asarray(drawn, np.float64)


def spans_by_sm(
    trace: Trace,
    most_spans: int = MOST_SPANS,
    most_rows: int = MOST_ROWS,
    *,
    ran: StructuredArray | None = None,
    columns: int | None = None,
) -> Spans:
    """Returns when each block ran, in a row per SM; on the time axis of :func:`spans_by_stream`.

    Of more blocks than ``most_spans``, or more SMs than ``most_rows``, SMs share rows and time is
    cut into bins. A bin shows the launch that took most of it: the one whose blocks together ran
    longest in it. ``note`` says so.

    Args:
        trace: of a timed sequence, or observed.
        most_spans: blocks that are shown one by one.
        most_rows: rows.
        ran: what :func:`blocks_that_ran` returned, if it was asked before.
        columns: bins of a row; None has so few that a page stays small.

    Raises:
        ValueError: nobody recorded when blocks ran.
    """
    trace = drawn(trace)
    rows = blocks_that_ran(trace) if ran is None else ran
    sms = [device.sms for device in trace.devices]
    sms_per_row = -(-sum(sms) // most_rows)
    row = rows["sm"].astype(np.int64) // sms_per_row
    titles = tuple(
        title
        for gpu in range(len(sms))
        for title in _titles_of_sms(gpu, sms[gpu], sms_per_row, sms)
    )
    if trace.others:
        of_gpu = np.cumsum([0, *(-(-sms_of_gpu // sms_per_row) for sms_of_gpu in sms)])
        row += of_gpu[np.array(trace.sequence.launch_gpus, np.int64)[rows["launch"]]]
    launch, begin, end = (rows[key].astype(np.int64) for key in ("launch", "start_ns", "end_ns"))
    sharing = "" if sms_per_row == 1 else f" and {counted(sum(sms), 'SM')} in {len(titles)} rows"
    content = f"{counted(len(rows), 'block')}{sharing}"
    max_spans = most_spans if sms_per_row == 1 else -1
    moved = np.zeros((0, 2), np.int64) if trace.transfer_ns is None else trace.transfer_ns
    extent = _extent(*(np.append(a, b) for a, b in zip((begin, end), moved.T, strict=True)))
    return spans_of(titles, row, launch, begin, end, content, max_spans, columns, extent)


def _titles_of_sms(gpu: int, sms: int, sms_per_row: int, all_sms: list[int]) -> list[str]:
    """Returns the titles of the rows of a GPU's SMs."""
    gpu_words = f"GPU {gpu}, " if len(all_sms) > 1 else ""
    return [
        f"{gpu_words}SM {first}"
        if sms_per_row == 1
        else f"{gpu_words}SM {first}-{min(first + sms_per_row, sms) - 1}"
        for first in range(0, sms, sms_per_row)
    ]


def spans_by_stream(
    trace: Trace,
    most_spans: int = MOST_SPANS,
    most_rows: int = MOST_ROWS,
    *,
    ran: StructuredArray | None = None,
    columns: int | None = None,
) -> Spans:
    """Returns when each launch, copy and memset ran, in a row per stream.

    A launch runs from the start of its first block to the end of its last one.

    Nodes of a graph are in the row of the stream that it is launched in. Launches without a stream
    are in one row together. So are the streams beyond ``most_rows``. Of
    more launches than ``most_spans`` time is cut into bins, as in :func:`spans_by_sm`.

    Args:
        trace: of a timed sequence, or observed.
        most_spans: launches that are shown one by one.
        most_rows: rows.
        ran: what :func:`blocks_that_ran` returned, if it was asked before.
        columns: bins of a row; None has so few that a page stays small.

    Raises:
        ValueError: nobody recorded when blocks ran.
    """
    trace = drawn(trace)
    launch, begin, end = launch_spans(blocks_that_ran(trace) if ran is None else ran)
    if trace.transfer_ns is not None:
        launch = np.append(launch, len(trace) + np.arange(len(trace.transfer_ns)))
        begin, end = (
            np.append(a, b) for a, b in zip((begin, end), trace.transfer_ns.T, strict=True)
        )
    titles, row_of = streams_of(trace.sequence, most_rows)
    content = counted(len(launch), "launch", "launches")
    times = (begin, end)
    return spans_of(titles, row_of[launch], launch, *times, content, most_spans, columns)


def spans_measured(program: Program) -> Spans:
    """Returns when a profile says that launches, copies and memsets ran, in a row per stream.

    Rows and numbers are those of :func:`spans_by_stream` of a prediction of the program.
    """
    titles, row = streams_of(program.sequence, MOST_ROWS, legacy_words(program))
    begin, end = (
        np.append(program.measured[key], program.transfers[key]) for key in ("start_ns", "end_ns")
    )
    content = counted(len(row), "launch", "launches")
    return spans_of(titles, row, np.arange(len(row)), begin, end, content)


def spans_of(
    titles: tuple[str, ...],
    row: Int64Array,
    launch: Int64Array,
    begin: Int64Array,
    end: Int64Array,
    content: str,
    most_spans: int = MOST_SPANS,
    columns: int | None = None,
    extent: tuple[int, int] | None = None,
) -> Spans:
    """Returns spans one by one, those of one row that overlap in different lanes; many spans as
    bins.

    Args:
        titles: of the rows.
        row, launch, begin, end: as in :class:`Spans`.
        content: there is too much of to be shown one by one, in words.
        most_spans: that are shown one by one.
        columns: bins of a row; None has so few that a page stays small.
        extent: where time begins, and how long it is; None: from the first span to the last.
    """
    time_axis = extent or _extent(begin, end)
    if len(row) > max(most_spans, 0):
        return _in_bins(titles, row, launch, begin, end, content, columns, time_axis)
    lane, lane_counts = lanes_of(row, begin, end)
    lanes = np.ones(len(titles), np.int64)
    lanes[: len(lane_counts)] = np.maximum(lane_counts, 1)
    return Spans(titles, lanes, row, lane, launch, begin, end, *time_axis)


def blocks_that_ran(trace: Trace) -> StructuredArray:
    """Returns the rows of ``trace.timeline`` of blocks that ran; endless ones end with the trace.

    Raises:
        ValueError: nobody recorded when blocks ran.
    """
    rows = drawn(trace).timeline
    has_run = rows["sm"] >= 0
    return rows if has_run.all() else rows[has_run]


def launch_spans(ran: StructuredArray) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Returns the launches with blocks that ran: number, first start, last end.

    Args:
        ran: by launch, as :func:`blocks_that_ran` returns it.
    """
    launch = ran["launch"].astype(np.int64)
    first = np.flatnonzero(np.diff(launch, prepend=-1))
    if not len(first):
        return launch, launch, launch
    begin = np.minimum.reduceat(ran["start_ns"], first)
    end = np.maximum.reduceat(ran["end_ns"], first)
    return launch[first], begin, end


def lanes_of(
    row: Int64Array, begin_ns: Int64Array, end_ns: Int64Array
) -> tuple[Int64Array, Int64Array]:
    """Returns a lane for each span; no spans of a lane overlap, and there are few lanes.

    A span takes the lane that has been free for longest. Touching is not overlapping. What takes
    no time is taken to last a nanosecond.

    Args:
        row: int64 (spans,), at least 0; spans of different rows do not meet.
        begin_ns, end_ns: int64 (spans,).

    Returns:
        The lane of each span within its row, int64 (spans,), and how many lanes each row has,
        int64 (last row + 1,).
    """
    count = len(row)
    sizes = np.bincount(row)
    begin, end = _keys(row, begin_ns, np.maximum(end_ns, begin_ns + 1))
    # From here on a span is a number in this order: by row, then by begin.
    by_begin = np.argsort(begin, kind="stable")
    begin, end = begin[by_begin], end[by_begin]
    by_end = np.argsort(end, kind="stable")
    index = np.arange(count)
    first = np.repeat(np.cumsum(sizes) - sizes, sizes)
    running = index - np.searchsorted(end[by_end], begin, "right") + 1
    lanes = np.maximum.accumulate(running + first) - first
    before = np.where(index == first, 0, np.roll(lanes, 1))
    # One that finds no free lane opens a new one. Of the others, the nth takes over the lane of
    # the nth span that ended: more have ended by then than lanes were taken over.
    after = by_end[np.minimum(index - lanes, count - 1)] if count else index
    source = np.where(lanes > before, index, after)
    while (source != (further := source[source])).any():
        source = further
    lane = np.empty(count, np.int64)
    lane[by_begin] = lanes[source] - 1
    lane_counts = np.zeros(len(sizes), np.int64)
    lane_counts[sizes > 0] = lanes[np.cumsum(sizes)[sizes > 0] - 1]
    return lane, lane_counts


def _keys(row: Int64Array, begin: Int64Array, end: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Returns begins and ends as numbers in the same order, where all those of a later row are
    greater than all of an earlier one."""
    if not len(row):
        return begin, end
    zero = int(begin.min())
    length = int(end.max()) - zero + 1
    if length > 2**62 // (int(row.max()) + 1):
        _, ranks = np.unique(np.concatenate([begin, end]), return_inverse=True)
        begin, end = np.split(ranks, 2)
        zero, length = 0, len(ranks)
    # An end may touch a begin of its own row, and must not reach the next row's.
    return row * (length + 1) + (begin - zero), row * (length + 1) + (end - zero)


def _in_bins(
    titles: tuple[str, ...],
    row: Int64Array,
    launch: Int64Array,
    begin: Int64Array,
    end: Int64Array,
    content: str,
    columns: int | None,
    extent: tuple[int, int],
) -> Spans:
    """Returns spans of bins: one for each bin, or for several side by side that show the same
    launch."""
    zero_ns, length_ns = extent
    bins = _BINS if len(row) > _FEW else 2 * _BINS
    columns = columns or min(_COLUMNS, max(1, bins // len(titles)))
    by_row = np.argsort(row.astype(np.min_scalar_type(len(titles))), kind="stable")
    parts = []
    # A part at a time: what is large is slow, as memory is.
    for part in _parts(np.bincount(row, minlength=len(titles))):
        of_part = by_row[part]
        times = (begin[of_part] - zero_ns, end[of_part] - zero_ns)
        parts.append(_longest_in(row[of_part], launch[of_part], *times, columns, length_ns))
    cells, shown = (np.concatenate(columns_of_part) for columns_of_part in zip(*parts, strict=True))
    column = cells % columns
    joined = (np.diff(cells, prepend=-2) == 1) & (np.diff(shown, prepend=-1) == 0) & (column > 0)
    first = np.flatnonzero(~joined)
    last = np.append(first[1:], len(cells)) - 1
    edges = zero_ns + np.round(np.arange(columns + 1) * (length_ns / columns)).astype(np.int64)
    cell_count = columns * len(titles)
    return Spans(
        titles,
        np.ones(len(titles), np.int64),
        cells[first] // columns,
        np.zeros(len(first), np.int64),
        shown[first],
        edges[column[first]],
        edges[column[last] + 1],
        zero_ns,
        length_ns,
        f"{content} in {cell_count:,} bins: a bin shows the launch that took most of it",
    )


def _parts(sizes: Int64Array) -> list[slice]:
    """Returns where parts of whole rows begin and end, of about :data:`_PART` spans each."""
    ends = np.cumsum(sizes)
    bounds = [0]
    for end in ends.tolist():
        if end - bounds[-1] >= _PART or end == ends[-1]:
            bounds.append(end)
    return [slice(*pair) for pair in itertools.pairwise(bounds)]


def _longest_in(
    row: Int64Array,
    launch: Int64Array,
    begin: Int64Array,
    end: Int64Array,
    columns: int,
    length_ns: int,
) -> tuple[Int64Array, Int64Array]:
    """Returns the bins in which anything ran, ascending, and for each the launch that ran longest
    in it, int64 (bins,) each."""
    scale = columns / length_ns
    # What takes no time still is there. Short numbers, as there may be millions.
    left, right = begin * scale, np.maximum(end, begin + 1) * scale
    first = np.minimum(left.astype(np.int32), columns - 1)
    touched = np.clip(np.ceil(right).astype(np.int32), first + 1, columns) - first
    left, right = left.astype(np.float32), right.astype(np.float32)
    launches = int(launch.max(initial=0)) + 1
    keys = (int(row.max(initial=0)) + 1) * columns * launches
    span = np.repeat(np.arange(len(row), dtype=np.int32), touched)
    column = np.arange(len(span), dtype=np.int32)
    column -= np.repeat((np.cumsum(touched) - touched - first).astype(np.int32), touched)
    ran = np.minimum(right[span], column + np.float32(1)) - np.maximum(left[span], column)
    key = (row * (columns * launches) + launch).astype(np.uint32 if keys < 2**32 else np.uint64)
    key = key[span] + (column * np.int64(launches)).astype(key.dtype)
    order = np.argsort(key)
    key = key[order]
    starts = np.flatnonzero(np.append(True, key[1:] != key[:-1]))[: len(key)]
    total = np.add.reduceat(ran[order], starts)
    cell, shown = (
        part.astype(np.int64) for part in np.divmod(key[starts], key.dtype.type(launches))
    )
    heads = np.flatnonzero(np.diff(cell, prepend=-1))
    longest = np.repeat(np.maximum.reduceat(total, heads), np.diff(np.append(heads, len(cell))))
    best = np.flatnonzero(total == longest)
    best = best[np.diff(cell[best], prepend=-1) > 0]
    return cell[best], shown[best]


def _extent(begin: Int64Array, end: Int64Array) -> tuple[int, int]:
    """Returns the first time and the length of the time axis, at least 1."""
    if not len(begin):
        return 0, 1
    zero = int(begin.min())
    return zero, max(int(end.max()) - zero, 1)


def legacy_numbers(program: Program) -> list[int]:
    """Returns the profile's numbers of the legacy stream, such as 7 for PyTorch's."""
    used = streams_used(program.sequence)[: len(program.measured)]
    is_legacy = np.array([stream == LEGACY_STREAM for _, stream in used], np.bool_)
    streams = np.unique(program.measured["stream"][is_legacy])
    return [stream_number for stream_number in streams.tolist() if stream_number >= 0]


def legacy_words(program: Program) -> str:
    """Returns ``legacy stream 7``, with the number that the profile has for it."""
    streams = legacy_numbers(program)
    if not streams:
        return stream_words(LEGACY_STREAM)
    return f"{LEGACY_STREAM} stream{'s' * (len(streams) > 1)} {', '.join(map(str, streams))}"


def streams_of(
    sequence: Sequence, most_rows: int, legacy: str = stream_words(LEGACY_STREAM)
) -> tuple[tuple[str, ...], Int64Array]:
    """Returns the titles of rows, and the row of each launch, and then of each copy and memset.

    Args:
        sequence: whose streams they are.
        most_rows: the rest share the last one.
        legacy: what the legacy stream is called.
    """
    used = streams_used(sequence)
    has_several_gpus = sequence.gpus > 1
    named_streams = sorted(
        {(gpu, stream) for gpu, stream in used if stream is not None},
        key=lambda gpu_stream: (
            gpu_stream[0],
            -1 if gpu_stream[1] == LEGACY_STREAM else gpu_stream[1],
        ),
    )
    own_streams = sorted(
        {gpu_stream for gpu_stream in used if gpu_stream[1] is None},
        key=lambda gpu_stream: gpu_stream[0],
    )
    fits = (
        named_streams
        if len(named_streams) + len(own_streams) <= most_rows
        else named_streams[: most_rows - len(own_streams) - 1]
    )

    def title(gpu: int, words: str) -> str:
        return f"GPU {gpu}, {words}" if has_several_gpus else words

    titles = [
        title(gpu, legacy if stream == LEGACY_STREAM else stream_words(stream))
        for gpu, stream in fits
    ]
    row_of: dict[tuple[int, Stream | None], int] = {
        gpu_stream: row for row, gpu_stream in enumerate(fits)
    }
    if len(fits) < len(named_streams):
        row_of |= dict.fromkeys(named_streams[len(fits) :], len(titles))
        titles.append(f"{len(named_streams) - len(fits):,} streams more")
    for gpu_stream in own_streams:
        row_of[gpu_stream] = len(titles)
        titles.append(title(gpu_stream[0], "own streams"))
    return tuple(titles), np.array([row_of[gpu_stream] for gpu_stream in used], np.int64)
