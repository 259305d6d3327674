"""Where the blocks of a sequence went: predicted, observed or read from a file."""

from __future__ import annotations

import contextlib
import gzip
import json
import lzma
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import InitVar, dataclass, field
from pathlib import Path
from typing import IO, Any, Protocol, cast, runtime_checkable

import numpy as np
import numpy.typing as npt

from tbsched.program.sequence import Sequence, events_from_data, events_to_data
from tbsched.traces.annotations import issued_ns

TRACE_VERSION = 1
Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]
StructuredArray = npt.NDArray[np.void]


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """The device that a trace is of: a trace file's header.

    Attributes:
        name: such as ``NVIDIA H200``, or the name of the model that predicted.
        sms: number of SMs.
        details: further keys (compute_capability, driver, cuda, uuid, …).
    """

    name: str
    sms: int
    details: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, eq=False, slots=True)
class Placement:
    """Where the blocks of one launch went.

    Attributes:
        smid: int32 (blocks,), the SM of each block placed before the next event; -1: not by then.
        final_smid: int32 (blocks,), the same after all events; None where nobody recorded it.
        limiter: what refused the blocks that are -1 (``slots``, ``warps``, ``registers``,
            ``shared_memory``, ``configuration``, ``local_memory``, ``queue``, ``stream``); None
            where nothing did or nobody knows. Of a timed sequence what the launch first waited
            for, also ``priority``, ``hardware_queue``, ``event``, ``legacy_stream``, ``grids``,
            ``turn``.
        start_ns, end_ns: int64 (blocks,), on the GPU's global timer, or from the host's first call
            on; None for a prediction of blocks that are held until released.
        warp_slots: int32 (blocks, warps), ``%warpid`` of each warp; -1 for blocks that were not
            placed, None unless asked for.
        hardware_queue: that the launch went through; None where nobody knows.
    """

    smid: Int32Array
    final_smid: Int32Array | None = None
    limiter: str | None = None
    start_ns: Int64Array | None = None
    end_ns: Int64Array | None = None
    warp_slots: Int32Array | None = None
    hardware_queue: int | None = None

    @property
    def placed(self) -> int:
        """How many blocks were placed before the next event."""
        return int(np.count_nonzero(self.smid >= 0))

    def occupancy(self, sms: int) -> Int64Array:
        """Blocks per SM before the next event, int64 (sms,)."""
        return np.bincount(self.smid[self.smid >= 0], minlength=sms)


@dataclass(frozen=True, slots=True)
class Capacity:
    """What each SM had room for when a launch was considered.

    Attributes:
        blocks: int32 (sms,), how many blocks of the launch would have fitted.
        limiter: per SM, what bound that number.
    """

    blocks: Int32Array
    limiter: tuple[str, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Trace:
    """A sequence and where its blocks went; ``trace[k]`` is launch k's :class:`Placement`.

    Attributes:
        sequence: what ran.
        device: what it ran on.
        placements: one per launch.
        id: the trace's name in its file.
        extra: further keys of the file, kept when it is written again.
        capacities: for a prediction of blocks that are held until released, a function that
            computes each launch's :class:`Capacity`.
        waits: for a prediction of a timed sequence, what its launches waited for: a structured
            array by launch and time, (launch, begin_ns, end_ns, cause, behind). A launch waits
            from when it reaches the GPU until its last block is placed. ``cause`` is one of the
            words of :attr:`Placement.limiter`; ``behind`` is the launch that it waited for, or -1.
        check: whether arrays are looked through for a wrong shape or an SM that is not there;
            False where the core made them.
    """

    sequence: Sequence
    device: DeviceInfo
    placements: tuple[Placement, ...]
    id: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)
    capacities: Callable[[], tuple[Capacity, ...]] | None = field(default=None, repr=False)
    waits: StructuredArray | None = field(default=None, repr=False)
    check: InitVar[bool] = True

    def __post_init__(self, check: bool) -> None:
        launches = self.sequence.launches
        if len(self.placements) != len(launches):
            raise ValueError(
                f"trace {self.id!r}: {len(self.placements)} placements for {len(launches)} launches"
            )
        if not check:
            return
        for number, (launch, placement) in enumerate(zip(launches, self.placements, strict=True)):
            for key in ("smid", "final_smid"):
                smid = getattr(placement, key)
                if smid is None:
                    continue
                if smid.shape != (launch.blocks,):
                    raise ValueError(
                        f"trace {self.id!r}: {key}[{number}] has shape {smid.shape}, "
                        f"the launch has {launch.blocks} blocks"
                    )
                if smid.size and not (smid.min() >= -1 and smid.max() < self.device.sms):
                    raise ValueError(
                        f"trace {self.id!r}: {key}[{number}] has an SM outside "
                        f"0..{self.device.sms - 1}"
                    )

    def __len__(self) -> int:
        return len(self.placements)

    def __getitem__(self, launch: int) -> Placement:
        return self.placements[launch]

    def __iter__(self) -> Iterator[Placement]:
        return iter(self.placements)

    @property
    def timeline(self) -> StructuredArray:
        """One row per block, by launch and block: (launch, block, sm, start_ns, end_ns).

        ``sm`` is -1, and the times mean nothing, for a block that never ran. There are no warp
        slots in it: those are predicted of launches that are held.

        Raises:
            ValueError: nobody recorded when blocks ran.
        """
        from tbsched.traces.timeline import timeline_of

        return timeline_of(self)

    @property
    def issue_times(self) -> tuple[float, ...] | None:
        """When the host made each launch call, in seconds from the first; ascending.

        ``predict(..., issue_times=...)`` takes them. None where nobody recorded them, as of a
        prediction.
        """
        times_ns = issued_ns(self.extra)
        return None if times_ns is None else tuple(time / 1e9 for time in times_ns)

    @property
    def makespan(self) -> float:
        """Seconds from the start of the first block to the end of the last.

        Raises:
            ValueError: nobody recorded when blocks ran.
        """
        from tbsched.traces.timeline import makespan_of

        return makespan_of(self)

    def concurrent(self, a: int, b: int) -> bool:
        """Whether launches a and b overlapped in time.

        A launch lasts from the start of its first block to the end of its last.

        Raises:
            ValueError: nobody recorded when blocks ran.
        """
        from tbsched.traces.timeline import span

        (a_begin, a_end), (b_begin, b_end) = span(self, a), span(self, b)
        return max(a_begin, b_begin) < min(a_end, b_end)

    def explain(self, launch: int) -> str:
        """Why a launch waited, for how long, and what would have let it run, in words.

        Raises:
            ValueError: no such launch, or nobody recorded what launches waited for.
        """
        from tbsched.traces.timeline import explain

        return explain(self, launch)

    def __str__(self) -> str:
        if self.sequence.timed:
            from tbsched.traces.timeline import timeline_text

            return timeline_text(self)
        from tbsched.show.text import trace_text

        return trace_text(self)


@runtime_checkable
class Oracle(Protocol):
    """Anything that can say where the blocks of a sequence go."""

    def observe(self, seq: Sequence, /) -> Trace:
        """The observation.

        Raises:
            UnstableMeasurement, DeadlineExceeded: a campaign counts it, and goes on.
        """


def load_traces(path: str | os.PathLike[str]) -> list[Trace]:
    """Reads a trace file: JSON lines, optionally ``.xz`` or ``.gz``, or a folder of such files.

    Raises:
        FileNotFoundError: no such file.
        TypeError: not a path.
        ValueError: not a trace file, or of a newer version; names the file and the line.
    """
    place = _place(path)
    if place.is_dir():
        files = sorted(file for file in place.iterdir() if is_trace_file(file))
        return [trace for file in files for trace in load_traces(file)]
    traces: list[Trace] = []
    device: DeviceInfo | None = None
    number = 0
    try:
        with _open(place, "rt") as lines:
            for number, line in enumerate(lines, 1):  # noqa: B007 - for the error below
                if not line.strip():
                    continue
                record = json.loads(line)
                if not isinstance(record, dict):
                    raise TypeError("an object is needed")
                if "tbsched_trace" in record:
                    device = _header(record)
                elif device is None:
                    raise ValueError('the first line must be a header, {"tbsched_trace":1,…}')
                else:
                    traces.append(_record(record, device))
    except _UNREADABLE as error:
        raise ValueError(f"{place}, line {number}: {error}") from error
    if device is None:
        raise ValueError(f"{place}: no header line, not a trace file")
    return traces


# What a file that holds no traces makes the readers below raise.
_UNREADABLE = (
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
    OverflowError,
    RecursionError,
    EOFError,
    gzip.BadGzipFile,
    lzma.LZMAError,
    zlib.error,
)


def save_traces(path: str | os.PathLike[str], traces: Iterable[Trace]) -> None:
    """Writes traces of one or more devices; the file appears whole or not at all.

    The ending chooses the compression: ``.xz``, ``.gz`` or none. Each change of device writes a
    header line.

    Raises:
        TypeError: not a path, or something in ``traces`` is not a :class:`Trace`.
    """
    place = _place(path)
    checked = list(traces)
    for trace in checked:
        if not isinstance(trace, Trace):
            raise TypeError(f"save_traces: a Trace is needed, got {trace!r}")
    temporary = place.with_name(f".{os.getpid()}.{place.name}")
    try:
        with _open(temporary, "wt") as out:
            device: DeviceInfo | None = None
            for trace in checked:
                if trace.device != device:
                    device = trace.device
                    out.write(header_line(device) + "\n")
                out.write(record_line(trace) + "\n")
        os.replace(temporary, place)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def header_line(device: DeviceInfo) -> str:
    """The header of a trace file, one line of JSON."""
    return _json(
        {
            "tbsched_trace": TRACE_VERSION,
            "device": {"name": device.name, "sms": device.sms, **device.details},
        }
    )


def record_line(trace: Trace) -> str:
    """One trace as a line of JSON."""
    placements = trace.placements
    record: dict[str, Any] = {
        "id": trace.id,
        "events": events_to_data(trace.sequence),
        "smid": [placement.smid.tolist() for placement in placements],
    }
    for key in _ARRAYS:
        columns = [getattr(placement, key) for placement in placements]
        if key == "final_smid" and all(column is not None for column in columns):
            # null: as in smid. Most blocks are placed at once, and files stay half the size.
            same = [np.array_equal(p.smid, c) for p, c in zip(placements, columns, strict=True)]
            record[key] = [None if s else c.tolist() for s, c in zip(same, columns, strict=True)]
        elif any(column is not None for column in columns):
            record[key] = [None if column is None else column.tolist() for column in columns]
    if any(placement.limiter for placement in placements):
        record["limiter"] = [placement.limiter for placement in placements]
    return _json({**trace.extra, **record})


def is_trace_file(path: Path) -> bool:
    """Whether the file's name says that it holds traces."""
    return path.name.endswith((".jsonl", ".jsonl.xz", ".jsonl.gz"))


_ARRAYS: dict[str, type[np.int32] | type[np.int64]] = {
    "final_smid": np.int32,
    "start_ns": np.int64,
    "end_ns": np.int64,
    "warp_slots": np.int32,
}


def _header(record: dict[str, Any]) -> DeviceInfo:
    version = record["tbsched_trace"]
    if version != TRACE_VERSION:
        raise ValueError(
            f"trace format version {version!r}; this tbsched reads version {TRACE_VERSION}: "
            "install a newer tbsched"
        )
    device = dict(record["device"])
    return DeviceInfo(str(device.pop("name")), int(device.pop("sms")), device)


def _record(record: dict[str, Any], device: DeviceInfo) -> Trace:
    sequence = events_from_data(record.pop("events"))
    smids = record.pop("smid")
    columns = {key: record.pop(key, None) for key in (*_ARRAYS, "limiter")}

    def column(key: str, launch: int, dtype: type[np.int32] | type[np.int64]) -> Any:
        values = columns[key]
        if values is None:
            return None
        if values[launch] is None:
            return np.array(smids[launch], dtype) if key == "final_smid" else None
        return np.array(values[launch], dtype)

    placements = tuple(
        Placement(
            smid=np.array(smid, np.int32),
            limiter=None if columns["limiter"] is None else columns["limiter"][launch],
            **{key: column(key, launch, dtype) for key, dtype in _ARRAYS.items()},
        )
        for launch, smid in enumerate(smids)
    )
    return Trace(sequence, device, placements, id=str(record.pop("id", "")), extra=record)


def _place(path: str | os.PathLike[str]) -> Path:
    try:
        return Path(path)
    except TypeError:
        raise TypeError(f"path: a string or a path is needed, got {path!r}") from None


def _open(path: Path, mode: str) -> IO[str]:
    if path.suffix == ".xz":
        return lzma.open(path, mode, encoding="utf-8")  # type: ignore[return-value]
    if path.suffix == ".gz":
        return cast("IO[str]", gzip.open(path, mode, encoding="utf-8"))
    return cast("IO[str]", open(path, mode, encoding="utf-8"))


def _json(data: object) -> str:
    return json.dumps(data, separators=(",", ":"))
