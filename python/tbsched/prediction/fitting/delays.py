"""Delays with which launches are queued for room in the order of the profile."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.fitting.as_measured import BoolArray
from tbsched.prediction.fitting.issued import IssuedCalls
from tbsched.prediction.fitting.spans import Spans
from tbsched.program.arrays import Float64Array
from tbsched.program.events.launch import Launch
from tbsched.program.program import Program
from tbsched.traces.timeline import span_of
from tbsched.traces.trace import Trace

# Causes of waits that precede the queue for room.
_BEFORE_THE_QUEUE = (
    "stream", "trigger", "event", "value", "legacy_stream", "node", "hardware_queue", "grids",
    "first_use",
)  # fmt: skip
# A launch that is later than this has waited for something that the model does not know.
_MAX_DELAY_NS = 20_000.0
_NEAR_NS = 200.0  # a predicted start this soon after the arrival found room at once
_WAITED_NS = 1000.0  # a measured start later than this after the arrival waited for room
_APART_NS = 1.0  # between the arrivals of launches that are put in order


@dataclass(frozen=True, slots=True)
class Delays:
    """Finds the delays with which launches are queued for room.

    A profile says when kernels started. A launch that had room and started later than it could have
    was queued late. Of several launches that waited for room, the one that started first had been
    queued first.

    Attributes:
        measured: when kernels ran.
        transfer_end_ns: when copies and memsets ended, by the same clock.
        called_ns: when the host made each call, by the same clock; NaN: the profile does not say.
        priority: of each launch.
        may_delay: whether a launch may be late; nodes of graphs may not.
    """

    measured: Spans
    transfer_end_ns: Float64Array
    called_ns: Float64Array
    priority: tuple[int, ...]
    may_delay: BoolArray

    @classmethod
    def of(cls, program: Program, measured: Spans, spec: DeviceSpec) -> Delays:
        """Returns the delays of a program whose kernels ran at the measured times."""
        begin = float(program.measured["start_ns"].min())
        launches = program.sequence.launches
        called_ns = np.full(len(launches), np.nan)
        calls = IssuedCalls.of(program, spec)
        if calls is not None:
            called_ns[calls.first] = calls.issued_ns - calls.within_ns - begin
        may_delay = [
            isinstance(event, Launch) for event in program.sequence for _ in event.launches
        ]
        priority = tuple([launch.priority for launch in launches])
        transfer_end_ns = program.transfers["end_ns"] - begin
        return cls(measured, transfer_end_ns, called_ns, priority, np.array(may_delay))

    def next(
        self, trace: Trace, predicted: Spans, delay_ns: Float64Array
    ) -> tuple[Float64Array, BoolArray]:
        """Returns the delay to try next for each launch, float64 ns (launches,); and a mask of the
        launches that waited for room.

        The next delays queue the launches in the order of the profile. They count from the
        predicted times, so the order is right even if the whole prediction is late.

        Args:
            trace, predicted: the prediction with the last delays, and when its kernels ran.
            delay_ns: the last delays.
        """
        arrived, free = self._arrivals(trace, predicted, delay_ns)
        soonest = arrived - delay_ns
        has_room = predicted.start - arrived <= _NEAR_NS
        start = self.measured.start
        next_ns = np.where(has_room, np.clip(start - free, 0.0, _MAX_DELAY_NS), 0.0)
        queued: defaultdict[int, list[int]] = defaultdict(list)
        for launch in np.argsort(start, kind="stable").tolist():
            line = queued[self.priority[launch]]
            for earlier in reversed(line):
                if start[earlier] <= free[launch]:
                    break
                behind = soonest[earlier] + next_ns[earlier] + _APART_NS - soonest[launch]
                if next_ns[launch] < behind < _MAX_DELAY_NS:
                    next_ns[launch] = behind
            if not self.may_delay[launch]:
                next_ns[launch] = 0.0
            line.append(launch)
        return next_ns, ~has_room | (start - free > _WAITED_NS)

    def _arrivals(
        self, trace: Trace, predicted: Spans, delay_ns: Float64Array
    ) -> tuple[Float64Array, Float64Array]:
        """Returns, for each launch, when it was queued for room in the prediction, and when it
        could have been, float64 ns (launches,) each.

        The latter, ``free``, is by the profile: as long after the measured end of what the launch
        waited for as in the prediction.
        """
        earliest = int(predicted.start.argmin())
        begin, _ = span_of(earliest, trace[earliest])
        assert trace.waits is not None
        assert trace.transfer_ns is not None
        is_before = np.isin(trace.waits["cause"], _BEFORE_THE_QUEUE)
        for_room, waits = trace.waits[~is_before], trace.waits[is_before]
        arrived = predicted.start.copy()
        np.minimum.at(arrived, for_room["launch"], for_room["begin_ns"] - begin)
        behind = np.full(len(arrived), -1)
        cause = np.full(len(arrived), "", waits["cause"].dtype)
        behind[waits["launch"]] = waits["behind"]  # the last one counts
        cause[waits["launch"]] = waits["cause"]
        call_shift = np.nan_to_num(self.called_ns - (np.array(trace.issue_times) * 1e9 - begin))
        transfer_shift = self.transfer_end_ns - (trace.transfer_ns[:, 1] - begin)
        started, ended = self.measured.start - predicted.start, self.measured.end - predicted.end
        free = arrived - delay_ns  # as predicted, corrected below
        for launch in np.argsort(arrived, kind="stable").tolist():
            cause_index = int(behind[launch])
            if cause_index <= -2:
                shift_ns = transfer_shift[-2 - cause_index]
            elif cause_index < 0:
                shift_ns = call_shift[launch]
            elif cause[launch] == "hardware_queue":
                shift_ns = free[cause_index] - (arrived[cause_index] - delay_ns[cause_index])
            elif cause[launch] == "trigger":
                shift_ns = started[cause_index]
            else:
                shift_ns = ended[cause_index]
            free[launch] += shift_ns
        return arrived, free
