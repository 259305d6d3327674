"""Trace files that grow while a campaign runs, and lose nothing when it is killed."""

from __future__ import annotations

import os
from types import TracebackType

from tbsched.growing import GrowingFile
from tbsched.traces.files import read_traces
from tbsched.traces.records import Header, header_line, record_line
from tbsched.traces.trace import Trace


class TraceFile:
    """A trace file opened for appending; one process at a time may hold it.

    The first trace that is appended takes the place of a last line that a killed process left
    unfinished. Until then the file stays as it is.

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
        self._header: Header | None = None
        self._file = GrowingFile(path, "trace file", b'{"tbsched_trace"', sync_every=sync_every)
        self.path = self._file.path
        try:
            self.traces: tuple[Trace, ...] = tuple(
                self._file.read(lambda file: read_traces(self.path, file), [])
            )
        except BaseException:
            self._file.close()
            raise

    def append(self, trace: Trace) -> None:
        """Writes the trace, after a header line if that of the one before does not suit it.

        Raises:
            OSError: it could not be written, as on a full disk; the file holds nothing of it.
        """
        header = Header.of(trace, self._header)
        data = (b"" if header is self._header else header_line(header)) + record_line(trace)
        self._file.append(data)
        self._header = header

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> TraceFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
