"""Looks at a program that hangs: its capture, its process, or a core dump of its GPU."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from tbsched import storage
from tbsched.counting import counted
from tbsched.hangs.debugger import (
    ELF,
    SECONDS,
    Target,
    check_core,
    check_process,
    debugger,
    take_snapshot,
)
from tbsched.hangs.evidence import Observations
from tbsched.hangs.fixes import untimed
from tbsched.hangs.hang import HangReport
from tbsched.hangs.judge import report_of
from tbsched.hangs.memory import HostMemory, host_memory_of
from tbsched.hangs.ranks import order_of_ranks, report_of_ranks
from tbsched.hangs.replay import launches_of, replay_operations
from tbsched.hangs.snapshot import Snapshot
from tbsched.hangs.unfinished import Key, Unfinished, read_unfinished
from tbsched.hardware.catalogue import device as find_device
from tbsched.hardware.described import device_of_facts, known_device
from tbsched.hardware.spec import DeviceSpec
from tbsched.importers.capture import takes
from tbsched.importers.captured_files import is_capture
from tbsched.importers.reading.packed import head_of
from tbsched.program.checks import integer, items
from tbsched.program.gpu_facts import GpuFacts
from tbsched.program.sequence import Sequence
from tbsched.progress import pulse

_NEWS_SECONDS = 1.6  # seconds in which a capture has news of a process that waits
_SECONDS_BETWEEN_LOOKS = 1.0  # seconds from one look to the next
_FIX_SECONDS = 20.0  # seconds for the search of changes
_Path = str | os.PathLike[str]


def hang(
    *files: _Path,
    pid: int | Iterable[int] | None = None,
    device: str | os.PathLike[str] | DeviceSpec | None = None,
    seconds: float = SECONDS,
) -> HangReport:
    """Returns why a program hangs: which work can never start, the proof, and what to change.

    It joins what it is given. A capture says what was issued, in which streams, and which calls
    have not returned. The debugger (cuda-gdb) says which blocks are on the GPU, what their threads
    do, and where the host is. The model says what can start beside what is there.

    Args:
        files: captures (``tbsched capture``), one per process, or core dumps of a GPU. A capture
            may still be written.
        pid: processes to look at with the debugger: three times, for a second or so each, while
            they stand still. They go on afterwards. The capture of a process is found by itself.
        device: the GPU; None: what the capture or the debugger names.
        seconds: a limit of one look of the debugger.

    Returns:
        A :class:`HangReport`. With captures of several ranks, of the rank that holds the others up:
        one that hangs by itself, or has not issued a collective in which they wait (``host``); if
        all are in different collectives, ``kind`` is ``order_of_ranks``.

    Raises:
        FileNotFoundError: no such file; no cuda-gdb for a core dump, or for a process without a
            capture.
        TypeError, ValueError: nothing is given; a file that is no capture and no core dump, or a
            core dump that is not complete; a process that is not there, or that may not be looked
            at. The message names it.

    Example:
        >>> lines = [
        ...     '{"tbsched_capture":1,"notes_issued":true}',
        ...     '{"device":0,"name":"NVIDIA H200","sms":132,"compute_capability":"9.0"}',
        ...     '{"context":1,"device":0,"null_stream":7}',
        ...     '{"issued":1,"what":"launch","function":"cuLaunchKernel","thread":0,"at":0,'
        ...     '"context":1,"stream":13,"name":"barrier","grid":[300,1,1],"block":[1024,1,1],'
        ...     '"registers":32}',
        ...     '{"alive":5000000000}',
        ... ]
        >>> with open("run.jsonl", "w") as file:  # what is left of a program that was killed
        ...     _ = file.write("\\n".join(lines))
        >>> found = tb.hang("run.jsonl")
        >>> found.kind, found.reason.partition(":")[0]
        ('room', '36 of 300 blocks of barrier never start')
        >>> found.fixes[0].text
        'at most 264 blocks for barrier, not 300'
    """
    process_ids = _process_ids(pid)
    captures, cores = _read_files(files)
    if not captures and not cores and not process_ids:
        raise ValueError("hang: a capture, a core dump or pid= is needed, got none")
    spec = None if device is None else find_device(device)
    reports: list[HangReport] = []
    left = dict(enumerate(captures))
    for pid_ in process_ids:
        check_process(pid_)
        index = next((at for at, each in left.items() if each.process == pid_), None)
        capture = left.pop(index) if index is not None else _capture_of(pid_)
        reports.append(_process_report(pid_, capture, spec, seconds))
    for core in cores:
        capture = left.pop(next(iter(left)), None) if left and not process_ids else None
        reports.append(_core_report(core, capture, spec, seconds))
    if len(captures) > 1:
        crossed = order_of_ranks(captures, [_never_start(each, spec) for each in captures])
        if crossed is not None:
            return crossed
    reports += [_capture_report(each, spec) for each in left.values()]
    if len(left) == len(captures) > 1:
        together = report_of_ranks(captures, reports)
        if together is not None:
            return together
    return next((each for each in reports if each.hangs), reports[0])


def assert_not_hanging(
    *files: _Path,
    pid: int | Iterable[int] | None = None,
    device: str | os.PathLike[str] | DeviceSpec | None = None,
    seconds: float = SECONDS,
) -> None:
    """Asserts that a program does not hang; for tests.

    Args:
        files, pid, device, seconds: as for :func:`hang`.

    Raises:
        AssertionError: it hangs. The message is the whole answer.
        FileNotFoundError, TypeError, ValueError: as :func:`hang`.

    Example:
        >>> lines = ['{"tbsched_capture":1,"notes_issued":true}', '{"end":9,"launches":0}']
        >>> with open("run.jsonl", "w") as file:  # of a program that has ended
        ...     _ = file.write("\\n".join(lines))
        >>> tb.assert_not_hanging("run.jsonl")
    """
    __tracebackhide__ = True
    found = hang(*files, pid=pid, device=device, seconds=seconds)
    if found.hangs:
        raise AssertionError(str(found))


def _process_ids(pid: int | Iterable[int] | None) -> tuple[int, ...]:
    """Returns the given process numbers, checked."""
    if pid is None:
        return ()
    given = [pid] if isinstance(pid, int) else items("hang", "pid", pid)
    return tuple([integer("hang", "pid", each, 1, 2**31 - 1) for each in given])


def _read_files(files: tuple[_Path, ...]) -> tuple[list[Unfinished], list[Path]]:
    """Returns the captures, and the paths of the core dumps, among some files."""
    captures, cores = [], []
    for given in files:
        path = storage.as_path(given)
        if _is_core(path):
            check_core(path)
            cores.append(path)
        else:
            captures.append(read_unfinished(path))
    return captures, cores


def _is_core(path: Path) -> bool:
    """Returns whether a file is a core dump, by its first bytes, or else by its name."""
    head = head_of(path)
    return head.startswith(ELF) or (path.suffix == ".nvcudmp" and not takes(head))


def _capture_path(process: int) -> Path | None:
    """Returns the file that a process writes its capture to, by its environment; None: none."""
    try:
        pairs = Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
    except OSError:
        return None
    name = next((pair[16:] for pair in pairs if pair.startswith(b"TBSCHED_CAPTURE=")), b"")
    return Path(os.fsdecode(name)) if name else None


def _capture_of(process: int) -> Unfinished | None:
    """Returns the capture that a process writes; None: there is none."""
    place = _capture_path(process)
    if place is None:
        return None
    others = place.parent.glob(f"*.{process}*") if place.parent.is_dir() else ()
    for candidate in (place, *sorted(others)):
        if candidate.name.startswith(place.stem) and is_capture(candidate):
            capture = read_unfinished(candidate)
            if capture.process == process:
                return capture
    return None


def _process_report(
    process: int, capture: Unfinished | None, spec: DeviceSpec | None, seconds: float
) -> HangReport:
    """Returns the report of a process, from the debugger and its capture."""
    unseen = []
    snapshots: list[Snapshot] = []
    target = Target(process=process)
    memory = None
    if capture is not None and _capture_path(process) is not None:
        _check_notes(capture)
        unseen.append(
            "The GPU itself: the process is being captured, and CUDA takes one tool at a time: "
            "cuda-gdb, which then attached, would see no GPU, and could end the process."
        )
    elif debugger() is None:
        if capture is None:
            raise FileNotFoundError(
                "cuda-gdb is not found, and the process is not captured: install the CUDA toolkit, "
                "name the debugger in TBSCHED_CUDA_GDB, or run the program under `tbsched capture`"
            )
        unseen.append("The GPU itself: cuda-gdb is not found.")
    else:
        with pulse("looking at the GPU"):
            snapshots = _snapshots(target, seconds)
        memory = host_memory_of(process)
    if snapshots and not snapshots[-1].gpus and capture is not None:
        snapshots = []
        unseen.append(
            "What is on the GPU: cuda-gdb sees no GPU in this process, as where its capture "
            "uses CUPTI. The model tells it from what was issued."
        )
    if capture is not None:
        capture = _with_news(capture)
    return _report(capture, snapshots, memory, spec, unseen, process)


def _snapshots(target: Target, seconds: float) -> list[Snapshot]:
    """Returns three snapshots, a second apart, which show what goes on; fewer if no GPU is seen."""
    first = take_snapshot(target, seconds=seconds)
    if not first.gpus:  # the first debugger that comes to a captured process may see none
        first = take_snapshot(target, seconds=seconds)
    snapshots = [first]
    for hosts in (True, False) if first.gpus else ():
        time.sleep(max(_SECONDS_BETWEEN_LOOKS - snapshots[-1].seconds, 0.0))
        snapshots.append(take_snapshot(target, first, seconds=seconds, hosts=hosts))
    return snapshots


def _with_news(capture: Unfinished) -> Unfinished:
    """Returns a capture read again once the process has written to it, or after a time limit."""
    deadline = time.monotonic() + _NEWS_SECONDS
    again = read_unfinished(capture.path)
    while again.last_seen <= capture.last_seen and time.monotonic() < deadline:
        time.sleep(_NEWS_SECONDS / 8)
        again = read_unfinished(capture.path)
    return again


def _core_report(
    core: Path, capture: Unfinished | None, spec: DeviceSpec | None, seconds: float
) -> HangReport:
    """Returns the report of a core dump, with a capture if there is one."""
    target = Target(core=core)
    snapshot = take_snapshot(target, take_snapshot(target, seconds=seconds), seconds=seconds)
    unseen = ["Whether anything goes on, and where the host is: a core dump is of one moment."]
    return _report(capture, [snapshot], None, spec, unseen, None)


def _check_notes(capture: Unfinished) -> None:
    """Checks that a capture says what has not ended; older versions' do not."""
    if not capture.notes_issued and not capture.is_whole:
        raise ValueError(
            f"{storage.shown(capture.path)}: an earlier tbsched made this capture, which does not "
            "say what was issued and has not ended; capture again"
        )


def _capture_report(capture: Unfinished, spec: DeviceSpec | None) -> HangReport:
    """Returns the report of a capture alone."""
    unseen = []
    _check_notes(capture)
    if not capture.is_whole:
        unseen.append(
            "What is on the GPU: by the model, from what was issued and has not ended. Some "
            "of that may have ended: CUPTI gives records only when its buffers are full."
        )
    return _report(capture, [], None, spec, unseen, None)


def _report(
    capture: Unfinished | None, snapshots: list[Snapshot], memory: HostMemory | None,
    spec: DeviceSpec | None, unseen: list[str], process: int | None,
) -> HangReport:  # fmt: skip
    """Returns the report of the first rule that has an answer."""
    if capture is None:
        unseen.append(
            "What was issued and does not run: the program was not captured. `tbsched capture "
            "--hang-after 5 --kill -o run.jsonl -- PROGRAM` sees it."
        )
    elif capture.failed:
        unseen.append(
            f"What the capture failed to note: it failed {counted(capture.failed, 'time')} "
            f"({capture.why}). Operations and ends may be missing."
        )
    snapshot = snapshots[min(1, len(snapshots) - 1)] if snapshots else None
    for snapshot_ in snapshots:
        unseen += snapshot_.notes
    observed = Observations(
        capture=capture, snapshot=snapshot, before=snapshots[0] if len(snapshots) > 1 else None,
        after=snapshots[2] if len(snapshots) > 2 else None, memory=memory,
        spec=_gpu_of(capture, snapshot, spec), unseen=tuple(unseen), seconds=_FIX_SECONDS,
    )  # fmt: skip
    report = report_of(observed)
    return report if process is None else replace(report, process=process)


def _never_start(capture: Unfinished, spec: DeviceSpec | None) -> frozenset[Key] | None:
    """Returns the launches that can never start, by the model; None: the GPU is unknown."""
    gpu = _gpu_of(capture, None, spec)
    operations = tuple([replace(operation, has_returned=True) for operation in capture.operations])
    if gpu is None or len({operation.gpu for operation in operations}) > 1:
        return None
    try:
        replay = replay_operations(operations, capture.streams, gpu, None)
    except ValueError:  # the GPU takes no such launch
        return None
    return frozenset([operations[each.operation].key for each in replay.stranded])


def unfinished_launches(
    path: Path, device: str | None
) -> tuple[Sequence | None, DeviceSpec | None]:
    """Returns the launches of a capture that were issued and have not ended, and their GPU.

    Their durations are not known: it is for questions that these do not matter to. None: there are
    none.

    Raises:
        FileNotFoundError, ValueError: not a capture.
    """
    capture = read_unfinished(path)
    spec = _gpu_of(capture, None, None if device is None else find_device(device))
    if spec is None:
        return None, None
    found = launches_of(capture.operations, capture.streams, spec)
    return (Sequence([untimed(each) for each in found]) if found else None), spec


def _gpu_of(
    capture: Unfinished | None, snapshot: Snapshot | None, spec: DeviceSpec | None
) -> DeviceSpec | None:
    """Returns the GPU with the hardware queues and local memory that the process uses; None:
    unknown. Raises ValueError: the capture has a number that no GPU has."""
    gpu = spec or _device_of(capture, snapshot)
    if gpu is None or capture is None:
        return gpu
    # What has run has set up its local memory.
    local_memory = [op.local_memory or 0 for op in capture.operations if op.ended_before]
    grown = max([gpu.local_memory_initial, capture.local_memory, *local_memory])
    gpu = replace(gpu, local_memory_initial=grown)
    if capture.connections is None:
        return gpu
    try:
        return replace(gpu, hardware_queues=capture.connections)
    except ValueError as error:
        raise ValueError(f"{storage.shown(capture.path)}: connections: {error}") from None


def _device_of(capture: Unfinished | None, snapshot: Snapshot | None) -> DeviceSpec | None:
    """Returns the GPU that a capture or the debugger names; None: neither does."""
    if capture is not None and capture.gpus:
        counts = [operation.gpu for operation in capture.operations] or list(capture.gpus)
        main = max(set(counts), key=counts.count)
        facts = capture.gpus.get(main)
        if facts is not None:
            name, sms, capability = facts
            major, _, minor = capability.partition(".")
            known = major.isdigit() and minor.isdigit()
            return device_of_facts(
                GpuFacts(
                    name=name, sms=sms, major=int(major) if known else None,
                    minor=int(minor) if known else None,
                )
            )  # fmt: skip
    if snapshot is not None and snapshot.gpus:
        return known_device(snapshot.gpus[0].name, snapshot.gpus[0].sms)
    return None
