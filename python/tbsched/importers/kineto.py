"""Traces of torch.profiler: JSON in Chrome's format, as Kineto writes it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

from tbsched import storage
from tbsched.errors import on_one_line, shown
from tbsched.importers.reading.joined import Joined, Waited
from tbsched.importers.reading.members import listed, members
from tbsched.importers.reading.packed import head_of, pieces_of
from tbsched.importers.reading.selection import Selection
from tbsched.importers.reading.stream_numbers import FileStream
from tbsched.importers.records import Kernel, Recording, Transfer
from tbsched.program.activity import (
    ANNOTATION,
    COPY,
    FUNCTION,
    KERNEL,
    MEMSET,
    OPERATOR,
    UNKNOWN,
    ActivityBuilder,
    Times,
    copy_name,
)
from tbsched.program.gpu_facts import GpuFacts

NAME = "torch.profiler trace (Kineto)"
LEGACY_STREAM = 7  # CUPTI's number of the default stream of a process's first context
_DEFAULT_STREAM = FileStream(None, LEGACY_STREAM)
_KEYS = (b'"traceEvents"', b'"deviceProperties"', b'"baseTimeNanoseconds"', b'"schemaVersion"')
_LISTS = ("traceEvents", "deviceProperties")
_OLDER = {
    "Kernel": "kernel", "Memcpy": "gpu_memcpy", "Memset": "gpu_memset", "Runtime": "cuda_runtime",
}  # fmt: skip
_KERNEL = (
    "name", "grid", "block", "registers", "dynamic_shared_memory", "stream", "start_ns", "end_ns",
    "context", "device", "priority", "executable", "node", "channel", "row",
)  # fmt: skip
_TRANSFER = (
    "kind", "bytes", "pinned", "stream", "start_ns", "end_ns", "context", "device", "executable",
    "node", "channel", "row",
)  # fmt: skip
_HOST_KINDS = {
    "cpu_op": OPERATOR, "Operator": OPERATOR, "user_annotation": ANNOTATION,
    "python_function": FUNCTION, "overhead": FUNCTION,
}  # fmt: skip
# The names that deviceProperties has for the fields of GpuFacts.
_GPU = {
    "name": "name", "sms": "numSms", "major": "computeMajor", "minor": "computeMinor",
    "warp_size": "warpSize", "threads_per_sm": "maxThreadsPerMultiprocessor",
    "registers_per_sm": "regsPerMultiprocessor",
    "shared_memory_per_sm": "sharedMemPerMultiprocessor",
    "shared_memory_per_block": "sharedMemPerBlockOptin",
}  # fmt: skip
_COPIES = {
    "HtoD": "h2d", "HtoA": "h2d", "DtoH": "d2h", "AtoH": "d2h", "DtoD": "d2d", "AtoA": "d2d",
    "AtoD": "d2d", "DtoA": "d2d", "PtoP": "d2d",
}  # fmt: skip
_UNKNOWN_WAITS = (
    "torch.profiler did not write for which event streams wait in {count} calls; tbsched capture "
    "does."
)
# Categories of work on the GPU, and events of it as PyTorch writes them.
_WORK = ("kernel", "gpu_memcpy", "gpu_memset", "Kernel", "Memcpy", "Memset")
_OF_WORK = re.compile(rf'"cat":\s*"(?:{"|".join(_WORK)})"'.encode())
_WRITTEN = re.compile(
    rb'"ph":\s*"X",\s*' + _OF_WORK.pattern + rb',\s*"name":\s*"[^"\\]*(?:\\.[^"\\]*)*",'
    rb'\s*"pid":\s*[^,{}]{1,40},\s*"tid":\s*[^,{}]{1,40},\s*"ts":\s*(-?\d{1,17}(?:\.\d{1,9})?)\s*,'
)
_MAX_EVENT_BYTES = 1 << 22  # bytes
_MAX_MICROSECONDS = 2**62 // 1000  # us, more than a hundred years
_MAX_INTEGER = 2**63 - 1


def takes(head: bytes) -> bool:
    """Returns whether a file with these first bytes is a trace of Kineto."""
    text = head.lstrip(b" \t\r\n")
    if text.startswith(b"["):
        return b'"ph"' in text
    return text.startswith(b"{") and any(key in text for key in _KEYS)


def read(path: Path, selection: Selection) -> Recording:
    """Returns what a trace of Kineto, PyTorch's profiler, recorded.

    Raises:
        FileNotFoundError: no such file.
        ValueError: not a whole trace, or an event that cannot be; names the file and the event.
    """
    first_ns = _first_ns(path) if selection else None
    since_ns = first_ns or 0
    for of_host in selection.of_host(since_ns):
        reader = _Reader(selection, since_ns, of_host)
        devices: list[Any] = []
        distributed: list[Any] = []
        for index, event in enumerate(_events(path, devices, distributed)):
            try:
                reader.add(event)
            except (TypeError, ValueError) as error:
                raise _refused(path, index, error) from None
        joined = reader.joined
        gpu = _gpu(devices, joined.device)
        records, activity = joined.records()
        if not joined.lacks_calls(activity):
            break
    missing_ = [_STREAMS, *joined.left_out]
    if joined.unknown_waits:
        missing_.append(_UNKNOWN_WAITS.format(count=joined.unknown_waits))
    return Recording(
        records=records, format=NAME, device=gpu.name, sms=gpu.sms, gpu=gpu, sources=_SOURCES,
        missing=missing_, activity=activity, kernels=joined.kernels,
        legacy_streams=frozenset(joined.streams.given(joined.device, _DEFAULT_STREAM)),
        rank=_rank_field(distributed, "rank"), world=_rank_field(distributed, "world_size"),
        first_ns=first_ns,
    )  # fmt: skip


class _Reader:
    """Takes the events of a trace one by one."""

    def __init__(self, selection: Selection, first_ns: int, of_host: Times) -> None:
        self.joined = Joined(activity=ActivityBuilder(of_host))
        self._selection = selection
        self._first_ns = first_ns
        self._names: dict[str, str] = {}  # one string for all kernels of a name
        self._takes: dict[str, Callable[[dict[str, Any], dict[str, Any]], None]] = {
            "kernel": self._kernel,
            "gpu_memcpy": self._transfer,
            "gpu_memset": self._transfer,
            "cuda_runtime": self._call,
            "cuda_driver": self._call,
            "cuda_sync": self._synchronization,
            "cuda_event": self._recorded,
        }
        self._takes |= {older: self._takes[name] for older, name in _OLDER.items()}

    def add(self, event: object) -> None:
        """Adds one event of the trace, if its kind is known. Raises TypeError or ValueError: one
        that cannot be; names the field."""
        if not isinstance(event, dict) or event.get("ph") != "X":
            return
        category = event.get("cat")
        if not isinstance(category, str):
            return
        if category.startswith("xpu_"):
            raise ValueError("a call of an Intel GPU, and tbsched knows NVIDIA's")
        kind = _HOST_KINDS.get(category)
        if kind is not None:
            start, end = _times(event)
            name, process, thread = str(event.get("name")), event.get("pid"), event.get("tid")
            self.joined.activity.add_host(kind, name, str(process), str(thread), start, end)
            return
        take = self._takes.get(category)
        if take is None:
            return
        args = event.get("args")
        if not isinstance(args, dict):
            raise ValueError(f"{category}: args are missing, so nothing tells what ran")
        take(event, args)

    def _kernel(self, event: dict[str, Any], args: dict[str, Any]) -> None:
        """Adds an event of a kernel that ran."""
        name = event.get("name")
        if not isinstance(name, str):
            raise ValueError(f"kernel: a name is needed, got {shown(name)}")
        stream, start_ns, end_ns = _stream(event, args), *_times(event)
        self.joined.add_node(*_graph(args))
        if not self._is_wanted(stream, name, start_ns):
            return
        correlation, device = _correlation(args), _optional(args, "device") or 0
        context = _optional(args, "context")
        stream = self.joined.streams.of(device, FileStream(context, stream))
        row = self.joined.activity.add_work(
            device, KERNEL, name, stream, start_ns, end_ns, correlation, node=_graph(args)[1] or 0
        )
        is_shaped = "grid" in args and "block" in args
        if "Collective name" in args or "Process Group Name" in args:
            self._message(row, args)
        self.joined.add_work(correlation, Kernel, _KERNEL, (
            self._names.setdefault(name, name), _three(args, "grid") if is_shaped else None,
            _three(args, "block") if is_shaped else None,
            _optional(args, "registers per thread") or None, _optional(args, "shared memory"),
            stream, start_ns, end_ns, context or 0, device,
            _optional(args, "priority", -_MAX_INTEGER), *_graph(args), _optional(args, "channel"),
            row,
        ))  # fmt: skip

    def _message(self, row: int, args: dict[str, Any]) -> None:
        """Adds what a collective moves. No field is required: versions of PyTorch differ."""
        peers = (_whole_number(args.get(field)) for field in ("Dst Rank", "Src Rank"))
        self.joined.activity.add_message(
            row, op=_text(args.get("Collective name")), group=_text(args.get("Process Group Name")),
            members=_text(args.get("Process Group Ranks")), type_=_text(args.get("dtype")),
            size=_whole_number(args.get("Group size")),
            sent=_whole_number(args.get("In msg nelems")),
            received=_whole_number(args.get("Out msg nelems")),
            peer=next((peer for peer in peers if peer != UNKNOWN), UNKNOWN),
            number=_whole_number(args.get("Seq")),
        )  # fmt: skip

    def _transfer(self, event: dict[str, Any], args: dict[str, Any]) -> None:
        """Adds an event of a copy or memset that ran."""
        stream, start_ns, end_ns = _stream(event, args), *_times(event)
        self.joined.add_node(*_graph(args))
        if not self._is_wanted(stream, None, start_ns):
            return
        kind, pinned = _copy_kind(str(event.get("name")))
        size, device = _optional(args, "bytes") or 0, _optional(args, "device") or 0
        correlation, context = _correlation(args), _optional(args, "context")
        stream = self.joined.streams.of(device, FileStream(context, stream))
        row = self.joined.activity.add_work(
            device, MEMSET if kind == "memset" else COPY, copy_name(kind, pinned), stream, start_ns,
            end_ns, correlation, size=size, node=_graph(args)[1] or 0,
        )  # fmt: skip
        self.joined.add_work(correlation, Transfer, _TRANSFER, (
            kind, size, pinned, stream, start_ns, end_ns, context or 0, device,
            *_graph(args), _optional(args, "channel"), row,
        ))  # fmt: skip

    def _is_wanted(self, stream: int, name: str | None, start_ns: int) -> bool:
        """Returns whether the user selected work with this stream, name and start."""
        selection = self._selection
        return selection.takes(stream, name) and selection.takes_time(start_ns, self._first_ns)

    def _call(self, event: dict[str, Any], args: dict[str, Any]) -> None:
        """Adds an event of a call of CUDA."""
        name, process = str(event.get("name")), str(event.get("pid"))
        thread, correlation = str(event.get("tid")), _correlation(args)
        if name.startswith("hip"):
            raise ValueError(
                f"{on_one_line(name)} is a call of HIP: it ran on an AMD GPU, and tbsched knows "
                "NVIDIA's"
            )
        start, end = _times(event)
        self.joined.add_call(correlation, name, process, thread, start, end)

    def _synchronization(self, event: dict[str, Any], args: dict[str, Any]) -> None:
        """Adds an event of a wait, of the host or of a stream."""
        stream, context = _integer(args, "stream", -1), _context_of(args)
        recorded = _optional(args, "wait_on_cuda_event_record_corr_id", -1)
        correlation = _integer(args, "correlation")
        awaited_stream = _optional(args, "wait_on_stream", -1)
        known = (
            recorded is not None
            and recorded > 0
            and awaited_stream is not None
            and awaited_stream >= 0
        )
        # The number of the call that records it tells apart the records of one event.
        event_number = recorded if known else None
        waited = Waited(None if stream < 0 else FileStream(context, stream), event_number)
        self.joined.add_wait(correlation, waited, _gpu_of(args))
        if known:
            assert recorded is not None
            assert awaited_stream is not None
            recording_stream = FileStream(context, awaited_stream)
            self.joined.add_recorded(recorded, recorded, recording_stream, None)

    def _recorded(self, event: dict[str, Any], args: dict[str, Any]) -> None:
        """Adds a call that records a CUDA event."""
        correlation = _integer(args, "correlation")
        stream = FileStream(_context_of(args), _integer(args, "stream"))
        self.joined.add_recorded(correlation, correlation, stream, _gpu_of(args))


def _gpu_of(args: dict[str, Any]) -> int | None:
    """Returns the GPU of a wait or record; None: the trace does not say it."""
    gpu = _optional(args, "device", -1)
    return None if gpu is None or gpu < 0 else gpu


def _context_of(args: dict[str, Any]) -> int | None:
    """Returns the context of a wait or record; None: the trace does not say it."""
    context = _optional(args, "context", -1)
    return None if context is None or context < 0 else context


def _graph(args: dict[str, Any]) -> tuple[int | None, int | None]:
    """Returns the executable graph and node of work; None: the trace has 0 or nothing."""
    return _optional(args, "graph id") or None, _optional(args, "graph node id") or None


def _copy_kind(name: str) -> tuple[str, bool | None]:
    """Returns kind and pinning of a copy, such as ``Memcpy HtoD (Pinned -> Device)``."""
    words = name.split()
    if words[:1] == ["Memset"]:
        return "memset", None
    kind = words[1] if words[:1] == ["Memcpy"] and len(words) > 1 else ""
    pinned = False if "Pageable" in name else True if "Pinned" in name else None
    return _COPIES.get(kind, kind or "unknown"), pinned


def _times(event: dict[str, Any]) -> tuple[int, int]:
    """Returns the start and end of an event, in ns."""
    start = _nanoseconds(event, "ts", -_MAX_MICROSECONDS)
    return start, start + _nanoseconds(event, "dur", 0)


def _nanoseconds(event: dict[str, Any], field: str, min_ns: int) -> int:
    """Returns a time or duration that an event has in microseconds, in ns."""
    value = event.get(field)
    if type(value) is not int and type(value) is not Decimal:
        raise ValueError(f"{field}: microseconds are needed, got {shown(value)}")
    if not min_ns <= value <= _MAX_MICROSECONDS:
        raise ValueError(
            f"{field}: {shown(value)} is outside {min_ns}..{_MAX_MICROSECONDS} microseconds"
        )
    return int(value * 1000)


def _integer(args: dict[str, Any], field: str, low: int = 0) -> int:
    """Returns an integer among an event's arguments, checked."""
    value = args.get(field)
    if type(value) is int and low <= value <= _MAX_INTEGER:
        return value
    raise ValueError(f"args.{field}: a number from {low} is needed, got {shown(value)}")


def _correlation(args: dict[str, Any]) -> int:
    """Returns the number that joins work and call; one that no call has, if the trace has none."""
    return (_integer(args, "correlation") if "correlation" in args else 0) or -1


def _stream(event: dict[str, Any], args: dict[str, Any]) -> int:
    """Returns the stream of an event; in older versions the number of its row."""
    if "stream" in args:
        return _integer(args, "stream")
    row = event.get("tid")
    return row if type(row) is int and row >= 0 else 0


def _optional(args: dict[str, Any], field: str, low: int = 0) -> int | None:
    """Returns an integer among an event's arguments; None: it is missing."""
    return _integer(args, field, low) if field in args else None


def _whole_number(value: object) -> int:
    """Returns a number from 0, which may be written as text; ``UNKNOWN``: not a number."""
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 19:
        value = int(value)
    return value if type(value) is int and 0 <= value <= _MAX_INTEGER else UNKNOWN


def _text(value: object) -> str | None:
    """Returns a text, or a list as text; None: there is none."""
    if isinstance(value, list):
        return str(value)
    return value if isinstance(value, str) and value else None


def _three(args: dict[str, Any], field: str) -> tuple[int, int, int]:
    """Returns a grid or block of three positive numbers."""
    value = args.get(field)
    if isinstance(value, list) and len(value) == 3:
        x, y, z = value
        if type(x) is type(y) is type(z) is int and x > 0 and y > 0 and z > 0:
            if max(x, y, z) > _MAX_INTEGER:
                raise ValueError(f"args.{field}: {shown(value)} is beyond {_MAX_INTEGER}")
            return x, y, z
    raise ValueError(f"args.{field}: three numbers from 1 are needed, got {shown(value)}")


def _first_ns(path: Path) -> int:
    """Returns the time in ns at which the first work on a GPU starts."""
    first_ns = _first_written_ns(path)
    if first_ns is not None:
        return first_ns
    starts = []
    for index, event in enumerate(_events(path, [], [])):
        if isinstance(event, dict) and event.get("cat") in _WORK and event.get("ph") == "X":
            try:
                starts.append(_nanoseconds(event, "ts", -_MAX_MICROSECONDS))
            except ValueError as error:
                raise _refused(path, index, error) from None
    return min(starts, default=0)


def _refused(path: Path, index: int, why: object) -> ValueError:
    """Returns the error of an event that cannot be read."""
    return ValueError(f"{storage.shown(path)}: traceEvents[{index}]: {why}")


def _first_written_ns(path: Path) -> int | None:
    """Returns the first time of work, in ns, by a search of the text; None: it may miss one. That
    nothing is missed is checked: each category of work is in such an event."""
    first: Decimal | None = None
    text = b""
    for piece in pieces_of(path):
        text += piece
        cut = max(text.rfind(b'"ph"'), 0)  # an event that goes on in the next piece
        complete, text = text[:cut], text[cut:]
        count = 0
        for match in _WRITTEN.finditer(complete):
            start = Decimal(match[1].decode())
            first = start if first is None else min(first, start)
            count += 1
        if count != sum(1 for _ in _OF_WORK.finditer(complete)) or len(text) > _MAX_EVENT_BYTES:
            return None
    last = [Decimal(match[1].decode()) for match in _WRITTEN.finditer(text)]
    if len(last) != sum(1 for _ in _OF_WORK.finditer(text)):
        return None
    starts = [*last, *([] if first is None else [first])]
    return int(min(starts) * 1000) if starts else None


def _events(path: Path, devices: list[Any], distributed: list[Any]) -> Iterator[object]:
    """Yields the events of a trace one by one; fills ``devices`` and ``distributed``. Raises
    ValueError: not JSON, it ends early, or something follows it."""
    try:
        if head_of(path).lstrip(b" \t\r\n").startswith(b"["):
            yield from listed(pieces_of(path))
            return
        for key, value in members(pieces_of(path), _LISTS):
            if key == "traceEvents":
                yield value
            elif key == "deviceProperties":
                devices.append(value)
            elif key == "distributedInfo":
                distributed.append(value)
    except ValueError as error:
        if storage.shown(path) in str(error):
            raise
        raise ValueError(f"{storage.shown(path)}: {error}") from None


def _rank_field(distributed: list[Any], field: str) -> int | None:
    """Returns a number about ranks that the trace has; None if it has none."""
    for entry in distributed:
        value = _whole_number(entry.get(field)) if isinstance(entry, dict) else UNKNOWN
        if value != UNKNOWN:
            return value
    return None


def _gpu(devices: list[Any], gpu_index: int | None) -> GpuFacts:
    """Returns the facts of a GPU that the trace has."""
    for device in devices:
        if isinstance(device, dict) and device.get("id") == gpu_index:
            return GpuFacts.of({field: device.get(key) for field, key in _GPU.items()})
    return GpuFacts()


_STREAMS = (
    f"Which stream is the default one: assumed stream {LEGACY_STREAM}, which is CUPTI's number of "
    "it in a process's first context."
)
_SOURCES = {
    "name": "name of kernel events",
    "blocks": "args.grid",
    "threads": "args.block",
    "registers": "args.registers per thread",
    "shared_memory": "args.shared memory",
    "stream": "args.stream",
    "priority": "args.priority",
    "duration": "ts and dur of kernel events",
    "host": "ts, dur and tid of cuda_runtime and cuda_driver events",
    "copies": "gpu_memcpy and gpu_memset events",
    "events": "cuda_sync and cuda_event events",
    "graphs": "cuda_runtime events, args.graph node id",
    "device": "deviceProperties",
}
