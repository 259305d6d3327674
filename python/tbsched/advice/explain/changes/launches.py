"""Launches with another block size, carveout, priority, place in the order, stream or queue."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tbsched.advice.block_sizes import BLOCK_SIZES, with_block_size
from tbsched.advice.explain.changes.proposal import Proposal, free_stream, relaunched
from tbsched.advice.explain.explanation import Cause
from tbsched.advice.explain.facts import Facts
from tbsched.prediction.calls import waits_for_gpu
from tbsched.program.events.transfers import Transfer
from tbsched.program.kernels import kernel_of
from tbsched.program.library_kernels import is_of_library
from tbsched.program.sequence import (
    LEGACY_STREAM,
    Event,
    GraphLaunch,
    Launch,
    RecordEvent,
    Sequence,
    Stream,
    WaitEvent,
    WaitValue,
)

_CARVEOUTS = (0, 50, 100)  # per cent
_MOST_URGENT = (
    -5
)  # the most urgent priority of an H100 and of an H200 (cuCtxGetStreamPriorityRange)
_MAX_STREAMS = 16
_MAX_QUEUES = 32  # CUDA C++ Programming Guide, CUDA_DEVICE_MAX_CONNECTIONS


def propose_block_size(facts: Facts, launch: int, cause: Cause) -> Iterator[Proposal]:
    """Proposes other block sizes for the kernel that waited, of which more may fit."""
    launches = facts.program.sequence.launches
    given = launches[launch]
    kernel = kernel_of(given)
    numbers = [
        k for k, x in enumerate(launches) if k == launch or (kernel and kernel_of(x) == kernel)
    ]
    for threads in BLOCK_SIZES:
        resized = {k: with_block_size(launches[k], threads) for k in numbers}
        changed = {k: x for k, x in resized.items() if x is not None and x != launches[k]}
        if changed:
            yield relaunched(
                facts, f"{facts.named(launch)} in blocks of {threads} threads, not {given.threads}",
                changed, "if the kernel works with that size, and a block takes as long",
            )  # fmt: skip


def propose_carveout(facts: Facts, launch: int, cause: Cause) -> Iterator[Proposal]:
    """Proposes one carveout for all kernels, or another one for the kernel that waited."""
    launches = facts.program.sequence.launches
    name = launches[launch].name
    free = [k for k, x in enumerate(launches) if not is_of_library(x)]
    same_kernel = [k for k in free if k == launch or (name and launches[k].name == name)]
    kernels = "every kernel" if len(free) == len(launches) else "every kernel that is of no library"
    for carveout in _CARVEOUTS:
        for numbers, who in ((free, kernels), (same_kernel, facts.named(launch))):
            changed = {
                k: replace(launches[k], carveout=carveout)
                for k in numbers
                if launches[k].carveout != carveout
            }
            if changed:
                yield relaunched(facts, f"carveout {carveout} for {who}", changed)


def propose_priority(facts: Facts, launch: int, cause: Cause) -> Iterator[Proposal]:
    """Proposes a more urgent priority for the stream of the launch."""
    launches = facts.program.sequence.launches
    stream = launches[launch].stream
    if launches[launch].priority > _MOST_URGENT and not isinstance(stream, str):
        changed = {
            k: replace(x, priority=_MOST_URGENT)
            for k, x in enumerate(launches)
            if k == launch or (stream is not None and x.stream == stream)
        }
        who = facts.named(launch) if stream is None else f"stream {stream}"
        yield relaunched(facts, f"priority {_MOST_URGENT} for {who}", changed)


def propose_earlier_issue(facts: Facts, launch: int, cause: Cause) -> Iterator[Proposal]:
    """Proposes that its host thread issues a launch before what it waits behind."""
    sequence = facts.program.sequence
    if cause.behind < 0 or facts.is_collective(launch):
        return  # ranks issue their collectives in one order
    place, behind = int(facts.event[launch]), int(facts.event[cause.behind])
    own_launch, blocker = sequence[place], sequence[behind]
    if not (isinstance(own_launch, Launch) and isinstance(blocker, Launch)) or behind >= place:
        return
    if own_launch.host != blocker.host or not all(
        _may_swap(own_launch, x) for x in sequence.events[behind:place]
    ):
        return
    events = [*sequence.events]
    events.insert(behind, events.pop(place))
    what = f"{facts.named(launch)} issued before {facts.named(cause.behind)}"
    yield Proposal(what, lambda: (Sequence(events), facts.program.host))


def _may_swap(launch: Launch, event: Event) -> bool:
    """Returns whether a launch may be issued before an event: another launch of another stream."""
    return (
        isinstance(event, Launch)
        and not isinstance(event.stream, str)
        and not isinstance(launch.stream, str)
        and (launch.stream is None or launch.stream != event.stream)
    )


def propose_connections(facts: Facts, launch: int, cause: Cause) -> Iterator[Proposal]:
    """Proposes more hardware queues, so that streams do not share one."""
    for queues in (_MAX_QUEUES // 2, _MAX_QUEUES):
        if queues > facts.spec.hardware_queues:
            yield Proposal(
                f"CUDA_DEVICE_MAX_CONNECTIONS={queues}, a hardware queue each for more streams",
                lambda: (facts.program.sequence, facts.program.host),
                spec=replace(facts.spec, hardware_queues=queues),
            )


def propose_other_stream(facts: Facts, launch: int, cause: Cause) -> Iterator[Proposal]:
    """Proposes a stream of its own for a launch, or for all launches of its kernel.

    Only past kernels: nothing is moved past a copy, or away from an event that is waited for. A
    collective stays in its order.
    """
    if cause.behind < 0:
        return
    alike = facts.alike(launch)
    choices = [([launch], facts.named(launch))]
    if len(alike) > 1:
        choices.append((alike, f"each of {len(alike)} launches of {facts.kernel_name(launch)}"))
    for numbers, who in choices:
        if not any(map(facts.is_collective, (*numbers, cause.behind))):
            yield from _propose_new_streams(
                facts,
                numbers,
                1,
                f"{who} in another stream, a non-blocking one",
                f"if nothing of it needs {facts.named(cause.behind)} or what else was before it in "
                "its stream, nor the other way round",
            )


def propose_several_streams(facts: Facts, launch: int, cause: Cause) -> Iterator[Proposal]:
    """Proposes several streams, by turns, for the launches of one kernel."""
    alike = facts.alike(launch)
    room = int(1 / max(1 - facts.idle_share(launch), 1 / _MAX_STREAMS))
    count = min(room, _MAX_STREAMS, len(alike))
    is_of_stream = facts.program.sequence.launches[launch].stream is not None
    if count > 1 and is_of_stream and not facts.is_collective(launch):
        yield from _propose_new_streams(
            facts, alike, count,
            f"{len(alike)} launches of {facts.kernel_name(launch)} by turns in {count} streams",
            "if they need neither each other nor what is between them in their stream",
        )  # fmt: skip


def _propose_new_streams(
    facts: Facts, numbers: list[int], streams: int, what: str, condition: str
) -> Iterator[Proposal]:
    """Proposes new streams, by turns, for launches that pass nothing they may need."""
    if not _passes_anything_needed(facts, numbers):
        launches, new = facts.program.sequence.launches, free_stream(facts)
        changed = {
            k: replace(launches[k], stream=new + turn % streams, non_blocking=True)
            for turn, k in enumerate(numbers)
        }
        yield relaunched(facts, what, changed, condition)


def _passes_anything_needed(facts: Facts, numbers: list[int]) -> bool:
    """Returns whether launches in a new stream would pass a copy, event or collective of the old.

    Neither what is before them in the stream, nor what comes after them and may need them. Work of
    the legacy stream is before and after that of blocking streams, too. What came before the host
    waited for the GPU is over, and nobody passes it.
    """
    sequence, stream = facts.program.sequence, facts.stream_of(numbers[0])
    if not all(isinstance(sequence[int(facts.event[number])], Launch) for number in numbers):
        return True  # a node is where its graph is
    is_blocking = not facts.program.sequence.launches[numbers[0]].non_blocking
    awaited = {event.event for event in sequence if isinstance(event, WaitEvent)}
    moved = {int(facts.event[number]) for number in numbers}
    holds_up = has_left = False
    number = 0
    for place, event in enumerate(sequence):
        launch_numbers = range(number, number + len(event.launches))
        number = launch_numbers.stop
        if waits_for_gpu(event):
            holds_up = has_left = False
        elif place in moved:
            if holds_up:
                return True
            has_left = True
        elif _is_ordered_with_stream(event, stream, is_blocking=is_blocking):
            is_bound = isinstance(event, Transfer | WaitEvent | WaitValue | GraphLaunch) or any(
                facts.is_collective(launch_) for launch_ in launch_numbers
            )
            is_awaited = isinstance(event, RecordEvent) and event.event in awaited
            if has_left and (is_bound or is_awaited):
                return True
            holds_up = holds_up or is_bound
    return False


def _is_ordered_with_stream(event: Event, stream: Stream | None, *, is_blocking: bool) -> bool:
    """Returns whether an event keeps its order with the work of a stream."""
    event_stream = getattr(event, "stream", None)
    if event_stream == stream:
        return True
    if LEGACY_STREAM not in (event_stream, stream):
        return False
    return is_blocking and not getattr(event, "non_blocking", False)
