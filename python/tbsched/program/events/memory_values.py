"""Values in memory that streams write and wait for."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

from tbsched.errors import shown
from tbsched.program.checks import integer, known_fields
from tbsched.program.events.launch import Launch
from tbsched.program.events.streams import Stream, checked_gpu, checked_host, checked_stream
from tbsched.program.written import given_fields, source

MAX_VALUE = 2**63 - 1


@dataclass(frozen=True, slots=True, repr=False)
class _OfValue:
    name: str
    value: int = 1
    _: KW_ONLY
    stream: Stream
    host: int = 0
    gpu: int = 0

    def __post_init__(self) -> None:
        owner = type(self).__name__
        if not isinstance(self.name, str):
            raise TypeError(f"{owner}.name: text is needed, got {shown(self.name)}")
        object.__setattr__(self, "value", integer(owner, "value", self.value, 0, MAX_VALUE))
        object.__setattr__(self, "stream", checked_stream(owner, self.stream))
        object.__setattr__(self, "host", checked_host(owner, self.host))
        object.__setattr__(self, "gpu", checked_gpu(owner, self.gpu))

    @property
    def launches(self) -> tuple[Launch, ...]:
        """None."""
        return ()

    def __repr__(self) -> str:
        return source(self)


@dataclass(frozen=True, slots=True, repr=False)
class WriteValue(_OfValue):
    """``cuStreamWriteValue``: sets a value when all work before it in the stream has ended.

    Args:
        name: of the value; whatever has this name is one place in memory. It is 0 at first.
        value: what is written, 0 to 2**63 - 1.
        stream: a number or :data:`LEGACY_STREAM`.
        host: the host thread that calls, 0 to 1023.
        gpu: the index of the GPU whose stream it is. Values are the same for all GPUs.

    Raises:
        TypeError, ValueError: names the field, the value and the limit.

    Example:
        >>> tb.WriteValue("ready", stream=0)
        WriteValue(name='ready', stream=0)
    """


@dataclass(frozen=True, slots=True, repr=False)
class WaitValue(_OfValue):
    """``cuStreamWaitValue``: later work of the stream waits until a value is at least this one.

    Unlike a :class:`WaitEvent` it also waits for what is issued later. Until the wait is over it
    holds up its hardware queue, and so what other streams have behind it there. If nobody writes
    the value, the stream waits for ever: ``Trace.hang`` says so. Where a device was not
    measured, it takes no time to see a value.

    Args:
        name: of the value.
        value: what it must be at least (``CU_STREAM_WAIT_VALUE_GEQ``), 0 to 2**63 - 1.
        stream: the stream whose later work waits, a number or :data:`LEGACY_STREAM`.
        host: the host thread that calls, 0 to 1023.
        gpu: the index of the GPU whose stream it is. Values are the same for all GPUs.

    Raises:
        TypeError, ValueError: names the field, the value and the limit.

    Example:
        >>> first = tb.Launch(8, 256, 32, stream=0, duration=1e-4)
        >>> second = tb.Launch(8, 256, 32, stream=1, duration=1e-5)
        >>> waits, writes = tb.WaitValue("ready", stream=1), tb.WriteValue("ready", stream=0)
        >>> tb.predict(tb.Sequence([waits, second, first, writes]), "xavier")[0].limiter
        'value'
    """


def memory_value_to_data(item: WriteValue | WaitValue) -> dict[str, Any]:
    return given_fields(item)


def write_value_from_data(where: str, data: object) -> WriteValue:
    return WriteValue(**known_fields(where, data, _FIELDS, _NEEDED))


def wait_value_from_data(where: str, data: object) -> WaitValue:
    return WaitValue(**known_fields(where, data, _FIELDS, _NEEDED))


_NEEDED = ("name", "stream")
_FIELDS = ("name", "value", "stream", "host", "gpu")
