"""What may come of a sequence in which blocks find room while others leave."""

from __future__ import annotations

import os
from dataclasses import dataclass

from tbsched import _core
from tbsched.errors import shown
from tbsched.hardware.initial_state import InitialState
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import Run
from tbsched.program.checks import integer
from tbsched.program.sequence import Sequence
from tbsched.traces.trace import Trace

MAX_RACES = 2**20


@dataclass(frozen=True, slots=True)
class Outcome:
    """One of the :func:`outcomes` of a sequence.

    Attributes:
        trace: where the blocks are.
        share: of the races that were played, how many came out like this; above 0, at most 1.

    Example:
        >>> (outcome,) = tb.outcomes(tb.Sequence([tb.Launch(132, 512, 32)]), "h200")
        >>> outcome.share
        1.0
    """

    trace: Trace
    share: float


def outcomes(
    seq: Sequence,
    device: str | os.PathLike[str] | DeviceSpec,
    policy: str | None = None,
    initial_state: InitialState | None = None,
    *,
    races: int = 100,
) -> tuple[Outcome, ...]:
    """Predicts what may come of a held sequence that a GPU does not repeat.

    The blocks of a released launch leave one by one, in an order of chance. Blocks that wait go to
    the SMs that are free by then. That is a race, and where later launches find room depends on it.
    This function plays the race many times, each time with another order of leaving, as the blocks
    that :func:`tbsched.observe` runs leave an H200 or an H100. The orders are always the same ones,
    so that the result is too.

    Where a GPU has a hundred outcomes in a hundred runs, few of them are named here. Use
    :func:`tbsched.predict_as_recorded` to see whether an observed one is possible.

    Args:
        seq: launches and releases.
        device, policy, initial_state: as for :func:`tbsched.predict`.
        races: how many are played, 1 to 2**20.

    Returns:
        The outcomes that differ in how many blocks of a launch are on an SM before the next event,
        the likeliest first. There is one if nothing later depends on a race. Of 549 new sequences
        that a GPU repeated in 100 runs, 541 had one.

    Raises:
        TypeError, ValueError: as for :func:`tbsched.predict`; launches with durations.

    Example:
        >>> sequence = tb.Sequence([
        ...     tb.Launch(132, 1024, 64), tb.Launch(131, 1024, 64), tb.Release(0),
        ...     tb.Launch(1, 1024, 64),
        ... ])
        >>> found = tb.outcomes(sequence, "h200")  # the last block goes to the SM left over
        >>> len(found) > 10, found[0].share < 0.5
        (True, True)
    """
    run = Run(device, policy, initial_state, 0.0, False)
    races = integer("outcomes", "races", races, 1, MAX_RACES)
    events = run.events(seq)
    if seq.timed:
        raise ValueError(f"sequence: {shown(seq)} has durations; outcomes needs releases")
    found = _core.outcomes(run.model, events, run.state, races)
    played = sum(count for _, count in found)
    return tuple(Outcome(run.raced(seq, rows), count / played) for rows, count in found)
