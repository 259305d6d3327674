"""Captures of this process."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from pathlib import Path
from types import TracebackType

from tbsched import storage
from tbsched.importers.programs import load_program
from tbsched.launcher import injection
from tbsched.program.program import Program


class capture:  # noqa: N801 - used as a function
    """Records what this process launches while it runs, as ``tbsched capture`` does of a program.

    Use it as a context manager. It waits for the GPU when it ends.

    Args:
        path: of the file to write; what is there is replaced. None: none is kept.

    Attributes:
        path: of the file; None: none is kept.

    Raises:
        ImportError: the package was built without CUPTI.
        NoGpuError: on entry: there is no CUDA driver.
        RuntimeError: on entry: a capture runs already, CUPTI is missing, or another profiler, such
            as torch.profiler, uses it.
        ValueError, FileNotFoundError: the file cannot be written.

    Example:
        >>> with tb.capture("run.jsonl") as captured:  # doctest: +SKIP
        ...     train_step()
        >>> print(captured.program.sequence)  # doctest: +SKIP
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self.path = None if path is None else storage.as_path(path)
        if self.path is not None:
            storage.check_writable(self.path)
        self._folder: Path | None = None
        self._program: Program | None = None
        self._is_over = False

    def __enter__(self) -> capture:
        if self.path is not None:
            self.path.unlink(missing_ok=True)
        injection.start(self._place())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        injection.stop()
        self._is_over = True

    @property
    def program(self) -> Program:
        """What was captured.

        Raises:
            ValueError: the capture is not over, or no kernel ran in it.
        """
        if not self._is_over:
            raise ValueError("capture.program: the capture is not over; read it after the block")
        if self._program is None:
            self._program = load_program(self._place())
        return self._program

    def _place(self) -> Path:
        if self.path is not None:
            return self.path
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="tbsched-"))
            weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        return self._folder / "capture.jsonl"
