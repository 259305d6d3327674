"""Which addresses of a process are memory of the host."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from pathlib import Path

_ROW = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) (\S{4}) ")


@dataclass(frozen=True, slots=True)
class HostMemory:
    """Ranges of a process's addresses that the host can read: those of GPU memory are not among
    them.

    Attributes:
        begins, ends: of the ranges that the host can read, ascending.
    """

    begins: tuple[int, ...]
    ends: tuple[int, ...]

    def __call__(self, address: int) -> bool:
        """Returns whether the host can read an address."""
        range_index = bisect_right(self.begins, address) - 1
        return range_index >= 0 and address < self.ends[range_index]


def host_memory_of(process: int) -> HostMemory | None:
    """Returns the host memory of a process; None: it has gone, or may not be read."""
    try:
        return parse_maps(Path(f"/proc/{process}/maps").read_text("utf-8", "replace"))
    except OSError:
        return None


def parse_maps(maps: str) -> HostMemory:
    """Returns the readable ranges in the text of ``/proc/PID/maps``."""
    rows = [
        (int(row[1], 16), int(row[2], 16))
        for line in maps.splitlines()
        if (row := _ROW.match(line)) and row[3].startswith("r")
    ]
    rows.sort()
    return HostMemory(tuple([begin for begin, _ in rows]), tuple([end for _, end in rows]))
