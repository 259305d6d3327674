"""Which event of a held sequence launched, and which one released, each launch."""

from __future__ import annotations

from typing import assert_never

import numpy as np

from tbsched.program.arrays import Int64Array
from tbsched.program.sequence import (
    Copy,
    GraphLaunch,
    Launch,
    Memset,
    RecordEvent,
    Release,
    Sequence,
    Synchronize,
    WaitEvent,
)


def launched_and_released(sequence: Sequence) -> tuple[Int64Array, Int64Array]:
    """The numbers of both events, int64 (launches,) each; -1 for a launch that is never released.

    Args:
        sequence: a held one. Only timed ones have CUDA events, graphs and copies.
    """
    launched = np.zeros(len(sequence.launches), np.int64)
    released = np.full(len(launched), -1)
    launches = 0
    for number, event in enumerate(sequence.events):
        match event:
            case Launch():
                launched[launches] = number
                launches += 1
            case Release():
                released[event.launch] = number
            case RecordEvent() | WaitEvent() | GraphLaunch() | Copy() | Memset() | Synchronize():
                raise AssertionError("only timed sequences have them")
            case _:
                assert_never(event)
    return launched, released
