"""Work on the GPU and the calls that made it, joined by the correlation numbers of CUPTI.

Profilers that stand on CUPTI write a record for each call and one for each piece of work, in any
order. Both have the same correlation number; the nodes of a graph have that of its launch.
"""

from __future__ import annotations

import functools
import operator
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from tbsched.importers.records import (
    EventCall,
    GraphCall,
    Kernel,
    Record,
    SynchronizeCall,
    Transfer,
    WaitingCall,
)
from tbsched.program.activity import UNKNOWN, Activity, ActivityBuilder, function_name

_EVENT_CALLS = {
    "cudaEventRecord": "record", "cudaEventRecordWithFlags": "record",
    "cuEventRecord": "record", "cuEventRecordWithFlags": "record",
    "cudaStreamWaitEvent": "wait", "cuStreamWaitEvent": "wait",
    "cudaStreamSynchronize": "stream", "cuStreamSynchronize": "stream",
    "cudaEventSynchronize": "event", "cuEventSynchronize": "event",
    "cudaDeviceSynchronize": "device", "cuCtxSynchronize": "device",
}  # fmt: skip
# They wait for the device, and then do something else. Those that load modules do, too, but launch
# calls load most kernels.
_WAITING = frozenset({"cudaFree", "cudaFreeHost", "cudaHostUnregister"})
MOST_PREDICTED = 50_000  # kernels; each takes some hundred bytes and microseconds
_GRAPHS = ("cudaGraphLaunch", "cuGraphLaunch")
_WORK = ("cudaLaunch", "cuLaunch", *_GRAPHS, "cudaMemcpy", "cuMemcpy", "cudaMemset", "cuMemset")


class Call(NamedTuple):
    """A call.

    ``what`` is "work", "blocking" (a copy that blocks), "graph", what it does with an event, or the
    name of one that waits for the device and does something else.
    """

    what: str
    thread: int
    call_ns: int
    return_ns: int
    host_row: int


class Waited(NamedTuple):
    """What a call waits for, or makes a stream wait for; None: unknown, or none."""

    stream: int | None
    event: int | None


# The class of a record, the names of its fields and their values.
_Row: TypeAlias = tuple[int, type[Kernel] | type[Transfer], tuple[str, ...], tuple[Any, ...]]


@functools.lru_cache(maxsize=4096)
def what_calls(name: str) -> str | None:
    """Returns the kind of a CUDA function, as in :class:`Call`; None: no part of a program."""
    bare = function_name(name)
    if bare.startswith(_GRAPHS):
        return "graph"
    if bare.startswith(("cudaMemcpy", "cuMemcpy")):
        return "work" if "Async" in bare else "blocking"
    if bare in _WAITING:
        return bare
    return "work" if bare.startswith(_WORK) else _EVENT_CALLS.get(bare)


@dataclass(slots=True)
class Joined:
    """Collects what a file says, then makes records of it.

    Attributes:
        calls: by correlation.
        waited: by correlation of the call that waits.
        recorded: by correlation of the call that records: the event and the stream.
        gpus: by correlation of the call that waits, or records, of which GPU; if the file says it.
        unknown_waits: calls that make a stream wait for nobody knows what.

        activity: what ran on all GPUs, and what host threads did.
        is_too_long: whether there are more kernels than are predicted; then it keeps no records.

    Only the work of the GPU with the most kernels becomes records, and none of a program that is
    too long to be predicted.
    """

    calls: dict[int, Call] = field(default_factory=dict)
    waited: dict[int, Waited] = field(default_factory=dict)
    recorded: dict[int, tuple[int, int]] = field(default_factory=dict)
    gpus: dict[int, int] = field(default_factory=dict)
    unknown_waits: int = 0
    activity: ActivityBuilder = field(default_factory=ActivityBuilder)
    is_too_long: bool = False
    _kernels_of: Counter[int] = field(default_factory=Counter)
    _threads: dict[object, int] = field(default_factory=dict)
    _work: list[_Row] = field(default_factory=list)

    def add_call(
        self, correlation: int, name: str, process: object, thread: object, call_ns: int,
        return_ns: int,
    ) -> None:  # fmt: skip
        """A call; one that a program has is a record, of nested ones the outer one."""
        row = self.activity.add_call(name, process, thread, call_ns, return_ns, correlation)
        if correlation < 0:
            return
        what = what_calls(name)
        if what is None or self.is_too_long:
            return
        number = self._threads.setdefault((process, thread), len(self._threads))
        before = self.calls.get(correlation)
        if before is None or call_ns < before.call_ns:
            self.calls[correlation] = Call(what, number, call_ns, return_ns, row)

    def add_work(
        self,
        correlation: int,
        kind: type[Kernel] | type[Transfer],
        names: tuple[str, ...],
        values: tuple[Any, ...],
    ) -> None:
        """Work that ran, as the fields of its record."""
        if kind is Kernel:
            self._kernels_of[values[names.index("device")]] += 1
            self.is_too_long = self.is_too_long or self.kernels > MOST_PREDICTED
        if not self.is_too_long:
            self._work.append((correlation, kind, names, values))
        elif self._work or self.calls:
            self._work.clear()
            self.calls.clear()

    @property
    def kernels(self) -> int:
        """How many kernels ran, on all GPUs."""
        return self._kernels_of.total()

    @property
    def device(self) -> int | None:
        """The GPU with the most kernels; None if there are none."""
        return max(self._kernels_of, key=lambda device: self._kernels_of[device], default=None)

    @property
    def left_out(self) -> list[str]:
        """What is not in the records, in sentences."""
        others = [device for device in self._kernels_of if device != self.device]
        if not others:
            return []
        count = sum(self._kernels_of[device] for device in others)
        return [
            f"{count} kernels ran on {len(others)} other GPUs: they are in the account, but only "
            f"GPU {self.device} is predicted, and nothing of it is assumed to wait for them."
        ]

    def records(self) -> tuple[list[Record], Activity]:
        """Everything, joined. The work is gone afterwards, to save memory."""
        activity, rows = self.activity.built()
        found: list[Record] = []
        nodes: dict[int, tuple[int, int, int | None]] = {}
        device = self.device
        self._work.reverse()
        while self._work:
            correlation, kind, names, values = self._work.pop()
            given = dict(zip(names, values, strict=True))
            executable = given.pop("executable", None)
            given["row"] = int(rows[given["row"]])
            if given["device"] != device or given["row"] == UNKNOWN:
                continue
            call = self.calls.get(correlation)
            if call is None:
                found.append(kind(**given))
            elif call.what == "graph":
                started = (given["start_ns"], given["stream"], executable)
                first = nodes.setdefault(correlation, started)
                nodes[correlation] = min(first, started, key=operator.itemgetter(0))
                found.append(kind(**given, graph=correlation))
            else:
                if kind is Transfer and given["kind"] != "memset":
                    given["blocking"] = call.what == "blocking"
                found.append(kind(**given, **_times(call)))
        for correlation, (_, stream, executable) in nodes.items():
            times = _times(self.calls[correlation])
            graph = GraphCall(number=correlation, stream=stream, executable=executable, **times)
            found.append(graph)
        found += filter(None, [self._event(*item) for item in self.calls.items()])
        return found, activity

    def _event(self, correlation: int, call: Call) -> Record | None:
        """The record of a call that makes no work; None: it makes nothing of the program wait."""
        if self.gpus.get(correlation, self.device) != self.device:
            return None
        times = _times(call)
        if call.what == "record":
            if correlation not in self.recorded:
                return None  # nobody waits for it, as far as the file tells
            number, of = self.recorded[correlation]
            return EventCall(event=number, stream=of, **times)
        if call.what == "device":
            return SynchronizeCall(**times)
        if call.what in _WAITING:
            return WaitingCall(name=call.what, **times)
        stream, event = self.waited.get(correlation, Waited(None, None))
        if call.what == "wait":
            if stream is None or event is None:
                self.unknown_waits += 1
                of = -1 if stream is None else stream
                return EventCall(event=-1, stream=of, waits=True, known=False, **times)
            return EventCall(event=event, stream=stream, waits=True, **times)
        if call.what == "stream":
            return SynchronizeCall(stream=stream, known=stream is not None, **times)
        if call.what == "event":
            return SynchronizeCall(event=event, known=event is not None, **times)
        return None


def _times(call: Call) -> dict[str, Any]:
    return {
        "thread": call.thread, "call_ns": call.call_ns, "return_ns": call.return_ns,
        "host_row": call.host_row,
    }  # fmt: skip
