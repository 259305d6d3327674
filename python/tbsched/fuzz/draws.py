"""Sequences drawn with NumPy: the space of the strategies in a tenth of Hypothesis's time.

What is drawn are the very bytes that Hypothesis would draw, so that it can go on from any of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tbsched.fuzz.options import SequenceOptions
from tbsched.fuzz.strategies import BINDING, SequenceTables
from tbsched.sequence import Sequence
from tbsched.spec import DeviceSpec

_AT_ONCE = 256  # sequences


@dataclass(frozen=True, slots=True)
class Draw:
    """A sequence, and the choices that Hypothesis's strategy makes to draw the same."""

    sequence: Sequence
    choices: tuple[int | bytes, ...]


def draws(device: DeviceSpec, options: SequenceOptions, seed: int) -> Iterator[Draw]:
    """Endless draws, the same ones for the same arguments; every number of launches alike.

    Each is one that ``strategies.sequences(device, options)`` can draw.
    """
    tables = SequenceTables.of(device, options)
    few, most = options.min_launches, options.max_launches
    random = np.random.default_rng(seed)
    while True:
        binding = random.integers(len(BINDING), size=_AT_ONCE).tolist()
        launches = random.integers(few, most, size=_AT_ONCE, endpoint=True).tolist()
        drawn = random.integers(256, size=(_AT_ONCE, most, tables.width), dtype=np.uint8)
        for index, count, rows in zip(binding, launches, drawn, strict=True):
            row_bytes = [row.tobytes() for row in rows[:count]]
            # A list of varying length asks before each element, and once more to end.
            asked = few != most
            choices: list[int | bytes] = [index]
            for row in row_bytes:
                choices += (True, row) if asked else (row,)
            if asked:
                choices.append(False)
            yield Draw(tables.build((BINDING[index], row_bytes)), tuple(choices))
