"""What the verbs print, and the statuses that they exit with."""

from __future__ import annotations

import json
import shutil
import sys

from rich.console import Console

from tbsched import shown
from tbsched.views.tables import Table, written

AGREEMENT, DISAGREEMENT, BAD_INPUT, NO_GPU = 0, 1, 2, 3
# Width of tables. Longer lines wrap in a narrow window, while rich would cut them.
_WIDTH = 160


class _Console(Console):
    def on_broken_pipe(self) -> None:
        raise BrokenPipeError  # rich would exit, with the status of a disagreement


console = _Console(highlight=False, soft_wrap=True, width=_WIDTH)
_notes = _Console(highlight=False, soft_wrap=True, width=_WIDTH, stderr=True)


def show(value: object) -> None:
    """Prints text, a table, or a value that shows itself, on standard output.

    Tables are as wide as the terminal, if it is one. It obeys nothing of what is printed.
    """
    width = shutil.get_terminal_size().columns if console.is_terminal else None
    if isinstance(value, shown.Shown):
        text = shown.text(value, width)
    else:
        text = written([value if isinstance(value, Table) else str(value)], width)
    console.print(text, markup=False)


def show_json(document: object) -> None:
    """One JSON document on standard output, on a line of its own."""
    sys.stdout.write(json.dumps(document, allow_nan=False) + "\n")


def note(text: object) -> None:
    """Prints text on standard error, so that output which a program reads stays as it is."""
    _notes.print(written([str(text)]), markup=False)
