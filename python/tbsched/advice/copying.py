"""What copies and memsets add to the limits of a program's times.

``docs/explanation/bounds.md`` has the reasons.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from tbsched.advice.crowding import Durations, min_span_ns
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.transfers import transfers_done
from tbsched.program.arrays import Int64Array
from tbsched.program.events.streams import Stream
from tbsched.program.events.transfers import Copy, Transfer
from tbsched.program.sequence import Sequence

_WARPS_PER_COPY_BLOCK = 16  # of a block of the driver's kernels
_ENDLESS_SECONDS = 1e5  # seconds
# The station that does a copy or memset: the number of a copy engine, or this.
_NO_ENGINE = -1


@dataclass(frozen=True, slots=True)
class _TransferWork:
    """How the driver does a copy or memset.

    Attributes:
        transfer: the copy or memset.
        station: that does it.
        kernel: of its kernel, how long blocks keep their room; None if it has no kernel.
        block_ns: how long a block of that kernel runs.
    """

    transfer: Transfer
    station: int
    kernel: Durations | None
    block_ns: int

    @property
    def pageable(self) -> bool:
        """Whether its duration is that of a copy by the host, within the call."""
        return isinstance(self.transfer, Copy) and not self.transfer.pinned


class TransferBounds:
    """The copies and memsets of a program, for bounds of its times.

    Attributes:
        kernels: of each that the driver does with a kernel, how long its blocks keep their room.
        queued: for each that takes a hardware queue, its stream; None is one of its own.
        stations: that do any of them.
        takes_turns: whether several streams copy by one engine.
    """

    def __init__(self, seq: Sequence, spec: DeviceSpec, policy: str | None) -> None:
        self._spec = spec
        rows = transfers_done(seq, spec, policy)
        exit_ns = spec.exit_latency_ns
        self._work = [
            _TransferWork(
                transfer,
                _copy_engine(transfer, spec) if by_engine else _NO_ENGINE,
                Durations(np.array([ns + exit_ns]), np.array([blocks])) if blocks else None,
                ns,
            )
            for transfer, (by_engine, blocks, ns) in zip(seq.transfers, rows, strict=True)
            if isinstance(transfer, Transfer)  # the others are nodes of graphs
        ]
        self.kernels = [work.kernel for work in self._work if work.kernel is not None]
        self.stations = sorted({work.station for work in self._work})
        streams = {
            station: [work.transfer.stream for work in self._work if work.station == station]
            for station in (_NO_ENGINE, *range(spec.copy_engine_count))
        }
        self.queued = streams.pop(_NO_ENGINE)
        self._streams_of = {station: count_streams(used) for station, used in streams.items()}
        self.shares_engine = max(self._streams_of.values()) > 1
        self._shares_channels = max(self._streams_of.values()) > spec.copy_channels

    def __bool__(self) -> bool:
        return bool(self._work)

    def roomy_device(self, for_least: bool) -> DeviceSpec:
        """Returns the device with engines that make nothing wait, and without kernels for copies.
        Copies hold up no others in their channels that they cannot hold up on the device."""
        spec = self._spec
        return replace(
            spec, mechanisms=replace(spec.mechanisms, copy_engines=False, copy_kernels=False),
            copy_channels=1 if self._shares_channels and not for_least else 1024,
            host_copy_issue_ns=0 if for_least else spec.host_copy_issue_ns, host_copy_latency_ns=0,
            copy_wake_ns=0,
        )  # fmt: skip

    def shortest(self) -> Iterator[Transfer]:
        """Yields the transfers with durations that none is shorter than on the device."""
        spec = self._spec
        max_resident = spec.sms * max(
            1, min(spec.blocks_per_sm, spec.warps_per_sm // _WARPS_PER_COPY_BLOCK)
        )
        for work in self._work:
            if work.kernel is None:
                yield work.transfer
            else:
                ns = min_span_ns(work.kernel, max_resident) - spec.exit_latency_ns
                yield replace(work.transfer, duration=ns / 1e9)

    def uncontended(self) -> Iterator[Transfer]:
        """Yields the transfers with the durations that they have alone. For one that the driver
        does by a kernel, it is the duration of one of its blocks."""
        for work in self._work:
            kernel = work.kernel is not None
            yield replace(work.transfer, duration=work.block_ns / 1e9) if kernel else work.transfer

    def without_counted(self) -> Iterator[Transfer]:
        """Yields the same as uncontended(), but those of an engine that :meth:`max_delay_ns` counts
        take no time."""
        for work, alone in zip(self._work, self.uncontended(), strict=True):
            counted = self._streams_of.get(work.station, 0) > 1 and not work.pageable
            yield replace(alone, duration=0.0) if counted else alone

    def endless(self, station: int) -> Iterator[Transfer]:
        """Yields the same; those of one station never end."""
        for work, alone in zip(self._work, self.uncontended(), strict=True):
            yield replace(alone, duration=_ENDLESS_SECONDS) if work.station == station else alone

    def max_delay_ns(self, station: int, times: Int64Array, kernel_ns: int, queue_ns: int) -> int:
        """Returns by how many ns contention for a station can delay the work that waits for it.

        Args:
            station: one of ``stations``.
            times: when each moves its bytes alone, int64 (transfers, 2).
            kernel_ns: how much later a kernel of the driver is taken for which there is room.
            queue_ns: how much later the GPU sees one that takes a hardware queue.
        """
        spec = self._spec
        delay_ns = 0
        for work, (start, end) in zip(self._work, times.tolist(), strict=True):
            if work.station != station:
                continue
            if work.kernel is not None:
                delay_ns += kernel_ns + spec.exit_latency_ns
            elif station == _NO_ENGINE:
                delay_ns += queue_ns
            else:
                alone_ns = end - start
                slowed_ns = int(alone_ns * self._max_slowdown) + 1
                delay_ns += spec.host_copy_latency_ns + spec.copy_wake_ns + spec.host_copy_gap_ns
                # Each copy runs on the way to the work, or while one on this way waits.
                delay_ns += slowed_ns if self._streams_of[station] > 1 else slowed_ns - alone_ns
        return delay_ns

    @property
    def _max_slowdown(self) -> float:
        """Greatest factor by which a copy takes longer while another one moves bytes in the other
        direction."""
        spec = self._spec
        if sum(lines > 0 for lines in self._streams_of.values()) < 2:
            return 1.0
        least = min(spec.both_ways_to_gpu_bandwidth, spec.both_ways_from_gpu_bandwidth)
        return max(1.0, spec.host_copy_bandwidth / least) if least else 1.0


def _copy_engine(transfer: Transfer, spec: DeviceSpec) -> int:
    """Returns the number of the copy engine that does a copy."""
    assert isinstance(transfer, Copy)
    return 0 if transfer.kind == "h2d" else spec.copy_engine_count - 1


def count_streams(streams: list[Stream | None]) -> int:
    """Returns the number of distinct streams; each None is one of its own."""
    return len(set(streams) - {None}) + streams.count(None)
