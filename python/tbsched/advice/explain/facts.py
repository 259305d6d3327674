"""What is known of each launch of a profile, measured and predicted, as arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from tbsched.advice.account.account import Account
from tbsched.advice.account.labels import Labels
from tbsched.advice.explain.call_windows import longer_seconds, window_seconds
from tbsched.advice.explain.explanation import Cause
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.fitting.coarse import blocks_at_once
from tbsched.prediction.fitting.issued import IssuedCalls
from tbsched.program.activity import COLLECTIVE
from tbsched.program.arrays import BoolArray, Float64Array, Int32Array, Int64Array
from tbsched.program.events.graph import GraphLaunch
from tbsched.program.events.transfers import Transfer, transfer_key
from tbsched.program.program import Program
from tbsched.program.sequence import LEGACY_STREAM, Event, Launch, Stream
from tbsched.traces.trace import Trace

NOTHING = -1
_MAX_NAME_LETTERS = 40  # letters
_LONG_CALL_FACTOR = 5  # times the usual duration of a call


@dataclass(frozen=True, slots=True)
class LongCalls:
    """Calls of launches that took long, (calls,) each.

    Attributes:
        launch: the first launch of the call, int64.
        loads: whether it loads its kernel, as the program says, bool.
        may_load: whether it seems to: it is the first launch of a kernel, bool.
    """

    launch: Int64Array
    loads: BoolArray
    may_load: BoolArray

    @classmethod
    def of(cls, program: Program, call_ns: Int64Array) -> LongCalls:
        """Returns the long calls of a program, given each launch's call duration in ns."""
        usual = float(np.median(call_ns)) if len(call_ns) else 0.0
        rows: list[tuple[int, bool, bool]] = []
        names: set[str] = set()
        number = 0
        for event in program.sequence:
            launches = event.launches
            loads = any(launch.first_use for launch in launches)
            if loads or (launches and 0 < usual * _LONG_CALL_FACTOR < call_ns[number]):
                may_load = any(launch.name not in names for launch in launches)
                rows.append((number, loads, may_load))
            names.update(launch.name for launch in launches if launch.name is not None)
            number += len(launches)
        launch, loaded, may = np.array(rows, np.int64).reshape(-1, 3).T
        return cls(launch, loaded.astype(np.bool_), may.astype(np.bool_))


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts of each launch, (launches,) each; times in ns on the clock of the profile.

    Attributes:
        program, spec, prediction: what is explained.
        account: where its time went.
        labels: of its parts, and of gaps.
        start_ns, end_ns: when its kernel ran, int64.
        arrived_ns: when it reached the GPU, float64.
        long_calls: calls that kept the host long.
        window_seconds: from the last call of its host to each call by the profile, float64
            (events,); NaN: unknown.
        longer_seconds: by how many each call took longer than predicted, float64 (events,); below
            0: it took less, NaN: unknown. Before launches and copies the gap is longer by it.
        event: the place of its event in the sequence, int64.
        before: what comes before it in its stream, or in its graph, and ended last, int64: a
            launch, -2 - k for transfer k, or ``NOTHING``.
        free_ns: when that had ended, int64; the start of the first kernel if there is nothing.
        predicted_ns: when it starts by the prediction, int64, on the clock of the prediction.
        waits: of each row of ``prediction.waits`` the launch, int32 (waits,).
        names: of kernels, as they are shown.
    """

    program: Program
    spec: DeviceSpec
    prediction: Trace
    account: Account
    labels: Labels
    start_ns: Int64Array
    end_ns: Int64Array
    arrived_ns: Float64Array
    long_calls: LongCalls
    window_seconds: Float64Array
    longer_seconds: Float64Array
    event: Int64Array
    before: Int64Array
    free_ns: Int64Array
    predicted_ns: Int64Array
    waits: Int32Array
    names: Mapping[str, str]

    @classmethod
    def of(
        cls, program: Program, spec: DeviceSpec, prediction: Trace, account: Account, labels: Labels
    ) -> Facts:
        """Returns the facts of a program whose durations were fitted."""
        rows = program.measured
        start, end = rows["start_ns"], rows["end_ns"]
        arrival_ns = _arrival_ns(program, spec, prediction)
        order = _PredecessorFinder(program)
        for index, event in enumerate(program.sequence):
            order.add(index, event)
        starts = [int(p.start_ns.min()) for p in prediction if p.start_ns is not None]
        assert prediction.waits is not None  # of a timed prediction
        call = np.where(rows["call_ns"] < 0, 0, rows["return_ns"] - rows["call_ns"])
        long_calls = LongCalls.of(program, np.maximum(call, 0))
        return cls(
            program, spec, prediction, account, labels, start, end, arrival_ns, long_calls,
            window_seconds(program, account.activity),
            longer_seconds(program, prediction, account.activity), np.array(order.event),
            np.array(order.before), np.array(order.free_ns), np.array(starts),
            prediction.waits["launch"].copy(), names_of(program),
        )  # fmt: skip

    @property
    def calls(self) -> Int64Array:
        """The call of each event, int64: its row in ``account.activity.host``; -1: unknown."""
        calls = self.program.calls
        assert calls is not None  # an explained program has them
        return calls

    def idle_share(self, launch: int) -> float:
        """Returns the share of the GPU's room, 0 to 1, that a launch leaves to others."""
        launch_ = self.program.sequence.launches[launch]
        return max(0.0, 1 - launch_.blocks / blocks_at_once(self.spec, launch_))

    def warp_share(self, launch: int) -> float:
        """Returns the share of the GPU's warps, 0 to 1, that a launch's blocks take at once."""
        launch_ = self.program.sequence.launches[launch]
        resident = min(launch_.blocks, blocks_at_once(self.spec, launch_))
        warps = -(-launch_.threads // 32) * resident
        return min(1.0, warps / (self.spec.sms * self.spec.warps_per_sm))

    def stream_of(self, launch: int) -> Stream | None:
        """Returns the stream that a launch, or its graph, was launched in."""
        event = self.program.sequence[int(self.event[launch])]
        assert isinstance(event, Launch | GraphLaunch)
        return event.stream

    def is_collective(self, launch: int) -> bool:
        """Returns whether a launch's kernel is a collective, which works with other GPUs."""
        row = int(self.program.measured["work"][launch])
        return bool(self.account.activity.work["kind"][row] == COLLECTIVE)

    def host_of(self, launch: int) -> int:
        """Returns the number of the host thread that issued a launch."""
        return int(getattr(self.program.sequence[int(self.event[launch])], "host", 0))

    def host_name(self, cause: Cause) -> int:
        """Returns the index in ``activity.names`` of what the host did, or ``UNKNOWN``."""
        return self.labels.host_name(self.labels.number(cause.cause, cause.by))

    def named(self, launch: int) -> str:
        """Returns words for a launch, or for transfer k given as -2 - k, by number and name."""
        if launch <= -2:
            kind = transfer_key(self.program.sequence.transfers[-2 - launch]).replace("_", " ")
            return f"{kind} {-2 - launch}"
        name = self.kernel_name(launch)
        return f"launch {launch} ({name})" if name else f"launch {launch}"

    def kernel_name(self, launch: int) -> str:
        """Returns the kernel name of a launch, cut if long, distinct from others; empty: none."""
        name = self.program.sequence.launches[launch].name
        return self.names[name] if name else ""

    def alike(self, launch: int) -> list[int]:
        """Returns the launches of the same kernel in the same stream, itself among them."""
        name, stream = self.program.sequence.launches[launch].name, self.stream_of(launch)
        if name is None:
            return [launch]
        return [
            number
            for number, other in enumerate(self.program.sequence.launches)
            if other.name == name and self.stream_of(number) == stream
        ]


def _arrival_ns(program: Program, spec: DeviceSpec, prediction: Trace) -> Float64Array:
    """Returns when each launch reached the GPU, in ns, by the profile or else the prediction."""
    start = program.measured["start_ns"].astype(np.float64)
    calls = IssuedCalls.of(program, spec)
    if calls is None:
        assert prediction.call_ns is not None  # of a prediction with the host's gaps
        first = min(int(p.start_ns.min()) for p in prediction if p.start_ns is not None)
        launches = [len(event.launches) for event in program.sequence]
        # A call rings the GPU at its end.
        doorbell_ns = np.repeat(prediction.call_ns[:, 1] - spec.launch_call_ns, launches)
        issued = (doorbell_ns - first + start.min()).astype(np.float64)
        arrived: Float64Array = np.minimum(issued + spec.launch_latency_ns, start)
        return arrived
    row = np.searchsorted(calls.first, np.arange(len(start)), side="right") - 1
    issued = np.minimum(calls.issued_ns[row], start)
    return np.minimum(issued + calls.latency_ns[row], start)


def names_of(program: Program) -> dict[str, str]:
    """Returns short names of kernels by full name; those that begin alike get a number."""
    short: dict[str, str] = {}
    count_of: dict[str, int] = {}
    for name in dict.fromkeys(launch.name for launch in program.sequence.launches if launch.name):
        cut = name if len(name) <= _MAX_NAME_LETTERS else f"{name[: _MAX_NAME_LETTERS - 1]}…"
        count_of[cut] = number = count_of.get(cut, 0) + 1
        short[name] = cut if number == 1 else f"{cut}{number}"
    return short


class _PredecessorFinder:
    """Finds the work that precedes each launch in its stream or graph, event by event."""

    def __init__(self, program: Program) -> None:
        rows, moved = program.measured, program.transfers
        self._end = {k: int(end) for k, end in enumerate(rows["end_ns"].tolist())}
        self._end |= {-2 - k: int(end) for k, end in enumerate(moved["end_ns"].tolist())}
        self._end[NOTHING] = int(rows["start_ns"].min()) if len(rows) else 0
        self._launches = self._transfers = 0
        self._last: dict[Stream | None, int] = {}
        self._blocking: dict[Stream | None, int] = {}  # streams that the legacy stream waits for
        self.event: list[int] = []
        self.before: list[int] = []
        self.free_ns: list[int] = []

    def add(self, place: int, event: Event) -> None:
        """Adds the launches of the next event of the program."""
        if isinstance(event, Launch | GraphLaunch | Transfer):
            last = self._last_of(event)
            nodes = [*self._numbers(event)]
            before = [last] * len(nodes)
            if isinstance(event, GraphLaunch):
                for first, second in event.graph.edges:
                    before[second] = self._later(before[second], nodes[first])
            for number, before_ in zip(nodes, before, strict=True):
                if number >= 0:
                    self.event.append(place)
                    self.before.append(before_)
                    self.free_ns.append(self._end[before_])
            if event.stream is not None:
                for number in nodes:
                    last = self._later(last, number)
                self._last[event.stream] = last
                if not event.non_blocking:
                    self._blocking[event.stream] = last

    def _last_of(self, event: Launch | GraphLaunch | Transfer) -> int:
        """Returns the last work of an event's stream; for the legacy one, of blocking streams."""
        stream = event.stream
        if stream == LEGACY_STREAM:
            return max(self._blocking.values(), key=self._end.__getitem__, default=NOTHING)
        if stream is None:
            return NOTHING
        own = self._later(self._last.get(stream, NOTHING), NOTHING)
        if event.non_blocking:
            return own
        return self._later(own, self._last.get(LEGACY_STREAM, NOTHING))

    def _later(self, first: int, second: int) -> int:
        """Returns which of two pieces of work ended later."""
        return first if self._end[first] >= self._end[second] else second

    def _numbers(self, event: Event) -> Iterator[int]:
        """Yields the number of each node: launches from 0 up, other work from -2 down."""
        nodes = event.graph.nodes if isinstance(event, GraphLaunch) else (event,)
        for node in nodes:
            if isinstance(node, Launch):
                self._launches += 1
                yield self._launches - 1
            else:
                self._transfers += 1
                yield -1 - self._transfers
