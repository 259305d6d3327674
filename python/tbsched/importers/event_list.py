"""JSON with a list of events, as :meth:`tbsched.Sequence.to_json` writes it."""

from __future__ import annotations

from pathlib import Path

from tbsched import storage
from tbsched.program.sequence import Sequence


def is_event_list(path: Path) -> bool:
    """Returns whether a path is not a folder: this format is tried when no other fits."""
    return not storage.is_folder(path)


def read_event_list(path: Path) -> list[Sequence]:
    """Returns the one sequence of a file, in a list.

    Raises:
        ValueError, TypeError: not JSON, or not a list of events.
        FileNotFoundError: no such file.
    """
    try:
        return [Sequence.from_json(storage.content(path))]
    except (TypeError, ValueError) as error:
        name = storage.shown(path)
        raise error if name in str(error) else type(error)(f"{name}: {error}") from None
