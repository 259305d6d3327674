"""JSON with a list of events, as :meth:`tbsched.Sequence.to_json` writes it."""

from __future__ import annotations

from pathlib import Path

from tbsched.program.sequence import Sequence


def is_event_list(place: Path) -> bool:
    """Any file that is nothing else."""
    return not place.is_dir()


def read_event_list(place: Path) -> list[Sequence]:
    """The one sequence of the file.

    Raises:
        ValueError, TypeError: not JSON, or not a list of events.
        OSError: the file cannot be read.
    """
    return [Sequence.from_json(place.read_text("utf-8"))]
