"""Nodes of graphs that allocate and free memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tbsched.errors import shown
from tbsched.program.checks import integer, known_fields
from tbsched.program.events.transfers import MAX_BYTES
from tbsched.program.written import given_fields, source


@dataclass(frozen=True, slots=True, repr=False)
class MemAlloc:
    """A node of a :class:`Graph` that allocates memory: ``cudaGraphAddMemAllocNode``.

    It takes no SM and no time: what follows it waits for what comes before it. The graph, or a
    later one, frees the memory. Until then the graph is not launched again, as in CUDA.

    Args:
        name: of the memory.
        bytes: how much, 1 to 2**30.

    Raises:
        TypeError, ValueError: names the field, the value and the limit.

    Example:
        >>> kernel = tb.Launch(8, 256, 32, duration=1e-5)
        >>> parts = [tb.MemAlloc("scratch", 1 << 20), kernel, kernel, tb.MemFree("scratch")]
        >>> tb.Graph(parts, edges=[(0, 1), (1, 2), (2, 3)]).edges
        ((0, 1),)
    """

    name: str
    bytes: int

    def __post_init__(self) -> None:
        _check_name(self)
        size = integer("MemAlloc", "bytes", self.bytes, 1, MAX_BYTES)
        object.__setattr__(self, "bytes", size)

    def __repr__(self) -> str:
        return source(self)


@dataclass(frozen=True, slots=True, repr=False)
class MemFree:
    """A node of a :class:`Graph` that frees memory: ``cudaGraphAddMemFreeNode``.

    Args:
        name: of the memory, which a :class:`MemAlloc` before it in the graph allocates, or else a
            graph that was launched before.

    Raises:
        TypeError: the name is no text.

    Example:
        >>> tb.MemFree("scratch")
        MemFree(name='scratch')
    """

    name: str

    def __post_init__(self) -> None:
        _check_name(self)

    def __repr__(self) -> str:
        return source(self)


def _check_name(node: MemAlloc | MemFree) -> None:
    if not isinstance(node.name, str):
        raise TypeError(f"{type(node).__name__}.name: text is needed, got {shown(node.name)}")


def graph_memory_to_data(node: MemAlloc | MemFree) -> dict[str, Any]:
    return given_fields(node)


def mem_alloc_from_data(where: str, data: object) -> MemAlloc:
    return MemAlloc(**known_fields(where, data, ("name", "bytes"), ("name", "bytes")))


def mem_free_from_data(where: str, data: object) -> MemFree:
    return MemFree(**known_fields(where, data, ("name",), ("name",)))
