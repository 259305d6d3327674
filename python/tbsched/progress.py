"""A bar for what takes long, and threads that share it."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

Asked = TypeVar("Asked")
Found = TypeVar("Found")
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


@contextlib.contextmanager
def pulse(what: str) -> Iterator[None]:
    """Shows on a terminal what is being done and for how long, after half a second."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield
        return
    shown: list[Any] = []

    def start() -> None:
        from rich.console import Console
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        shown.append(Progress(*columns, console=Console(stderr=True), transient=True))
        shown[0].add_task(what, total=None)
        shown[0].start()

    late = threading.Timer(_SECONDS, start)
    late.start()
    try:
        yield
    finally:
        late.cancel()
        late.join()
        for one in shown:
            one.stop()


def each(ask: Callable[[Asked], Found], given: Iterable[Asked], doing: str) -> list[Found]:
    """Maps a function over items with several threads; returns results in the items' order.

    Predictions run at once: the core needs no lock of Python's. Ctrl-C ends it after those that
    are under way.
    """
    waiting = list(given)
    found = []
    threads = min(os.cpu_count() or 1, max(1, len(waiting)))
    with ThreadPoolExecutor(threads) as pool, bar(doing, len(waiting)) as advance:
        for one in pool.map(ask, waiting):
            found.append(one)
            advance(len(found))
    return found


class _Late:
    def __init__(self, what: str, total: int) -> None:
        self._what, self._total = what, total
        self._from = time.monotonic() + _SECONDS
        self._bar: Any = None
        self._task: Any = None

    def update(self, done: int) -> None:
        """Shows how much is done, once half a second has passed."""
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
