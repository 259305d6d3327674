"""What copies and memsets add to the limits of a program's times.

``docs/explanation/bounds.md`` has the reasons.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from tbsched.advice.crowding import Durations, least_span_ns
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.transfers import transfers_done
from tbsched.program.arrays import Int64Array
from tbsched.program.events.streams import Stream
from tbsched.program.events.transfers import Copy, Transfer
from tbsched.program.sequence import Sequence

_KERNEL_WARPS = 16  # of a block of the driver's kernels
_ENDLESS = 1e5  # seconds
# The station that does a copy or memset: the number of a copy engine, or this.
_NO_ENGINE = -1


@dataclass(frozen=True, slots=True)
class _Done:
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


class Copying:
    """The copies and memsets of a program.

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
        self._all = [
            _Done(
                transfer,
                _engine(transfer, spec) if by_engine else _NO_ENGINE,
                Durations(np.array([ns + exit_ns]), np.array([blocks])) if blocks else None,
                ns,
            )
            for transfer, (by_engine, blocks, ns) in zip(seq.transfers, rows, strict=True)
            if isinstance(transfer, Transfer)  # the others are nodes of graphs
        ]
        self.kernels = [one.kernel for one in self._all if one.kernel is not None]
        self.stations = sorted({one.station for one in self._all})
        streams = {
            station: [one.transfer.stream for one in self._all if one.station == station]
            for station in (_NO_ENGINE, *range(spec.copy_engine_count))
        }
        self.queued = streams.pop(_NO_ENGINE)
        self._lines = {station: lines_of(own) for station, own in streams.items()}
        self.takes_turns = max(self._lines.values()) > 1
        self._shares_channels = max(self._lines.values()) > spec.copy_channels

    def __bool__(self) -> bool:
        return bool(self._all)

    def roomy(self, least: bool) -> DeviceSpec:
        """Returns the device, with engines for which nothing waits, and with no kernels for copies.

        Copies hold up no others in their channels that they cannot hold up on the device.
        """
        spec = self._spec
        return replace(
            spec,
            mechanisms=replace(spec.mechanisms, copy_engines=False, copy_kernels=False),
            copy_channels=1 if self._shares_channels and not least else 1024,
            host_copy_issue_ns=0 if least else spec.host_copy_issue_ns,
            host_copy_latency_ns=0,
            copy_wake_ns=0,
        )

    def least(self) -> Iterator[Transfer]:
        """Yields the transfers: none is over sooner on the device, however much room there is."""
        spec = self._spec
        at_once = spec.sms * max(1, min(spec.blocks_per_sm, spec.warps_per_sm // _KERNEL_WARPS))
        for one in self._all:
            if one.kernel is None:
                yield one.transfer
            else:
                ns = least_span_ns(one.kernel, at_once) - spec.exit_latency_ns
                yield replace(one.transfer, duration=ns / 1e9)

    def alone(self) -> Iterator[Transfer]:
        """Yields the transfers as long as they are alone; a kernel as long as a block of it."""
        for one in self._all:
            kernel = one.kernel is not None
            yield replace(one.transfer, duration=one.block_ns / 1e9) if kernel else one.transfer

    def on_the_way(self) -> Iterator[Transfer]:
        """Yields the same, but those of an engine that :meth:`later_ns` counts take no time."""
        for one, alone in zip(self._all, self.alone(), strict=True):
            counted = self._lines.get(one.station, 0) > 1 and not one.pageable
            yield replace(alone, duration=0.0) if counted else alone

    def endless(self, station: int) -> Iterator[Transfer]:
        """Yields the same, but those of a station never end."""
        for one, alone in zip(self._all, self.alone(), strict=True):
            yield replace(alone, duration=_ENDLESS) if one.station == station else alone

    def later_ns(self, station: int, times: Int64Array, kernel_ns: int, queue_ns: int) -> int:
        """Returns how much later than without contention work can be that waits for a station.

        Args:
            station: one of ``stations``.
            times: when each moves its bytes alone, int64 (transfers, 2).
            kernel_ns: how much later a kernel of the driver is taken for which there is room.
            queue_ns: how much later the GPU sees one that takes a hardware queue.
        """
        spec = self._spec
        later = 0
        for one, (start, end) in zip(self._all, times.tolist(), strict=True):
            if one.station != station:
                continue
            if one.kernel is not None:
                later += kernel_ns + spec.exit_latency_ns
            elif station == _NO_ENGINE:
                later += queue_ns
            else:
                alone_ns = end - start
                most_ns = int(alone_ns * self._slower) + 1
                later += spec.host_copy_latency_ns + spec.copy_wake_ns + spec.host_copy_gap_ns
                # Each copy runs on the way to the work, or while one on this way waits.
                later += most_ns if self._lines[station] > 1 else most_ns - alone_ns
        return later

    @property
    def _slower(self) -> float:
        """Returns the most by which a copy is slowed by one in the other direction, as a factor."""
        spec = self._spec
        if sum(lines > 0 for lines in self._lines.values()) < 2:
            return 1.0
        least = min(spec.both_ways_to_gpu_bandwidth, spec.both_ways_from_gpu_bandwidth)
        return max(1.0, spec.host_copy_bandwidth / least) if least else 1.0


def _engine(transfer: Transfer, spec: DeviceSpec) -> int:
    assert isinstance(transfer, Copy)
    return 0 if transfer.kind == "h2d" else spec.copy_engine_count - 1


def lines_of(streams: list[Stream | None]) -> int:
    """Returns the number of streams; None is one of its own."""
    return len(set(streams) - {None}) + streams.count(None)
