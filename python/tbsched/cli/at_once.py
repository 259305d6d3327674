"""Lets Ctrl-C and SIGTERM end the process while it begins, without a traceback.

This module alone is loaded before the first Ctrl-C can be pressed, so it imports next to nothing.
"""

from __future__ import annotations

import os
import signal

INTERRUPTED = 130
_USUAL = ((signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, signal.SIG_DFL))


def end_at_once() -> None:
    """Lets Ctrl-C and SIGTERM end the process at once from here on.

    It does nothing in other threads, and where they are ignored or have a handler already.
    """
    for signal_number, usual in _USUAL:
        _replace(signal_number, usual, _end)


def end_as_usual() -> None:
    """From here on Ctrl-C raises ``KeyboardInterrupt`` again."""
    for signal_number, usual in _USUAL:
        _replace(signal_number, _end, usual)


def _replace(signal_number: int, before: object, after: object) -> None:
    """Replaces a signal's handler by ``after``, if it is ``before``."""
    if signal.getsignal(signal_number) == before:
        try:
            signal.signal(signal_number, after)  # type: ignore[arg-type]
        except ValueError:  # another thread than the main one
            return


def _end(signal_number: int, frame: object) -> None:
    """Handles a signal: ends the process at once."""
    try:
        os.write(2, b"tbsched: interrupted\n")
    finally:
        os._exit(INTERRUPTED)
