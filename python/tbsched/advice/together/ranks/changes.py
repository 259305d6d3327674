"""Changes of a program of several ranks that may keep it from hanging."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from tbsched.advice.together.greatest import greatest_holding
from tbsched.program.sequence import Event, Launch, Sequence


@dataclass(frozen=True, slots=True)
class RankFix:
    """A change after which the program is sure not to hang.

    Attributes:
        kind: ``order``, ``stream``, ``order and stream`` or ``grid``.
        text: what to do.
        sequence: the changed program.

    Example:
        >>> def kernel(name, gpu):
        ...     where = {"stream": 0, "gpu": gpu, "host": gpu}
        ...     return tb.Launch(20, 512, 64, **where, meets=name, duration=1e-5)
        >>> turned = tb.Sequence([kernel("a", 0), kernel("b", 0), kernel("b", 1), kernel("a", 1)])
        >>> for fix in tb.coresident(turned, ["h200", "h200"]).fixes:
        ...     print(fix.kind, "|", fix.text)
        order | issue the groups in one order on every rank: a, b
    """

    kind: str
    text: str
    sequence: Sequence


def fixes_of(
    sequence: Sequence, groups: frozenset[str], is_safe: Callable[[Sequence], bool]
) -> tuple[RankFix, ...]:
    """Returns the smallest change of each kind that is proved to keep the program from hanging.
    ``groups``: those that keep each other from ending."""
    fixes = []
    wanted = _first_order(sequence)
    ordered = in_order(sequence, wanted)
    words = ", ".join(wanted[:4]) + (" and so on" if len(wanted) > 4 else "")
    order = RankFix("order", f"issue the groups in one order on every rank: {words}", ordered)
    stream = RankFix(
        "stream", "launch all kernels that meet in one stream of each GPU", in_one_stream(sequence)
    )
    both = RankFix(
        "order and stream", f"{order.text}; and all of them in one stream of each GPU",
        in_one_stream(ordered),
    )  # fmt: skip
    for fix in (order, stream):
        if fix.sequence != sequence and is_safe(fix.sequence):
            fixes.append(fix)
    if not fixes and both.sequence != sequence and is_safe(both.sequence):
        fixes.append(both)
    fixes += _smaller_grids(sequence, groups, is_safe)
    return tuple(fixes)


def in_order(sequence: Sequence, wanted: list[str]) -> Sequence:
    """Returns the program with its groups issued in one order on every host."""
    places: dict[tuple[int, int], list[int]] = {}
    for place, event in enumerate(sequence):
        if isinstance(event, Launch) and event.meets is not None:
            places.setdefault((event.host, event.gpu), []).append(place)
    events: list[Event] = list(sequence)
    for chosen in places.values():
        rank = {name: k for k, name in enumerate(wanted)}
        launches = sorted((events[k] for k in chosen), key=lambda launch_: rank[launch_.meets])  # type: ignore[union-attr, index]
        for place, launch in zip(chosen, launches, strict=True):
            events[place] = launch
    return Sequence(events)


def in_one_stream(sequence: Sequence) -> Sequence:
    """Returns the program with all meeting launches in the stream of their GPU's first one."""
    first: dict[int, object] = {}
    events: list[Event] = []
    for event in sequence:
        if isinstance(event, Launch) and event.meets is not None:
            stream = first.setdefault(event.gpu, event.stream)
            event = replace(event, stream=stream)  # type: ignore[arg-type]
        events.append(event)
    return Sequence(events)


def _first_order(sequence: Sequence) -> list[str]:
    """Returns the names of groups in the order in which the first host with each issues them."""
    hosts = {event.host: None for event in sequence if isinstance(event, Launch)}
    names: dict[str, None] = {}
    for host in hosts:
        for event in sequence:
            if isinstance(event, Launch) and event.host == host and event.meets is not None:
                names.setdefault(event.meets)
    return list(names)


def _smaller_grids(
    sequence: Sequence, groups: frozenset[str], is_safe: Callable[[Sequence], bool]
) -> Iterator[RankFix]:
    """Yields a fix for each group: the largest grid on all ranks that is proved safe."""
    for name in sorted(groups):
        most = max(launch.blocks // launch.cluster for launch in _launches_of_group(sequence, name))
        if most == 1 or not is_safe(_with_smaller_grids(sequence, name, 1)):
            continue

        def is_enough(clusters: int, name: str = name) -> bool:
            """Returns whether grids of at most some clusters are proved safe."""
            return is_safe(_with_smaller_grids(sequence, name, clusters))

        changed = _with_smaller_grids(sequence, name, greatest_holding(1, most - 1, is_enough))
        blocks = max(launch.blocks for launch in _launches_of_group(changed, name))
        before = max(launch.blocks for launch in _launches_of_group(sequence, name))
        words = f"at most {blocks} blocks for {name!r} on each GPU, not {before}"
        yield RankFix("grid", words, changed)


def _launches_of_group(sequence: Sequence, name: str) -> list[Launch]:
    """Returns the launches of a group."""
    return [launch for launch in sequence.launches if launch.meets == name]


def _with_smaller_grids(sequence: Sequence, name: str, clusters: int) -> Sequence:
    """Returns the program with at most some clusters for each launch of a group."""
    events: list[Event] = []
    for event in sequence:
        if isinstance(event, Launch) and event.meets == name:
            blocks = min(event.blocks, clusters * event.cluster)
            duration = event.duration
            if isinstance(duration, tuple):
                duration = duration[:blocks]
            event = replace(event, blocks=blocks, duration=duration)
        events.append(event)
    return Sequence(events)
