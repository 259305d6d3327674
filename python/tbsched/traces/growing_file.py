"""Trace files that grow while a campaign runs, and lose nothing when it is killed."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from types import TracebackType

from tbsched.traces.files import header_line, load_traces, record_line
from tbsched.traces.placement import DeviceInfo
from tbsched.traces.trace import Trace


class TraceFile:
    """A trace file opened for appending; one process at a time may hold it.

    A last line that a killed process left unfinished is taken out when the file is opened.

    Args:
        path: a ``.jsonl`` file, created if it is not there.
        sync_every: after so many traces they are forced to the disk. What is written is in the
            hands of the operating system at once, and survives the process in any case.

    Attributes:
        traces: what the file held when it was opened.

    Raises:
        ValueError: a compressed file, one that is no trace file, or one that is in use.
        FileNotFoundError: no such folder.
    """

    def __init__(self, path: str | os.PathLike[str], *, sync_every: int = 1) -> None:
        self.path = Path(path)
        if self.path.suffix in (".xz", ".gz"):
            raise ValueError(f"{self.path}: a compressed file cannot grow; write .jsonl")
        self._sync_every = sync_every
        self._unsynced = 0
        self._device: DeviceInfo | None = None
        self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        try:
            self._lock()
            self.traces: tuple[Trace, ...] = self._read()
        except BaseException:
            os.close(self._descriptor)
            raise

    def append(self, trace: Trace) -> None:
        """Writes the trace, after a header line if it is of another device than the one before."""
        lines = [record_line(trace)]
        if trace.device != self._device:
            lines.insert(0, header_line(trace.device))
        data = "".join(line + "\n" for line in lines).encode()
        while data:
            data = data[os.write(self._descriptor, data) :]
        self._device = trace.device
        self._unsynced += 1
        if self._unsynced >= self._sync_every:
            self._sync()

    def close(self) -> None:
        self._sync()
        os.close(self._descriptor)

    def __enter__(self) -> TraceFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self.close()

    def _sync(self) -> None:
        os.fsync(self._descriptor)
        self._unsynced = 0

    def _lock(self) -> None:
        # The kernel drops the lock with the process, so a killed campaign leaves none behind.
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(f"{self.path}: in use by another campaign") from None

    def _read(self) -> tuple[Trace, ...]:
        content = self.path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        tail = content[len(whole) :]
        if _is_json(tail):
            os.write(self._descriptor, b"\n")
        elif tail.strip():
            os.ftruncate(self._descriptor, len(whole))
        if not (whole or _is_json(tail)):
            return ()
        return tuple(load_traces(self.path))


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True
