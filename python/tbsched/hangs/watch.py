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

MOST_SECONDS = 1e6
_PERIOD = 0.5  # seconds between two looks at the files
_ALIVE = b'{"alive":'
_NO_NEWS = (_ALIVE, b'{"overhead":')  # CUPTI's own work goes on while a program hangs


def checked_seconds(owner: str, seconds: float) -> float:
    """Returns the seconds after which a program counts as hanging.

    Raises:
        ValueError: not a number of seconds.
    """
    if not isinstance(seconds, int | float) or not 0 < seconds <= MOST_SECONDS:
        raise ValueError(
            f"{owner}: seconds above 0 and up to {MOST_SECONDS:g} are needed, got {shown(seconds)}"
        )
    return float(seconds)


@dataclass(slots=True)
class Watch:
    """Knows since when the files of a capture have said nothing new.

    Attributes:
        files: returns the files, which appear as processes use CUDA.
        seconds: after so many it is quiet.
    """

    files: Callable[[], list[Path]]
    seconds: float
    _open: dict[Path, BinaryIO] = field(default_factory=dict)
    _rest: dict[Path, bytes] = field(default_factory=dict)
    _pends: bool = False
    _since: float = field(default_factory=time.monotonic)
    _is_told: bool = False

    def is_quiet(self) -> bool:
        """Returns whether something has not ended and nothing is new for long; once until news."""
        for path in self.files():
            self._read(path)
        if not self._pends or self._is_told or time.monotonic() - self._since < self.seconds:
            return False
        self._is_told = True
        return True

    def look(self) -> HangReport | str | None:
        """Returns the report of a program that hangs or may hang, or words if none can be made.

        Unless it is known to hang, it is quiet once more after as long.

        No debugger looks: CUDA takes one tool at a time, and that is the capture.
        """
        captures = [path for path in self.files() if is_capture(path)]
        try:
            found = hang(*captures) if captures else None
        except ValueError as error:  # such as of several GPUs
            self.look_again()
            return str(error)
        if found is None or not found.hangs or found.may_be_slow:
            self.look_again()
        return found if found is not None and found.hangs else None

    def look_again(self) -> None:
        """Makes it quiet once more after as long, though nothing is new: it may have been slow."""
        self._since, self._is_told = time.monotonic(), False

    def close(self) -> None:
        """Closes the files."""
        for file in self._open.values():
            file.close()

    def _read(self, path: Path) -> None:
        """Reads the lines that were added to a capture."""
        if path not in self._open:
            self._open[path] = path.open("rb")
        *lines, self._rest[path] = (self._rest.get(path, b"") + self._open[path].read()).split(
            b"\n"
        )
        if not lines:
            return
        if any(not line.startswith(_NO_NEWS) for line in lines):
            self._since, self._is_told, self._pends = time.monotonic(), False, False
        # Such a line comes once a second while something has not ended.
        if any(line.startswith(_ALIVE) for line in lines):
            self._pends = True


def report_place(capture: Path) -> Path:
    """Returns the file of the report: ``run.hang.txt`` beside ``run.jsonl``."""
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
        """Stops it."""
        self._ends.set()
        self._thread.join()
        self._watch.close()

    def _run(self) -> None:
        """Looks at the program each time nothing has ended for long; writes the report."""
        while not self._ends.wait(min(_PERIOD, self._watch.seconds / 2)):
            found = self._watch.look() if self._watch.is_quiet() else None
            if found is not None:
                report_place(self._path).write_text(f"{found}\n", "utf-8")
            if isinstance(found, HangReport) and not found.may_be_slow:
                self.found = found
