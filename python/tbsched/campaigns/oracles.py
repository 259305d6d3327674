"""What a prediction is compared with: a GPU, a model that plays one, or recorded traces."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator, Iterable, Iterator
from dataclasses import replace
from typing import Protocol, TypeAlias, TypeGuard, runtime_checkable

import numpy as np

from tbsched.comparison.compare import compare
from tbsched.errors import SharedGpu, did_you_mean, shown
from tbsched.hardware.catalogue import device as find_device
from tbsched.hardware.initial_state import InitialState
from tbsched.hardware.spec import DeviceSpec
from tbsched.launcher import observe as launcher
from tbsched.prediction.predict import is_predictable, policies, predict
from tbsched.prediction.tables import predict_until_refused
from tbsched.program.event_table import EventTable
from tbsched.program.sequence import Launch, Sequence
from tbsched.traces.annotations import marked_unstable, unstable_reason
from tbsched.traces.oracle import Oracle
from tbsched.traces.placement import Placement
from tbsched.traces.trace import Trace

Device: TypeAlias = "str | os.PathLike[str] | DeviceSpec"
OracleLike: TypeAlias = "Oracle | Device | tuple[Device, str | None]"

# Half of the processors, so that the launcher's threads never wait for one.
THREADS = max(1, min(8, (os.cpu_count() or 1) // 2))
# Longer than several turns of another process, which are of 2 to 2.5 ms.
_LOOK = Sequence([Launch(1, 32, 16, duration=0.02)])


@runtime_checkable
class ManyOracle(Protocol):
    """An oracle that is busy while its caller is: an open ``Gpu``."""

    def observe(self, seq: Sequence, /, *, settle: float = ...) -> Trace:
        """See :func:`tbsched.observe`."""

    def observe_many(
        self, sequences: Iterable[Sequence], /, *, settle: float = ...
    ) -> Generator[launcher.Outcome, None, None]:
        """See :func:`tbsched.observe_many`."""


@runtime_checkable
class TableOracle(Protocol):
    """An oracle that takes sequences as rows of numbers: an open ``Gpu``."""

    def observe_tables(
        self, tables: Iterable[EventTable], /, *, settle: float = ..., any_state: bool = ...
    ) -> Generator[list[launcher.Smids], None, None]:
        """See :meth:`tbsched.launcher.observe.Gpu.observe_tables`."""


@runtime_checkable
class WatchfulOracle(Protocol):
    """An oracle that notices another process: an open ``Gpu``."""

    mps: bool

    @property
    def interruptions(self) -> int:
        """See :attr:`tbsched.launcher.observe.Gpu.interruptions`."""

    def observe(self, seq: Sequence, /) -> Trace:
        """See :func:`tbsched.observe`."""


class Company:
    """Other processes that use the oracle's GPU.

    Args:
        oracle: what observes. One that cannot notice other processes counts as alone.

    Attributes:
        came: whether one has interrupted a run since this was made.
    """

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle if isinstance(oracle, WatchfulOracle) else None
        self._before = self._interruptions

    @property
    def was_noticed(self) -> bool:
        return self._interruptions > self._before

    def refuse(self) -> None:
        """Runs long enough to notice another process that has work to do.

        Raises:
            SharedGpu: one has come, now or before, or nobody would notice.
        """
        if self._oracle is not None and self._oracle.mps:
            raise SharedGpu(
                "another process may use this GPU at the same time, unnoticed: an MPS daemon runs; "
                "and under MPS the SM numbers are not physical ones"
            )
        if self._oracle is not None and not self.was_noticed:
            self._oracle.observe(_LOOK)
        if self.was_noticed:
            raise SharedGpu("another process uses this GPU: its turns interrupted a run")

    @property
    def _interruptions(self) -> int:
        return 0 if self._oracle is None else self._oracle.interruptions


class ModelGpu:
    """A model in the place of the GPU.

    Args:
        device, policy, initial_state: as for :func:`tbsched.predict`.

    Raises:
        TypeError, ValueError: an unknown device.

    Example:
        >>> from tbsched.campaigns import ModelGpu
        >>> ModelGpu("rtx3090").observe(tb.Sequence([tb.Launch(2, 64, 32)]))[0].smid.tolist()
        [0, 2]
    """

    def __init__(
        self,
        device: Device,
        policy: str | None = None,
        initial_state: InitialState | None = None,
    ) -> None:
        self.spec = find_device(device)
        self.policy = policy
        self.initial_state = initial_state

    def observe(self, seq: Sequence, /) -> Trace:
        """Returns where the model places the blocks.

        Raises:
            TypeError, ValueError: as :func:`tbsched.predict`.

        Example:
            >>> from tbsched.campaigns import ModelGpu
            >>> ModelGpu("h200", "most_room").observe(tb.Sequence([tb.Launch(8, 64, 32)]))
            <Trace: 1 launch, 8 blocks on NVIDIA H200, 132 SMs, policy most_room>
        """
        return predict(seq, self.spec, self.policy, self.initial_state)

    def observe_tables(
        self,
        tables: Iterable[EventTable],
        /,
        *,
        settle: float = launcher.SETTLE,
        any_state: bool = False,
    ) -> Generator[list[launcher.Smids], None, None]:
        """Yields the SMs of all blocks for tables of events, like an open ``Gpu``.

        Nothing is placed behind a launch that is not placed whole. Campaigns call this.
        """
        policy = self.spec.policy if self.policy is None else self.policy
        state = self.initial_state or self.spec.initial_states(policy)[0]
        for table in tables:
            _, smids, _ = predict_until_refused(table, self.spec, policy, state, THREADS)
            yield [
                np.append(smid, np.full(blocks - len(smid), -1, np.int32))
                for smid, blocks in zip(smids, table.sequence_blocks, strict=True)
            ]


class RecordedOracle:
    """Recorded traces in the place of the GPU; it knows the prefixes of their sequences, too.

    Later events cannot change where a launch's blocks are before the next event. So a recorded
    sequence that is cut after any launch has the recorded placements, and counterexamples shrink
    without the hardware. Traces marked ``unstable`` are left out.

    Args:
        traces: of one device.

    Raises:
        ValueError: no trace is left.

    Example:
        >>> from tbsched.campaigns import RecordedOracle
        >>> trace = tb.predict(tb.Sequence([tb.Launch(132, 512, 32)]), "h200")
        >>> oracle = RecordedOracle([trace])
        >>> report = tb.fuzz(oracle, "h200", "first_fit", seed=1, progress=False)
        >>> report.disagreements
        1
    """

    def __init__(self, traces: Iterable[Trace]) -> None:
        stable = [trace for trace in traces if not unstable_reason(trace.extra)]
        if not stable:
            raise ValueError("RecordedOracle.traces: no stable trace among them")
        # Small ones first: an index shrinks towards 0.
        self._traces = sorted(stable, key=_weight)
        self._known: dict[Sequence, tuple[Trace, int]] = {}
        for trace in self._traces:
            for launches in range(1, len(trace) + 1):
                cut = prefix(trace.sequence, launches)
                self._known.setdefault(cut, (trace, len(cut.launches)))

    def observe(self, seq: Sequence, /) -> Trace:
        """Returns the recorded placements.

        Raises:
            ValueError: neither the sequence nor one that begins with it was recorded.

        Example:
            >>> from tbsched.campaigns import RecordedOracle
            >>> sequence = tb.Sequence([tb.Launch(132, 512, 32), tb.Launch(66, 256, 32)])
            >>> oracle = RecordedOracle([tb.predict(sequence, "h200")])
            >>> len(oracle.observe(sequence[:1]))
            1
        """
        recorded = self._known.get(seq)
        if recorded is None:
            raise ValueError(
                "RecordedOracle: sequence: neither recorded nor a recorded one's prefix"
            )
        trace, launches = recorded
        placements = tuple(
            Placement(p.smid, limiter=p.limiter) for p in trace.placements[:launches]
        )
        return Trace(seq, trace.device, placements, id=trace.id)

    def predictable(self, spec: DeviceSpec) -> list[Sequence]:
        """Returns recorded sequences that the model of ``spec`` can predict, small ones first.

        Raises:
            ValueError: there are none.

        Example:
            >>> from tbsched.campaigns import RecordedOracle
            >>> sequence = tb.Sequence([tb.Launch(132, 512, 32)])
            >>> oracle = RecordedOracle([tb.predict(sequence, "h200")])
            >>> oracle.predictable(tb.device("h200")) == [sequence]
            True
        """
        usable = [trace.sequence for trace in self._traces if is_predictable(trace.sequence, spec)]
        if not usable:
            raise ValueError(f"RecordedOracle: {spec.name} can predict none of the sequences")
        return usable


class Repeated:
    """An oracle that observes every sequence several times and compares the occupancies.

    Args:
        oracle: what observes.
        repeats: how many times, at least 1.

    Raises:
        ValueError: fewer than one.
    """

    def __init__(self, oracle: Oracle, repeats: int) -> None:
        if repeats < 1:
            raise ValueError(f"repeats: {repeats} is less than 1")
        self._oracle = oracle
        self._repeats = repeats

    def observe(self, seq: Sequence, /) -> Trace:
        """Returns the first of several observations of a sequence; marked ``unstable`` if another
        one has other numbers of blocks on some SM."""
        first = self._oracle.observe(seq)
        for run in range(2, self._repeats + 1):
            divergence = compare(first, self._oracle.observe(seq)).first_divergence
            if divergence is not None and divergence.level == "occupancy":
                reason = (
                    f"launch {divergence.launch} had other numbers of blocks on SMs "
                    f"{divergence.sms.tolist()} in run {run}"
                )
                return replace(first, extra=marked_unstable(first.extra, reason))
        return first


def takes_tables(oracle: Oracle) -> TypeGuard[TableOracle]:
    """Returns whether an oracle takes tables of sequences. A subclass of a model that overrides
    ``observe`` does not."""
    if isinstance(oracle, ModelGpu):
        return type(oracle).observe is ModelGpu.observe
    return isinstance(oracle, TableOracle)


def prefix(sequence: Sequence, launches: int) -> Sequence:
    """Returns the sequence up to and with its ``launches``-th launch; graphs stay whole."""
    launches_before = 0
    for position, event in enumerate(sequence.events):
        launches_before += len(event.launches)
        if launches_before >= launches:
            return sequence[: position + 1]
    return sequence


def device_and_policy(
    oracle: Device | tuple[Device, str | None],
) -> tuple[Device, str | None]:
    """Returns what an oracle that is a model is made of; ``device/policy`` names both.

    Raises:
        ValueError: a text that names neither a device nor a device and a policy.
    """
    if isinstance(oracle, tuple):
        return oracle
    if not isinstance(oracle, str) or oracle.endswith(".toml"):
        return oracle, None
    device, slash, policy = oracle.rpartition("/")
    known = [row.name for row in policies()]
    if slash and policy not in known:
        raise ValueError(
            f"oracle: {shown(oracle)} has no policy after the slash; there are {', '.join(known)}"
            f"{did_you_mean(policy, known)}"
        )
    try:
        find_device(device or oracle)
    except ValueError as error:
        raise ValueError(
            f"oracle: {shown(oracle)} is neither 'gpu', a device, nor a device with a policy "
            f"(rtx3090/algorithm1): {error}"
        ) from error
    return (device, policy) if slash else (oracle, None)


@contextlib.contextmanager
def open_oracle(oracle: OracleLike) -> Iterator[Oracle]:
    """Yields the oracle that a user means; closes a GPU that it has opened itself.

    Raises:
        TypeError, ValueError: nothing that can observe.
        NoGpuError: ``"gpu"``, and there is none.
    """
    if oracle == "gpu":
        with launcher.Gpu(0) as gpu:
            yield gpu
    elif isinstance(oracle, str | os.PathLike | DeviceSpec | tuple):
        yield ModelGpu(*device_and_policy(oracle))
    elif isinstance(oracle, Oracle):
        yield oracle
    else:
        raise TypeError(
            "oracle: 'gpu', a device, 'device/policy', (device, policy) or an object with "
            f"observe(seq) is needed, got {shown(oracle)}"
        )


def _weight(trace: Trace) -> tuple[int, int]:
    return len(trace.sequence), sum(launch.blocks for launch in trace.sequence.launches)
