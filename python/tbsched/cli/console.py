"""What the verbs print, and the statuses that they exit with."""

from __future__ import annotations

import sys

from rich.console import Console

AGREEMENT, DISAGREEMENT, BAD_INPUT, NO_GPU, INTERRUPTED = 0, 1, 2, 3, 130

# Tables that go to a file or a pipe need not fit a window.
console = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else 160)


def show(text: object) -> None:
    console.print(str(text), markup=False)
