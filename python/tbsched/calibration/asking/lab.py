"""Laboratory in which probes run their sequences."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from collections.abc import Sequence as ListOf
from typing import Protocol, TypeAlias

import numpy as np

from tbsched.calibration.asking.journal import Journal, Outcome, Refused
from tbsched.campaigns.oracles import ManyOracle
from tbsched.errors import DeadlineExceeded, UnstableMeasurement
from tbsched.hardware.spec import DeviceSpec
from tbsched.program.sequence import Event, Launch, Release, Sequence
from tbsched.traces.oracle import Oracle
from tbsched.traces.placement import DeviceInfo
from tbsched.traces.trace import Trace

# Most runs of a sequence; two of them must agree, or three once any runs disagreed.
_TRIES, _AGREE, _AGREE_IF_NOISY = 8, 2, 3
MOST_PER_SM = 64  # thread block slots that a model of an SM has
LEAST_REGISTERS = 16  # per thread; the launcher's kernels can have no fewer
# Runs of one sequence that agree.
Runs: TypeAlias = tuple[Trace, ...]
# Most launches that fill the SMs in turn, in one sequence.
_LAUNCHES = 24


class Explained(Protocol):
    """A measurement that a device explains or contradicts."""

    def explained_by(self, spec: DeviceSpec) -> bool:
        """Returns whether the device reproduces the measurement."""


class Inconclusive(Exception):
    """The observations of a probe determine nothing; the message says why."""


class Lab:
    """Runs sequences on the oracle, and counts them.

    Args:
        oracle: what is measured.
        seconds: time that probes may take.
        progress: is called with the seconds so far.
        journal: stores observations, and replays those of an earlier calibration.

    Attributes:
        sms: number of SMs, once a probe has found it.
        most_per_sm: an SM holds no more blocks of any kind.
        sequences, launches, unstable: how many ran so far.
        eliminated: number of candidate devices that predicted something wrong.
        disagreed: how many runs differed from earlier runs of the same sequence.
        tried: the runs of each sequence that agreed.
        filled: for sequences of launches that each fill one SM, the blocks of each that it held.
        taken, refused: sequences that were only tried for acceptance.
        quantities: measurements of timed sequences.
    """

    def __init__(
        self,
        oracle: Oracle,
        seconds: float,
        progress: Callable[[float], object],
        journal: Journal | None = None,
    ) -> None:
        self._oracle = oracle
        self._journal = journal or Journal(None)
        if not self._journal.is_empty:
            self._journal.check(self._device())
        self._seconds = seconds
        self._start = time.monotonic()
        self._progress = progress
        self.sms = 0
        self.most_per_sm = MOST_PER_SM
        self.sequences = 0
        self.launches = 0
        self.unstable = 0
        self.eliminated = 0
        self.disagreed = 0
        self.tried: dict[Sequence, Runs] = {}
        self.filled: dict[Sequence, tuple[int, ...]] = {}
        self.taken: dict[Sequence, None] = {}
        self.refused: dict[Sequence, None] = {}
        self.quantities: list[Explained] = []

    @property
    def spent(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._start

    def run(self, sequences: ListOf[Sequence]) -> list[Trace]:
        """Returns one trace per sequence, out of the runs that agree.

        Raises:
            Inconclusive: the time is over, or one of the sequences never repeats itself.
            ValueError: the oracle refuses one.
        """
        return [runs[0] for runs in self.runs(sequences)]

    def runs(self, sequences: ListOf[Sequence]) -> list[Runs]:
        """Returns, for each sequence, runs with the same number of blocks on each SM.

        The blocks themselves may differ, as runs can begin in different latent states.

        Raises:
            Inconclusive, ValueError: as :meth:`run`.
        """
        traces_by_occupancy: list[dict[bytes, list[Trace]]] = [{} for _ in sequences]
        agreed_runs: list[Runs | None] = [None] * len(sequences)
        for _ in range(_TRIES):
            missing = [index for index, runs in enumerate(agreed_runs) if runs is None]
            if not missing:
                break
            sequences_missing = [sequences[index] for index in missing]
            for index, trace in zip(missing, self._tried(sequences_missing), strict=True):
                if trace is None:
                    continue
                traces = traces_by_occupancy[index].setdefault(_occupancies(trace), [])
                traces.append(trace)
                self.disagreed += len(traces_by_occupancy[index]) > 1 and len(traces) == 1
                if len(traces) >= (_AGREE_IF_NOISY if self.disagreed else _AGREE):
                    agreed_runs[index] = tuple(traces)
        if any(runs is None for runs in agreed_runs):
            raise Inconclusive(f"the oracle did not agree with itself in {_TRIES} runs")
        agreed = [runs for runs in agreed_runs if runs is not None]
        self.tried.update(zip(sequences, agreed, strict=True))
        return agreed

    def timed(self, sequences: ListOf[Sequence]) -> list[Trace]:
        """Returns the traces of timed sequences, without unstable runs.

        Raises:
            Inconclusive: the time is over, or the oracle refuses one.
        """
        try:
            return [trace for trace in self._tried(sequences) if trace is not None]
        except ValueError as error:
            raise Inconclusive(f"the oracle refuses timed sequences: {error}") from None

    def _tried(self, sequences: ListOf[Sequence]) -> list[Trace | None]:
        """Returns observations, from the journal or else the oracle; None: unstable or too slow."""
        if self.spent > self._seconds:
            raise Inconclusive("the time was over")
        self.sequences += len(sequences)
        self.launches += sum(len(sequence.launches) for sequence in sequences)
        self._progress(self.spent)
        occurrences: Counter[Sequence] = Counter()
        is_recorded = []
        for sequence in sequences:
            occurrences[sequence] += 1
            is_recorded.append(self._journal.holds(sequence, occurrences[sequence]))
        outcomes = iter(
            self._observed(
                [s for s, in_journal in zip(sequences, is_recorded, strict=True) if not in_journal]
            )
        )
        traces = []
        for sequence, in_journal in zip(sequences, is_recorded, strict=True):
            if in_journal:
                outcome = self._journal.taken(sequence)
                if isinstance(outcome, Refused):
                    raise ValueError(str(outcome))
            else:
                result = next(outcomes)
                outcome = result if isinstance(result, Trace) else None
                self._journal.keep(sequence, outcome)
            traces.append(outcome)
        self.unstable += traces.count(None)
        return traces

    def _device(self) -> DeviceInfo:
        """Returns what the oracle says of its device, with the trace of a small launch."""
        for _ in range(_TRIES):
            outcome = self._once(Sequence([small()]))
            if isinstance(outcome, Trace):
                return outcome.device
        raise ValueError(
            f"evidence: the oracle did not agree with itself in {_TRIES} runs, which would show "
            "whether the file is of it; see that nothing else uses the GPU, and try again"
        )

    def _observed(self, sequences: ListOf[Sequence]) -> Iterator[object]:
        """Yields results in the order of the sequences, each as soon as it is available."""
        if not isinstance(self._oracle, ManyOracle):
            return map(self._once, sequences)
        return iter(self._oracle.observe_many(sequences)) if sequences else iter(())

    def _once(self, sequence: Sequence) -> Trace | UnstableMeasurement | DeadlineExceeded:
        """Returns the oracle's observation of a sequence, or the error that it raised if that says
        only that it failed this time."""
        try:
            return self._oracle.observe(sequence)
        except (UnstableMeasurement, DeadlineExceeded) as error:
            return error

    def accepts(self, launch: Launch, *, models_know: bool = True) -> bool:
        """Returns whether the oracle accepts a launch.

        Args:
            launch: it runs alone.
            models_know: whether device models can refuse it, too, so that the result is evidence.
        """
        self.sequences += 1
        self.launches += 1
        sequence = Sequence([launch])
        if self._journal.holds(sequence):
            outcome = self._journal.taken(sequence)
        else:
            outcome = self._tried_once(sequence)
            self._journal.keep(sequence, outcome)
        if models_know and outcome is not None:
            (self.refused if isinstance(outcome, Refused) else self.taken)[sequence] = None
        return not isinstance(outcome, Refused)

    def _tried_once(self, sequence: Sequence) -> Outcome:
        """Returns what the oracle says of a sequence: a trace, a refusal, or None."""
        try:
            return self._oracle.observe(sequence)
        except (UnstableMeasurement, DeadlineExceeded):
            return None
        except ValueError as error:
            return Refused(str(error))

    def fills(self, launches: ListOf[Launch]) -> list[int]:
        """Returns how many blocks of each launch an idle SM holds; their ``blocks`` are ignored.

        Every launch has more blocks than the GPU holds, so that it does not matter in which order
        the SMs get them.

        Raises:
            Inconclusive: the SMs repeatedly do not hold the same number.
        """
        groups = [launches[at : at + _LAUNCHES] for at in range(0, len(launches), _LAUNCHES)]
        sequences = [self._waves(group, self.sms) for group in groups]
        counts = []
        for group, sequence, trace in zip(groups, sequences, self.run(sequences), strict=True):
            blocks_per_launch = self._even(trace) or self._even(self._once_more(sequence))
            if blocks_per_launch is None:
                raise Inconclusive("the SMs do not hold the same number of blocks")
            counts += blocks_per_launch
            del self.tried[sequence]
            self.filled[self._waves(group, 1)] = tuple(blocks_per_launch)
        return counts

    def _even(self, trace: Trace) -> list[int] | None:
        """Returns how many blocks of each launch every SM had; None: not all SMs had the same
        number."""
        try:
            return [even(p.occupancy(trace.device.sms)[: self.sms]) for p in trace.placements]
        except Inconclusive:
            return None

    def _once_more(self, sequence: Sequence) -> Trace:
        """Runs a sequence again and requires more runs to agree, as noise can occur twice alike."""
        self.disagreed += 1
        return self.run([sequence])[0]

    def _waves(self, launches: ListOf[Launch], sms: int) -> Sequence:
        """Returns a sequence of the launches, one after the other, each with more blocks than
        ``sms`` SMs hold, and released before the next."""
        events: list[Event] = []
        for index, launch in enumerate(launches):
            events += [_with_blocks(launch, sms * (self.most_per_sm + 1)), Release(index)]
        return Sequence(events)

    def largest(self, fits: Callable[[int], bool], low: int, high: int) -> int:
        """Returns the greatest number of ``low`` to ``high`` for which fits(number) is true, by
        bisection. It is true for ``low``."""
        while low < high:
            middle = (low + high + 1) // 2
            if fits(middle):
                low = middle
            else:
                high = middle - 1
        return low


def _occupancies(trace: Trace) -> bytes:
    """Returns the number of blocks of each launch on each SM, as bytes."""
    sms = trace.device.sms
    return b"".join(placement.occupancy(sms).tobytes() for placement in trace.placements)


def small(
    warps: int = 1,
    registers: int = LEAST_REGISTERS,
    shared_memory: int = 0,
    blocks: int = 1,
    cluster: int = 1,
    carveout: int | None = 100,
    local_memory: int = 0,
) -> Launch:
    """Returns a launch with the smallest resources; by default with the largest carveout."""
    return Launch(
        blocks,
        32 * warps,
        registers,
        shared_memory=shared_memory,
        local_memory=local_memory,
        carveout=carveout,
        cluster=cluster,
    )


def even(blocks: np.ndarray) -> int:
    """Returns the number of blocks that all SMs have in common.

    Raises:
        Inconclusive: the SMs have different numbers.
    """
    min_blocks, max_blocks = int(blocks.min()), int(blocks.max())
    if min_blocks != max_blocks:
        raise Inconclusive(f"the SMs do not hold the same: {min_blocks} to {max_blocks} blocks")
    return min_blocks


def _with_blocks(launch: Launch, blocks: int) -> Launch:
    """Returns the launch with another number of blocks."""
    return small(
        launch.threads // 32,
        launch.registers,
        launch.shared_memory,
        blocks,
        launch.cluster,
        launch.carveout,
        launch.local_memory,
    )
