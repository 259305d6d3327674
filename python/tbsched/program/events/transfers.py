"""Copies and memsets: work that is not done by kernels of the user."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from tbsched.errors import did_you_mean, shown
from tbsched.program.checks import integer, known_fields, seconds

MAX_BYTES = 1 << 30
CopyKind: TypeAlias = Literal["h2d", "d2h", "d2d"]
_COPY_KINDS = get_args(CopyKind)


@dataclass(frozen=True, slots=True)
class Copy:
    """``cudaMemcpyAsync`` as a node of a :class:`Graph`.

    Memory of the host is pinned.

    Args:
        bytes: 1 to 2**30.
        kind: ``"h2d"`` from the host to the GPU, ``"d2h"`` back, ``"d2d"`` within the GPU's memory.
        duration: seconds that it takes. None: its bytes and the device decide.

    Raises:
        TypeError, ValueError: names the field, the value and the limit.

    Example:
        >>> kernel = tb.Launch(132, 256, 32, duration=1e-5)
        >>> graph = tb.Graph([tb.Copy(1 << 20, "h2d"), kernel], edges=[(0, 1)])
        >>> tb.Sequence([graph.launch()]).launches == (kernel,)
        True
    """

    bytes: int
    kind: CopyKind
    duration: float | None = None

    def __post_init__(self) -> None:
        _check(self)
        if not isinstance(self.kind, str):
            raise TypeError(f"Copy.kind: text is needed, got {shown(self.kind)}")
        if self.kind not in _COPY_KINDS:
            raise ValueError(
                f"Copy.kind: {shown(self.kind)} is unknown; there are {', '.join(_COPY_KINDS)}"
                f"{did_you_mean(self.kind, _COPY_KINDS)}"
            )

    def __repr__(self) -> str:
        return f"Copy({self.bytes}, {self.kind!r}{_duration_source(self.duration)})"


@dataclass(frozen=True, slots=True)
class Memset:
    """``cudaMemsetAsync`` as a node of a :class:`Graph`.

    Args:
        bytes: 1 to 2**30.
        duration: seconds that it takes. None: its bytes and the device decide.

    Raises:
        TypeError, ValueError: names the field, the value and the limit.

    Example:
        >>> kernel = tb.Launch(132, 256, 32, duration=1e-5)
        >>> tb.Graph([tb.Memset(4096), kernel], edges=[(0, 1)]).nodes[0]
        Memset(4096)
    """

    bytes: int
    duration: float | None = None

    def __post_init__(self) -> None:
        _check(self)

    def __repr__(self) -> str:
        return f"Memset({self.bytes}{_duration_source(self.duration)})"


Transfer: TypeAlias = Copy | Memset
TRANSFERS: dict[str, type[Transfer]] = {kind.__name__.lower(): kind for kind in (Copy, Memset)}


def _check(transfer: Transfer) -> None:
    owner = type(transfer).__name__
    given = integer(owner, "bytes", transfer.bytes, 1, MAX_BYTES)
    object.__setattr__(transfer, "bytes", given)
    if transfer.duration is not None:
        duration = seconds(owner, "duration", transfer.duration)
        object.__setattr__(transfer, "duration", duration)


def _duration_source(duration: float | None) -> str:
    return "" if duration is None else f", duration={duration!r}"


def transfer_key(transfer: Transfer) -> str:
    """Its key in trace files, one of TRANSFERS."""
    return type(transfer).__name__.lower()


def transfer_to_data(transfer: Transfer) -> dict[str, Any]:
    data: dict[str, Any] = {"bytes": transfer.bytes}
    if isinstance(transfer, Copy):
        data["kind"] = transfer.kind
    if transfer.duration is not None:
        data["duration"] = transfer.duration
    return {transfer_key(transfer): data}


def transfer_from_data(where: str, given: Mapping[str, object]) -> Transfer:
    """Of an object with one of the keys of TRANSFERS."""
    ((key, fields),) = given.items()
    needed = ("bytes", "kind") if TRANSFERS[key] is Copy else ("bytes",)
    values = known_fields(f"{where}.{key}", fields, (*needed, "duration"), needed)
    return TRANSFERS[key](**values)
