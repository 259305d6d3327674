"""Sequences drawn with NumPy: the space of the strategies in a hundredth of Hypothesis's time.

What is drawn are the very bytes that Hypothesis would draw, so that it can go on from any of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from tbsched.campaigns.space.launch_tables import Bytes, SequenceTables
from tbsched.campaigns.space.options import SequenceOptions
from tbsched.hardware.spec import DeviceSpec
from tbsched.program.event_table import EventTable
from tbsched.program.sequence import Sequence

AT_ONCE = 256  # sequences


@dataclass(frozen=True, slots=True)
class Draw:
    """A sequence, and the choices that Hypothesis's strategy makes to draw the same."""

    sequence: Sequence
    choices: tuple[int | bytes, ...]


@dataclass(frozen=True, eq=False, slots=True)
class DrawnTable:
    """Many sequences, as the bytes that were drawn.

    Attributes:
        themes: of each sequence, the number of its theme.
        rows: of each sequence, uint8 (launches, width).
        asked: whether Hypothesis decides about the number of launches.
    """

    tables: SequenceTables
    themes: list[int]
    rows: list[Bytes]
    asked: bool

    def __len__(self) -> int:
        return len(self.rows)

    def part(self, begin: int, end: int) -> DrawnTable:
        """Returns the sequences from ``begin`` up to ``end``."""
        return replace(self, themes=self.themes[begin:end], rows=self.rows[begin:end])

    def event_table(self) -> EventTable:
        """Returns the events of all sequences."""
        return self.tables.table(
            np.array(self.tables.launches.themes)[self.themes],
            np.concatenate(self.rows),
            [len(rows) for rows in self.rows],
        )

    def draw(self, index: int) -> Draw:
        """Returns one draw of the table, with the choices that Hypothesis would make."""
        rows = [row.tobytes() for row in self.rows[index]]
        theme = self.themes[index]
        choices: list[int | bytes] = [theme]
        for row in rows:
            # A list of varying length asks before each element, and once more to end.
            choices += (True, row) if self.asked else (row,)
        if self.asked:
            choices.append(False)
        return Draw(self.tables.build((self.tables.launches.themes[theme], rows)), tuple(choices))


@dataclass(frozen=True, slots=True)
class Draws:
    """Endless draws, the same ones for the same values; every number of launches alike.

    Which sequence has which number depends on the seed alone, not on where the draws begin.

    Each is one that ``tbsched.strategies.sequences(device, options)`` can draw, but for cooperative
    launches, which fit the models in ``also`` too.
    """

    device: DeviceSpec
    options: SequenceOptions
    seed: int
    also: tuple[DeviceSpec, ...] = ()
    begin: int = 0  # the number of the first

    def tables(self) -> Iterator[DrawnTable]:
        """Yields the draws in tables of 256; the first has those from ``begin`` on."""
        tables = SequenceTables.of(self.device, self.options, self.also)
        min_launches, max_launches = self.options.min_launches, self.options.max_launches
        first, skipped = divmod(self.begin, AT_ONCE)
        for table_index in itertools.count(first):
            random = _random(self.seed, table_index)
            themes = random.integers(len(tables.launches.themes), size=AT_ONCE).tolist()
            counts = random.integers(min_launches, max_launches, size=AT_ONCE, endpoint=True)
            rows = random.integers(256, size=(counts.sum(), tables.width), dtype=np.uint8)
            drawn = DrawnTable(
                tables,
                themes,
                np.split(rows, counts.cumsum()[:-1]),
                asked=min_launches != max_launches,
            )
            yield drawn.part(skipped if table_index == first else 0, AT_ONCE)

    def __iter__(self) -> Iterator[Draw]:
        for table in self.tables():
            yield from map(table.draw, range(len(table)))


def _random(seed: int, table: int) -> np.random.Generator:
    """Returns a table's own generator, so that tables can be drawn independently."""
    key = (table,) if table else ()
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))
