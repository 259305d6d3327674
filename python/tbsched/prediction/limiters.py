"""What limits the room of SMs, as words for codes of the core."""

from __future__ import annotations

import functools

import numpy as np
import numpy.typing as npt

from tbsched import _core


def limiters_of(
    first: npt.NDArray[np.uint8], every: npt.NDArray[np.uint32]
) -> tuple[tuple[str, ...], ...]:
    """Returns the words of all limiters of each SM. The first one is that which stands for all of
    them.

    Args:
        first: the index of each SM's first limiter in ``CAUSES``.
        every: all limiters of each SM, as bits by their index.
    """
    return tuple(map(_words, first.tolist(), every.tolist()))


def wait_limiters(
    first: npt.NDArray[np.int32], every: npt.NDArray[np.uint32], row: int
) -> tuple[str, ...]:
    """Returns the words of all limiters of one wait, first the one that stands for all.

    Args:
        first: the index of each wait's first limiter in ``CAUSES``.
        every: all limiters of each wait, as bits by their index.
        row: which wait.
    """
    return _words(int(first[row]), int(every[row]))


@functools.cache
def _words(first: int, every: int) -> tuple[str, ...]:
    """Returns the words of the limiters whose bits are set in ``every``, beginning with one."""
    others = (k for k in range(len(_core.CAUSES)) if k != first and every >> k & 1)
    return tuple(_core.CAUSES[k] for k in (first, *others))
