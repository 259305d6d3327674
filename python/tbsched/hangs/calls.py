"""Calls that a host thread is in, and what they wait for."""

from __future__ import annotations

import re
from dataclasses import dataclass

LOADS, LAUNCHES, ALLOCATES, WAITS = "loads", "launches", "allocates", "waits"
_KINDS = (
    (LOADS, r"cu(ModuleLoad|ModuleGet|LibraryLoad|LibraryGet|KernelGet|KernelSet|FuncGet|FuncSet"
            r"|FuncLoad|ModuleEnumerate|LinkComplete"
            r"|Graph(Instantiate|Upload|Add|KernelNodeSet|Exec\w*(Set|Update)))"),
    (LAUNCHES, r"cu(Launch(?!HostFunc)|GraphLaunch)"),
    (ALLOCATES, r"cu(MemFree(?!Async)|MemAlloc(?!Async|FromPool)|MemHost|ModuleUnload"
                r"|LibraryUnload|StreamDestroy|EventDestroy|CtxDestroy|MemPoolTrim|ArrayDestroy)"),
    (WAITS, r"cu(\w+Synchronize|Memcpy(?!\w*Async)|Memset(?!\w*Async))"),
)  # fmt: skip
UNNAMED = "a call of CUDA without a name"  # the debugger does not know the function
_WORDS = {
    LOADS: "loads code, which waits for the work that is on the GPU",
    LAUNCHES: "launches",
    ALLOCATES: "waits for all work on the GPU, without being asked to",
    WAITS: "waits for work on the GPU",
}


@dataclass(frozen=True, slots=True)
class HostCall:
    """A call of the driver that a thread of the host is in.

    Attributes:
        function: such as ``cuMemFree_v2``.
        kind: ``loads``, ``launches``, ``allocates``, ``waits``, or None: none of these.
        thread: the operating system's number; None: unknown.
        call: its number in the capture; None: not from one.
        callers: functions above it, the innermost first, as far as they have names.
    """

    function: str
    kind: str | None
    thread: int | None
    call: int | None = None
    callers: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """What it does, in words, such as ``waits for work on the GPU``."""
        return _WORDS.get(self.kind or "", "has not returned")


def is_copy(function: str) -> bool:
    """Returns whether a function of the driver copies or sets memory."""
    return function.startswith(("cuMemcpy", "cuMemset"))


def kind_of(function: str) -> str | None:
    """Returns the ``kind`` of a :class:`HostCall` of a driver's function; None: no such kind."""
    return next((kind for kind, pattern in _KINDS if re.match(pattern, function)), None)
