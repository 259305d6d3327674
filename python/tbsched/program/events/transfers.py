"""Copies and memsets; and transfers, all work of streams that no kernel of the user does."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, fields
from typing import Any, Literal, TypeAlias, get_args

from tbsched.errors import did_you_mean, shown
from tbsched.program.checks import flag, integer, known_fields, seconds
from tbsched.program.events.cuda_events import RecordEvent, WaitEvent
from tbsched.program.events.host_function import HostFunction
from tbsched.program.events.launch import Launch
from tbsched.program.events.streams import (
    LEGACY_STREAM,
    Stream,
    checked_gpu,
    checked_host,
    checked_stream,
)
from tbsched.program.written import given_fields

MAX_BYTES = 1 << 30
CopyKind: TypeAlias = Literal["h2d", "d2h", "d2d", "p2p"]
_COPY_KINDS = get_args(CopyKind)


@dataclass(frozen=True, slots=True)
class Copy:
    """``cudaMemcpyAsync``: an event of a :class:`Sequence`, or a node of a :class:`Graph`.

    Args:
        bytes: 1 to 2**30.
        kind: ``"h2d"`` from the host to the GPU, ``"d2h"`` back, ``"d2d"`` within the GPU's memory,
            ``"p2p"`` to the memory of another GPU, the ``peer`` (``cudaMemcpyPeerAsync``).
        duration: seconds that it takes. None: its bytes and the device decide. From pageable memory
            it is the time of the host's copy, within the call: the GPU moves what is left after
            that, at most 1 MB, as fast as the device does.
        stream: a number or :data:`LEGACY_STREAM`. None: a stream of its own. A node has none.
        pinned: whether memory of the host is pinned. A node has pinned memory.
        blocking: the call returns when the copy is over: ``cudaMemcpy`` from pinned memory, or to
            the host, in the legacy stream, and ``cudaStreamSynchronize`` after the copy in another
            one. Other calls of ``cudaMemcpy`` return sooner: :doc:`/explanation/copies` has them.
            A node does not block.
        non_blocking: the stream is a non-blocking one, as of :class:`Launch`.
        host: the host thread that calls, 0 to 1023. A node has none.
        gpu: the index of the GPU whose stream it is. A node has that of its graph.
        peer: of a ``"p2p"`` copy, the index of the GPU to whose memory it writes. A node has none.

    Raises:
        TypeError, ValueError: names the field, the value and the limit.

    Example:
        >>> kernel = tb.Launch(132, 256, 32, stream=0, duration=1e-5)
        >>> program = tb.Sequence([tb.Copy(1 << 20, "h2d", stream=0), kernel])
        >>> program.timed, program.transfers
        (True, (Copy(1048576, 'h2d', stream=0),))
        >>> tb.predict(program, "h200")[0].limiter
        'stream'
    """

    bytes: int
    kind: CopyKind
    duration: float | None = None
    _: KW_ONLY
    stream: Stream | None = None
    pinned: bool = True
    blocking: bool = False
    non_blocking: bool = False
    host: int = 0
    gpu: int = 0
    peer: int | None = None

    def __post_init__(self) -> None:
        _check(self)
        if not isinstance(self.kind, str):
            raise TypeError(f"Copy.kind: text is needed, got {shown(self.kind)}")
        if self.kind not in _COPY_KINDS:
            raise ValueError(
                f"Copy.kind: {shown(self.kind)} is unknown; there are {', '.join(_COPY_KINDS)}"
                f"{did_you_mean(self.kind, _COPY_KINDS)}"
            )
        flag("Copy", "blocking", self.blocking)
        if not flag("Copy", "pinned", self.pinned) and self.kind in ("d2d", "p2p"):
            raise ValueError(
                f"Copy.pinned: False, but a {self.kind!r} copy uses no memory of the host"
            )
        if (self.kind == "p2p") != (self.peer is not None):
            raise ValueError(
                f"Copy.peer: {self.peer}, but Copy.kind is {self.kind!r}; 'p2p', and nothing else, "
                "has a peer"
            )
        if self.peer is not None:
            object.__setattr__(self, "peer", checked_gpu("Copy", self.peer, "peer"))
        if self.peer == self.gpu:
            raise ValueError(
                f"Copy.peer: {self.peer} is Copy.gpu; a copy within a GPU's memory is 'd2d'"
            )

    @property
    def launches(self) -> tuple[Launch, ...]:
        """None."""
        return ()

    def __repr__(self) -> str:
        return _source(self)


@dataclass(frozen=True, slots=True)
class Memset:
    """``cudaMemsetAsync``: an event of a :class:`Sequence`, or a node of a :class:`Graph`.

    Args:
        bytes: 1 to 2**30.
        duration: seconds that it takes. None: its bytes and the device decide.
        stream: a number or :data:`LEGACY_STREAM`. None: a stream of its own. A node has none.
        non_blocking: the stream is a non-blocking one, as of :class:`Launch`.
        host: the host thread that calls, 0 to 1023. A node has none.
        gpu: the index of the GPU whose stream it is. A node has that of its graph.

    Raises:
        TypeError, ValueError: names the field, the value and the limit.

    Example:
        >>> kernel = tb.Launch(132, 256, 32, duration=1e-5)
        >>> tb.Graph([tb.Memset(4096), kernel], edges=[(0, 1)]).nodes[0]
        Memset(4096)
    """

    bytes: int
    duration: float | None = None
    _: KW_ONLY
    stream: Stream | None = None
    non_blocking: bool = False
    host: int = 0
    gpu: int = 0

    def __post_init__(self) -> None:
        _check(self)

    @property
    def launches(self) -> tuple[Launch, ...]:
        """None."""
        return ()

    def __repr__(self) -> str:
        return _source(self)


# A host function moves no bytes, but is numbered among them.
Transfer: TypeAlias = Copy | Memset | HostFunction
# So are nodes of graphs that record a CUDA event or wait for one.
Numbered: TypeAlias = Transfer | RecordEvent | WaitEvent
_KEYS: dict[type[Numbered], str] = {
    Copy: "copy", Memset: "memset", HostFunction: "host_function", RecordEvent: "record_event",
    WaitEvent: "wait_event",
}  # fmt: skip
_NEEDED = ("bytes", "kind")


def _check(transfer: Copy | Memset) -> None:
    """Checks the fields that copies and memsets have in common."""
    owner = type(transfer).__name__
    size = integer(owner, "bytes", transfer.bytes, 1, MAX_BYTES)
    object.__setattr__(transfer, "bytes", size)
    if transfer.duration is not None:
        duration = seconds(owner, "duration", transfer.duration)
        object.__setattr__(transfer, "duration", duration)
    object.__setattr__(transfer, "host", checked_host(owner, transfer.host))
    object.__setattr__(transfer, "gpu", checked_gpu(owner, transfer.gpu))
    if transfer.stream is not None:
        object.__setattr__(transfer, "stream", checked_stream(owner, transfer.stream))
    if flag(owner, "non_blocking", transfer.non_blocking) and transfer.stream == LEGACY_STREAM:
        raise ValueError(
            f"{owner}.non_blocking: True, but {owner}.stream is {LEGACY_STREAM!r}, which blocks"
        )


def _source(transfer: Copy | Memset) -> str:
    """Returns the Python expression that makes a copy or memset."""
    values = given_fields(transfer)
    parts = [repr(values.pop(name)) for name in _NEEDED if name in values]
    parts += [f"{name}={value!r}" for name, value in values.items()]
    return f"{type(transfer).__name__}({', '.join(parts)})"


def transfer_key(transfer: Numbered) -> str:
    """Its key in trace files."""
    return _KEYS[type(transfer)]


def transfer_to_data(transfer: Numbered) -> dict[str, Any]:
    """Its fields, those at their default left out."""
    return given_fields(transfer)


def copy_from_data(where: str, data: object) -> Copy:
    """Returns the inverse of :func:`transfer_to_data`."""
    return Copy(**_known(where, data, Copy))


def memset_from_data(where: str, data: object) -> Memset:
    """Returns the inverse of :func:`transfer_to_data`."""
    return Memset(**_known(where, data, Memset))


def _known(where: str, data: object, kind: type[Copy | Memset]) -> dict[str, Any]:
    names = tuple(field.name for field in fields(kind))
    return known_fields(where, data, names, tuple(name for name in _NEEDED if name in names))
