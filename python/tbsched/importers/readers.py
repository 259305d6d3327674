"""Which reader takes a file: a row per format, the first that takes it reads it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tbsched.importers.event_list import is_event_list, read_event_list
from tbsched.importers.programs import is_profile, load_program
from tbsched.importers.trace_files import holds_traces, read_traces
from tbsched.program.sequence import Sequence


@dataclass(frozen=True, slots=True)
class Reader:
    """A format.

    Attributes:
        name: what it is called.
        takes: whether a file, or a folder, is of this format, by looking at it.
        read: its sequences, in order.
    """

    name: str
    takes: Callable[[Path], bool]
    read: Callable[[Path], list[Sequence]]


def _read_profile(path: Path) -> list[Sequence]:
    """Returns the sequence of a profile, in a list."""
    return [load_program(path, fit=False).sequence]


READERS = (
    Reader("profile", is_profile, _read_profile),
    Reader("trace file", holds_traces, read_traces),
    Reader("list of events", is_event_list, read_event_list),
)


def read_sequences(path: Path) -> list[Sequence]:
    """Returns the sequences of a file of any known format.

    Raises:
        ValueError, TypeError: no reader takes it, or not what its format says.
        FileNotFoundError: no such file.
    """
    for reader in READERS:
        if reader.takes(path):
            return reader.read(path)
    known = ", ".join(reader.name for reader in READERS)
    raise ValueError(f"{path}: of no known format; there are {known}")
