"""Makes a failing sequence locally minimal in its own terms: events and numbers.

Hypothesis shrinks what it drew, in steps of the tables that it drew from. Here launches go together
with their releases, and every number goes down to the last that still fails.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, assert_never

from tbsched.campaigns.space.options import SequenceOptions
from tbsched.program.sequence import (
    Event,
    Graph,
    GraphLaunch,
    Launch,
    RecordEvent,
    Release,
    Sequence,
    WaitEvent,
    with_launches,
)

Fails: TypeAlias = Callable[[Sequence], bool]
SHORTEST = 1e-6  # seconds: what a duration shrinks to


@dataclass(frozen=True, slots=True)
class Floors:
    """What a launch's fields shrink to; the number of blocks shrinks to one cluster."""

    registers: int
    carveout: int | None
    local_memory: int
    priority: int

    @classmethod
    def of(cls, options: SequenceOptions) -> Floors:
        """The values that sequences of these options shrink to."""
        return cls(
            registers=options.min_registers,
            carveout=options.carveouts[0],
            local_memory=min(options.local_memory),
            priority=options.priorities[0],
        )


def size(sequence: Sequence) -> tuple[int, ...]:
    """The order in which sequences are small: launches, events, then sums over the launches."""
    launches = sequence.launches
    return (
        len(launches),
        len(sequence),
        sum(launch.blocks for launch in launches),
        sum(launch.threads for launch in launches),
        sum(launch.registers for launch in launches),
        sum(launch.shared_memory for launch in launches),
        sum(launch.local_memory for launch in launches),
    )


def minimise(sequence: Sequence, fails: Fails, floors: Floors) -> Sequence:
    """A sequence that fails and from which no event, and of no number 1, can be taken.

    Args:
        sequence: it fails.
        fails: the property. A caller that runs out of time answers False from then on.
        floors: where numbers end.
    """
    while True:
        before = sequence
        sequence = _fewer_events(sequence, fails)
        for number in range(len(sequence.launches)):
            sequence = _smaller_launch(sequence, number, fails, floors)
        if sequence == before:
            return sequence


def _fewer_events(sequence: Sequence, fails: Fails) -> Sequence:
    shrunk = True
    while shrunk:
        shrunk = False
        for candidate in _with_one_less(sequence):
            if fails(candidate):
                sequence, shrunk = candidate, True
                break
    return sequence


def _with_one_less(sequence: Sequence) -> Iterator[Sequence]:
    for number in reversed(range(len(sequence.launches))):
        if len(sequence.launches) > 1:
            yield without_launch(sequence, number)
    for position, event in enumerate(sequence.events):
        match event:
            case Launch():
                pass
            case GraphLaunch() if len(event.launches) == len(sequence.launches):
                pass
            case Release() | RecordEvent() | WaitEvent() | GraphLaunch():
                yield Sequence(sequence.events[:position] + sequence.events[position + 1 :])
            case _:
                assert_never(event)
    # What fills the GPU before the launch that shows the difference can often be one launch.
    for number, launch in enumerate(sequence.launches):
        fewer = without_launch(sequence, number)
        for other, rest in enumerate(fewer.launches):
            yield _with_launch(fewer, other, _with_blocks_of(rest, launch))
            if not _is_node(fewer, other):  # which the launch may be unable to be
                yield _with_launch(fewer, other, _with_blocks_of(launch, rest))


def _is_node(sequence: Sequence, launch: int) -> bool:
    """Whether a launch is the node of a graph."""
    of = [event for event in sequence for _ in event.launches]
    return isinstance(of[launch], GraphLaunch)


def _with_blocks_of(launch: Launch, other: Launch) -> Launch:
    more = -(-other.blocks // launch.cluster) * launch.cluster
    return replace(launch, **_blocks(launch, launch.blocks + more))


def _blocks(launch: Launch, blocks: int) -> dict[str, Any]:
    """The fields with which the launch has so many blocks."""
    if not isinstance(launch.duration, tuple):
        return {"blocks": blocks}
    durations = itertools.islice(itertools.cycle(launch.duration), blocks)
    return {"blocks": blocks, "duration": tuple(durations)}


def without_launch(sequence: Sequence, launch: int) -> Sequence:
    """The sequence without its ``launch``-th launch and that launch's release.

    Raises:
        AssertionError: an event of an unknown kind.
    """
    events: list[Event] = []
    seen = -1
    for event in sequence.events:
        match event:
            case Launch():
                seen += 1
                if seen != launch:
                    events.append(event)
            case GraphLaunch():
                events += _without_node(event, launch - seen - 1)
                seen += len(event.launches)
            case Release(released):
                if released != launch:
                    events.append(Release(released - (released > launch)))
            case RecordEvent() | WaitEvent():
                events.append(event)
            case _:
                assert_never(event)
    return Sequence(events)


def _without_node(event: GraphLaunch, node: int) -> list[Event]:
    """The graph without a node, if it has that one; what waited for it waits for nothing."""
    nodes = event.launches
    if not 0 <= node < len(nodes):
        return [event]
    if len(nodes) == 1:
        return []
    edges = [
        (before - (before > node), after - (after > node))
        for before, after in event.graph.edges
        if node not in (before, after)
    ]
    graph = Graph((*nodes[:node], *nodes[node + 1 :]), edges)
    return [replace(event, graph=graph)]


def _with_launch(sequence: Sequence, number: int, launch: Launch) -> Sequence:
    launches = sequence.launches
    return with_launches(sequence, (*launches[:number], launch, *launches[number + 1 :]))


def _smaller_launch(sequence: Sequence, number: int, fails: Fails, floors: Floors) -> Sequence:
    def attempt(**changes: Any) -> bool:
        nonlocal sequence
        launch = replace(sequence.launches[number], **changes)
        candidate = _with_launch(sequence, number, launch)
        if candidate == sequence or not fails(candidate):
            return False
        sequence = candidate
        return True

    attempt(cluster=1)
    attempt(carveout=floors.carveout)
    attempt(priority=floors.priority)
    attempt(stream=None)
    if sequence.timed:
        attempt(duration=SHORTEST)
    cluster = sequence.launches[number].cluster
    _lower(
        lambda clusters: attempt(**_blocks(sequence.launches[number], clusters * cluster)),
        sequence.launches[number].blocks // cluster,
        1,
    )
    for field, floor in (
        ("threads", 1),
        ("registers", floors.registers),
        ("shared_memory", 0),
        ("local_memory", floors.local_memory),
    ):
        _lower(
            lambda value, field=field: attempt(**{field: value}),  # type: ignore[misc]
            getattr(sequence.launches[number], field),
            floor,
        )
    return sequence


def _lower(attempt: Callable[[int], bool], high: int, low: int) -> None:
    """Bisects down to a number that works and whose predecessor does not."""
    if high <= low or attempt(low):
        return
    while high - low > 1:
        middle = (low + high) // 2
        if attempt(middle):
            high = middle
        else:
            low = middle
