"""What may come of a sequence in which blocks find room while others leave."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tbsched import _core
from tbsched.errors import shown
from tbsched.hardware.initial_state import InitialState
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import Run
from tbsched.program import checks
from tbsched.program.checks import instance, integer
from tbsched.program.sequence import Sequence
from tbsched.traces.trace import Trace

MAX_RACES = 2**20


@dataclass(frozen=True, slots=True)
class Outcome:
    """One of the :func:`outcomes` of a sequence: which launches share an SM, and on how many SMs.

    Attributes:
        trace: where the blocks are, in the likeliest of the races that came out like this.
        share: of the races that were played, how many came out like this; above 0, at most 1.
        variants: as how many outcomes those would count if every SM counted.
        cut: whether the time limit came before all races were played: there may be others.

    Example:
        >>> (outcome,) = tb.outcomes(tb.Sequence([tb.Launch(132, 512, 32)]), "h200")
        >>> outcome.share, outcome.variants
        (1.0, 1)
    """

    trace: Trace
    share: float
    variants: int
    cut: bool = False

    def includes(self, trace: Trace) -> bool:
        """Returns whether a trace of the same sequence came out like this, on whichever SMs.

        Args:
            trace: where the blocks went, predicted or observed.

        Raises:
            TypeError, ValueError: not a trace; one of other launches or another number of SMs.

        Example:
            >>> sequence = tb.Sequence([tb.Launch(1, 512, 32)])
            >>> (outcome,) = tb.outcomes(sequence, "h200")
            >>> outcome.includes(tb.predict(sequence, "h200"))
            True
        """
        instance("Outcome", "trace", trace, Trace)
        if trace.sequence.launches != self.trace.sequence.launches:
            raise ValueError(f"trace: {shown(trace)} has other launches than {shown(self.trace)}")
        if trace.device.sms != self.trace.device.sms:
            raise ValueError(
                f"trace: {shown(trace)} has {trace.device.sms} SMs; the outcome has "
                f"{self.trace.device.sms}"
            )
        return _key(trace) == _key(self.trace)


def outcomes(
    seq: Sequence,
    device: str | os.PathLike[str] | DeviceSpec,
    policy: str | None = None,
    initial_state: InitialState | None = None,
    *,
    races: int = 100,
    seconds: float | None = None,
) -> tuple[Outcome, ...]:
    """Predicts what may come of a held sequence that a GPU does not repeat.

    The blocks of a released launch leave one by one, in an order of chance. Blocks that wait go to
    the SMs that are free by then. That is a race, and where later launches find room depends on it.
    This function plays the race many times. Each time it draws another order of leaving, as it was
    seen on an H200 and an H100 that run the blocks of :func:`tbsched.observe`. It always draws the
    same orders, so the result is always the same.

    Which SM is free first is chance. If every SM counted, a GPU could have almost a hundred
    outcomes in a hundred runs. So two outcomes count as one here if they differ in nothing but
    which SM is which. Use :func:`tbsched.predict_as_recorded` to see whether an observed one is
    possible SM by SM.

    Args:
        seq: launches and releases.
        device, policy, initial_state: as for :func:`tbsched.predict`.
        races: how many are played, 1 to 2**20.
        seconds: after so many no further race is played, and ``Outcome.cut`` of all that were found
            says so. The first race is played to its end. None is never.

    Returns:
        The outcomes, the likeliest first. Two of them differ in which launches share an SM before
        the next event, in how many blocks each has there, or in how many such SMs there are. There
        is only one if nothing later depends on a race. If many came out in a single race each,
        there are more than were found.

    Raises:
        TypeError, ValueError: as for :func:`tbsched.predict`; a launch has a duration.

    Example:
        >>> sequence = tb.Sequence([
        ...     tb.Launch(132, 1024, 64), tb.Launch(131, 1024, 64), tb.Release(0),
        ...     tb.Launch(1, 1024, 64),
        ... ])
        >>> (found,) = tb.outcomes(sequence, "h200")  # the last block goes to the SM left over
        >>> found.share, found.variants > 10
        (1.0, True)
    """
    run = Run(device, policy, initial_state, 0.0, False)
    races = integer("outcomes", "races", races, 1, MAX_RACES)
    events = run.events(seq)
    limit = math.inf if seconds is None else checks.seconds("outcomes", "seconds", seconds)
    if seq.timed:
        raise ValueError(f"sequence: {shown(seq)} has durations; outcomes needs releases")
    found = _core.outcomes(run.model, events, run.state, races, limit)
    cut = any(was_cut for _, _, was_cut in found)
    return tuple(_merged([(run.raced(seq, rows), count) for rows, count, _ in found], cut))


def _merged(raced: Iterable[tuple[Trace, int]], cut: bool) -> list[Outcome]:
    """Returns one outcome for all traces that differ only in which SM is which, likeliest first.

    Args:
        raced: each trace, and the number of races that ended in it.
        cut: whether the time limit ended the races.
    """
    variants: dict[bytes, list[tuple[Trace, int]]] = {}
    for trace, races in raced:
        variants.setdefault(_key(trace), []).append((trace, races))
    races_by_key = {key: sum(races for _, races in own) for key, own in variants.items()}
    all_races = sum(races_by_key.values())
    return [
        Outcome(variants[key][0][0], races_by_key[key] / all_races, len(variants[key]), cut)
        for key in sorted(variants, key=races_by_key.__getitem__, reverse=True)
    ]


def _key(trace: Trace) -> bytes:
    """Returns a key of how many blocks of each launch each SM has. It is equal for traces in which
    SMs are only exchanged."""
    if not len(trace):
        return b""
    blocks = np.stack([placement.occupancy(trace.device.sms) for placement in trace])
    return blocks[:, np.lexsort(blocks)].tobytes()
