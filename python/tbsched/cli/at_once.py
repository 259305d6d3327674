"""Lets Ctrl-C end the process while it begins, without a traceback.

This module alone is loaded before the first Ctrl-C can be pressed, so it imports next to nothing.
"""

from __future__ import annotations

import os
import signal

INTERRUPTED = 130


def end_at_once() -> None:
    """From here on Ctrl-C ends the process, where there is nothing to tidy up.

    It does nothing in other threads, and where Ctrl-C is ignored or has a handler already.
    """
    _replace(signal.default_int_handler, _end)


def end_as_usual() -> None:
    """From here on Ctrl-C raises ``KeyboardInterrupt`` again."""
    _replace(_end, signal.default_int_handler)


def _replace(before: object, after: object) -> None:
    if signal.getsignal(signal.SIGINT) == before:
        try:
            signal.signal(signal.SIGINT, after)  # type: ignore[arg-type]
        except ValueError:  # another thread than the main one
            return


def _end(number: int, frame: object) -> None:
    try:
        os.write(2, b"tbsched: interrupted\n")
    finally:
        os._exit(INTERRUPTED)
