"""Files of lines that grow while something long runs, and lose nothing when it is killed."""

from __future__ import annotations

import fcntl
import io
import os
import warnings
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, BinaryIO, TypeVar

from tbsched import parsing, storage

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

Read = TypeVar("Read")
_CHUNK = 2**20


class GrowingFile:
    """A file of JSON lines opened for appending; one process at a time may hold it.

    Nothing of the file changes before something is appended.

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
        self._torn: int | None = None  # where an unfinished last line begins
        self._lacks_newline = False
        self._descriptor = storage.opened_to_append(self.path)
        try:
            self._lock()
        except BaseException:
            os.close(self._descriptor)
            raise

    def read(self, load: Callable[[BinaryIO], Read], empty: Read) -> Read:
        """Reads the file without a last line that a killed process left unfinished.

        The next line that is appended takes its place. A warning says so.

        Args:
            load: reads a file that ends with a whole line.
            empty: what an empty file holds.

        Raises:
            ValueError: another kind of file; or what ``load`` raises.
        """
        size = os.fstat(self._descriptor).st_size
        tail = self._tail(size)
        self._lacks_newline = _is_json(tail)
        if self._lacks_newline:
            return load(self._first(size))
        whole = size - len(tail)
        if tail.strip():
            begin = os.pread(self._descriptor, _CHUNK, 0)[: len(self._begins)]
            if begin != self._begins[: len(begin)]:
                raise ValueError(f"{storage.shown(self.path)}: not a {self._kind}")
        found = load(self._first(whole)) if whole else empty
        if tail.strip():
            name = storage.shown(self.path)
            text = f"{name}: its last line ({len(tail)} bytes) was cut, and is left out"
            warnings.warn(text, UserWarning, stacklevel=2)
        self._torn = whole if tail else None
        return found

    def append(self, data: bytes) -> None:
        """Writes whole lines.

        Raises:
            OSError: they could not be written, as on a full disk; the file holds nothing of them.
        """
        if self._torn is not None:
            os.ftruncate(self._descriptor, self._torn)
            self._torn = None
        end = os.fstat(self._descriptor).st_size
        if self._lacks_newline:
            data = b"\n" + data
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
        except BaseException as error:
            os.ftruncate(self._descriptor, end)  # no torn line that the next would land on
            if isinstance(error, OSError):
                error.filename = storage.shown(self.path)
            raise
        self._lacks_newline = False
        self._unsynced += 1
        if self._unsynced >= self._sync_every:
            self._sync()

    def close(self) -> None:
        """Closes the file; all that was appended is on the disk."""
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
        """Locks the file. Raises ValueError: another process has it."""
        # The kernel drops the lock with the process, so a killed one leaves none behind.
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(f"{storage.shown(self.path)}: in use by another process") from None

    def _first(self, size: int) -> BinaryIO:
        return io.BufferedReader(_Beginning(self._descriptor, size))

    def _tail(self, size: int) -> bytes:
        """Returns the bytes behind the last newline."""
        tail, begin = b"", size
        while begin and b"\n" not in tail and len(tail) <= storage.MAX_BYTES:
            begin = max(0, begin - _CHUNK)
            tail = os.pread(self._descriptor, size - begin - len(tail), begin) + tail
        return tail[tail.rfind(b"\n") + 1 :]


class _Beginning(io.RawIOBase):
    """The first bytes of an open file, to read from."""

    def __init__(self, descriptor: int, size: int) -> None:
        self._descriptor, self._size, self._at = descriptor, size, 0

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Fills a buffer with bytes of the beginning of the file, and returns how many; 0: it has
        ended."""
        with memoryview(buffer) as whole, whole.cast("B") as view:
            most = min(len(view), self._size - self._at)
            piece = os.pread(self._descriptor, most, self._at)
            view[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)


def _is_json(line: bytes) -> bool:
    """Returns whether a line is JSON."""
    try:
        parsing.json_value(line)
    except ValueError:
        return False
    return True
