"""All that was observed, and which devices explain it."""

from __future__ import annotations

from collections.abc import Sequence as ListOf
from dataclasses import replace

import numpy as np

from tbsched.calibration.asking.predicted import table_of
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import predict
from tbsched.prediction.tables import matching_states
from tbsched.program.event_table import EventTable
from tbsched.program.sequence import Sequence
from tbsched.traces.trace import Trace

_AT_ONCE = 64
_THREADS = 2


class Evidence:
    """What was tried: what was observed of it, block by block, and what was refused.

    Args:
        observed: a trace of each sequence.
        refused: sequences that the oracle does not take.
    """

    def __init__(self, observed: ListOf[Trace], refused: ListOf[Sequence]) -> None:
        # The cheap ones first: most devices that are wrong are wrong about one of them.
        traces = sorted(observed, key=_blocks)
        self._refused = refused
        self._sequences = len(traces) + len(refused)
        self._parts: list[tuple[EventTable, list[np.ndarray]]] = []
        for at in range(0, len(traces), _AT_ONCE):
            part = traces[at : at + _AT_ONCE]
            seen = [np.concatenate([p.smid for p in trace.placements]) for trace in part]
            self._parts.append((table_of([trace.sequence for trace in part]), seen))
        self._known: dict[DeviceSpec, bool] = {}
        self._last = 0  # the part that contradicted a device last

    def __len__(self) -> int:
        """How many sequences were tried."""
        return self._sequences

    def explained_by(self, spec: DeviceSpec) -> bool:
        """Whether the device has every block where it was observed, from some latent state."""
        key = replace(spec, name="explains", provenance={})
        if key not in self._known:
            self._known[key] = self._explained(key)
        return self._known[key]

    def _explained(self, spec: DeviceSpec) -> bool:
        if any(_takes(spec, sequence) for sequence in self._refused):
            return False
        states = spec.initial_states()
        parts = self._parts[self._last :] + self._parts[: self._last]
        for number, (table, seen) in enumerate(parts):
            try:
                found = matching_states(table, seen, spec, spec.policy, states, _THREADS)
            except ValueError:  # it refuses what the oracle took
                found = [None]
            if any(state is None for state in found):
                self._last = (self._last + number) % len(parts)
                return False
        return True


def _blocks(trace: Trace) -> int:
    return sum(launch.blocks for launch in trace.sequence.launches)


def _takes(spec: DeviceSpec, sequence: Sequence) -> bool:
    try:
        spec.check(sequence)
        predict(sequence, spec)
    except ValueError:
        return False
    return True
