"""CUDA events: work that one stream waits for and another one records."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tbsched.program.checks import flag, known_fields
from tbsched.program.events.launch import Launch
from tbsched.program.events.streams import (
    Stream,
    checked_cuda_event,
    checked_gpu,
    checked_host,
    checked_stream,
)
from tbsched.program.written import given_fields, source


@dataclass(frozen=True, slots=True, repr=False)
class _OfStream:
    event: int
    stream: Stream | None = None
    host: int = 0
    gpu: int = 0

    def __post_init__(self) -> None:
        owner = type(self).__name__
        object.__setattr__(self, "event", checked_cuda_event(owner, "event", self.event))
        if self.stream is not None:
            object.__setattr__(self, "stream", checked_stream(owner, self.stream))
        object.__setattr__(self, "host", checked_host(owner, self.host))
        object.__setattr__(self, "gpu", checked_gpu(owner, self.gpu))

    def __repr__(self) -> str:
        return source(self)

    @property
    def launches(self) -> tuple[Launch, ...]:
        """None."""
        return ()


@dataclass(frozen=True, slots=True, repr=False)
class RecordEvent(_OfStream):
    """``cudaEventRecord``: the event happens when all work before it in the stream has ended.

    It is an event of a :class:`Sequence`, or a node of a :class:`Graph`
    (``cudaGraphAddEventRecordNode``). Each launch of the graph records the event anew; it happens
    when what the node waits for has ended.

    Attributes:
        event: the number of the CUDA event, from 0.
        stream: the stream that records it, a number or :data:`LEGACY_STREAM`. A node has none.
        host: the host thread that calls, 0 to 1023. A node has none.
        gpu: the index of the GPU whose stream it is. Events are the same for all GPUs. A node has
            that of its graph.
        timing: whether the event was made without ``cudaEventDisableTiming``, as
            ``cudaEventCreate`` makes it. The stream then writes a time stamp: the record takes a
            place in its hardware queue and holds up what is behind it there, of whatever stream; on
            an H200 it delays later work of the stream by 1.3 us, and a programmatic launch behind
            it waits as any launch. An event has timing in all of its records, or in none. A node of
            a graph has none.

    Raises:
        TypeError, ValueError: not a number from 0 on; names the field, the value and the limit.

    Example:
        >>> tb.RecordEvent(0, stream=1)
        RecordEvent(event=0, stream=1)
        >>> kernel = tb.Launch(8, 64, 32, stream=0, duration=1e-5)
        >>> timed = tb.Sequence([kernel, tb.RecordEvent(0, stream=0, timing=True), kernel])
        >>> quick = tb.Sequence([kernel, tb.RecordEvent(0, stream=0), kernel])
        >>> round((tb.predict(timed, "h200").makespan - tb.predict(quick, "h200").makespan) * 1e9)
        1300
    """

    timing: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        _OfStream.__post_init__(self)
        object.__setattr__(self, "timing", flag("RecordEvent", "timing", self.timing))


@dataclass(frozen=True, slots=True, repr=False)
class WaitEvent(_OfStream):
    """``cudaStreamWaitEvent``: later work of the stream waits for the event.

    It waits for the most recent record before it in the sequence: a :class:`RecordEvent`, or a
    :class:`Launch` with that ``completion_event``. What is recorded later does not count. Without a
    record there is nothing to wait for, as in CUDA.

    It is also a node of a :class:`Graph` (``cudaGraphAddEventWaitNode``), for which what follows it
    in the graph waits. If a node that it waits for records the event, it waits for that record;
    else for the most recent one before the launch of the graph.

    Attributes:
        event: the number of the CUDA event, from 0.
        stream: the stream whose later work waits, a number or :data:`LEGACY_STREAM`. A node has
            none.
        host: the host thread that calls, 0 to 1023. A node has none.
        gpu: the index of the GPU whose stream it is. Events are the same for all GPUs. A node has
            that of its graph.

    Raises:
        TypeError, ValueError: not a number from 0 on; names the field, the value and the limit.

    Example:
        >>> first = tb.Launch(132, 1024, 32, stream=0, duration=1e-4)
        >>> second = tb.Launch(1, 32, 16, stream=1, duration=1e-5)
        >>> program = [first, tb.RecordEvent(0, stream=0), tb.WaitEvent(0, stream=1), second]
        >>> tb.predict(tb.Sequence(program), "h200")[1].limiter
        'event'
    """


def cuda_event_to_data(item: RecordEvent | WaitEvent) -> dict[str, Any]:
    return given_fields(item)


def record_event_from_data(where: str, data: object) -> RecordEvent:
    return RecordEvent(**known_fields(where, data, (*_FIELDS, "timing"), _NEEDED))


def wait_event_from_data(where: str, data: object) -> WaitEvent:
    return WaitEvent(**known_fields(where, data, _FIELDS, _NEEDED))


_NEEDED = ("event",)
_FIELDS = (*_NEEDED, "stream", "host", "gpu")
