"""What limits the room of SMs, as words for codes of the core."""

from __future__ import annotations

import functools

import numpy as np
import numpy.typing as npt

from tbsched import _core


def limiters_of(
    first: npt.NDArray[np.uint8], every: npt.NDArray[np.uint32]
) -> tuple[tuple[str, ...], ...]:
    """Returns all words of each SM, the one that is named alone first.

    Args:
        first: of each SM an index among ``CAUSES``.
        every: of each SM a bit per index.
    """
    return tuple(map(_words, first.tolist(), every.tolist()))


def wait_limiters(
    first: npt.NDArray[np.int32], every: npt.NDArray[np.uint32], row: int
) -> tuple[str, ...]:
    """Returns all words of a wait, the one that is named alone first.

    Args:
        first: of each wait an index among ``CAUSES``.
        every: of each wait a bit per index.
        row: which wait.
    """
    return _words(int(first[row]), int(every[row]))


@functools.cache
def _words(first: int, every: int) -> tuple[str, ...]:
    others = (k for k in range(len(_core.CAUSES)) if k != first and every >> k & 1)
    return tuple(_core.CAUSES[k] for k in (first, *others))
