"""Nodes of a graph that can be reached from others."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)


def reachable(first: Iterable[Node], following: Callable[[Node], Iterable[Node]]) -> set[Node]:
    """Returns the first nodes and all that can be reached from them by ``following``."""
    reached: set[Node] = set()
    pending = [*first]
    while pending:
        node = pending.pop()
        if node not in reached:
            reached.add(node)
            pending += following(node)
    return reached
