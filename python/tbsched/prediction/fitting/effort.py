"""How much a fit of durations predicts, and by which strategies."""

from __future__ import annotations

import enum
from typing import NamedTuple


class StartingPoint(enum.Enum):
    """Block times with which a strategy begins."""

    first = enum.auto()
    alike = enum.auto()  # one duration for launches of one kernel that ran beside others
    best = enum.auto()  # those of the nearest prediction


class Strategy(NamedTuple):
    """A strategy of the search.

    Attributes:
        ends_late: whether only the last block of a launch with a tail runs longer; else its blocks
            run unequally long.
        in_order: whether launches stay unchanged until those before them are right.
        begin: block times to begin with.
        spreads: whether blocks of a launch may run unequally long, which is slow to predict.
    """

    ends_late: bool
    in_order: bool
    begin: StartingPoint
    spreads: bool = True


class Effort(NamedTuple):
    """Most that is predicted, in blocks of all predictions together; 2**22 take about a second.

    Attributes:
        program: blocks of the program; with more, launches get fewer and longer ones.
        window: of some launches that started one after the other; two predictions at least.
        replays: of the whole program, with merged blocks.
        whole: of the whole program, block by block.
        launch: blocks that a launch costs as much as.
        strategies: tried one after the other until a prediction is near enough.
    """

    program: int
    window: int
    replays: int
    whole: int
    launch: int
    strategies: tuple[Strategy, ...]


_EVEN = Strategy(ends_late=False, in_order=False, begin=StartingPoint.first)
_LATE = Strategy(ends_late=True, in_order=False, begin=StartingPoint.first)
_IN_ORDER = (
    Strategy(ends_late=True, in_order=True, begin=StartingPoint.first),
    Strategy(ends_late=False, in_order=True, begin=StartingPoint.alike),
    Strategy(ends_late=False, in_order=True, begin=StartingPoint.first),
    *[Strategy(ends_late=False, in_order=True, begin=StartingPoint.best)] * 4,
)
# Fewer and longer blocks would leave an SM too early at the end of a kernel, so that the next one
# starts too early.
THOROUGH = Effort(2**23, 2**22, 3 * 2**24, 2**40, 128, (_EVEN, _LATE, *_IN_ORDER))
# Some ten seconds at most. Predictions with late ends take less time, and come near sooner.
BRIEF = Effort(2**23, 2**20, 2**24, 2**23, 512, (_LATE, _EVEN, *_IN_ORDER))
QUICK = Effort(2**19, 2**22, 2**21, 0, 128, (_EVEN._replace(spreads=False),))  # half a second
