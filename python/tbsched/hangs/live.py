"""Captures of this process."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from pathlib import Path
from types import TracebackType

from tbsched import storage
from tbsched.hangs.hang import HangReport
from tbsched.hangs.watch import Watching, checked_seconds
from tbsched.importers import captured_files
from tbsched.importers.programs import load_program
from tbsched.launcher import injection
from tbsched.program.program import Program


class capture:  # noqa: N801 - used as a function
    """Records what this process launches while it runs, as ``tbsched capture`` does of a program.

    Use it as a context manager. It waits for the GPU when it ends.

    Args:
        path: of the file to write. A capture that is there is replaced at the end, if this one has
            a launch or a copy; any other file is refused. None: none is kept.
        hang_after: after so many seconds in which nothing ends and nothing is issued although
            something has not ended, look why, as :func:`tbsched.hang` does. None: never.

    Attributes:
        path: of the file; None: none is kept.
        hang: a :class:`HangReport`, if the program was found to hang, else None. It is also written
            beside the file, as ``run.hang.txt`` beside ``run.jsonl``.

    Raises:
        ImportError: the package was built without CUPTI.
        NoGpuError: on entry: there is no CUDA driver.
        RuntimeError: on entry: a capture runs already, CUPTI is missing, or another profiler, such
            as torch.profiler, uses it.
        ValueError, FileNotFoundError: the file cannot be written, or is there and is no capture.

    Example:
        >>> with tb.capture("run.jsonl") as captured:  # doctest: +SKIP
        ...     train_step()
        >>> print(captured.program.sequence)  # doctest: +SKIP
    """

    def __init__(
        self, path: str | os.PathLike[str] | None = None, *, hang_after: float | None = None
    ) -> None:
        self._hang_after = (
            None if hang_after is None else checked_seconds("capture.hang_after", hang_after)
        )
        self._watching: Watching | None = None
        self.path = None if path is None else storage.as_path(path)
        if self.path is not None:
            captured_files.check_replaceable(self.path)
        self._target = None if self.path is None else Path(os.path.realpath(self.path))
        self._written: Path | None = None
        self._program: Program | None = None
        self._is_over = False

    def __enter__(self) -> capture:
        target = self._target or self._folder() / "capture.jsonl"
        self._written = injection.start(captured_files.place_for(target))
        if self._hang_after is not None:
            self._watching = Watching(self._written, self._hang_after)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:  # fmt: skip
        if self._watching is not None:
            self._watching.end()
        injection.stop()
        assert self._written is not None
        if self._target is not None and self._written != self._target:
            self._written = self._settled(self._written, self._target)
        self._is_over = True

    @property
    def hang(self) -> HangReport | None:
        """Why the program hangs, or hung. None if it was not found to."""
        return None if self._watching is None else self._watching.found

    @property
    def program(self) -> Program:
        """Returns the captured program.

        Raises:
            ValueError: the capture is not over, or no kernel ran in it.
        """
        if not self._is_over or self._written is None:
            raise ValueError("capture.program: the capture is not over; read it after the block")
        if self._program is None:
            self._program = load_program(self._written)
        return self._program

    def _settled(self, path: Path, target: Path) -> Path:
        """Puts a finished capture at its place if that is allowed; returns where it is."""
        if not captured_files.has_work(path):
            return Path(shutil.move(path, self._folder()))
        if not captured_files.is_free(target):
            return path
        storage.put_in_place(path, target)
        return target

    def _folder(self) -> Path:
        """Returns a new folder that is removed with this object."""
        folder = Path(tempfile.mkdtemp(prefix="tbsched-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        return folder
