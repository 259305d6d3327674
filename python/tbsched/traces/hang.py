"""Programs that hang: what never starts, and who waits for whom."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from collections.abc import Sequence as ListOf
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from tbsched.errors import on_one_line, shown
from tbsched.program.checks import integer
from tbsched.program.events.memory_values import MAX_VALUE, WaitValue, WriteValue
from tbsched.program.events.synchronize import Synchronize
from tbsched.program.meeting_groups import meeting_groups
from tbsched.program.sequence import HostCall, Launch, RecordEvent, Sequence, Stream

# A launch that hangs: its number, how many of its blocks start, the cause that keeps back the next
# one, and what it is behind, as in ``Trace.waits``.
HungLaunch: TypeAlias = tuple[int, int, str | None, int]

_MAX_LINES = 10
# What a launch waits for that another one has, by cause; the other causes are of an order.
_HELD = {
    "slots": "slots for blocks", "warps": "warps", "registers": "registers",
    "shared_memory": "shared memory", "configuration": "the shared-memory configuration",
    "local_memory": "local memory, which waits for an idle GPU",
    "cooperative": "room for all its blocks at once", "grids": "a place among the resident grids",
}  # fmt: skip
_ORDER = {
    "queue": "is in line for room behind", "priority": "is in line for room behind",
    "stream": "is in its stream behind", "hardware_queue": "is in its hardware queue behind",
    "event": "waits for an event behind", "legacy_stream": "waits, through the legacy stream, for",
    "trigger": "waits for the triggers of", "node": "waits, in its graph, for",
    "first_use": "waits until a kernel is loaded, behind",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Stranded:
    """A launch of which some blocks never start.

    Attributes:
        launch: its number.
        gpu: the index of its GPU.
        blocks: how many of its blocks never start.
        cause: why the next of them does not start, a word as in ``Placement.limiter``; or
            ``"host"``: the host never makes the call.
        behind: the launch that it is behind, if the cause is an order of launches and it is one.
    """

    launch: int
    gpu: int
    blocks: int
    cause: str
    behind: int | None = None


@dataclass(frozen=True, slots=True)
class WaitsFor:
    """One launch waits for ever for another one.

    Attributes:
        launch: the number of the one that waits.
        gpu: the index of its GPU.
        other: the number of the launch that it waits for.
        cause: ``"meets"``: its blocks wait for blocks of the other one. Else why its next block
            does not start, a word as in ``Stranded.cause``.
    """

    launch: int
    gpu: int
    other: int
    cause: str


@dataclass(frozen=True, slots=True)
class AwaitedValue:
    """A value in memory for which a stream waits for ever.

    Attributes:
        gpu: the index of the stream's GPU.
        name: of the value.
        value: what it must be at least.
        has: what it is.
    """

    gpu: int
    name: str
    value: int
    has: int


@dataclass(frozen=True, slots=True)
class Hang:
    """Why a program hangs: some of it never starts, or never ends.

    Attributes:
        stranded: the launches of which blocks never start, a :class:`Stranded` each.
        waiting: the numbers of the launches with resident blocks that never end.
        cycle: launches that wait for each other in a circle, a :class:`WaitsFor` each; the last one
            waits for the first. Empty where nobody does what they wait for.
        calls: the numbers of the events whose calls never return.
        values: the values for which streams wait, an :class:`AwaitedValue` each.
        text: all of it, in words.

    Example:
        >>> grid = tb.Launch(2, 1024, 64, 200 * 1024, duration=1e-5, meets="grid", name="grid")
        >>> large = tb.Launch(133, 1024, 64, 200 * 1024, duration=1e-5, meets="all", name="large")
        >>> tb.predict(tb.Sequence([grid]), "h200").hang is None
        True
        >>> hang = tb.predict(tb.Sequence([large]), "h200").hang
        >>> hang.stranded
        (Stranded(launch=0, gpu=0, blocks=1, cause='registers', behind=None),)
        >>> print(hang.text)
        It hangs.
        1 of 133 blocks of launch 0 (large) never starts: registers are missing.
        Launch 0 (large) waits for its own blocks, which it meets as 'all'.
    """

    stranded: tuple[Stranded, ...]
    waiting: tuple[int, ...]
    cycle: tuple[WaitsFor, ...]
    calls: tuple[int, ...]
    values: tuple[AwaitedValue, ...]
    text: str

    def __str__(self) -> str:
        return self.text


def hang_of(
    seq: Sequence,
    launches: Iterable[HungLaunch],
    calls: Iterable[int],
    values: Iterable[tuple[int, str, int, int]],
) -> Hang:
    """Returns the hang of a sequence, from what is left of it when nothing more happens."""
    pending = {launch: (started, cause, behind) for launch, started, cause, behind in launches}
    gpus = seq.launch_gpus
    stranded = tuple(
        Stranded(
            launch,
            gpus[launch],
            seq.launches[launch].blocks - started,
            cause,
            behind if behind >= 0 else None,
        )
        for launch, (started, cause, behind) in pending.items()
        if cause is not None
    )
    waiting = tuple(launch for launch, (started, _, _) in pending.items() if started > 0)
    waits = _Waits(seq, stranded, waiting, tuple(calls))
    cycle = waits.cycle()
    awaited = tuple(AwaitedValue(*value) for value in values)
    return Hang(stranded, waiting, cycle, tuple(calls), awaited, waits.text(cycle, awaited))


class _Waits:
    """Who waits for whom, of what is left of a sequence."""

    def __init__(
        self,
        seq: Sequence,
        stranded: tuple[Stranded, ...],
        waiting: tuple[int, ...],
        calls: tuple[int, ...],
    ) -> None:
        self._seq = seq
        self._gpus = seq.launch_gpus
        self._has_several_gpus = seq.gpus > 1
        self._stranded = {item.launch: item for item in stranded}
        self._waiting = waiting
        self._calls = calls
        self._pending = tuple(dict.fromkeys((*waiting, *self._stranded)))
        self._by_call: dict[int, list[int]] = {}
        self._group_of = {
            launch: group
            for group in meeting_groups(seq).values()
            for launch in group
            if not seq.launches[launch].in_block_order
        }
        self._event_of = [position for position, event in enumerate(seq) for _ in event.launches]

    def waits_for(self, launch: int) -> list[tuple[int, str]]:
        """Returns what a launch waits for: the numbers of launches, each with the cause in
        words.
        """
        reasons: list[tuple[int, str]] = []
        if launch in self._waiting:
            group = self._group_of.get(launch, ())
            reasons += [
                (other_launch, "meets") for other_launch in group if other_launch in self._stranded
            ]
        stranded_launch = self._stranded.get(launch)
        if stranded_launch is None:
            return reasons
        if stranded_launch.behind is not None:
            reasons.append((stranded_launch.behind, stranded_launch.cause))
        elif stranded_launch.cause in _HELD:
            on_gpu = [k for k in self._waiting if self._gpus[k] == stranded_launch.gpu]
            reasons += [(other_launch, stranded_launch.cause) for other_launch in on_gpu]
        elif stranded_launch.cause == "value":
            reasons += [(other_launch, "value") for other_launch in self._writers(launch)]
        elif stranded_launch.cause == "host":
            reasons += [
                (other_launch, "host")
                for other_launch in self._awaited_by_host(self._event_of[launch])
            ]
        return reasons

    def cycle(self) -> tuple[WaitsFor, ...]:
        """Returns a shortest cycle of launches that wait for each other, of the first launch that
        is in one; empty: there is none."""
        for_values = [
            k for k, stranded_launch in self._stranded.items() if stranded_launch.cause == "value"
        ]
        for start in (*self._waiting, *for_values):
            before: dict[int, tuple[int, str]] = {}
            line = deque([start])
            while line and start not in before:
                launch = line.popleft()
                for next_launch, cause in self.waits_for(launch):
                    if next_launch not in before:
                        before[next_launch] = (launch, cause)
                        line.append(next_launch)
            if start in before:
                return self._circle(start, before)
        return ()

    def _circle(self, start: int, before: Mapping[int, tuple[int, str]]) -> tuple[WaitsFor, ...]:
        """Returns the waits of a cycle that begins at launch ``start``. ``before``: for each launch
        that is waited for, the one that waits for it, and the cause."""
        steps: list[WaitsFor] = []
        awaited = start
        while not steps or awaited != start:
            launch, cause = before[awaited]
            steps.append(WaitsFor(launch, self._gpus[launch], awaited, cause))
            awaited = launch
        return tuple(reversed(steps))

    def _unwritten(self, launch: int) -> WaitValue | None:
        """Returns the first wait before a launch in its stream that nothing ends."""
        event = self._seq[self._event_of[launch]]
        for wait in self._seq.events[: self._event_of[launch]]:
            if (
                isinstance(wait, WaitValue)
                and _queue_of(wait) == _queue_of(event)
                and not any(self._happens(position) for position in self._writes(wait))
            ):
                return wait
        return None

    def _writes(self, wait: WaitValue) -> list[int]:
        """Returns the events that would end a wait for a value."""
        return [
            position
            for position, event in enumerate(self._seq)
            if isinstance(event, WriteValue)
            and event.name == wait.name
            and event.value >= wait.value
        ]

    def _happens(self, position: int) -> bool:
        """Returns whether everything before an event in its stream ends, and it is issued."""
        return not self._before(position) and self._call_before(position) is None

    def _before(self, position: int) -> list[int]:
        """Returns the numbers of the launches before an event in its stream that have not ended."""
        queue = _queue_of(self._seq[position])
        return [
            launch
            for launch in self._pending
            if self._event_of[launch] < position
            and _queue_of(self._seq[self._event_of[launch]]) == queue
        ]

    def _call_before(self, position: int) -> int | None:
        """Returns the position of the call of the same host thread, before an event, that never
        returns; None: there is none."""
        host = getattr(self._seq[position], "host", 0)
        return next(
            (
                call
                for call in self._calls
                if call <= position and getattr(self._seq[call], "host", 0) == host
            ),
            None,
        )

    def _writers(self, launch: int) -> list[int]:
        """Returns the numbers of the launches behind which a value would be written for which a
        launch waits."""
        wait = self._unwritten(launch)
        if wait is None:
            return []
        launches: list[int] = []
        for position in self._writes(wait):
            launches += self._before(position)
            launches += self._awaited_by_host(position)
        return launches

    def _awaited_by_host(self, position: int) -> list[int]:
        """Returns the numbers of the launches for which the host thread of an event waits, instead
        of issuing the event."""
        call = self._call_before(position)
        if call is None:
            return []
        if call not in self._by_call:
            self._by_call[call] = self._awaited_by_call(call)
        return self._by_call[call]

    def _awaited_by_call(self, call: int) -> list[int]:
        """Returns the launches that a call waits for, or the call that holds the driver."""
        holder = self._holder(call)
        return self._awaited_by_itself(call if holder is None else holder)

    def _holder(self, call: int) -> int | None:
        """Returns the position of the call of another thread that holds this call up while it waits
        itself; None: none does."""
        event = self._seq[call]
        if isinstance(event, Synchronize) or (isinstance(event, HostCall) and not event.holds):
            return None
        return next(
            (
                holder
                for holder in self._calls
                if isinstance(call_of_holder := self._seq[holder], HostCall)
                and call_of_holder.holds == "throughout"
                and call_of_holder.host != getattr(event, "host", 0)
            ),
            None,
        )

    def _awaited_by_itself(self, call: int) -> list[int]:
        """Returns the numbers of the launches whose end a call waits for: those of its stream, or
        of its GPU."""
        event = self._seq[call]
        if isinstance(event, Synchronize) and event.event is not None:
            return self._awaited_by_event(event.event, call)
        gpu, stream = _queue_of(event)
        is_of_all = isinstance(event, HostCall | Synchronize) and stream is None
        return [
            launch
            for launch in self._pending
            if self._may_precede(self._event_of[launch], call)
            and self._gpus[launch] == gpu
            and (is_of_all or _queue_of(self._seq[self._event_of[launch]])[1] == stream)
        ]

    def _awaited_by_event(self, name: int, call: int) -> list[int]:
        """Returns the numbers of the launches whose end a call awaits by waiting for a CUDA
        event.
        """
        records = [
            position
            for position, event in enumerate(self._seq)
            if self._may_precede(position, call)
            and (
                (isinstance(event, RecordEvent) and event.event == name)
                or (isinstance(event, Launch) and event.completion_event == name)
            )
        ]
        # The last one counts. Threads are called in an order that the sequence does not say.
        earlier = [position for position in records if position < call][-1:]
        launches: dict[int, None] = {}
        for position in earlier or records:
            launches |= dict.fromkeys(self._before(position))
            launches |= dict.fromkeys(k for k in self._pending if self._event_of[k] == position)
        return list(launches)

    def _may_precede(self, position: int, call: int) -> bool:
        """Returns whether an event is called before a call, or another thread may do so."""
        host = getattr(self._seq[position], "host", 0)
        return position < call or host != getattr(self._seq[call], "host", 0)

    def text(self, cycle: tuple[WaitsFor, ...], values: tuple[AwaitedValue, ...]) -> str:
        """Returns sentences that say what hangs: the stranded blocks, the cycle of waits and the
        values that nobody writes."""
        lines = ["It hangs."]
        stranded = list(self._stranded.values())
        lines += [
            self._stranded_sentence(stranded_launch) for stranded_launch in stranded[:_MAX_LINES]
        ]
        if len(stranded) > _MAX_LINES:
            lines.append(f"Blocks of {len(stranded) - _MAX_LINES} more launches never start.")
        lines += [self._wait_sentence(step) for step in cycle]
        lines += list(dict.fromkeys(map(self._value_sentence, values)))
        for call in self._calls[:_MAX_LINES]:
            lines.append(f"The call of event {call} never returns: {self._seq[call]!r}.")
        return "\n".join(lines)

    def _name(self, launch: int, capital: bool = False) -> str:
        """Returns words for a launch: its index, its name, and its GPU if there are several."""
        name = self._seq.launches[launch].name
        words = f"{'L' if capital else 'l'}aunch {launch}" + (
            f" ({on_one_line(name)})" if name else ""
        )
        return f"{words} on GPU {self._gpus[launch]}" if self._has_several_gpus else words

    def _stranded_sentence(self, stranded: Stranded) -> str:
        """Returns a sentence: how many blocks of a launch never start, and why."""
        blocks = self._seq.launches[stranded.launch].blocks
        count = "The only block" if blocks == 1 else f"{stranded.blocks} of {blocks} blocks"
        verb = "starts" if stranded.blocks == 1 else "start"
        words = f"{count} of {self._name(stranded.launch)} never {verb}: "
        if stranded.cause in _HELD:
            return words + f"{_HELD[stranded.cause]} {_are(stranded.cause)} missing."
        if stranded.behind is not None:
            return (
                words
                + f"it {_ORDER.get(stranded.cause, 'waits for')} {self._name(stranded.behind)}."
            )
        if stranded.cause == "value":
            wait = self._unwritten(stranded.launch)
            value = "a value" if wait is None else f"the value {wait.name!r}"
            return words + f"its stream waits for {value}."
        if stranded.cause == "hardware_queue":
            return words + "a value or a host function holds up its hardware queue."
        if stranded.cause == "host":
            return words + "the host never calls it."
        return words + f"{stranded.cause}."

    def _wait_sentence(self, step: WaitsFor) -> str:
        """Returns a sentence: who waits for whom in one step of the cycle."""
        waiter = self._name(step.launch, capital=True)
        if step.cause == "meets":
            group = self._seq.launches[step.launch].meets
            is_itself = step.launch == step.other
            whom = "its own blocks" if is_itself else f"blocks of {self._name(step.other)}"
            return f"{waiter} waits for {whom}, which it meets as {group!r}."
        awaited = "itself" if step.launch == step.other else self._name(step.other)
        if step.cause in _HELD:
            return f"{waiter} waits for {_HELD[step.cause]} that {awaited} has."
        if step.cause == "value":
            return f"{waiter} waits for a value that is written behind {awaited}."
        if step.cause == "host":
            return f"{waiter} waits for a host that waits for {awaited}."
        return f"{waiter} {_ORDER.get(step.cause, 'waits for')} {awaited}."

    def _value_sentence(self, value: AwaitedValue) -> str:
        """Returns a sentence: which value a stream waits for, and that nobody writes it."""
        written = [
            event.value
            for event in self._seq
            if isinstance(event, WriteValue) and event.name == value.name
        ]
        nobody = "; nobody writes so much" if max(written, default=0) < value.value else ""
        where = f" of GPU {value.gpu}" if self._has_several_gpus else ""
        return (
            f"A stream{where} waits until the value {value.name!r} is at least {value.value}; it "
            f"is {value.has}{nobody}."
        )


def _queue_of(event: object) -> tuple[int, Stream | None]:
    """Returns the GPU and stream of an event."""
    return getattr(event, "gpu", 0), getattr(event, "stream", None)


def _are(cause: str) -> str:
    return "are" if cause in ("slots", "warps", "registers") else "is"


class _MayHang(Protocol):
    @property
    def hang(self) -> Hang | None: ...


def refuse_hang(owner: str, trace: _MayHang) -> None:
    """Refuses a trace of a program that hangs.

    Raises:
        ValueError: it hangs; says why.
    """
    if trace.hang is not None:
        why = " ".join(trace.hang.text.split())
        raise ValueError(f"{owner}: the program never ends. {why}")


def hang_to_data(hang: Hang, blocks: ListOf[int]) -> dict[str, Any]:
    """Returns a hang as trace files hold it.

    Args:
        hang: of a trace.
        blocks: of each launch.
    """
    stranded = {stranded_launch.launch: stranded_launch for stranded_launch in hang.stranded}
    launches: list[list[object]] = []
    for launch in sorted({*hang.waiting, *stranded}):
        stranded_launch = stranded.get(launch)
        if stranded_launch is None:
            launches.append([launch, blocks[launch], None, -1])
        else:
            behind = -1 if stranded_launch.behind is None else stranded_launch.behind
            launches.append(
                [launch, blocks[launch] - stranded_launch.blocks, stranded_launch.cause, behind]
            )
    values = [[awaited.gpu, awaited.name, awaited.value, awaited.has] for awaited in hang.values]
    return {"launches": launches, "calls": list(hang.calls), "values": values}


def hang_from_data(seq: Sequence, data: object) -> Hang:
    """Returns the inverse of :func:`hang_to_data`.

    Raises:
        TypeError, ValueError: naming the field.
    """
    if not isinstance(data, dict) or set(data) != {"launches", "calls", "values"}:
        raise ValueError(
            f"hang: an object of launches, calls and values is needed, got {shown(data)}"
        )
    rows: list[HungLaunch] = []
    for row in _checked_list("launches", data["launches"]):
        if not isinstance(row, list) or len(row) != 4 or not isinstance(row[2], str | None):
            raise ValueError(
                "hang.launches: launch, blocks that start, cause and launch behind are needed, got "
                f"{shown(row)}"
            )
        last = len(seq.launches) - 1
        launch = integer("hang", "launches", row[0], 0, last)
        max_started = seq.launches[launch].blocks - (row[2] is not None)
        started = integer("hang", "launches", row[1], 0, max_started)
        rows.append((launch, started, row[2], integer("hang", "launches", row[3], -1, last)))
    calls = [
        integer("hang", "calls", call, 0, len(seq) - 1)
        for call in _checked_list("calls", data["calls"])
    ]
    values: list[tuple[int, str, int, int]] = []
    for row in _checked_list("values", data["values"]):
        if not isinstance(row, list) or len(row) != 4 or not isinstance(row[1], str):
            raise ValueError(
                f"hang.values: GPU, name, value and what it is are needed, got {shown(row)}"
            )
        gpu, name, *fields = row
        value, has = (integer("hang", "values", field, 0, MAX_VALUE) for field in fields)
        values.append((integer("hang", "values", gpu, 0, seq.gpus - 1), name, value, has))
    return hang_of(seq, rows, calls, values)


def _checked_list(key: str, value: object) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"hang.{key}: a list is needed, got {shown(value)}")
    return value
