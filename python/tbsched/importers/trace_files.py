"""Trace files, of which the sequences are taken."""

from __future__ import annotations

from pathlib import Path

from tbsched import storage
from tbsched.program.sequence import Sequence
from tbsched.traces.files import is_trace_file, load_traces


def holds_traces(path: Path) -> bool:
    """Returns whether a file is a trace file, or a folder of them."""
    return storage.is_folder(path) or is_trace_file(path)


def read_traces(path: Path) -> list[Sequence]:
    """Returns the sequence of each trace in a file. Raises FileNotFoundError or ValueError: as
    :func:`tbsched.load_traces`."""
    return [trace.sequence for trace in load_traces(path)]
