"""What can be reached from something, step by step."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)


def reachable(first: Iterable[Node], following: Callable[[Node], Iterable[Node]]) -> set[Node]:
    """Returns some nodes of a graph, what follows each of them, what follows that, and so on."""
    found: set[Node] = set()
    left = [*first]
    while left:
        node = left.pop()
        if node not in found:
            found.add(node)
            left += following(node)
    return found
