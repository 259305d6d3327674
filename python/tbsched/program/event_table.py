"""Held sequences as rows of numbers: how a campaign hands the core and a GPU many at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tbsched.program.arrays import Int32Array, Int64Array
from tbsched.program.partition import Partition

# Columns behind a row's kind, for a launch; carveout is -1 for None, and partition is the number
# of one of the table's partitions, or -1. A release has the number of the launch in the
# second column. As in cpp/tbsched/program/event_table.h.
FIELDS = (
    "blocks", "threads", "registers", "shared_memory", "local_memory", "carveout", "cluster",
    "priority", "partition", "cooperative",
)  # fmt: skip
LAUNCH, RELEASE = 0, 1


@dataclass(frozen=True, eq=False, slots=True)
class EventTable:
    """Sequences of launches without streams and durations, and of releases.

    Attributes:
        cells: int32 (events, 11), a row per event: its kind and :data:`FIELDS`.
        bounds: int64 (sequences + 1,): sequence k has the rows from ``bounds[k]`` up to
            ``bounds[k + 1]``.
        partitions: what the launches name by number.
    """

    cells: Int32Array
    bounds: Int64Array
    partitions: tuple[Partition, ...] = ()

    def __len__(self) -> int:
        return len(self.bounds) - 1

    @property
    def launch_blocks(self) -> Int32Array:
        """Blocks of every launch, int32 (launches,)."""
        blocks: Int32Array = self.cells[self.cells[:, 0] == LAUNCH, 1]
        return blocks

    @property
    def launches(self) -> Int64Array:
        """Number of launches of every sequence, int64 (sequences,)."""
        before = np.concatenate([[0], np.cumsum(self.cells[:, 0] == LAUNCH)])
        return np.diff(before[self.bounds])

    @property
    def sequence_blocks(self) -> Int64Array:
        """Blocks of all launches of every sequence, int64 (sequences,)."""
        blocks = np.where(self.cells[:, 0] == LAUNCH, self.cells[:, 1], 0)
        return np.diff(np.concatenate([[0], np.cumsum(blocks, dtype=np.int64)])[self.bounds])

    def first_events(self, counts: Int64Array) -> EventTable:
        """Returns a table of the first ``counts`` events of each sequence."""
        sizes = np.diff(self.bounds)
        position = np.arange(len(self.cells)) - np.repeat(self.bounds[:-1], sizes)
        return EventTable(
            self.cells[position < np.repeat(counts, sizes)],
            np.concatenate([[0], counts.cumsum()]),
            self.partitions,
        )

    def chosen(self, selected: npt.NDArray[np.bool_]) -> EventTable:
        """Returns the sequences for which a mask is True."""
        sizes = np.diff(self.bounds)
        return EventTable(
            self.cells[np.repeat(selected, sizes)],
            np.concatenate([[0], sizes[selected].cumsum()]),
            self.partitions,
        )

    def part(self, begin: int, end: int) -> EventTable:
        """Returns the sequences from number ``begin`` up to ``end``."""
        bounds = self.bounds[begin : end + 1]
        return EventTable(self.cells[bounds[0] : bounds[-1]], bounds - bounds[0], self.partitions)
