"""Calls of the host that give the GPU no work, but take time or wait."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, TypeAlias, get_args

from tbsched.errors import did_you_mean, shown
from tbsched.program.checks import known_fields, seconds
from tbsched.program.events.launch import Launch
from tbsched.program.events.streams import Stream, checked_gpu, checked_host, checked_stream
from tbsched.program.written import given_fields, source

Waits: TypeAlias = Literal["device", "stream"]
_WAITS = get_args(Waits)


@dataclass(frozen=True, slots=True, repr=False)
class HostCall:
    """A call that takes time of its host thread: ``cudaMalloc``, ``cudaFree``, and the like.

    The call first waits as ``waits`` says, then it takes its duration. The thread's next call is
    made when it has returned. Other threads go on, unless the call ``holds`` the driver.

    Args:
        name: the function, such as ``cudaFree``. It says nothing about what the call does: that
            say ``duration`` and ``waits``.
        duration: seconds that the call takes, besides what it waits.
        waits: ``"device"``: for all work that has been issued, by whatever thread, as ``cudaFree``
            does. ``"stream"``: for the work of a stream. None: for nothing.
        stream: the one that it waits for, a number or :data:`LEGACY_STREAM`.
        holds: launch, copy and memset calls of other threads wait while it takes its duration, as
            for ``cudaMalloc``. ``"throughout"``: while it waits, too, as for ``cuModuleLoadData``
            and ``cudaHostUnregister``. :func:`tbsched.observe` refuses both.
        host: the host thread that calls, 0 to 1023.
        gpu: the index of the GPU whose work it waits for.

    Raises:
        TypeError, ValueError: an empty name, a duration or number out of its range, another
            ``waits``, or a stream that does not go with it; names the field, the value and the
            limit.

    Example:
        >>> kernel = tb.Launch(132, 1024, 32, duration=1e-4)
        >>> program = tb.Sequence([kernel, tb.HostCall("cudaFree", 1e-4, waits="device"), kernel])
        >>> tb.predict(program, "xavier").timeline["start_ns"][[0, 132]].tolist()
        [0, 1000000]
    """

    name: str
    duration: float = 0.0
    _: KW_ONLY
    waits: Waits | None = None
    stream: Stream | None = None
    holds: bool | Literal["throughout"] = False
    host: int = 0
    gpu: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise TypeError(f"HostCall.name: text is needed, got {shown(self.name)}")
        if not self.name:
            raise ValueError("HostCall.name: '' is empty; the name of the function is needed")
        object.__setattr__(self, "duration", seconds("HostCall", "duration", self.duration))
        if self.waits is not None and not isinstance(self.waits, str):
            raise TypeError(f"HostCall.waits: text is needed, got {shown(self.waits)}")
        if self.waits is not None and self.waits not in _WAITS:
            raise ValueError(
                f"HostCall.waits: {shown(self.waits)} is unknown; there are {', '.join(_WAITS)}"
                f"{did_you_mean(self.waits, _WAITS)}"
            )
        if (self.stream is not None) != (self.waits == "stream"):
            raise ValueError(
                f"HostCall.stream: {self.stream!r}, but HostCall.waits is {self.waits!r}; "
                "waits='stream', and nothing else, has a stream"
            )
        if self.stream is not None:
            object.__setattr__(self, "stream", checked_stream("HostCall", self.stream))
        if not isinstance(self.holds, bool) and not _is_throughout(self.holds):
            raise TypeError(
                f"HostCall.holds: True, False or 'throughout' is needed, got {shown(self.holds)}"
            )
        object.__setattr__(self, "host", checked_host("HostCall", self.host))
        object.__setattr__(self, "gpu", checked_gpu("HostCall", self.gpu))

    @property
    def launches(self) -> tuple[Launch, ...]:
        """None."""
        return ()

    def __repr__(self) -> str:
        return source(self)


def _is_throughout(holds: object) -> bool:
    return isinstance(holds, str) and holds == "throughout"


def host_call_to_data(item: HostCall) -> dict[str, Any]:
    return given_fields(item)


def host_call_from_data(where: str, data: object) -> HostCall:
    """Returns the inverse of :func:`host_call_to_data`."""
    known = ("name", "duration", "waits", "stream", "holds", "host", "gpu")
    return HostCall(**known_fields(where, data, known, ("name",)))
