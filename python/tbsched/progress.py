"""A bar for what takes long."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

_SECONDS = 0.5  # what takes less needs no bar


@contextlib.contextmanager
def bar(what: str, total: int) -> Iterator[Callable[[int], object]]:
    """A bar on standard error, if that is a terminal, once half a second has passed.

    Args:
        what: what is being done, in words.
        total: how much there is to do.

    Returns:
        A function that takes how much is done.
    """
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda done: None
        return
    shown = _Late(what, total)
    try:
        yield shown.update
    finally:
        shown.stop()


class _Late:
    def __init__(self, what: str, total: int) -> None:
        self._what, self._total = what, total
        self._from = time.monotonic() + _SECONDS
        self._bar: Any = None
        self._task: Any = None

    def update(self, done: int) -> None:
        if self._bar is None:
            if time.monotonic() < self._from:
                return
            from rich.console import Console
            from rich.progress import Progress

            self._bar = Progress(console=Console(stderr=True), transient=True)
            self._bar.start()
            self._task = self._bar.add_task(self._what, total=self._total)
        self._bar.update(self._task, completed=done)

    def stop(self) -> None:
        if self._bar is not None:
            self._bar.stop()
