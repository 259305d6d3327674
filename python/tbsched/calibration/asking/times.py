"""Measurements of timed sequences: one number each, with its confidence interval."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as ListOf
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from tbsched.calibration.asking.lab import Inconclusive, Lab
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import predict
from tbsched.program.sequence import Sequence
from tbsched.traces.trace import Trace

# Samples that one run gives: nanoseconds, or counts.
Numbers: TypeAlias = list[float]
_RUNS, _TRIES = 3, 8
_CALLED_S = 1e-5  # assumed time between two calls where a device names none
_SOON_NS = 50_000.0  # a start this short before an end may have waited for that end
_CONFIDENT = 1.96  # standard deviations: 95 % of a normal distribution


@dataclass(frozen=True, slots=True)
class Quantity:
    """A measured number, with the timed sequence that shows it.

    Attributes:
        sequence: a timed one.
        of: reads the samples from a trace.
        value: the median of all samples.
        within: half the width of its 95 % confidence interval, or of the range of the runs'
            medians if that is larger.
        slack: numbers that differ by no more count as equal.
    """

    sequence: Sequence
    of: Callable[[Trace], Numbers]
    value: float
    within: float
    slack: float

    def explained_by(self, spec: DeviceSpec) -> bool:
        """Returns whether the device reproduces the number, within ``slack``."""
        try:
            predicted = predict(self.sequence, spec, host=_CALLED_S)
        except ValueError:
            return False
        samples = self.of(predicted)
        return bool(samples) and abs(float(np.median(samples)) - self.value) <= self.slack


def observed(lab: Lab, sequence: Sequence) -> list[Trace]:
    """Runs a timed sequence a few times.

    Raises:
        Inconclusive: the oracle refuses the sequence, or never says anything.
    """
    traces: list[Trace] = []
    for _ in range(_TRIES):
        traces += lab.timed([sequence] * (_RUNS - len(traces)))
        if len(traces) == _RUNS:
            return traces
    if not traces:
        raise Inconclusive(f"the oracle did not agree with itself in {_TRIES} runs")
    return traces


def measured(
    traces: ListOf[Trace], samples_of: Callable[[Trace], Numbers], slack: float = 0.5
) -> Quantity:
    """Returns the quantity that runs of one sequence show, no more exact than the runs agree.

    Raises:
        Inconclusive: the oracle gives no times, or they say nothing.
    """
    runs = [samples for trace in traces if (samples := samples_of(trace))]
    if not runs:
        raise Inconclusive("the host was too slow for launches that are to run at once")
    value, within = median([sample for samples in runs for sample in samples])
    medians = [float(np.median(samples)) for samples in runs]
    apart = (max(medians) - min(medians)) / 2
    return Quantity(traces[0].sequence, samples_of, value, max(within, apart), slack)


def median(samples: Numbers) -> tuple[float, float]:
    """Returns the median of samples, and half the width of its confidence interval, in the unit of
    the samples."""
    ordered = np.sort(np.asarray(samples, float))
    middle, half_width = len(ordered) / 2, _CONFIDENT * np.sqrt(len(ordered)) / 2
    low = ordered[max(int(middle - half_width), 0)]
    high = ordered[min(int(np.ceil(middle + half_width)), len(ordered) - 1)]
    return float(np.median(ordered)), float(high - low) / 2


def at_once(trace: Trace) -> Numbers:
    """Returns how many launches started while the first one ran."""
    return while_first(trace, range(len(trace)))


def while_first(trace: Trace, launches: range) -> Numbers:
    """Returns how many of these launches started in the first half of the first one's run.

    Returns no sample if others started later in the run: then the host was too slow.
    """
    starts = [started(trace, launch) for launch in launches]
    begin, end = min((started(trace, launch), ended(trace, launch)) for launch in launches)
    early = sum(start < (begin + end) / 2 for start in starts)
    in_time = sum(start < end - _SOON_NS for start in starts)
    return [float(early)] if early == in_time else []


def started(trace: Trace, launch: int) -> float:
    """Returns the start of a launch's first block, in nanoseconds."""
    return float(_times(trace, launch)[0].min())


def ended(trace: Trace, launch: int) -> float:
    """Returns the end of a launch's last block, in nanoseconds."""
    return float(_times(trace, launch)[1].max())


def of_sms(trace: Trace, launch: int) -> dict[int, tuple[float, float]]:
    """Returns, by SM, start and end in ns of the block there, for the SMs with exactly one block of
    the launch."""
    start, end = _times(trace, launch)
    sms = trace[launch].smid.tolist()
    rows = zip(sms, start.tolist(), end.tolist(), strict=True)
    return {sm: (begin, finish) for sm, begin, finish in rows if sms.count(sm) == 1}


def calls(trace: Trace) -> list[tuple[float, float]]:
    """Returns when each call began and when it returned, in ns."""
    times = trace.call_times
    if times is None:
        raise Inconclusive("the oracle does not say when the host made its calls")
    return [(1e9 * began, 1e9 * returned) for began, returned in times]


def _times(trace: Trace, launch: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns when each block of a launch started and ended, ns. Raises Inconclusive: the oracle
    does not say."""
    placement = trace[launch]
    if placement.start_ns is None or placement.end_ns is None:
        raise Inconclusive("the oracle does not say when blocks started and ended")
    return placement.start_ns, placement.end_ns
