"""Functions of the host that run in the order of a stream."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

from tbsched.errors import shown
from tbsched.program.checks import flag, known_fields, seconds
from tbsched.program.events.launch import Launch
from tbsched.program.events.streams import (
    LEGACY_STREAM,
    Stream,
    checked_gpu,
    checked_host,
    checked_stream,
)
from tbsched.program.written import given_fields, source


@dataclass(frozen=True, slots=True, repr=False)
class HostFunction:
    """``cudaLaunchHostFunc``: an event of a :class:`Sequence`, or a node of a :class:`Graph`.

    A thread of the driver calls the function when all work before it in the stream has ended. Later
    work of the stream waits until it returns. The call itself does not wait.

    One thread of the driver calls the functions of a process, one after the other, whatever their
    streams. CUDA leaves that open; an H200 and an H100 do so. Where a device was not measured, the
    driver takes no time to begin one.

    Args:
        duration: seconds that the function takes.
        stream: a number or :data:`LEGACY_STREAM`. None: a stream of its own. A node has none.
        name: what it is called where causes are shown.
        non_blocking: the stream is a non-blocking one, as of :class:`Launch`.
        host: the host thread that calls ``cudaLaunchHostFunc``, 0 to 1023. A node has none.
        gpu: the index of the GPU whose stream it is. A node has that of its graph.

    Raises:
        TypeError, ValueError: names the field, the value and the limit.

    Example:
        >>> kernel = tb.Launch(8, 256, 32, stream=0, duration=1e-5)
        >>> program = tb.Sequence([kernel, tb.HostFunction(2e-5, stream=0), kernel])
        >>> tb.predict(program, "xavier").timeline["start_ns"][[0, 8]].tolist()
        [0, 30000]
    """

    duration: float = 0.0
    _: KW_ONLY
    stream: Stream | None = None
    name: str | None = None
    non_blocking: bool = False
    host: int = 0
    gpu: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "duration", seconds("HostFunction", "duration", self.duration))
        if self.stream is not None:
            object.__setattr__(self, "stream", checked_stream("HostFunction", self.stream))
        if self.name is not None and not isinstance(self.name, str):
            raise TypeError(f"HostFunction.name: text is needed, got {shown(self.name)}")
        object.__setattr__(self, "host", checked_host("HostFunction", self.host))
        object.__setattr__(self, "gpu", checked_gpu("HostFunction", self.gpu))
        if flag("HostFunction", "non_blocking", self.non_blocking) and (
            self.stream == LEGACY_STREAM
        ):
            raise ValueError(
                f"HostFunction.non_blocking: True, but HostFunction.stream is {LEGACY_STREAM!r}, "
                "which blocks"
            )

    @property
    def launches(self) -> tuple[Launch, ...]:
        """None."""
        return ()

    def __repr__(self) -> str:
        return source(self)


def host_function_to_data(item: HostFunction) -> dict[str, Any]:
    return given_fields(item)


def host_function_from_data(where: str, data: object) -> HostFunction:
    """Returns the inverse of :func:`host_function_to_data`."""
    known = ("duration", "stream", "name", "non_blocking", "host", "gpu")
    return HostFunction(**known_fields(where, data, known, ()))
