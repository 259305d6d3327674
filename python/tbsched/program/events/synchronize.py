"""The host waits for the GPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tbsched.program.checks import known_fields
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
class Synchronize:
    """``cudaDeviceSynchronize``, or the same of one stream or one event: a host thread waits.

    Without a stream and an event it waits for all work that has been issued to the GPU, by whatever
    thread.

    Attributes:
        stream: waits for the work in this stream alone, a number or :data:`LEGACY_STREAM`
            (``cudaStreamSynchronize``).
        event: waits for the most recent record of this CUDA event alone
            (``cudaEventSynchronize``). Without a record there is nothing to wait for.
        host: the host thread that waits, 0 to 1023. Others go on.
        gpu: the index of the GPU whose work it waits for. An event may be of any GPU.

    Raises:
        TypeError, ValueError: a number out of its range, or both a stream and an event; names the
            field, the value and the limit.

    Example:
        >>> kernel = tb.Launch(132, 1024, 32, duration=1e-4)
        >>> program = tb.Sequence([kernel, tb.Synchronize(), kernel])
        >>> tb.predict(program, "h200", host=0).concurrent(0, 1)
        False
    """

    stream: Stream | None = None
    event: int | None = None
    host: int = 0
    gpu: int = 0

    def __post_init__(self) -> None:
        if self.stream is not None:
            object.__setattr__(self, "stream", checked_stream("Synchronize", self.stream))
        if self.event is not None:
            event = checked_cuda_event("Synchronize", "event", self.event)
            object.__setattr__(self, "event", event)
        if self.stream is not None and self.event is not None:
            raise ValueError(
                f"Synchronize.event: {self.event}, but Synchronize.stream is {self.stream!r}; "
                "a host waits for one of them"
            )
        object.__setattr__(self, "host", checked_host("Synchronize", self.host))
        object.__setattr__(self, "gpu", checked_gpu("Synchronize", self.gpu))

    @property
    def launches(self) -> tuple[Launch, ...]:
        """None."""
        return ()

    def __repr__(self) -> str:
        return source(self)


def synchronize_to_data(item: Synchronize) -> dict[str, Any]:
    return given_fields(item)


def synchronize_from_data(where: str, data: object) -> Synchronize:
    return Synchronize(**known_fields(where, data, ("stream", "event", "host", "gpu"), ()))
