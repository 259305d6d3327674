"""Which addresses of a process are memory of the host."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from pathlib import Path

_ROW = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) (\S{4}) ")


@dataclass(frozen=True, slots=True)
class HostMemory:
    """The address space of a process: memory of a GPU has addresses that the host cannot read.

    Attributes:
        begins, ends: of the ranges that the host can read, ascending.
    """

    begins: tuple[int, ...]
    ends: tuple[int, ...]

    def __call__(self, address: int) -> bool:
        """Returns whether the host can read what is there."""
        at = bisect_right(self.begins, address) - 1
        return at >= 0 and address < self.ends[at]


def host_memory_of(process: int) -> HostMemory | None:
    """Returns the host's memory of a process; None: it has gone, or may not be asked."""
    try:
        return host_memory_in(Path(f"/proc/{process}/maps").read_text("utf-8", "replace"))
    except OSError:
        return None


def host_memory_in(maps: str) -> HostMemory:
    """Reads ``/proc/PID/maps``."""
    rows = [
        (int(row[1], 16), int(row[2], 16))
        for line in maps.splitlines()
        if (row := _ROW.match(line)) and row[3].startswith("r")
    ]
    rows.sort()
    return HostMemory(tuple([begin for begin, _ in rows]), tuple([end for _, end in rows]))
