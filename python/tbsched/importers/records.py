"""What the profile of a real program tells, whatever wrote it: one record for each call.

A reader of a format makes a :class:`Recording`; `assemble` makes a program of it. A reader keeps
what the file says. None means that the file does not say it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tbsched.program.activity import Activity
from tbsched.program.gpu_facts import GpuFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """When a host thread made a call; times are of one clock for the whole recording.

    Attributes:
        thread: the host thread, as the file numbers it.
        call_ns, return_ns: when the call was made and when it returned; None if unknown.
        host_row: of ``Activity.host``; None: it is in none.
    """

    thread: int = 0
    call_ns: int | None = None
    return_ns: int | None = None
    host_row: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran(Called):
    """Work that ran on the GPU.

    Attributes:
        stream: the stream, as the file numbers it; of the legacy stream see ``Recording``.
        start_ns, end_ns: when it ran on the GPU.
        context, device: as the file numbers them.
        graph: the number of the :class:`GraphCall` of which this is a node; None: of no graph.
        node: the node in its graph, as the file numbers it: the same in each launch of the graph.
        channel: the hardware channel.
        row: of ``Activity.work``; None: it is in none.
    """

    stream: int
    start_ns: int
    end_ns: int
    context: int = 0
    device: int = 0
    graph: int | None = None
    node: int | None = None
    channel: int | None = None
    row: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel(Ran):
    """A kernel that ran; fields as of ``tbsched.Launch``, sizes in bytes.

    ``grid`` and ``block`` are None if the file does not say them.
    """

    name: str
    grid: tuple[int, int, int] | None
    block: tuple[int, int, int] | None
    registers: int | None = None
    static_shared_memory: int | None = None
    dynamic_shared_memory: int | None = None
    local_memory: int | None = None  # per thread
    cluster: int | None = None  # blocks of a cluster
    priority: int | None = None
    carveout: int | None = None  # percent, as asked for
    shared_memory_executed: int | None = None  # bytes of the SM's configuration
    cooperative: bool | None = None
    programmatic: bool | None = None
    first_use: bool | None = None
    green_context: int | None = None
    block_seconds: tuple[float, ...] | None = None  # duration of each block


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer(Ran):
    """A copy, or a memset (``kind`` is "memset"); kinds as of ``tbsched.Copy``."""

    bytes: int
    kind: str
    pinned: bool | None = None
    blocking: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventCall(Called):
    """Recording a CUDA event in a stream, or making a stream wait for one (``waits``).

    Attributes:
        known: False, of a wait: the file does not say which event; nor which stream, if that is -1.
        timing: whether the event was made with timing, as far as the file says.
    """

    event: int
    stream: int
    waits: bool = False
    known: bool = True
    timing: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SynchronizeCall(Called):
    """A call that blocks: for a stream, for an event, or for the device if both are None.

    Attributes:
        known: False: it waits for a stream or an event, and the file does not say for which.
    """

    stream: int | None = None
    event: int | None = None
    known: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingCall(Called):
    """A call that waits for all work of the GPU, and then takes time of its own: ``cudaFree``."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphCall(Called):
    """A launch of a graph: the records with ``graph == number`` are its nodes.

    Attributes:
        number: of this launch, unique in the recording.
        executable: the graph; the same for each launch of it; None if unknown.
        edges: pairs of ``Ran.node``; None if the file does not say.
        has_bodies: whether bodies of conditional nodes are among its nodes.
    """

    number: int
    stream: int
    executable: int | None = None
    edges: tuple[tuple[int, int], ...] | None = None
    has_bodies: bool = False


Record = Kernel | Transfer | EventCall | SynchronizeCall | WaitingCall | GraphCall


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """A profile.

    Attributes:
        records: in any order; those without a time of call are called in the order of the file.
        format: what wrote it, in words.
        device: the name of the GPU; None if the file does not say.
        sms: how many SMs it has; None if the file does not say.
        gpu: all that the file says of the GPU.
        connections: CUDA_DEVICE_MAX_CONNECTIONS of the process; None if the file does not say.
        legacy_streams: the numbers of streams that are the legacy default stream.
        non_blocking: streams that are known to be non-blocking (True) or not (False).
        priorities: of streams, where the file tells of streams and not of kernels.
        sources: of each field of ``tbsched.Launch`` (and ``host``, ``events``, …) that the file
            tells, where in the file it stands.
        missing: sentences: what the file does not say, and what is assumed instead.
        first_ns: when the first work in the file started, selected or not; None: all is selected.
        kernels: how many ran on all GPUs, where ``records`` lacks those of a long program.
        activity: what ran on all GPUs, and what host threads did; None: the records say it all.
        first_uses: whether ``Kernel.first_use`` can be trusted; False: nobody knows.
        rank: of the process among those that take part in collectives; None: unknown.
        world: how many ranks there are; None: unknown.
        unended: what was issued and has not ended, in words; it is in no record.
    """

    records: list[Record]
    format: str
    device: str | None = None
    sms: int | None = None
    gpu: GpuFacts | None = None
    connections: int | None = None
    legacy_streams: frozenset[int] = frozenset()
    non_blocking: dict[int, bool] = field(default_factory=dict)
    priorities: dict[int, int] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    first_uses: bool = False
    first_ns: int | None = None
    kernels: int = 0
    activity: Activity | None = None
    rank: int | None = None
    world: int | None = None
    unended: tuple[str, ...] = ()
