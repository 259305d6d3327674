"""Watches captures while they are written: when nothing is new for long, it looks why."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from tbsched.errors import shown
from tbsched.hangs.find import hang
from tbsched.hangs.hang import HangReport
from tbsched.importers.captured_files import is_capture

MAX_SECONDS = 1e6
_PERIOD = 0.5  # seconds between two looks at the files
_ALIVE = b'{"alive":'
# CUPTI's own work goes on while a program hangs, and memory is read.
_NO_NEWS = (_ALIVE, b'{"overhead":', b'{"gpu_memory":')


def checked_seconds(owner: str, seconds: float) -> float:
    """Returns the seconds without news after which a program counts as hanging, checked. Raises
    ValueError: not a number of seconds."""
    if not isinstance(seconds, int | float) or not 0 < seconds <= MAX_SECONDS:
        raise ValueError(
            f"{owner}: seconds above 0 and up to {MAX_SECONDS:g} are needed, got {shown(seconds)}"
        )
    return float(seconds)


@dataclass(slots=True)
class Watch:
    """Knows for how long the files of a capture have had no news.

    Attributes:
        files: returns the files, which appear as processes use CUDA.
        seconds: after so many it is quiet.
    """

    files: Callable[[], list[Path]]
    seconds: float
    _open: dict[Path, BinaryIO] = field(default_factory=dict)
    _rest: dict[Path, bytes] = field(default_factory=dict)
    _is_pending: bool = False
    _since: float = field(default_factory=time.monotonic)
    _is_told: bool = False

    def is_quiet(self) -> bool:
        """Returns whether work is pending and there was no news for long; True once until news."""
        for path in self.files():
            self._read(path)
        if not self._is_pending or self._is_told or time.monotonic() - self._since < self.seconds:
            return False
        self._is_told = True
        return True

    def look(self) -> HangReport | str | None:
        """Returns the report of a program that hangs or may hang, or an error's text; None:
        neither.

        Unless it is known to hang, it is quiet once more after as long.

        No debugger looks: CUDA takes one tool at a time, and that is the capture.
        """
        captures = [path for path in self.files() if is_capture(path)]
        try:
            report = hang(*captures) if captures else None
        except ValueError as error:  # such as of several GPUs
            self.look_again()
            return str(error)
        if report is None or not report.hangs or report.may_be_slow:
            self.look_again()
        return report if report is not None and report.hangs else None

    def look_again(self) -> None:
        """Restarts the time without news, so that the program is looked at again."""
        self._since, self._is_told = time.monotonic(), False

    def close(self) -> None:
        """Closes the files."""
        for file in self._open.values():
            file.close()

    def _read(self, path: Path) -> None:
        """Reads the lines added to a capture, and notes whether they are news."""
        if path not in self._open:
            self._open[path] = path.open("rb")
        *lines, self._rest[path] = (self._rest.get(path, b"") + self._open[path].read()).split(
            b"\n"
        )
        if not lines:
            return
        if any(not line.startswith(_NO_NEWS) for line in lines):
            self._since, self._is_told, self._is_pending = time.monotonic(), False, False
        # Such a line comes once a second while something has not ended.
        if any(line.startswith(_ALIVE) for line in lines):
            self._is_pending = True


def report_place(capture: Path) -> Path:
    """Returns the path of a capture's report: ``run.hang.txt`` beside ``run.jsonl``."""
    return capture.with_name(f"{capture.name.partition('.')[0]}.hang.txt")


class Watching:
    """A thread that watches the capture of this process, and keeps what it finds."""

    def __init__(self, path: Path, seconds: float) -> None:
        self.found: HangReport | None = None
        self._watch = Watch(lambda: [path], seconds)
        self._path = path
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="tbsched hang")
        self._thread.start()

    def end(self) -> None:
        """Stops the thread and closes the files."""
        self._ends.set()
        self._thread.join()
        self._watch.close()

    def _run(self) -> None:
        """Writes a report each time the program is quiet, until one says that it hangs."""
        while not self._ends.wait(min(_PERIOD, self._watch.seconds / 2)):
            report = self._watch.look() if self._watch.is_quiet() else None
            if report is not None:
                report_place(self._path).write_text(f"{report}\n", "utf-8")
            if isinstance(report, HangReport) and not report.may_be_slow:
                self.found = report
