"""Work on the GPU and the calls that made it, joined by the correlation numbers of CUPTI.

Profilers that stand on CUPTI write a record for each call and one for each piece of work, in any
order. Both have the same correlation number; the nodes of a graph have that of its launch.
"""

from __future__ import annotations

import functools
import operator
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from tbsched.counting import counted
from tbsched.importers.reading.stream_numbers import FileStream, StreamNumbers
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
    "cudaThreadSynchronize": "device",  # its name before CUDA 4
}  # fmt: skip
# They wait for the device, and then do something else. Those that load modules do, too, but launch
# calls load most kernels.
_WAITING = frozenset({"cudaFree", "cudaFreeHost", "cudaHostUnregister"})
_WAITING_FOR_ANY = _WAITING | {"device", "stream", "event"}
MAX_PREDICTED = 50_000  # kernels; each takes some hundred bytes and microseconds
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

    stream: FileStream | None
    event: int | None


# The class of a record, the names of its fields and their values.
_Row: TypeAlias = tuple[int, type[Kernel] | type[Transfer], tuple[str, ...], tuple[Any, ...]]


@functools.lru_cache(maxsize=4096)
def what_calls(name: str) -> str | None:
    """Returns the kind of a CUDA function, such as ``work``; None: no work and no wait."""
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
        timed: correlations of calls that record an event with timing; one for each such event.
        gpus: by correlation of the call that waits, or records, of which GPU; if the file says it.
        unknown_waits: calls that make a stream wait for nobody knows what.
        unknown_gpus: calls that wait for a GPU that the file does not say, of threads that do not
            work for one GPU alone; 0 until there are records.

        activity: what ran on all GPUs, and what host threads did.
        streams: their numbers in the activity and in the records.
        is_too_long: whether there are more kernels than are predicted; then it keeps no records.

    Only the work of the GPU with the most kernels becomes records, and none of a program that is
    too long to be predicted.
    """

    calls: dict[int, Call] = field(default_factory=dict)
    waited: dict[int, Waited] = field(default_factory=dict)
    recorded: dict[int, tuple[int, FileStream]] = field(default_factory=dict)
    timed: set[int] = field(default_factory=set)
    gpus: dict[int, int] = field(default_factory=dict)
    unknown_waits: int = 0
    unknown_gpus: int = 0
    activity: ActivityBuilder = field(default_factory=ActivityBuilder)
    streams: StreamNumbers = field(default_factory=StreamNumbers)
    is_too_long: bool = False
    _kernels_of: Counter[int] = field(default_factory=Counter)
    _threads: dict[object, int] = field(default_factory=dict)
    _work: list[_Row] = field(default_factory=list)
    _ran: dict[int, set[int]] = field(default_factory=dict)  # nodes, by executable graph
    _nodes: dict[int, int] = field(default_factory=dict)  # how many, if the file says it

    def add_call(
        self, correlation: int, name: str, process: object, thread: object, call_ns: int,
        return_ns: int,
    ) -> None:  # fmt: skip
        """Adds a call; of nested calls with one correlation the outer one is the record."""
        row = self.activity.add_call(name, process, thread, call_ns, return_ns, correlation)
        if correlation < 0 or row == UNKNOWN:
            return
        what_of_call = what_calls(name)
        if what_of_call is None or self.is_too_long:
            return
        thread_index = self._threads.setdefault((process, thread), len(self._threads))
        before = self.calls.get(correlation)
        if before is None or call_ns < before.call_ns:
            self.calls[correlation] = Call(what_of_call, thread_index, call_ns, return_ns, row)

    def add_work(
        self, correlation: int, kind: type[Kernel] | type[Transfer], names: tuple[str, ...],
        values: tuple[Any, ...],
    ) -> None:  # fmt: skip
        """Adds work that ran, as the fields of its record."""
        if kind is Kernel:
            self._kernels_of[values[names.index("device")]] += 1
            self.is_too_long = self.is_too_long or self.kernels > MAX_PREDICTED
        if not self.is_too_long:
            self._work.append((correlation, kind, names, values))
        elif self._work or self.calls:
            for store in (self._work, self.calls, self.waited, self.recorded, self.gpus):
                store.clear()

    def add_wait(self, correlation: int, waited: Waited, gpu: int | None) -> None:
        """Notes what a call waits for, and of which GPU that is; None: unknown."""
        if not self.is_too_long:
            self.waited[correlation] = waited
            self._add_gpu(correlation, gpu)

    def add_recorded(
        self, correlation: int, event: int, stream: FileStream, gpu: int | None
    ) -> None:
        """Notes event, stream and GPU of a call that records a CUDA event; None: GPU unknown."""
        if not self.is_too_long:
            self.recorded[correlation] = event, stream
            self._add_gpu(correlation, gpu)

    def add_node(self, executable: int | None, node: int | None) -> None:
        """Notes that a node of an executable graph ran, selected or not; None: no graph."""
        if executable is not None and node is not None and node >> 32 == executable:
            self._ran.setdefault(executable, set()).add(node)

    def expect_nodes(self, executables: Collection[int], nodes: Iterable[int]) -> None:
        """Notes which graphs were launched, and all nodes of these and other graphs."""
        counts = Counter(node >> 32 for node in nodes)
        self._nodes.update(
            (executable, counts[executable]) for executable in executables if executable in counts
        )

    def _add_gpu(self, correlation: int, gpu: int | None) -> None:
        """Notes the GPU of a call, if it is known."""
        if gpu is not None:
            self.gpus[correlation] = gpu

    @property
    def kernels(self) -> int:
        """Number of kernels that ran, on all GPUs."""
        return self._kernels_of.total()

    @property
    def device(self) -> int | None:
        """The GPU with the most kernels; None: no kernel ran."""
        return max(self._kernels_of, key=lambda device: self._kernels_of[device], default=None)

    @property
    def left_out(self) -> list[str]:
        """Returns sentences about what is not in the records."""
        sentences = self.streams.sentences()
        others = [device for device in self._kernels_of if device != self.device]
        if others:
            count = sum(self._kernels_of[device] for device in others)
            sentences.append(
                f"{counted(count, 'kernel')} ran on {counted(len(others), 'other GPU')}: in the "
                f"account, but only GPU {self.device} is predicted, and nothing of it is assumed "
                "to wait for that."
            )
            if self.unknown_gpus:
                sentences.append(
                    f"For which GPU {self.unknown_gpus} calls wait: assumed the one that their "
                    "thread last launched work on."
                )
        if nodes := self._nodes_without_records():
            sentences.append(
                f"What {nodes} nodes of graphs do that leave no records, such as host functions, "
                "events and allocations: assumed that they take no time, and that no other stream "
                "waits for events that they record."
            )
        return sentences

    def _nodes_without_records(self) -> int:
        """Returns how many nodes of launched graphs have no record of a run.

        CUPTI numbers the nodes of a graph from its own number times 2^32. Where the file does not
        list them, those behind the last one that ran are not known.
        """
        up_to_last = {
            executable: max(nodes) - (executable << 32) + 1
            for executable, nodes in self._ran.items()
        }
        ran = Counter({executable: len(nodes) for executable, nodes in self._ran.items()})
        return (Counter(up_to_last | self._nodes) - ran).total()

    def records(self) -> tuple[list[Record], Activity]:
        """Returns all records and the activity; may be called once, as it frees its memory."""
        activity, rows = self.activity.built()
        records: list[Record] = []
        nodes: dict[int, tuple[int, int, int | None]] = {}
        gpus: dict[int, int] = {}
        device = self.device
        self._work.reverse()
        while self._work:
            correlation, kind, names, values = self._work.pop()
            fields = dict(zip(names, values, strict=True))
            executable = fields.pop("executable", None)
            fields["row"] = int(rows[fields["row"]])
            gpus[correlation] = fields["device"]
            if fields["device"] != device or fields["row"] == UNKNOWN:
                continue
            call = self.calls.get(correlation)
            if call is None:
                records.append(kind(**fields))
            elif call.what == "graph":
                started = (fields["start_ns"], fields["stream"], executable)
                first = nodes.setdefault(correlation, started)
                nodes[correlation] = min(first, started, key=operator.itemgetter(0))
                records.append(kind(**fields, graph=correlation))
            else:
                if kind is Transfer and fields["kind"] != "memset":
                    fields["blocking"] = call.what == "blocking"
                records.append(kind(**fields, **_times(call)))
        for correlation, (_, stream, executable) in nodes.items():
            times = _times(self.calls[correlation])
            graph = GraphCall(number=correlation, stream=stream, executable=executable, **times)
            records.append(graph)
        self._add_gpus(gpus)
        timed = {self.recorded[call][0] for call in self.timed if call in self.recorded}
        records += filter(None, [self._event(*item, timed) for item in self.calls.items()])
        return records, activity

    def lacks_calls(self, activity: Activity) -> bool:
        """Whether calls of selected work may have been left out, as they were made too early."""
        return self.activity.is_cut and bool((activity.work["call"] == UNKNOWN).any())

    def _add_gpus(self, of_work: Mapping[int, int]) -> None:
        """Sets unknown GPUs of calls to those for which their threads launch work.

        Args:
            of_work: by the correlation of a call, the GPU of its work.
        """
        known = {**of_work, **self.gpus}
        threads: dict[int, list[tuple[int, int]]] = {}
        for correlation, call in self.calls.items():
            threads.setdefault(call.thread, []).append((call.call_ns, correlation))
        for calls in threads.values():
            calls.sort()
            call_ids = [call_id for _, call_id in calls]
            gpus = [known[call_id] for call_id in call_ids if call_id in known]
            last = gpus[0] if gpus else self.device
            for call_id in call_ids:
                last = known.get(call_id, last)
                if last is not None:
                    self.gpus[call_id] = last
                is_unknown = call_id not in known and self.calls[call_id].what in _WAITING_FOR_ANY
                self.unknown_gpus += is_unknown and len({*gpus}) != 1

    def _event(self, correlation: int, call: Call, timed_events: Collection[int]) -> Record | None:
        """Returns the record of a call that makes no work; None if no work waits for it.
        ``timed_events``: the events that were made with timing."""
        if self.gpus.get(correlation) != self.device:
            return None
        times = _times(call)
        if call.what == "record":
            if correlation not in self.recorded:
                return None  # nobody waits for it, as far as the file tells
            event_number, recording_stream = self.recorded[correlation]
            timing = event_number in timed_events
            stream = self.streams.of(self.device, recording_stream)
            return EventCall(event=event_number, stream=stream, timing=timing, **times)
        if call.what == "device":
            return SynchronizeCall(**times)
        if call.what in _WAITING:
            return WaitingCall(name=call.what, **times)
        named, event = self.waited.get(correlation, Waited(None, None))
        waiting = None if named is None else self.streams.of(self.device, named)
        if call.what == "wait":
            if waiting is None or event is None:
                self.unknown_waits += 1
                stream = -1 if waiting is None else waiting
                return EventCall(event=-1, stream=stream, waits=True, known=False, **times)
            return EventCall(event=event, stream=waiting, waits=True, **times)
        if call.what == "stream":
            return SynchronizeCall(stream=waiting, known=waiting is not None, **times)
        if call.what == "event":
            return SynchronizeCall(event=event, known=event is not None, **times)
        return None


def _times(call: Call) -> dict[str, Any]:
    """Returns the fields of a record for its call's times and thread."""
    return {
        "thread": call.thread, "call_ns": call.call_ns, "return_ns": call.return_ns,
        "host_row": call.host_row,
    }  # fmt: skip
