"""Ctrl-C that nothing swallows.

Python drops an exception that is raised while it finalises an object or collects garbage, where
Hypothesis has a callback of its own, and prints a traceback. A Ctrl-C at that moment would be lost.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType


class Interrupts:
    """Remembers a Ctrl-C of its context until it has been raised where it counts."""

    def __init__(self) -> None:
        self._pressed = False

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Notes Ctrl-C while it is open; does nothing in other threads and under other handlers."""
        before = signal.getsignal(signal.SIGINT)
        main = threading.current_thread() is threading.main_thread()
        if not main or before is not signal.default_int_handler:
            yield
            return

        def handler(signal_number: int, frame: FrameType | None) -> None:
            self._pressed = True
            signal.default_int_handler(signal_number, frame)

        report = sys.unraisablehook

        def dropped(unraisable: sys.UnraisableHookArgs) -> None:
            if not issubclass(unraisable.exc_type, KeyboardInterrupt):
                report(unraisable)

        signal.signal(signal.SIGINT, handler)
        sys.unraisablehook = dropped
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)
            sys.unraisablehook = report

    def check(self) -> None:
        """Raises KeyboardInterrupt if one has been dropped."""
        if self._pressed:
            self._pressed = False
            raise KeyboardInterrupt
