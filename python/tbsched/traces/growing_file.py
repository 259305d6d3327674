"""Trace files that grow while a campaign runs, and lose nothing when it is killed."""

from __future__ import annotations

import fcntl
import json
import os
from types import TracebackType

from tbsched import storage
from tbsched.traces.files import MAX_LINE_BYTES, load_traces
from tbsched.traces.records import Header, header_line, record_line
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
        ValueError: a compressed file, one that is no trace file, or one that is in use; nothing of
            it is changed.
        FileNotFoundError: no such folder.
    """

    def __init__(self, path: str | os.PathLike[str], *, sync_every: int = 1) -> None:
        self.path = storage.as_path(path)
        if self.path.suffix in (".xz", ".gz"):
            name = storage.shown(self.path)
            raise ValueError(f"{name}: a compressed file cannot grow; write .jsonl")
        self._sync_every = sync_every
        self._unsynced = 0
        self._header: Header | None = None
        self._descriptor = storage.opened_to_append(self.path)
        try:
            self._lock()
            self.traces: tuple[Trace, ...] = self._read()
        except BaseException:
            os.close(self._descriptor)
            raise

    def append(self, trace: Trace) -> None:
        """Writes the trace, after a header line if that of the one before does not suit it.

        Raises:
            OSError: it could not be written, as on a full disk; the file holds nothing of it.
        """
        header = Header.of(trace, self._header)
        data = (b"" if header is self._header else header_line(header)) + record_line(trace)
        end = os.fstat(self._descriptor).st_size
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
        except BaseException as error:
            os.ftruncate(self._descriptor, end)  # no torn line that the next would land on
            if isinstance(error, OSError):
                error.filename = storage.shown(self.path)
            raise
        self._header = header
        self._unsynced += 1
        if self._unsynced >= self._sync_every:
            self._sync()

    def close(self) -> None:
        try:
            self._sync()
        finally:
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
            raise ValueError(f"{storage.shown(self.path)}: in use by another campaign") from None

    def _read(self) -> tuple[Trace, ...]:
        size = os.fstat(self._descriptor).st_size
        tail = self._tail(size)
        if _is_json(tail):
            found = load_traces(self.path)
            os.write(self._descriptor, b"\n")
            return tuple(found)
        whole = size - len(tail)
        if tail.strip():
            if not _begins_as_traces(os.pread(self._descriptor, _CHUNK, 0)):
                raise ValueError(f"{storage.shown(self.path)}: not a trace file")
            os.ftruncate(self._descriptor, whole)
        return tuple(load_traces(self.path)) if whole else ()

    def _tail(self, size: int) -> bytes:
        """What is behind the last newline."""
        tail, begin = b"", size
        while begin and b"\n" not in tail and len(tail) <= MAX_LINE_BYTES:
            begin = max(0, begin - _CHUNK)
            tail = os.pread(self._descriptor, size - begin - len(tail), begin) + tail
        return tail[tail.rfind(b"\n") + 1 :]


_CHUNK = 2**20
_HEADER = b'{"tbsched_trace"'


def _begins_as_traces(content: bytes) -> bool:
    """Whether it is the beginning of what :meth:`TraceFile.append` writes, however short."""
    return content[: len(_HEADER)] == _HEADER[: len(content)]


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True
