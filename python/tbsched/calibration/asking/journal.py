"""What an oracle showed, written down as it comes: a killed calibration goes on from it."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from tbsched.errors import shown
from tbsched.program.sequence import Sequence
from tbsched.traces.annotations import (
    compared_part,
    marked_refused,
    marked_unstable,
    of_part,
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
        self._devices: list[DeviceInfo] = []
        self._parts: list[Mapping[str, Any]] = []
        for trace in file.traces if file is not None else ():
            if trace.device not in self._devices:
                self._devices.append(trace.device)
            part = compared_part(trace.extra)
            if part is None:
                self._held.setdefault(trace.sequence, deque()).append(trace)
            else:
                self._parts.append(part)

    def check(self, device: DeviceInfo) -> None:
        """Refuses a file that is of another GPU, or of the same one under another driver.

        Raises:
            ValueError: naming what differs.
        """
        for held in self._devices:
            if held != device:
                path = "" if self._file is None else shown(str(self._file.path))
                raise ValueError(
                    f"evidence: {path}: {_difference(held, device)}; give another file"
                )
        self._devices = [device]

    @property
    def is_empty(self) -> bool:
        """Whether nothing is to be given back."""
        return not self._held

    def holds(self, sequence: Sequence, runs: int = 1) -> bool:
        """Whether so many runs of it are left to be given back."""
        return len(self._held.get(sequence, ())) >= runs

    def taken(self, sequence: Sequence) -> Outcome:
        """The next run of it that is held."""
        trace = self._held[sequence].popleft()
        reason = refusal_reason(trace.extra)
        if reason is not None:
            return Refused(reason)
        return None if unstable_reason(trace.extra) else trace

    @property
    def parts(self) -> tuple[Mapping[str, Any], ...]:
        """What parts of a campaign have counted, in their order."""
        return tuple(self._parts)

    def keep_part(self, part: Mapping[str, Any]) -> None:
        """Writes down what a part of a campaign counted."""
        if self._file is not None and self._devices:
            self._file.append(Trace(Sequence([]), self._devices[0], (), extra=of_part(part)))

    def keep(self, sequence: Sequence, outcome: Outcome) -> None:
        """Writes down what the oracle showed."""
        if self._file is None:
            return
        if isinstance(outcome, Trace):
            self.check(outcome.device)
            self._file.append(outcome if sequence.timed else _places(outcome))
        elif self._devices:
            extra = (
                marked_unstable({}, "the run did not agree with itself")
                if outcome is None
                else marked_refused({}, str(outcome) or "refused")
            )
            nowhere = tuple(
                Placement(np.full(launch.blocks, -1, np.int32)) for launch in sequence.launches
            )
            self._file.append(Trace(sequence, self._devices[0], nowhere, extra=extra))


def _places(trace: Trace) -> Trace:
    """Where the blocks were, which is all that a held sequence is asked for."""
    return Trace(trace.sequence, trace.device, tuple(Placement(p.smid) for p in trace))


def _difference(held: DeviceInfo, device: DeviceInfo) -> str:
    """The first of what a trace file's header says of the two that is not the same."""
    ours, theirs = ({"name": info.name, "sms": info.sms, **info.details} for info in (held, device))
    key = next(key for key in {**ours, **theirs} if ours.get(key) != theirs.get(key))
    return (
        f"its {key} is {shown(ours.get(key))}, and that of the oracle is {shown(theirs.get(key))}"
    )
