"""Files of lines that grow while something long runs, and lose nothing when it is killed."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from tbsched import storage

Read = TypeVar("Read")
_CHUNK = 2**20


class GrowingFile:
    """A file of JSON lines opened for appending; one process at a time may hold it.

    Args:
        path: a ``.jsonl`` file, created if it is not there.
        kind: what it is, for messages.
        begins: what its first line begins with, if it holds anything.
        sync_every: after so many pieces they are forced to the disk. What is written is in the
            hands of the operating system at once, and survives the process in any case.

    Raises:
        ValueError: a compressed file, or one that is in use; nothing of it is changed.
        FileNotFoundError: no such folder.
    """

    def __init__(
        self, path: str | os.PathLike[str], kind: str, begins: bytes, *, sync_every: int = 1
    ) -> None:
        self.path = storage.as_path(path)
        if self.path.suffix in (".xz", ".gz"):
            name = storage.shown(self.path)
            raise ValueError(f"{name}: a compressed file cannot grow; write .jsonl")
        self._kind, self._begins = kind, begins
        self._sync_every = sync_every
        self._unsynced = 0
        self._descriptor = storage.opened_to_append(self.path)
        try:
            self._lock()
        except BaseException:
            os.close(self._descriptor)
            raise

    def read(self, load: Callable[[Path], Read], empty: Read) -> Read:
        """Reads the file, and removes a last line that a killed process left unfinished.

        Args:
            load: reads a file that ends with a whole line.
            empty: what an empty file holds.

        Raises:
            ValueError: another kind of file, of which nothing is changed; or what ``load`` raises.
        """
        size = os.fstat(self._descriptor).st_size
        tail = self._tail(size)
        if _is_json(tail):
            found = load(self.path)
            os.write(self._descriptor, b"\n")
            return found
        whole = size - len(tail)
        if tail.strip():
            begin = os.pread(self._descriptor, _CHUNK, 0)[: len(self._begins)]
            if begin != self._begins[: len(begin)]:
                raise ValueError(f"{storage.shown(self.path)}: not a {self._kind}")
            os.ftruncate(self._descriptor, whole)
        return load(self.path) if whole else empty

    def append(self, data: bytes) -> None:
        """Writes whole lines.

        Raises:
            OSError: they could not be written, as on a full disk; the file holds nothing of them.
        """
        end = os.fstat(self._descriptor).st_size
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
        except BaseException as error:
            os.ftruncate(self._descriptor, end)  # no torn line that the next would land on
            if isinstance(error, OSError):
                error.filename = storage.shown(self.path)
            raise
        self._unsynced += 1
        if self._unsynced >= self._sync_every:
            self._sync()

    def close(self) -> None:
        try:
            self._sync()
        finally:
            os.close(self._descriptor)

    def __enter__(self) -> GrowingFile:
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
        # The kernel drops the lock with the process, so a killed one leaves none behind.
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(f"{storage.shown(self.path)}: in use by another process") from None

    def _tail(self, size: int) -> bytes:
        """Returns the bytes behind the last newline."""
        tail, begin = b"", size
        while begin and b"\n" not in tail and len(tail) <= storage.MAX_BYTES:
            begin = max(0, begin - _CHUNK)
            tail = os.pread(self._descriptor, size - begin - len(tail), begin) + tail
        return tail[tail.rfind(b"\n") + 1 :]


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True
