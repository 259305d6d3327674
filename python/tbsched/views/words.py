"""Launches, times, sizes and causes in words."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tbsched.counting import counted
from tbsched.errors import on_one_line
from tbsched.program.duration import Drawn
from tbsched.program.events.cuda_events import RecordEvent, WaitEvent
from tbsched.program.events.host_call import HostCall
from tbsched.program.events.host_function import HostFunction
from tbsched.program.events.launch import Launch
from tbsched.program.events.memory_values import WaitValue, WriteValue
from tbsched.program.events.streams import Stream
from tbsched.program.events.synchronize import Synchronize
from tbsched.program.events.transfers import Copy, Memset, Numbered, transfer_key
from tbsched.traces.placement import DeviceInfo

# Those that some devices have another way are in limiter_words().
LIMITER_WORDS = {
    "none": "nothing",
    "slots": "no thread block slot is free",
    "warps": "too few warp slots are free",
    "registers": "too few registers are free",
    "shared_memory": "too little shared memory",
    "configuration": "the SM's shared-memory configuration does not suit the launch",
    "local_memory": "the GPU must be idle to set up more local memory",
    "queue": "an earlier launch that waits holds it up",
    "stream": "the launch before it in its stream has not finished",
    "priority": "a more urgent launch that waits holds it up",
    "hardware_queue": "other streams' work is ahead of it in its hardware queue",
    "event": "the event that it waits for has not happened",
    "value": "the value in memory that its stream waits for has not been written",
    "turn": "the thread block scheduler is still with another launch",
    "legacy_stream": "work of the legacy stream and other work wait for each other",
    "grids": "the GPU takes no more grids at once",
    "cooperative": "there is no room for all of its blocks at once",
    "trigger": "a block of the launch before it in its stream has neither triggered nor left",
    "node": "a node of its graph that comes before it has not finished",
    "first_use": "a kernel is being loaded at its first use",
    "policy": "the policy chose no SM, though one has room",
    "host": "the host never makes the call that launches it",
    "partition": "the SM is not in its partition",
}
WORTH = 0.01  # share of a program's time that a change saves at least, if it is worth its work
_PORTABLE_CLUSTER = 8  # blocks that every GPU with clusters takes without an attribute
_IN_TURN = {
    "warps": "no warp slot is free in the processing block whose turn it is",
    "registers": "too few registers in the processing block whose turn it is",
}
_PER_TPC = {"configuration": "the TPC's shared-memory configuration does not suit the launch"}


def limiter_words(limiter: str, device: DeviceInfo) -> str:
    """Returns what refused blocks, in words for the device's own mechanism."""
    if limiter in _IN_TURN and device.details.get("warps_in_turn"):
        return _IN_TURN[limiter]
    if limiter in _PER_TPC and configured_unit(device) == "TPC":
        return _PER_TPC[limiter]
    return LIMITER_WORDS.get(limiter, limiter)


def source_words(device: DeviceInfo) -> str:
    """Which policy predicted, or that it was observed."""
    policy = device.details.get("policy")
    return f"policy {policy}" if policy else "observed"


def configured_unit(device: DeviceInfo) -> str:
    """What has a shared-memory configuration of its own: ``TPC`` or ``SM``."""
    return str(device.details.get("configuration_per", "SM"))


def more_of(count: int, shown: int, singular: str, plural: str | None = None) -> str:
    """``and 12 launches more``; nothing if all are shown."""
    return f"and {counted(count - shown, singular, plural)} more" if count > shown else ""


def size_of(launches: Sequence[Launch]) -> str:
    """How many there are, and how many blocks they have."""
    blocks = sum([launch.blocks for launch in launches])
    return f"{counted(len(launches), 'launch', 'launches')}, {counted(blocks, 'block')}"


def launch_words(launch: Launch) -> str:
    """Returns a launch in a few words: blocks x threads, registers, and what is not the default."""
    words = f"{launch.blocks} x {launch.threads}, {launch.registers} regs"
    if launch.shared_memory:
        words += f", {size_words(launch.shared_memory)} shared"
    if launch.local_memory:
        words += f", {size_words(launch.local_memory)} local"
    if launch.carveout is not None:
        words += f", carveout {launch.carveout}"
    if launch.cluster != 1:
        words += f", cluster {launch.cluster}"
        words += " (non-portable)" if launch.cluster > _PORTABLE_CLUSTER else ""
    if launch.partition is not None:
        words += f", in {counted(len(launch.partition), 'SM')}"
    if launch.cooperative:
        words += ", cooperative"
    words += _own_stream_words(launch)
    if launch.gpu:
        words += f", GPU {launch.gpu}"
    if launch.meets is not None:
        words += f", meets {launch.meets!r}{' in block order' if launch.in_block_order else ''}"
    if launch.priority:
        words += f", priority {launch.priority}"
    if launch.duration is not None:
        words += f", {duration_words(launch.duration)}{_dependence_words(launch)}"
    return words


def _dependence_words(launch: Launch) -> str:
    """Returns a launch's dependences on others, beyond the order of its stream."""
    words = ", dependent" if launch.programmatic else ""
    if launch.memory_wait is not None:
        words += f", waits for memory at {seconds_words(launch.memory_wait)}"
    if launch.trigger is not None:
        words += f", triggers at {seconds_words(launch.trigger)}"
    if launch.completion_event is not None:
        words += f", completion event {launch.completion_event}"
    if launch.first_use:
        words += ", first use"
    if launch.delay is not None:
        words += f", delayed by {seconds_words(launch.delay)}"
    return words + host_words(launch.host)


def _own_stream_words(event: Launch | Copy | Memset | HostFunction) -> str:
    if event.stream is not None:
        return f", {stream_words(event.stream, event.non_blocking)}"
    return ", non-blocking stream" if event.non_blocking else ""


def host_words(host: int) -> str:
    """Who calls, if that is not the first host thread."""
    return f", by host {host}" if host else ""


def synchronize_words(event: Synchronize) -> str:
    """Returns what a host waits for, in words."""
    if event.stream is not None:
        return stream_words(event.stream)
    return "all work" if event.event is None else f"event {event.event}"


def host_call_words(event: HostCall) -> str:
    """Returns a host's call in a few words: what it waits for, and how long it takes."""
    takes = f"takes {seconds_words(event.duration)}"
    if event.waits is None:
        return takes
    awaited = "all work" if event.stream is None else stream_words(event.stream)
    return f"waits for {awaited}, {takes}"


def value_words(event: WriteValue | WaitValue) -> str:
    """A write of a value, or a wait for one: ``'ready' = 1``, ``'ready' >= 1``."""
    sign = "=" if isinstance(event, WriteValue) else ">="
    return f"{event.name!r} {sign} {event.value}"


def transfer_name(index: int, transfer: Numbered) -> str:
    """What is no launch by its number among those of its sequence: ``copy 0``."""
    return f"{transfer_key(transfer).replace('_', ' ')} {index}"


def transfer_kinds(transfers: Sequence[Numbered]) -> str:
    """Returns what transfers are: copies and memsets, and other kinds if there are any."""
    if any(isinstance(transfer, RecordEvent | WaitEvent) for transfer in transfers):
        return "copies, memsets and other nodes"
    if any(isinstance(transfer, HostFunction) for transfer in transfers):
        return "copies, memsets and host functions"
    return "copies and memsets"


def transfer_words(transfer: Numbered) -> str:
    """Returns what it moves, or its name; its direction, its stream and its duration."""
    if isinstance(transfer, RecordEvent | WaitEvent):
        return f"event {transfer.event}"
    if isinstance(transfer, HostFunction):
        name = on_one_line(transfer.name) if transfer.name else "a function of the host"
        return f"{name}{_own_stream_words(transfer)}, {seconds_words(transfer.duration)}"
    words = size_words(transfer.bytes)
    if isinstance(transfer, Copy):
        words += f", {transfer.kind}"
        if not transfer.pinned:
            words += ", pageable"
        if transfer.blocking:
            words += ", blocking"
    words += _own_stream_words(transfer)
    if transfer.duration is not None:
        words += f", {seconds_words(transfer.duration)}"
    return words


def stream_words(stream: Stream, non_blocking: bool = False) -> str:
    """``stream 3``, or ``non-blocking stream 3``."""
    return f"{'non-blocking ' if non_blocking else ''}stream {stream}"


def sms_words(sms: Sequence[int]) -> str:
    """Returns SMs, ascending, those in a row together: ``0-1, 16-19``."""
    words, first = [], 0
    for index, sm in enumerate(sms):
        if index + 1 == len(sms) or sms[index + 1] != sm + 1:
            words.append(f"{sms[first]}-{sm}" if first < index else f"{sm}")
            first = index + 1
    return ", ".join(words)


def few_words(sms: Sequence[int], max_count: int = 4) -> str:
    """The first SMs of some: ``0, 2, 4, 6, ...``."""
    return ", ".join(map(str, sms[:max_count])) + (", ..." if len(sms) > max_count else "")


def duration_words(duration: float | tuple[float, ...] | Drawn) -> str:
    """Returns how long blocks run, in a few words."""
    if isinstance(duration, Drawn):
        return f"{duration.distribution} of mean {seconds_words(duration.mean)}"
    if isinstance(duration, tuple):
        return f"{seconds_words(min(duration))} to {seconds_words(max(duration))}"
    return seconds_words(duration)


def seconds_words(seconds: float) -> str:
    """Returns a time with the unit that suits it; infinity is never."""
    if seconds == math.inf:
        return "never"
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if abs(seconds) >= scale:
            return f"{seconds / scale:.4g} {unit}"
    return f"{seconds * 1e9:.4g} ns"


def size_words(size: int) -> str:
    """A number of bytes, in KB where it is a whole number of them."""
    return f"{size // 1024} KB" if size and size % 1024 == 0 else f"{size} B"


def percent_words(part: int, total: int) -> str:
    """A share in per cent, cut and not rounded: a miss must show."""
    return f"{int(10_000 * part / total) / 100:.2f}" if total else "-"


def is_worth_it(saved: float, total: float) -> bool:
    """Whether a change saves enough of a program's time."""
    return saved > 0 and saved >= WORTH * total
