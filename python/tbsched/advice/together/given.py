"""Checks of the arguments about launches that must be resident together."""

from __future__ import annotations

import graphlib
from collections.abc import Iterable
from collections.abc import Sequence as ListOf
from dataclasses import replace

from tbsched.counting import listed
from tbsched.errors import shown
from tbsched.prediction.recorded import held as alone
from tbsched.program.checks import instance, integer, items
from tbsched.program.events.graph import Node
from tbsched.program.one_gpu import one_gpu
from tbsched.program.sequence import (
    LEGACY_STREAM,
    Event,
    HostCall,
    HostFunction,
    Launch,
    RecordEvent,
    Release,
    Sequence,
    Stream,
)

Groups = tuple[tuple[int, ...], ...]
Pairs = tuple[tuple[int, int], ...]


def launches_of(owner: str, field: str, values: Iterable[Launch] | Sequence) -> tuple[Launch, ...]:
    """Returns the launches of a list or of a sequence.

    Raises:
        TypeError: something else is among them.
        ValueError: work of another GPU than the first, or blocks that meet by name.
    """
    if isinstance(values, Sequence):
        one_gpu(owner, values)
        return values.launches
    rows = enumerate(items(owner, field, values))
    launches = tuple([instance(owner, f"{field}[{k}]", launch, Launch) for k, launch in rows])
    for number, launch in enumerate(launches):
        if launch.gpu or launch.meets is not None:
            what = f"gpu is {launch.gpu}" if launch.gpu else f"meets is {launch.meets!r}"
            raise ValueError(
                f"{owner}.{field}[{number}]: Launch.{what}, but {owner} knows one GPU, and no "
                "blocks that meet by name"
            )
    return launches


def has_other_work(sequence: Sequence) -> bool:
    """Returns whether launches may wait for an event that is not a launch."""
    return not all(
        isinstance(event, Launch | Release)
        or _holds_up_none(
            event, (*sequence.events[:number], *sequence.events[number + 1 :]), sequence.launches
        )
        for number, event in enumerate(sequence)
    )


def _holds_up_none(event: Event, others: tuple[Event, ...], launches: tuple[Launch, ...]) -> bool:
    """Returns whether an event that is not a launch is one for which no launch can wait.

    A call that waits for nothing only takes time, and launches may arrive at any time. A record
    without timing orders nothing, but in the legacy stream. A host function alone in its stream
    waits for nothing, and nothing but the legacy stream waits for it.
    """
    if isinstance(event, RecordEvent):
        return event.stream != LEGACY_STREAM and not event.timing
    if isinstance(event, HostCall):
        return event.waits is None
    if not isinstance(event, HostFunction):
        return False
    streams = [event.stream, *(launch.stream for launch in launches)]
    if LEGACY_STREAM in streams and not event.non_blocking:
        return False
    return event.stream is None or all(
        getattr(other, "stream", None) != event.stream for other in others
    )


def held(launches: Iterable[Launch]) -> tuple[tuple[Launch, ...], Pairs]:
    """Returns the launches as the thread block scheduler sees them: their blocks stay.

    The legacy stream is an ordinary stream here; `above` covers its other effects. A
    programmatic launch whose primary triggers does not wait for the primary's end: it has a stream
    of its own, and arrives when the primary is resident whole.

    Returns:
        The launches, and pairs of which the second arrives after the first.
    """
    given = tuple(launches)
    numbers = [launch.stream for launch in given if isinstance(launch.stream, int)]
    free = max(numbers, default=-1) + 1
    latest: dict[object, int] = {}
    held_launches, pairs = [], []
    for number, launch in enumerate(given):
        stream = free if launch.stream == LEGACY_STREAM else launch.stream
        primary = latest.get(launch.stream)
        if launch.stream is not None:
            latest[launch.stream] = number
        if launch.programmatic and primary is not None and given[primary].trigger is not None:
            pairs.append((primary, number))
            stream = None
        held_launches.append(_with_endless_blocks(launch, stream))
    return tuple(held_launches), tuple(pairs)


def _with_endless_blocks(launch: Launch, stream: Stream | None) -> Launch:
    """Returns a launch whose blocks stay, in a stream; one without a duration as it is."""
    return launch if launch.duration is None else replace(alone(launch), stream=stream)


def with_blocks(launch: Launch, blocks: int) -> Launch:
    """Returns the launch with another number of blocks."""
    duration = launch.duration
    if isinstance(duration, tuple):
        duration = max(duration)
    return replace(launch, blocks=blocks, duration=duration)


def checked_groups(given: Iterable[Iterable[int]], launches: int) -> Groups:
    """Returns the groups as tuples of launch numbers, checked. Raises TypeError or ValueError: no
    launch of that number, one that is in two groups, or none in one."""
    groups = []
    seen: set[int] = set()
    for number, group in enumerate(items("coresident", "groups", given)):
        where = f"groups[{number}]"
        members = [
            integer("coresident", where, member, 0, launches - 1)
            for member in items("coresident", where, group)
        ]
        if not members:
            raise ValueError(f"coresident.{where}: a launch is needed, got {shown(group)}")
        for member in members:
            if member in seen:
                raise ValueError(f"coresident.{where}: launch {member} is in a group already")
            seen.add(member)
        groups.append(tuple(sorted(members)))
    if not groups:
        raise ValueError("coresident.groups: a group is needed, got none")
    return tuple(groups)


def checked_after(given: Iterable[tuple[int, int]], launches: int) -> Pairs:
    """Returns pairs of launch numbers, checked: the second arrives when the first is resident.
    Raises TypeError or ValueError: no such launches, or they wait for each other in a circle."""
    pairs = []
    for number, pair in enumerate(items("coresident", "after", given)):
        where = f"after[{number}]"
        both = list(items("coresident", where, pair))
        if len(both) != 2:
            raise ValueError(f"coresident.{where}: two launches are needed, got {shown(pair)}")
        first, second = (integer("coresident", where, k, 0, launches - 1) for k in both)
        pairs.append((first, second))
    if not is_order(pairs):
        raise ValueError(f"coresident.after: {pairs} is a circle: none of them would arrive")
    return tuple(pairs)


def keeps_order(order: tuple[int, ...], pairs: Iterable[tuple[int, int]]) -> bool:
    """Returns whether an order has the first launch of each pair before the second."""
    return all(order.index(first) < order.index(second) for first, second in pairs)


def is_order(pairs: Iterable[tuple[int, int]]) -> bool:
    """Returns whether pairs have no cycle, so that launches can arrive in some order."""
    order = graphlib.TopologicalSorter[int]()
    for first, second in pairs:
        order.add(second, first)
    try:
        order.prepare()
    except graphlib.CycleError:
        return False
    return True


def name_of(launches: tuple[Launch, ...], number: int, others: ListOf[Event | Node] = ()) -> str:
    """Returns the name of a launch for sentences, with its number if others have the same.

    Args:
        launches: the launches.
        number: of a launch, or behind them of another operation.
        others: the other operations.
    """
    if number >= len(launches):
        return f"{type(others[number - len(launches)]).__name__} {number}"
    name = " ".join((launches[number].name or "").split())
    if not name:
        return f"launch {number}"
    is_unique = sum(launch.name == launches[number].name for launch in launches) == 1
    return name if is_unique else f"{name} (launch {number})"


def to_launch(launches: tuple[Launch, ...], numbers: Iterable[int]) -> str:
    """Returns words that ask to launch some: ``launch gemm and add``, or ``start launch 0``."""
    asked = list(numbers)
    verb = "launch" if all((launches[number].name or "").split() for number in asked) else "start"
    return f"{verb} {listed(name_of(launches, number) for number in asked)}"
