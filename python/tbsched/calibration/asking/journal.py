"""Journal of an oracle's results: a killed calibration resumes from it."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from tbsched import storage
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
    """Replays the runs of a file, in the order of each sequence, and appends new ones.

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
        for recorded in self._devices:
            if recorded != device:
                raise ValueError(
                    f"evidence: {self.name}: {_difference(recorded, device)}; give another file"
                )
        self._devices = [device]

    @property
    def name(self) -> str:
        """The path of the file, for messages."""
        return "" if self._file is None else storage.shown(self._file.path)

    @property
    def is_empty(self) -> bool:
        """Whether there are no runs to replay."""
        return not self._held

    def holds(self, sequence: Sequence, runs: int = 1) -> bool:
        """Returns whether at least ``runs`` runs of the sequence are left to replay."""
        return len(self._held.get(sequence, ())) >= runs

    def taken(self, sequence: Sequence) -> Outcome:
        """Removes and returns the next held run of a sequence."""
        trace = self._held[sequence].popleft()
        reason = refusal_reason(trace.extra)
        if reason is not None:
            return Refused(reason)
        return None if unstable_reason(trace.extra) else trace

    @property
    def parts(self) -> tuple[Mapping[str, Any], ...]:
        """Results of the finished parts of a campaign, in order."""
        return tuple(self._parts)

    def keep_part(self, part: Mapping[str, Any]) -> None:
        """Appends the result of a finished part of a campaign."""
        if self._file is not None and self._devices:
            self._file.append(Trace(Sequence([]), self._devices[0], (), extra=of_part(part)))

    def keep(self, sequence: Sequence, outcome: Outcome) -> None:
        """Appends a result of the oracle."""
        if self._file is None:
            return
        if isinstance(outcome, Trace):
            self.check(outcome.device)
            self._file.append(outcome if sequence.timed else _placements_only(outcome))
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


def _placements_only(trace: Trace) -> Trace:
    """Returns the trace with placements only; calibration reads nothing else of held sequences."""
    return Trace(trace.sequence, trace.device, tuple(Placement(p.smid) for p in trace))


def _difference(recorded_info: DeviceInfo, device: DeviceInfo) -> str:
    """Returns, in words, the first header field in which two devices differ."""
    recorded, own = (
        {"name": info.name, "sms": info.sms, **info.details} for info in (recorded_info, device)
    )
    key = next(key for key in {**recorded, **own} if recorded.get(key) != own.get(key))
    return (
        f"its {key} is {shown(recorded.get(key))}, and that of the oracle is {shown(own.get(key))}"
    )
