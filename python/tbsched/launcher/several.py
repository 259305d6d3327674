"""Runs a sequence on several GPUs of one host at once."""

from __future__ import annotations

from collections.abc import Sequence as Several
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from tbsched.launcher.query import import_launcher
from tbsched.program.meeting_groups import meeting_groups
from tbsched.program.sequence import Event, HostCall, Launch, Sequence
from tbsched.traces.annotations import meetings
from tbsched.traces.placement import DeviceInfo, Placement
from tbsched.traces.trace import Trace

if TYPE_CHECKING:
    from tbsched import _launcher

_MIN_SETTLE = 0.02  # seconds: host threads do not all begin at the same time
_SLOWER = 2  # how much longer than its duration a block may stay, at most


class OpenGpu(Protocol):
    """A GPU that is kept open."""

    info: DeviceInfo

    @property
    def handle(self) -> _launcher.Gpu:
        """The core's object."""


def observe_several(
    seq: Sequence, gpus: Several[OpenGpu], *, deadline: float, settle: float
) -> Trace:
    """Runs a sequence on several GPUs at once, by their indices.

    Args:
        seq: a checked one.
        gpus: that nobody else uses meanwhile.
        deadline: as for :func:`tbsched.observe`.
        settle: how many seconds nothing must change, beyond twice the longest duration and all
            host calls, until blocks that have not begun count as waiting for ever; at least 20 ms.

    Raises:
        as :func:`tbsched.observe`.
    """
    longest = max(float(launch.duration_ns().max(initial=0)) / 1e9 for launch in seq.launches)
    calls = sum(event.duration for event in seq if isinstance(event, HostCall))
    parts = [_Part(seq, gpu) for gpu in range(len(gpus))]
    used = [part for part in parts if part.launches]
    measured = import_launcher().run_together(
        [gpus[part.gpu].handle for part in used],
        [part.events for part in used],
        [part.groups for part in used],
        deadline=deadline,
        settle=max(settle, _MIN_SETTLE) + _SLOWER * longest + calls,
    )
    return _trace(seq, gpus, used, measured)


def check_several(seq: Sequence, gpus: int) -> None:
    """Checks that so many GPUs can run a sequence together.

    Raises:
        ValueError: they cannot, and why.
    """
    if seq.gpus > gpus:
        raise ValueError(f"observe.gpu: {gpus} GPUs, but the sequence needs {seq.gpus}")
    if not seq.launches or not seq.timed:
        raise ValueError("observe.seq: several GPUs need launches with durations")
    gpu_by_host: dict[int, int] = {}
    for index, event in enumerate(seq):
        where = f"observe.seq: event {index}"
        if isinstance(event, Launch):
            _check_launch(where, event)
            if gpu_by_host.setdefault(event.host, event.gpu) != event.gpu:
                raise ValueError(
                    f"{where}: host {event.host} launches on GPUs {gpu_by_host[event.host]} and "
                    f"{event.gpu}; give each GPU a host of its own"
                )
        elif not isinstance(event, HostCall):
            raise ValueError(
                f"{where} is a {type(event).__name__}; on several GPUs only launches and host "
                "calls can be observed"
            )
    for index, event in enumerate(seq):
        if not isinstance(event, HostCall):
            continue
        where = f"observe.seq: event {index}"
        if event.host not in gpu_by_host:
            raise ValueError(f"{where}: host {event.host} launches nothing; leave it out")
        if event.waits is not None and event.gpu != gpu_by_host[event.host]:
            raise ValueError(
                f"{where}: host {event.host} waits for GPU {event.gpu}, but launches on GPU "
                f"{gpu_by_host[event.host]}; on several GPUs a host can only wait for its own"
            )


def _check_launch(where: str, launch: Launch) -> None:
    """Refuses a launch with fields that cannot be observed on several GPUs."""
    for name in (
        "in_block_order", "programmatic", "first_use", "trigger", "memory_wait", "completion_event",
        "partition",
    ):  # fmt: skip
        if getattr(launch, name) not in (None, False):
            raise ValueError(f"{where}: Launch.{name} cannot be observed on several GPUs")


class _Part:
    """What one GPU runs.

    Attributes:
        gpu: its index.
        launches: the numbers of its launches in the whole sequence.
        events: as one GPU alone sees them.
        groups: of each group of the whole sequence, the launches of this part, by their numbers
            here.
    """

    def __init__(self, seq: Sequence, gpu: int) -> None:
        self.gpu = gpu
        hosts = {launch.host for launch in seq.launches if launch.gpu == gpu}
        self.launches = [k for k, launch in enumerate(seq.launches) if launch.gpu == gpu]
        events = [
            event
            for event in seq
            if (isinstance(event, Launch) and event.gpu == gpu)
            or (isinstance(event, HostCall) and event.host in hosts)
        ]
        self.events: tuple[Event, ...] = tuple(
            replace(event, gpu=0, meets=None)
            if isinstance(event, Launch)
            else replace(event, gpu=0)
            for event in events
        )
        self.groups = [
            [self.launches.index(k) for k in members if k in self.launches]
            for members in meeting_groups(seq).values()
        ]


def _trace(
    seq: Sequence,
    gpus: Several[OpenGpu],
    parts: list[_Part],
    results: list[tuple[list[_launcher.Measured], list[list[int]], list[bool]]],
) -> Trace:
    """Returns what the GPUs measured, each its own launches, as one trace."""
    placements: list[Placement | None] = [None] * len(seq.launches)
    for part, (measured, _, _) in zip(parts, results, strict=True):
        for index, launch in zip(part.launches, measured, strict=True):
            placements[index] = Placement(
                smid=launch["smid"], final_smid=launch["final_smid"],
                start_ns=launch["start_ns"], end_ns=launch["end_ns"], warp_slots=None,
            )  # fmt: skip
    groups = tuple(meeting_groups(seq).values())
    has_met = tuple(results[0][2])
    infos = [gpu.info for gpu in gpus]
    return Trace(
        seq, infos[0], tuple(placement for placement in placements if placement is not None),
        extra=meetings(groups, has_met), others=tuple(infos[1:]),
    )  # fmt: skip
