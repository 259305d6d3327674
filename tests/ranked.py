"""Profiles of ranks as Kineto writes them, of programs whose truth is known."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from importers.written import call, kernel, move

GPU = {"name": "NVIDIA H100 80GB HBM3", "numSms": 132, "computeMajor": 9, "computeMinor": 0}
COMPUTE, COMMUNICATION = 7, 20  # streams
PAGEABLE = "Memcpy HtoD (Pageable -> Device)"
CALL, ON_ITS_WAY = 4, 2  # us of a launch call, and from its return to the start of its kernel


@dataclass(frozen=True)
class Host:
    """A Python function of the host that calls nothing of CUDA."""

    name: str
    us: int


@dataclass(frozen=True)
class Gemm:
    """A kernel in the stream of computations."""

    us: int
    name: str = "gemm"


@dataclass(frozen=True)
class Load:
    """A copy to the GPU from pageable memory: the call lasts nearly as long."""

    us: int


@dataclass(frozen=True)
class Meet:
    """A collective, after the kernels that were launched before it.

    Attributes:
        us: for which bytes move, once all have started.
        op: as PyTorch calls it.
        elements: that are moved.
        group: its ranks; None: all.
        beside: whether later kernels need not wait for it.
    """

    us: int
    op: str = "allreduce"
    elements: int = 1 << 20
    group: tuple[int, ...] | None = None
    beside: bool = False
    type: str = "Float"


@dataclass(frozen=True)
class Send:
    """Bytes for another rank, which go into its buffers whether or not it receives."""

    us: int
    to: int


@dataclass(frozen=True)
class Receive:
    """Bytes of another rank; the next kernel needs them."""

    us: int
    of: int


@dataclass(frozen=True)
class Sync:
    """The host waits for the GPU."""


Step = Host | Gemm | Load | Meet | Send | Receive | Sync


@dataclass
class Played:
    """What happened, in us on the true clock.

    Attributes:
        events: of each rank, as Kineto writes them.
        waited: by the ranks that waited and were waited for, how long, in collectives.
        starts: of each rank, of its collectives.
    """

    events: list[list[dict[str, Any]]]
    waited: dict[tuple[int, int], int] = field(default_factory=lambda: defaultdict(int))
    starts: list[list[int]] = field(default_factory=list)


_KERNELS = {
    "allreduce": "AllReduce_Sum_f32_RING_LL", "_allgather_base": "AllGather_RING_LL",
    "_reduce_scatter_base": "ReduceScatter_Sum_f32_RING_LL", "all_to_all": "SendRecv",
    "broadcast": "Broadcast_RING_LL", "send": "SendRecv", "recv": "SendRecv",
}  # fmt: skip


class _Rank:
    """A rank: its host thread and the ends of its streams."""

    def __init__(self, rank: int, steps: Sequence[Step], world: int, *, waits: bool) -> None:
        self.rank, self.world, self.waits = rank, world, waits
        self.steps = list(steps)
        self.host = 1000
        self.ends = {COMPUTE: 0, COMMUNICATION: 0}
        self.needs = 0  # the end of a collective that the next kernel waits for
        self.correlation = 100
        self.events: list[dict[str, Any]] = []
        self.starts: list[int] = []

    def until_meeting(self) -> tuple[Meet | Send | Receive, int] | None:
        """Goes on to the next collective: it, and when its kernel starts; None: there is none."""
        while self.steps:
            step = self.steps.pop(0)
            if isinstance(step, Host):
                self._function(step)
            elif isinstance(step, Sync):
                until = max(self.host + 1, *self.ends.values())
                self._call("cudaDeviceSynchronize", until - self.host)
            elif isinstance(step, Load):
                start = max(self.host + CALL, self.ends[COMPUTE], self.needs)
                self._call("cudaMemcpyAsync", start + step.us - 1 - self.host)
                copied = move(self.correlation, start, step.us, COMPUTE, PAGEABLE)
                self.events.append(copied)
                self.ends[COMPUTE] = start + step.us
            elif isinstance(step, Gemm):
                launched = self._call("cudaLaunchKernel", CALL)
                start = max(launched + ON_ITS_WAY, self.ends[COMPUTE], self.needs)
                self._kernel(step.name, start, step.us, COMPUTE)
            else:
                self._events("cudaEventRecord", "cudaStreamWaitEvent")
                launched = self._call("cudaLaunchKernel", CALL)
                start = max(launched + ON_ITS_WAY, *self.ends.values())
                self.starts.append(start)
                return step, start
        return None

    def met(self, step: Meet | Send | Receive, start: int, end: int) -> None:
        """The collective ended."""
        peer: dict[str, int] = {}
        if not isinstance(step, Meet):
            sends = isinstance(step, Send)
            peer = {"Dst Rank": step.to} if isinstance(step, Send) else {"Src Rank": step.of}
            step = Meet(step.us, "send" if sends else "recv", beside=sends)
        group = list(step.group or range(self.world))
        args = {
            **peer, "Collective name": step.op, "In msg nelems": step.elements, "dtype": step.type,
            "Out msg nelems": step.elements, "Group size": len(group),
            "Process Group Name": "0" if step.group is None else f"g{min(group)}",
            "Process Group Ranks": str(group),
        }  # fmt: skip
        name = f"ncclDevKernel_{_KERNELS[step.op]}(ncclDevKernelArgsStorage<4096ul>)"
        self._kernel(name, start, end - start, COMMUNICATION, **args)
        if not step.beside:
            self.needs = end
            self._events("cudaEventRecord", "cudaStreamWaitEvent")

    def _function(self, step: Host) -> None:
        self.events.append(
            {"ph": "X", "cat": "python_function", "name": step.name, "pid": 5, "tid": 1,
             "ts": self.host, "dur": step.us, "args": {}}
        )  # fmt: skip
        self.host += step.us

    def _events(self, *names: str) -> None:
        """Calls that make streams wait for each other, as PyTorch makes them."""
        if self.waits:
            for name in names:
                self._call(name, 0)

    def _call(self, name: str, us: int) -> int:
        self.correlation += 1
        self.events.append(call(self.correlation, self.host, us, name))
        self.host += us
        return self.host

    def _kernel(self, name: str, start: int, us: int, stream: int, **args: Any) -> None:
        self.events.append(kernel(self.correlation, start, us, stream, name=name, **args))
        self.ends[stream] = start + us


def play(programs: Sequence[Sequence[Step]], *, waits: bool = False) -> Played:
    """Runs the program of each rank; a collective moves bytes once all ranks have started it.

    Args:
        programs: of each rank.
        waits: whether the profiles have the calls that make streams wait.
    """
    ranks = [
        _Rank(number, steps, len(programs), waits=waits) for number, steps in enumerate(programs)
    ]
    found = Played([each.events for each in ranks])
    waiting = {each.rank: each.until_meeting() for each in ranks}
    sent: dict[tuple[int, int], list[int]] = defaultdict(list)
    while any(waiting.values()):
        for number, meeting in list(waiting.items()):
            if meeting is None:
                continue
            step, start = meeting
            if isinstance(step, Send):
                sent[number, step.to].append(start)
                ranks[number].met(step, start, start + step.us)
                waiting[number] = ranks[number].until_meeting()
                break
            if isinstance(step, Receive):
                if not sent[step.of, number]:
                    continue
                began = sent[step.of, number].pop(0)
                if began - start > 2:
                    found.waited[number, step.of] += began - start
                ranks[number].met(step, start, max(began, start) + step.us)
                waiting[number] = ranks[number].until_meeting()
                break
            group = meeting[0].group or tuple(range(len(ranks)))
            own = {rank: waiting[rank] for rank in group}
            if any(each is None or each[0] != meeting[0] for each in own.values()):
                continue
            starts = {rank: each[1] for rank, each in own.items() if each is not None}
            last = max(starts.values())
            late = max(rank for rank in group if starts[rank] == last)
            for rank in group:
                if last - starts[rank] > 2:
                    found.waited[rank, late] += last - starts[rank]
                ranks[rank].met(meeting[0], starts[rank], last + meeting[0].us)
                waiting[rank] = ranks[rank].until_meeting()
            break
        else:
            raise AssertionError("the ranks do not meet")
    found.starts = [each.starts for each in ranks]
    return found


def documents(
    played: Played, *, later: Mapping[int, float] = {}, world: int | None = None
) -> list[dict[str, Any]]:
    """The profiles of all ranks, whose clocks are ahead by some us."""
    found = []
    for rank, events in enumerate(played.events):
        ahead = later.get(rank, 0)
        found.append(
            {
                "schemaVersion": 1,
                "deviceProperties": [{"id": 0, **GPU}],
                "distributedInfo": {
                    "backend": "nccl", "rank": rank, "world_size": world or len(played.events),
                },
                "traceEvents": [{**event, "ts": event["ts"] + ahead} for event in events],
            }
        )  # fmt: skip
    return found


def written(folder: Path, profiles: Sequence[Mapping[str, Any]]) -> list[Path]:
    """Writes a profile per rank."""
    found = []
    for rank, profile in enumerate(profiles):
        path = folder / f"rank{rank}.json.gz"
        path.write_bytes(gzip.compress(json.dumps(profile).encode(), 1))
        found.append(path)
    return found
