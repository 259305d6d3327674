"""One change of a program, and what it is predicted to bring."""

from __future__ import annotations

from dataclasses import dataclass

from tbsched.program.sequence import Sequence


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a program, and what it is predicted to bring.

    Attributes:
        what: the change in words.
        sequence: the changed program.
        makespan: predicted seconds.
        host: of a profile, the changed program's gaps between calls, as ``Program.host``; empty: it
            has none.
        condition: what must hold for the program to compute the same; empty: nothing.
        is_bound: whether no change of its kind saves more than this, and what the program can do
            saves less.
        saves: seconds of the predicted makespan, where the program as it is is known.

    Example:
        >>> program = tb.Sequence([tb.Launch(100, 1024, 64, duration=1e-4)])
        >>> tb.what_if(program, "h200").given.what
        'as it is'
    """

    what: str
    sequence: Sequence
    makespan: float
    host: tuple[float, ...] = ()
    condition: str = ""
    saves: float = 0.0
    is_bound: bool = False
