"""What an oracle showed, written down as it comes: a killed calibration goes on from it."""

from __future__ import annotations

from collections import deque
from typing import TypeAlias

import numpy as np

from tbsched.errors import shown
from tbsched.program.sequence import Sequence
from tbsched.traces.annotations import (
    marked_refused,
    marked_unstable,
    refusal_reason,
    unstable_reason,
)
from tbsched.traces.growing_file import TraceFile
from tbsched.traces.placement import DeviceInfo, Placement
from tbsched.traces.trace import Trace

SYNC_EVERY = 100  # runs that a power failure may cost


class Refused(Exception):
    """The oracle does not take a sequence."""


# None: the run did not agree with itself.
Outcome: TypeAlias = Trace | Refused | None


class Journal:
    """Gives back what is in a file, in its order for each sequence, and appends what is new.

    Args:
        file: a trace file; None keeps nothing.
    """

    def __init__(self, file: TraceFile | None) -> None:
        self._file = file
        self._held: dict[Sequence, deque[Trace]] = {}
        self._device: DeviceInfo | None = None
        for trace in file.traces if file is not None else ():
            self._held.setdefault(trace.sequence, deque()).append(trace)
            self._device = trace.device

    def check(self, device: DeviceInfo) -> None:
        """Refuses a file that is of another GPU.

        Raises:
            ValueError: naming both.
        """
        held = self._device
        if held is not None and (held.name, held.sms) != (device.name, device.sms):
            path = "" if self._file is None else shown(str(self._file.path))
            raise ValueError(
                f"evidence: {path}: it is of {shown(held.name)} with {held.sms} SMs, and the "
                f"oracle is {shown(device.name)} with {device.sms}; give another file"
            )
        self._device = device

    @property
    def is_empty(self) -> bool:
        """Whether nothing is to be given back."""
        return not self._held

    def holds(self, sequence: Sequence) -> bool:
        """Whether a run of it is left to be given back."""
        return bool(self._held.get(sequence))

    def taken(self, sequence: Sequence) -> Outcome:
        """The next run of it that is held."""
        trace = self._held[sequence].popleft()
        reason = refusal_reason(trace.extra)
        if reason is not None:
            return Refused(reason)
        return None if unstable_reason(trace.extra) else trace

    def keep(self, sequence: Sequence, outcome: Outcome) -> None:
        """Writes down what the oracle showed."""
        if self._file is None:
            return
        if isinstance(outcome, Trace):
            self._device = outcome.device
            self._file.append(outcome)
        elif self._device is not None:
            extra = (
                marked_unstable({}, "the run did not agree with itself")
                if outcome is None
                else marked_refused({}, str(outcome) or "refused")
            )
            nowhere = tuple(
                Placement(np.full(launch.blocks, -1, np.int32)) for launch in sequence.launches
            )
            self._file.append(Trace(sequence, self._device, nowhere, extra=extra))
