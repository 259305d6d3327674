"""How far answers agree, of plain numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


def same_partition(first: Sequence[int], second: Sequence[int]) -> int:
    """How many of the items agree, if numbers of the first are renamed to those of the second.

    A number of either may be the name of one of the other only; the most frequent pairs are taken
    first.
    """
    pairs = Counter(zip(first, second, strict=True))
    names: dict[int, int] = {}
    taken: set[int] = set()
    agreed = 0
    for (one, other), count in pairs.most_common():
        if one not in names and other not in taken:
            names[one] = other
            taken.add(other)
            agreed += count
    return agreed


@dataclass(frozen=True, slots=True)
class Issued:
    """A launch: its stream, when the call was made, when it started, and its channel."""

    stream: int
    call_ns: int
    start_ns: int
    channel: int


def choices(launches: Iterable[Issued], queues: int, lead_ns: int = 0) -> list[bool]:
    """Whether each launch went where the rule of the model says, given where all before it went.

    The rule: a stream keeps its queue as long as it was the last to use it. Else, if some queues
    are empty, it takes one of these: of the parity of which fewer are not empty, or else of another
    parity than the queue of the launch before, and of several the one that was used longest ago. If
    none is empty, it takes the one that was used longest ago of all.

    Args:
        launches: in the order of their calls. Channels are numbered as the queues are.
        queues: CUDA_DEVICE_MAX_CONNECTIONS.
        lead_ns: how long before its start a launch has left its queue.
    """
    last_use = {0: 0}  # the driver's own, before the first launch
    last_stream: dict[int, int] = {}
    starts_ns: dict[int, list[int]] = {}
    own: dict[int, int] = {}
    last, found = 0, []
    for use, launch in enumerate(launches, 1):
        kept = own.get(launch.stream)
        if kept is None or last_stream[kept] != launch.stream:
            now_ns = launch.call_ns + lead_ns
            busy = {n for n in starts_ns if any(start > now_ns for start in starts_ns[n])}
            empty = set(range(queues)) - busy
            filled = [sum(n % 2 == parity for n in busy) for parity in (0, 1)]

            def preference(n: int) -> tuple[int, ...]:
                if not empty:  # noqa: B023
                    return last_use.get(n, -1), n
                return filled[n % 2], n % 2 == last % 2, last_use.get(n, -1), n  # noqa: B023

            kept = min(empty or range(queues), key=preference)
        found.append(launch.channel == kept)
        last = launch.channel
        last_use[last], last_stream[last], own[launch.stream] = use, launch.stream, last
        waiting = [start for start in starts_ns.get(last, []) if start > launch.call_ns]
        starts_ns[last] = [*waiting, launch.start_ns]
    return found
