"""Kernel launches."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np

from tbsched.counting import counted
from tbsched.errors import shown
from tbsched.program.arrays import Float64Array, Int64Array
from tbsched.program.checks import MAX_SECONDS, flag, instance, integer, known_fields, seconds
from tbsched.program.duration import Drawn
from tbsched.program.events.streams import (
    LEGACY_STREAM,
    Stream,
    checked_cuda_event,
    checked_gpu,
    checked_host,
    checked_stream,
)
from tbsched.program.partition import Partition, partition_from_data, partition_to_data
from tbsched.program.written import given_fields, source

MAX_BLOCKS = 2**31 - 1
MAX_LAUNCHES = 1_000_000
_RANGES = (
    ("blocks", 1, MAX_BLOCKS),
    ("threads", 1, 1024),
    ("registers", 1, 255),
    ("shared_memory", 0, 2**24),
    ("local_memory", 0, 512 * 1024),
    ("cluster", 1, 16),
    ("priority", -(2**15), 2**15),
)
_FLAGS = ("cooperative", "non_blocking", "programmatic", "first_use", "in_block_order")
_ONLY_TIMED = (
    "non_blocking", "programmatic", "trigger", "memory_wait", "completion_event", "first_use",
    "delay", "host", "gpu", "meets", "in_block_order",
)  # fmt: skip
_HELD = np.empty(0, np.int64)  # the durations of blocks that are held until released
_HELD.flags.writeable = False


@dataclass(frozen=True, slots=True, init=False)
class Launch:
    """One kernel launch.

    Its blocks stay on their SMs until a :class:`Release`, or for its duration. The arguments from
    ``partition`` on are keyword-only.

    Attributes:
        blocks: thread blocks in the grid, 1 to 2**31 - 1.
        threads: threads per block, 1 to 1024.
        registers: registers per thread, as the driver reports them, 1 to 255.
        shared_memory: bytes per block, static and dynamic together. The runtime's reserve of 1 KB
            does not count.
        local_memory: bytes per thread.
        carveout: preferred shared memory, in percent of the largest configuration, 0 to 100; None
            leaves the choice to the driver.
        cluster: blocks per thread block cluster, 1 to 16; it divides ``blocks``. Above 8 it is
            not portable: CUDA wants ``cudaFuncAttributeNonPortableClusterSizeAllowed`` of the
            kernel.
        stream: a number from 0. Launches with the same number run one after the other, in order.
            None is a stream of its own. CUDA's default stream is :data:`LEGACY_STREAM`, not 0; it
            is for launches with durations.
        priority: as in CUDA, a lower number is more urgent. A device has
            ``priority_levels``, from 0 down. One outside of them means the nearest of them.
        duration: seconds that each block runs, 0 to 1e9. A tuple has one number per block, and a
            :class:`Drawn` draws them. None holds the blocks until they are released.
        name: what pictures and reports call the launch.
        partition: the SMs that the blocks may use, those of a green context; None is all of them.
        cooperative: a cooperative launch (``cudaLaunchCooperativeKernel``): all of its blocks run
            at once. One that is too large for that is refused.
        non_blocking: the stream is a non-blocking one (``cudaStreamNonBlocking``). It neither waits
            for the legacy stream nor holds it up. All launches of a stream agree about it.
        programmatic: a programmatic dependent launch
            (``cudaLaunchAttributeProgrammaticStreamSerialization``). It does not wait for the end
            of the launch before it in its stream, but only until each block of that launch has
            triggered or has left.
        trigger: seconds from a block's start until it triggers
            (``griddepcontrol.launch_dependents``). None, or a time after the block's end: it
            triggers when it leaves.
        memory_wait: seconds from a block's start until it waits for the end of what comes before in
            its stream (``griddepcontrol.wait``). It then runs the rest of its duration. None, or a
            time after the block's end: it does not wait.
        completion_event: the number of a CUDA event
            (``cudaLaunchAttributeLaunchCompletionEvent``), for which a :class:`WaitEvent` waits.
            The event happens when the launch has reached the thread block scheduler. CUDA's
            documentation says that all blocks have started by then. On Hopper that is not so.
        first_use: the first use of a kernel under lazy loading (``CUDA_MODULE_LOADING=LAZY``, the
            default of CUDA). The call loads the kernel: the GPU does so when all earlier work has
            ended, and all later work waits for it. Launches with the same ``name`` use the same
            kernel, and only the first of them loads it.
        delay: seconds from when the launch waits for nothing but room until it stands in line for
            room. A GPU takes launches that waited for the same kernel one after the other, in an
            order that chance decides. None: at once. :func:`tbsched.fit_durations` finds it;
            :func:`tbsched.observe` refuses it.
        host: the host thread that calls, 0 to 1023.
        gpu: the index of the GPU that runs it. Streams are those of a GPU: stream 0 of GPU 0 and
            stream 0 of GPU 1 are two streams.
        meets: the name of a group. All blocks of all launches with this name wait until each of
            them is resident, wherever they are: a barrier of a grid, or the blocks of a collective
            on several GPUs. Their durations count from then on. A group of which a block finds no
            room hangs: ``Trace.hang`` says why. A graph's launches meet once; a graph
            with them is launched once.
        in_block_order: with ``meets``, a block waits only for blocks of its launch with lower
            numbers, as those of a decoupled look-back or of stream-K. As a GPU starts the blocks of
            a launch in the order of their numbers, such a block never waits for long, and here not
            at all: however large the launch is, it does not hang by itself.

    Only launches with durations can be ``non_blocking``, ``programmatic`` or a ``first_use``, or
    have a ``trigger``, a ``memory_wait``, a ``completion_event``, a ``delay``, ``meets``, or
    another ``host`` or ``gpu`` than 0.

    Raises:
        TypeError, ValueError: a field out of its range; names the field, the value and the limit.

    Example:
        >>> tb.Launch(blocks=132, threads=256, registers=32, carveout=50)
        Launch(blocks=132, threads=256, registers=32, carveout=50)
        >>> tb.Launch(8, 64, 32, stream=tb.LEGACY_STREAM, duration=2e-5).duration
        2e-05
        >>> groups, _ = tb.split_sms("h200", min_sms=64)
        >>> len(tb.Launch(64, 256, 32, partition=groups[0], cooperative=True).partition)
        64
    """

    blocks: int
    threads: int
    registers: int
    shared_memory: int
    local_memory: int
    carveout: int | None
    cluster: int
    stream: Stream | None
    priority: int
    duration: float | tuple[float, ...] | Drawn | None
    name: str | None
    # Few launches set these; a hash without them takes no longer than before there were any.
    partition: Partition | None = field(hash=False)
    cooperative: bool = field(hash=False)
    non_blocking: bool = field(hash=False)
    programmatic: bool = field(hash=False)
    trigger: float | None = field(hash=False)
    memory_wait: float | None = field(hash=False)
    completion_event: int | None = field(hash=False)
    first_use: bool = field(hash=False)
    delay: float | None = field(hash=False)
    host: int = field(hash=False)
    gpu: int = field(hash=False)
    meets: str | None = field(hash=False)
    in_block_order: bool = field(hash=False)

    # Written out, as the one that dataclasses make takes twice as long; traces have millions.
    def __init__(
        self,
        blocks: int,
        threads: int,
        registers: int,
        shared_memory: int = 0,
        local_memory: int = 0,
        carveout: int | None = None,
        cluster: int = 1,
        stream: Stream | None = None,
        priority: int = 0,
        duration: float | tuple[float, ...] | Drawn | None = None,
        name: str | None = None,
        *,
        partition: Partition | None = None,
        cooperative: bool = False,
        non_blocking: bool = False,
        programmatic: bool = False,
        trigger: float | None = None,
        memory_wait: float | None = None,
        completion_event: int | None = None,
        first_use: bool = False,
        delay: float | None = None,
        host: int = 0,
        gpu: int = 0,
        meets: str | None = None,
        in_block_order: bool = False,
    ) -> None:
        _set_blocks(self, blocks)
        _set_threads(self, threads)
        _set_registers(self, registers)
        _set_shared_memory(self, shared_memory)
        _set_local_memory(self, local_memory)
        _set_carveout(self, carveout)
        _set_cluster(self, cluster)
        _set_stream(self, stream)
        _set_priority(self, priority)
        _set_duration(self, duration)
        _set_name(self, name)
        _set_partition(self, partition)
        _set_cooperative(self, cooperative)
        _set_non_blocking(self, non_blocking)
        _set_programmatic(self, programmatic)
        _set_trigger(self, trigger)
        _set_memory_wait(self, memory_wait)
        _set_completion_event(self, completion_event)
        _set_first_use(self, first_use)
        _set_delay(self, delay)
        _set_host(self, host)
        _set_gpu(self, gpu)
        _set_meets(self, meets)
        _set_in_block_order(self, in_block_order)
        # Nearly all are in range; to look first makes loading traces twice as fast.
        numbers = (blocks, threads, registers, shared_memory, local_memory, cluster, priority)
        for (field_, low, high), value in zip(_RANGES, numbers, strict=True):
            if not (type(value) is int and low <= value <= high):
                object.__setattr__(self, field_, integer("Launch", field_, value, low, high))
        if carveout is not None:
            _set_carveout(self, integer("Launch", "carveout", carveout, 0, 100))
        if stream is not None:
            _set_stream(self, checked_stream("Launch", stream))
        if cluster != 1 and self.blocks % self.cluster:
            raise ValueError(
                f"Launch.cluster: {self.cluster} does not divide Launch.blocks: {self.blocks}"
            )
        if duration is not None:
            _set_duration(self, self._checked_duration())
        if name is not None and not isinstance(name, str):
            raise TypeError(f"Launch.name: a string or None is needed, got {shown(name)}")
        if not (
            partition is None
            and trigger is memory_wait is completion_event is delay is None
            and meets is None
            and cooperative is non_blocking is programmatic is first_use is in_block_order is False
            and type(host) is type(gpu) is int
            and host == gpu == 0
        ):
            self._check_ways()

    def _checked_duration(self) -> float | tuple[float, ...] | Drawn:
        """Returns the duration, checked: a number, a tuple with one per block, or drawn."""
        if isinstance(self.duration, Drawn):
            return self.duration
        if isinstance(self.duration, list | np.ndarray):
            raise TypeError(
                "Launch.duration: seconds, a tuple of them or a Drawn is needed, got "
                f"{shown(self.duration)}; tuple(...) makes one"
            )
        if not isinstance(self.duration, tuple):
            return seconds("Launch", "duration", self.duration)
        if len(self.duration) != self.blocks:
            raise ValueError(
                f"Launch.duration: {len(self.duration)} numbers for {counted(self.blocks, 'block')}"
            )
        if set(map(type, self.duration)) == {float}:
            # Nearly all are; to look at them at once makes predictions of recordings faster.
            durations = np.array(self.duration)
            # Neither is so if one is NaN.
            if durations.min() >= 0 and durations.max() <= MAX_SECONDS:
                return tuple(self.duration)
        return tuple(
            seconds("Launch", f"duration[{block}]", value)
            for block, value in enumerate(self.duration)
        )

    def _check_ways(self) -> None:
        """Checks the fields that few launches set."""
        for name in _FLAGS:
            flag("Launch", name, getattr(self, name))
        if self.partition is not None:
            instance("Launch", "partition", self.partition, Partition)
            if not self.partition:
                raise ValueError(f"Launch.partition: {self.partition!r} has no SMs for any block")
        for name in ("trigger", "memory_wait", "delay"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, seconds("Launch", name, getattr(self, name)))
        if self.completion_event is not None:
            event = checked_cuda_event("Launch", "completion_event", self.completion_event)
            _set_completion_event(self, event)
        _set_host(self, checked_host("Launch", self.host))
        _set_gpu(self, checked_gpu("Launch", self.gpu))
        self._check_meets()
        for name in _ONLY_TIMED:
            if self.duration is None and getattr(self, name) not in (None, False):
                value = getattr(self, name)
                raise ValueError(
                    f"Launch.{name}: {value} needs a Launch.duration, got None; where blocks stay, "
                    "as in coresident, any duration will do"
                )
        if self.non_blocking and self.stream == LEGACY_STREAM:
            raise ValueError(
                f"Launch.non_blocking: True, but Launch.stream is {LEGACY_STREAM!r}, which blocks"
            )

    def _check_meets(self) -> None:
        """Checks the fields of launches whose blocks wait for each other."""
        if self.meets is None:
            if self.in_block_order:
                raise ValueError("Launch.in_block_order: True, but Launch.meets is None")
            return
        if not isinstance(self.meets, str):
            raise TypeError(f"Launch.meets: text or None is needed, got {shown(self.meets)}")
        if not self.meets:
            raise ValueError("Launch.meets: '' is empty; the name of a group is needed")
        for name in ("trigger", "memory_wait"):
            if getattr(self, name) is not None:
                raise ValueError(
                    f"Launch.{name}: {getattr(self, name)}, but Launch.meets is "
                    f"{shown(self.meets)}; blocks that meet others neither trigger nor wait for "
                    "memory before they end"
                )

    def block_durations(self) -> Float64Array | None:
        """Returns the seconds that each block runs, float64 (blocks,); None if it is held.

        Example:
            >>> tb.Launch(2, 64, 32, duration=(1e-5, 3e-5)).block_durations().tolist()
            [1e-05, 3e-05]
        """
        if self.duration is None:
            return None
        if isinstance(self.duration, Drawn):
            return self.duration.draw(self.blocks)
        return np.full(self.blocks, self.duration, np.float64)

    def duration_ns(self) -> Int64Array:
        """Returns the whole nanoseconds that blocks run, int64.

        The array has one number per block, one for all blocks, or none if they are held until
        released.

        Example:
            >>> tb.Launch(8, 64, 32, duration=2e-5).duration_ns().tolist()
            [20000]
        """
        if self.duration is None:
            return _HELD
        if isinstance(self.duration, float):
            return np.rint(np.array([self.duration]) * 1e9).astype(np.int64)
        durations = self.block_durations()
        assert durations is not None
        return np.rint(durations * 1e9).astype(np.int64)

    @property
    def launches(self) -> tuple[Launch, ...]:
        """The launch itself, in a tuple; every kind of event says which launches it makes."""
        return (self,)

    def __repr__(self) -> str:
        return source(self)


_NAMES = tuple(item.name for item in fields(Launch))
(
    _set_blocks, _set_threads, _set_registers, _set_shared_memory, _set_local_memory,
    _set_carveout, _set_cluster, _set_stream, _set_priority, _set_duration, _set_name,
    _set_partition, _set_cooperative, _set_non_blocking, _set_programmatic, _set_trigger,
    _set_memory_wait, _set_completion_event, _set_first_use, _set_delay, _set_host,
    _set_gpu, _set_meets, _set_in_block_order,
) = (getattr(Launch, name).__set__ for name in _NAMES)  # fmt: skip
# What every record of a trace file has to spell out, and what it does, default or not.
_NEEDED = ("blocks", "threads", "registers")
_ALWAYS_WRITTEN = ("shared_memory", "carveout", "cluster")


def launch_to_data(launch: Launch) -> dict[str, Any]:
    """Returns the fields as JSON data, without most that have their default."""
    data = given_fields(launch, _ALWAYS_WRITTEN)
    if isinstance(launch.duration, Drawn):
        data["duration"] = asdict(launch.duration)
    if launch.partition is not None:
        data["partition"] = partition_to_data(launch.partition)
    return data


def launch_from_data(where: str, data: object) -> Launch:
    """Returns the launch of which :func:`launch_to_data` made the data."""
    values = known_fields(where, data, _NAMES, _NEEDED)
    if "duration" in values:
        values["duration"] = _duration(f"{where}.duration", values["duration"])
    if values.get("partition") is not None:
        values["partition"] = partition_from_data(f"{where}.partition", values["partition"])
    return Launch(**values)


def _duration(where: str, data: object) -> Any:
    """Returns a duration of JSON data as a number, a tuple or a :class:`Drawn`."""
    if isinstance(data, list):
        return tuple(data)
    if isinstance(data, dict):
        return Drawn(**known_fields(where, data, _DRAWN_FIELDS, ("distribution", "mean")))
    return data


_DRAWN_FIELDS = tuple(item.name for item in fields(Drawn))
