"""Which streams wait for the default stream, where a profile does not say."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

from tbsched.importers.assembly.waits import STARTS_NS, WAKES_NS
from tbsched.importers.records import EventCall, Kernel, Recording, Transfer

_OVERLAP_NS = 1000  # so long work must have run at once for it to count
Work = Kernel | Transfer


def streams_that_wait(recording: Recording) -> dict[int, bool]:
    """Returns whether each stream waits for the default one, where its times show it.

    Work that ran at once with work of the default stream shows that its stream is non-blocking. In
    a program without events a stream waits if its work started late, and just after the end of
    work of the default stream, or the other way round.
    """
    by_stream: dict[int, list[Work]] = {}
    for record in recording.records:
        if isinstance(record, Kernel | Transfer):
            by_stream.setdefault(record.stream, []).append(record)
    of_default = [x for s in recording.legacy_streams for x in by_stream.get(s, ())]
    of_default.sort(key=lambda work: work.start_ns)
    other_streams = by_stream.keys() - recording.legacy_streams
    has_events = any(isinstance(item, EventCall) and item.waits for item in recording.records)
    waits: dict[int, bool] = {}
    for stream in other_streams if of_default else ():
        stream_work = sorted(by_stream[stream], key=lambda work: work.start_ns)
        if _have_overlapped(stream_work, of_default):
            waits[stream] = False
        elif not has_events and (
            _waited(stream_work, of_default) or _waited(of_default, stream_work)
        ):
            waits[stream] = True
    return waits


def _have_overlapped(stream_work: Iterable[Work], serial_work: Sequence[Work]) -> bool:
    """Returns whether some work of a stream overlapped with work that runs one after the other."""
    starts = [work.start_ns for work in serial_work]
    for work in stream_work:
        last = bisect_right(starts, work.end_ns - _OVERLAP_NS) - 1
        if last >= 0 and serial_work[last].end_ns - _OVERLAP_NS > work.start_ns:
            return True
    return False


def _waited(delayed_work: Iterable[Work], earlier_work: Iterable[Work]) -> bool:
    """Returns whether some work started late after its call, and just after other work ended."""
    ends = sorted(work.end_ns for work in earlier_work)
    for work in delayed_work:
        if work.return_ns is not None and work.start_ns - work.return_ns > STARTS_NS:
            position = bisect_left(ends, work.start_ns - WAKES_NS)
            if position < len(ends) and ends[position] <= work.start_ns:
                return True
    return False
