"""Ctrl-C and SIGTERM, of which neither ends in a traceback."""

from __future__ import annotations

import _thread
import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType

from tbsched.cli.at_once import end_as_usual, end_at_once


@contextlib.contextmanager
def ending_at_once() -> Iterator[None]:
    """Lets both end the process inside: for imports, which turn an exception into another."""
    end_at_once()
    try:
        yield
    finally:
        end_as_usual()


@contextlib.contextmanager
def sigterm_as_ctrl_c() -> Iterator[None]:
    """Makes SIGTERM interrupt what runs in here as Ctrl-C does, so that a campaign reports."""
    if not _is_own(signal.SIGTERM, signal.SIG_DFL):
        yield
        return
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextlib.contextmanager
def not_swallowed() -> Iterator[None]:
    """Raises a KeyboardInterrupt again that Python drops while this context lasts.

    Python drops an exception in places such as a callback of an import. The main thread is then
    interrupted once more, 10 ms later.
    """
    before = sys.unraisablehook

    def again(dropped: sys.UnraisableHookArgs) -> None:
        """Repeats an interrupt that was raised where Python drops exceptions."""
        if isinstance(dropped.exc_value, KeyboardInterrupt):
            # Not at once: this runs where exceptions are dropped.
            threading.Timer(0.01, _thread.interrupt_main).start()
        else:
            before(dropped)

    sys.unraisablehook = again
    try:
        yield
    finally:
        sys.unraisablehook = before


def is_interruption(error: BaseException | None) -> bool:
    """Returns whether an error was caused by Ctrl-C."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False


def _is_own(signal_number: int, handler: object) -> bool:
    """Returns whether a signal's handler is this one, in the main thread: so that it may be
    replaced."""
    is_main = threading.current_thread() is threading.main_thread()
    return is_main and signal.getsignal(signal_number) == handler


def _interrupt(signal_number: int, frame: FrameType | None) -> None:
    """Handles SIGTERM as Ctrl-C is handled; where that is ignored, as Python handles it."""
    on_ctrl_c = signal.getsignal(signal.SIGINT)
    if not callable(on_ctrl_c):  # ignored, as in the background of a shell
        on_ctrl_c = signal.default_int_handler
    on_ctrl_c(signal_number, frame)
