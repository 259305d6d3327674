"""A rank: a process that takes part in collectives with others, as a profile of it has it."""

from __future__ import annotations

from typing import NamedTuple


class Rank(NamedTuple):
    """A profile of one rank, and how its clock was brought to that of the first one.

    Attributes:
        rank: its number.
        file: the name of the profile.
        gpus: its GPUs, as ``Program.activity`` numbers them.
        added: seconds that were added to its times.
        uncertain: seconds by which those may be wrong; None: nothing tells, as it has no collective
            in common with the others, or sends or receives alone.

    Example:
        >>> tb.Rank(1, "rank1.json.gz", (1,), 0.0, 3e-6).rank
        1
    """

    rank: int
    file: str
    gpus: tuple[int, ...]
    added: float
    uncertain: float | None
