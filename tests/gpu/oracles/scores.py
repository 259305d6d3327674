"""How far answers agree, of plain numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field


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


@dataclass(slots=True)
class _Channel:
    last_use: int
    last_stream: int
    starts_ns: list[int] = field(default_factory=list)

    def is_empty(self, now_ns: int) -> bool:
        return all(start <= now_ns for start in self.starts_ns)


def choices(launches: Iterable[Issued], queues: int, lead_ns: int = 0) -> list[bool]:
    """Whether each launch went where the rule of the model says, given where all before it went.

    The rule: a stream keeps its queue as long as it was the last to use it. Else it takes the one
    used longest ago of those that are empty, or of all. Which of the queues that were never used
    is taken counts as right, since they have no names yet.

    Args:
        launches: in the order of their calls.
        queues: CUDA_DEVICE_MAX_CONNECTIONS.
        lead_ns: how long before its start a launch has left its queue.
    """
    channels: dict[int, _Channel] = {}
    own: dict[int, int] = {}
    found = []
    for use, launch in enumerate(launches):
        kept = own.get(launch.stream)
        if kept is not None and channels[kept].last_stream == launch.stream:
            right = launch.channel == kept
        elif len(channels) < queues:
            right = launch.channel not in channels
        else:
            empty = {n for n, each in channels.items() if each.is_empty(launch.call_ns + lead_ns)}
            among = empty or set(channels)
            right = launch.channel == min(among, key=lambda n: channels[n].last_use)
        found.append(right)
        used = channels.setdefault(launch.channel, _Channel(use, launch.stream))
        used.last_use, used.last_stream = use, launch.stream
        used.starts_ns = [x for x in used.starts_ns if x > launch.call_ns] + [launch.start_ns]
        own[launch.stream] = launch.channel
    return found
