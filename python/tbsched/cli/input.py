"""Files that verbs read."""

from __future__ import annotations

from pathlib import Path

from tbsched.traces.files import load_traces
from tbsched.traces.trace import Trace


def read_traces(place: Path) -> list[Trace]:
    """The traces of a file or of a folder, at least one.

    Raises:
        FileNotFoundError, ValueError: as :func:`tbsched.load_traces`; there are none.
    """
    found = load_traces(place)
    if not found:
        raise ValueError(f"{place}: holds no traces")
    return found
