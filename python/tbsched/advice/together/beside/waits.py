"""What operations wait for, and which of them are sure to happen.

An operation *begins* when it waits for nothing, and *ends* after that. A launch begins when it
reaches the thread block scheduler; whether it finds room is another question. A launch of a group
ends only when the group has happened: all of its launches have begun, and all of its other
operations have ended. A launch of no group may never end.

With an order of the calls that is known in part, an operation waits for all that may be called
before it. So what is sure to happen then is sure in every order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tbsched.advice.together.beside.operations import (
    LET_OTHERS_CALL,
    Operation,
    Operations,
    shares_queues,
    stream_of,
)
from tbsched.advice.together.given import Groups
from tbsched.hardware.spec import DeviceSpec
from tbsched.program.events.graph import Graph
from tbsched.program.reachable import reachable
from tbsched.program.sequence import (
    LEGACY_STREAM,
    Copy,
    GraphLaunch,
    HostCall,
    Launch,
    RecordEvent,
    Synchronize,
    WaitEvent,
    WaitValue,
    WriteValue,
)


@dataclass(frozen=True, slots=True)
class Wait:
    """What an operation waits for.

    Attributes:
        awaited: the number of the operation that is waited for.
        cause: why, a word as in ``Placement.limiter``; ``host``: a call does not return;
            ``copy_engine``: a copy stands before it in its channel.
        for_end: whether it waits for the end, and not for the begin.
    """

    awaited: int
    cause: str
    for_end: bool = True


class Waits:
    """What each operation of a program waits for, in one order of calls or in all.

    Args:
        work: the operations.
        spec: the GPU.
        before: whether the first of two events is, or may be, called before the second.
        all_causes: whether operations also wait where streams only may share a hardware queue or a
            channel of a copy engine, or where calls only may hold up other threads.
    """

    def __init__(
        self, work: Operations, spec: DeviceSpec, before: Callable[[int, int], bool],
        *, all_causes: bool = True,
    ) -> None:  # fmt: skip
        self.work, self.spec, self.before, self.all_causes = work, spec, before, all_causes
        rows = work.rows
        self._shares_queues = shares_queues(rows, spec)
        self._kernels = sum(row.is_kernel for row in rows)
        self._streams = [stream_of(row) for row in rows]
        self._held_calls = {k for k, row in enumerate(rows) if row.is_held_call}
        # Launches that set up local memory, and waits for events that nobody has recorded.
        self._local_memory_launches = {
            k for k, row in enumerate(rows) if self._sets_up_local_memory(row)
        }
        waits = [k for k, row in enumerate(rows) if isinstance(row.work, WaitEvent)]
        self._waits_without_record = {k for k in waits if not self.records(k)}
        streams: dict[str, set[object]] = {}
        for row in rows:
            if (engine := self._engine(row)) is not None:
                streams.setdefault(engine, set()).add(stream_of(row))
        # Copy engines with more streams than channels.
        self._crowded_engines = {
            one for one, using in streams.items() if len(using) > spec.copy_channels
        }

    def waits_of(self, number: int) -> Iterator[Wait]:
        """Yields all waits of an operation, by its number."""
        rows = self.work.rows
        operation = rows[number]
        for other in operation.nodes:
            yield Wait(other, "node")
        for other, row in enumerate(rows):
            if row.event == operation.event or row.event in self.work.silent:
                continue
            if not self.before(row.event, operation.event):
                continue
            are_in_streams = operation.stream is not None and row.stream is not None
            if are_in_streams and not self._waits_without_record & {number, other}:
                yield from self._stream_waits(number, other)
            if (
                other in self._held_calls
                or number in self._held_calls
                or self._local_memory_launches
            ):
                yield from self._host_waits(number, other)
        for other in self.work.started.get(number, ()):
            yield Wait(other, "host", not rows[other].is_launch)
        if isinstance(operation.work, WaitEvent):
            for record in self.records(number):
                yield Wait(record, "event")

    def records(self, number: int) -> list[int]:
        """Returns the numbers of the records of a CUDA event that may be the last one called before
        an operation that waits for that event."""
        rows = self.work.rows
        op = rows[number]
        assert isinstance(op.work, WaitEvent | Synchronize)
        records_of_event = [
            other
            for other, row in enumerate(rows)
            if isinstance(row.work, RecordEvent) and row.work.event == op.work.event
        ]
        inside = [other for other in records_of_event if self._comes_before(other, number)]
        if inside:  # in the same graph
            return inside
        candidates = [
            other
            for other in records_of_event
            if rows[other].event != op.event and self.before(rows[other].event, op.event)
        ]

        def replaced(record: int, other: int) -> bool:
            """Returns whether another record comes between a record and the call in any case."""
            first, second = rows[record].event, rows[other].event
            if first == second:
                return self._comes_before(record, other)
            return not self.before(second, first) and not self.before(op.event, second)

        return [
            record
            for record in candidates
            if not any(other != record and replaced(record, other) for other in candidates)
        ]

    def _comes_before(self, first: int, second: int) -> bool:
        """Returns whether a graph's edges put one node before another."""
        return first != second and first in reachable([second], lambda k: self.work.rows[k].nodes)

    def _stream_waits(self, number: int, other: int) -> Iterator[Wait]:
        """Yields the waits of an operation for ``other``, an earlier operation, as both are in
        streams."""
        own, row = self.work.rows[number], self.work.rows[other]
        stream, before = self._streams[number], self._streams[other]
        if stream == before:
            yield Wait(other, "stream")
        elif LEGACY_STREAM in (stream, before) and own.blocking and row.blocking:
            yield Wait(other, "legacy_stream")
        elif own.is_node and row.is_node and _graph_of(self.work, own) == _graph_of(self.work, row):
            yield Wait(other, "node")
        if isinstance(own.work, Launch) and own.work.first_use:
            yield Wait(other, "first_use")
        if number in self._local_memory_launches:
            yield Wait(other, "local_memory")
        if isinstance(row.work, Launch) and row.work.first_use:
            # The kernel is loaded when all before it has ended.
            for third, one in enumerate(self.work.rows):
                is_other = third != number and one.event != row.event and one.stream is not None
                is_other = is_other and third not in self._waits_without_record
                if is_other and all(self.before(one.event, k.event) for k in (row, own)):
                    yield Wait(third, "first_use")
        if not self.all_causes or stream == before:
            return
        if self._shares_queues and own.holds_queue and row.holds_queue:
            yield Wait(other, "hardware_queue", isinstance(row.work, WaitValue))
        if self._kernels > self.spec.resident_grids and own.is_kernel and row.is_kernel:
            yield Wait(other, "grids")
        if (
            self._crowded_engines
            and (engine := self._engine(own)) in self._crowded_engines
            and (engine == self._engine(row))
        ):
            yield Wait(other, "copy_engine", False)

    def _host_waits(self, number: int, other: int) -> Iterator[Wait]:
        """Yields the waits of an operation for ``other``, an earlier operation, as one of them is a
        call in which a host thread waits or sets up local memory."""
        own, row = self.work.rows[number], self.work.rows[other]
        if other in self._held_calls and (own.host == row.host or self._holds_others(other)):
            yield Wait(other, "host")
        if self.all_causes and other in self._local_memory_launches:
            yield Wait(other, "host", False)
        if (
            number not in self._held_calls
            or row.stream is None
            or other in self._waits_without_record
        ):
            return
        work = own.work
        if isinstance(work, Synchronize) and work.event is not None:
            if other in self.records(number):
                yield Wait(other, "host")
        elif isinstance(work, HostCall | Synchronize):
            legacy = work.stream == LEGACY_STREAM and row.blocking
            if work.stream is None or legacy or work.stream == self._streams[other]:
                yield Wait(other, "host")

    def _sets_up_local_memory(self, row: Operation) -> bool:
        """Returns whether a launch sets up local memory, for which the GPU must be idle."""
        work = row.work
        return isinstance(work, Launch) and work.local_memory > self.spec.local_memory_initial

    def _holds_others(self, number: int) -> bool:
        """Returns whether a host's call may hold up other threads while it waits."""
        row = self.work.rows[number]
        if not self.all_causes or isinstance(row.work, Synchronize):
            return False
        if isinstance(row.work, HostCall):
            return row.work.name not in LET_OTHERS_CALL
        return row.stream == LEGACY_STREAM

    def _engine(self, row: Operation) -> str | None:
        """Returns the copy engine of a copy; None: no copy by an engine, or a graph's node."""
        work = row.work
        if not isinstance(work, Copy) or work.kind == "d2d" or row.is_node:
            return None
        return "both" if self.spec.copy_engine_count == 1 and work.kind != "p2p" else work.kind


def _graph_of(work: Operations, node: Operation) -> Graph:
    """Returns the graph that a node belongs to."""
    event = work.sequence[node.event]
    assert isinstance(event, GraphLaunch)
    return event.graph


@dataclass(frozen=True, slots=True)
class Happening:
    """Which operations are sure to begin, and to end.

    Attributes:
        waits: what each waits for.
        groups: of each group the numbers of its operations.
    """

    waits: Waits
    groups: Groups
    rows: tuple[tuple[Wait, ...], ...]
    begun: frozenset[int]
    ended: frozenset[int]

    def happened(self, number: int) -> bool:
        """Returns whether a launch surely begins, or another operation surely ends."""
        is_launch = self.waits.work.rows[number].is_launch
        return number in (self.begun if is_launch else self.ended)

    def missing(self) -> list[int]:
        """Returns the operations of groups that do not surely happen."""
        return [k for group in self.groups for k in group if not self.happened(k)]

    def first_unmet(self, number: int) -> Wait | None:
        """Returns the first wait of an operation that is not sure to be met; None: all are."""
        for wait in self.rows[number]:
            if wait.awaited not in (self.ended if wait.for_end else self.begun):
                return wait
        writes = writes_for(self.waits, number) if number not in self.ended else []
        return Wait(writes[0], "value") if writes else None

    def chain(self, number: int) -> list[tuple[int, Wait]]:
        """Returns why an operation is not sure to happen, as a chain: the operation with its first
        unmet wait, then the operation that it waits for with the first unmet wait of that, and so
        on."""
        chain_: list[tuple[int, Wait]] = []
        seen, current = {number}, number
        while (wait := self.first_unmet(current)) is not None:
            chain_.append((current, wait))
            current = wait.awaited
            if current in seen:
                break
            seen.add(current)
        return chain_

    def why(self, number: int) -> tuple[str, int | None]:
        """Returns why an operation waits for ever: the cause, and the number of the launch that
        holds it up; None: no launch does."""
        rows = self.waits.work.rows
        causes: list[str] = []
        last = number
        for _, wait in self.chain(number):
            causes.append(wait.cause)
            last = wait.awaited
            if rows[last].is_launch and wait.for_end:
                break
        else:
            if isinstance(rows[last].work, WaitValue) and last not in self.ended:
                causes.append("value")
        # What the order of a stream or graph only passes on is not the reason.
        cause = next((cause_ for cause_ in causes if cause_ not in ("stream", "node")), None)
        behind = last if rows[last].is_launch and last != number else None
        return cause or (causes[0] if causes else "value"), behind


def writes_for(waits: Waits, number: int) -> list[int]:
    """Returns the numbers of the writes that can end an operation's wait for a value; empty: it is
    not such a wait."""
    wait = waits.work.rows[number].work
    if not isinstance(wait, WaitValue) or wait.value == 0:
        return []
    return [
        k
        for k, row in enumerate(waits.work.rows)
        if isinstance(row.work, WriteValue)
        and row.work.name == wait.name
        and row.work.value >= wait.value
    ]


def _may_lower(waits: Waits, number: int, write: int) -> bool:
    """Returns whether, between ``write`` and the wait ``number`` that needs its value, another
    write may set a lower value."""
    wait = waits.work.rows[number].work
    assert isinstance(wait, WaitValue)
    rows = waits.work.rows
    return any(
        isinstance(row.work, WriteValue)
        and row.work.name == wait.name
        and row.work.value < wait.value
        and not (
            stream_of(row) == stream_of(rows[write])
            and not waits.before(rows[write].event, row.event)
        )
        for row in rows
    )


def happening(waits: Waits, groups: Groups) -> Happening:
    """Returns which operations are sure to begin and to end, whatever the order: those whose waits
    are all sure to be met (the least fixed point)."""
    work = waits.work
    count = len(work.rows)
    rows = tuple(tuple(waits.waits_of(number)) for number in range(count))
    group_of = {number: group for group in groups for number in group}
    writes = {
        number: [k for k in writes_for(waits, number) if not _may_lower(waits, number, k)]
        for number, row in enumerate(work.rows)
        if isinstance(row.work, WaitValue) and row.work.value
    }
    begun: set[int] = set()
    ended: set[int] = set()

    def may_end(number: int) -> bool:
        """Returns whether an operation that has begun may end, by what has begun and ended."""
        if work.rows[number].is_launch:
            group = group_of.get(number)
            return group is not None and all(
                k in (begun if work.rows[k].is_launch else ended) for k in group
            )
        return number not in writes or any(k in ended for k in writes[number])

    changed = True
    while changed:
        changed = False
        for number in range(count):
            if number not in begun and all(
                wait.awaited in (ended if wait.for_end else begun) for wait in rows[number]
            ):
                begun.add(number)
                changed = True
            if number in begun and number not in ended and may_end(number):
                ended.add(number)
                changed = True
    return Happening(waits, groups, rows, frozenset(begun), frozenset(ended))


def _is_certain_wait(work: Operations, number: int, wait: Wait) -> bool:
    """Returns whether an operation waits for this one in every order of calls. It may not if
    another record of the same CUDA event can be the one that it waits for."""
    waiter, record = work.rows[number], work.rows[wait.awaited].work
    if not isinstance(waiter.work, WaitEvent | Synchronize) or not isinstance(record, RecordEvent):
        return True
    if waiter.work.event != record.event:
        return True
    return all(
        row.host == waiter.host
        for row in work.rows
        if getattr(row.work, "event", None) == record.event
    )


def sure_waits(work: Operations, spec: DeviceSpec) -> tuple[frozenset[int], ...]:
    """Returns for each operation the numbers of the launches that must end before it begins, in
    every order of calls."""

    def before(first: int, second: int) -> bool:
        """Returns whether the first event is called before the second in every order."""
        return bool(work.called_before[second] >> first & 1)

    waits = Waits(work, spec, before, all_causes=False)
    rows = [
        tuple(wait for wait in waits.waits_of(number) if _is_certain_wait(work, number, wait))
        for number in range(len(work.rows))
    ]
    awaited: list[frozenset[int]] = [frozenset()] * len(rows)
    changed = True
    while changed:
        changed = False
        for number, waits_ in enumerate(rows):
            more = awaited[number].union(*(awaited[wait.awaited] for wait in waits_))
            ends = {wait.awaited for wait in waits_ if wait.for_end}
            more |= {k for k in ends if work.rows[k].is_launch}
            if writes := writes_for(waits, number):
                more |= frozenset.intersection(*(awaited[k] for k in writes))
            if more != awaited[number]:
                awaited[number] = more
                changed = True
    return tuple(awaited)
