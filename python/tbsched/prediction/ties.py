"""Launches that may go on at the same time: in which orders, and what becomes of each order."""

from __future__ import annotations

import itertools
import os
from collections import defaultdict
from collections.abc import Iterator

from tbsched import _core
from tbsched.hardware.initial_state import InitialState
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import Run
from tbsched.program.sequence import Sequence
from tbsched.traces.trace import Trace

# Causes of waits that precede the queue for room.
_BEFORE_THE_LINE = frozenset(
    ("stream", "trigger", "event", "legacy_stream", "node", "hardware_queue", "grids")
)
Turns = tuple[int, ...]


class Ties:
    """Predicts a timed program in each order of launches that have waited until the same moment.

    :func:`tbsched.predict` takes them in the order of issue. A GPU takes them as chance has it.

    Args:
        seq, device, policy, launch_interval, issue_times: as for :func:`tbsched.predict`.
    """

    def __init__(
        self, seq: Sequence, device: str | os.PathLike[str] | DeviceSpec, policy: str | None,
        launch_interval: float, issue_times: tuple[float, ...] | None,
    ) -> None:  # fmt: skip
        self._seq = seq
        self._device_and_policy = device, policy
        self._interval = launch_interval
        run = Run(device, policy, None, launch_interval, False)
        self._calls = run.calls(seq, issue_times)
        self._events = run.events(seq)

    def predict(self, state: InitialState, turns: Turns) -> Trace:
        """Returns the prediction from a latent state, in which of launches that may go next at the
        same moment the one with the lowest number in ``turns`` does."""
        run = Run(*self._device_and_policy, state, self._interval, False)
        rows = _core.predict_timeline(
            run.model, self._events, run.state, *self._calls, list(turns), None
        )
        return run.trace(self._seq, rows, self._calls)

    def all(self, state: InitialState) -> Iterator[Trace]:
        """Yields the predictions from a latent state in all orders of launches that may go next at
        the same moment, each once: up to n! for n such launches."""
        first = tuple(range(len(self._seq.launches)))
        known = {first}
        untried = [first]
        while untried:
            turns = untried.pop()
            trace = self.predict(state, turns)
            yield trace
            for group in _tied(trace):
                # Neighbours change places, and so in the end all do.
                group.sort(key=turns.__getitem__)
                for first_one, next_one in itertools.pairwise(group):
                    swapped = list(turns)
                    swapped[first_one], swapped[next_one] = turns[next_one], turns[first_one]
                    if tuple(swapped) not in known:
                        known.add(tuple(swapped))
                        untried.append(tuple(swapped))


def _tied(trace: Trace) -> list[list[int]]:
    """Returns groups of launches of one priority that have waited until the same moment, so that
    either may go next."""
    assert trace.waits is not None
    until: dict[int, int] = {}
    for wait in trace.waits:
        if wait["cause"] in _BEFORE_THE_LINE:
            until[int(wait["launch"])] = int(wait["end_ns"])
    groups: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    for launch, end_ns in until.items():
        groups[end_ns, trace.sequence.launches[launch].priority].append(launch)
    return [group for group in groups.values() if len(group) > 1]
