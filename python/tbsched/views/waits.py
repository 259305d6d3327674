"""What launches waited for, in words."""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np

from tbsched.counting import counted
from tbsched.hardware.catalogue import device_titled
from tbsched.prediction.calls import waits_for_gpu
from tbsched.program.arrays import StructuredArray
from tbsched.program.checks import integer
from tbsched.program.events.transfers import Transfer
from tbsched.program.sequence import (
    LEGACY_STREAM,
    Copy,
    Event,
    Graph,
    GraphLaunch,
    Launch,
)
from tbsched.traces.annotations import NEVER_NS
from tbsched.traces.timeline import Running, shares_of, span_of, waited_ns
from tbsched.traces.trace import OF_SMS, Trace
from tbsched.views.layout.graphs import nodes_of
from tbsched.views.layout.names import behind_words, call_names, numbered
from tbsched.views.words import LIMITER_WORDS, configured_unit, seconds_words

_PARTS_SHOWN = 4
_BESIDE_SHOWN = 3
# Causes that the core tells as "queue" or "priority", "event", "node", "stream" and "priority", and
# two more that it tells as "queue": nothing is more urgent, and "queue" or "priority": behind what
# waits for local memory.
_WHOLE, _COMPLETION, _AGAIN, _ITSELF, _RELAY = "whole", "completion", "again", "itself", "relay"
_FIRST, _GROWING, _DECIDING = "first", "growing", "deciding"
_MOST_URGENT = -5  # of drivers for Turing, Ampere and Hopper (cuCtxGetStreamPriorityRange)
# What a launch waited for and, in brackets, what would have let it run.
CAUSE_WORDS = {
    "stream": "for {who}, before it in its stream (in another stream it would not wait for that)",
    "event": "for an event recorded after {who} (without the WaitEvent it would not wait for that)",
    "value": (
        "for a value in memory written after {who} (without the WaitValue it would not wait for "
        "that)"
    ),
    "legacy_stream": (
        "for {who}, as work in the legacy stream and all other work wait for each other "
        "(without launches in the legacy stream it would not wait for that)"
    ),
    "hardware_queue": (
        "behind {who} in hardware queue {queue} (false dependency: another stream, same queue; "
        "more queues, CUDA_DEVICE_MAX_CONNECTIONS, or fewer streams would separate them)"
    ),
    "grids": "for a resident grid to end (the GPU takes no more grids at once)",
    "turn": "for the thread block scheduler to turn to it from {who}",
    "queue": (
        "held up behind {who}, which waits for room itself (issued before it, or with a more "
        "urgent priority, it would have come first)"
    ),
    "priority": "held up behind {who}, which is more urgent and waits for room itself",
    "cooperative": (
        "for room for all of its blocks at once, beside {who} (fewer blocks, or a launch that is "
        "not cooperative, would have started sooner)"
    ),
    "trigger": (
        "until each block of {who}, before it in its stream, had triggered or left (an earlier "
        "trigger there would let it start sooner)"
    ),
    "node": "for {who}, a node of its graph (without the edge it would not wait for that)",
    "first_use": (
        "for the kernel of {who} to be loaded, which waits for all work before it (used before, "
        "or with CUDA_MODULE_LOADING=EAGER, it would not wait for that)"
    ),
    _WHOLE: (
        "held up behind {who}, which is cooperative and waits for room for all of its blocks "
        "(issued before it, it would have come first)"
    ),
    _FIRST: (
        "held up behind {who}, which waits for room itself (issued before it, it would have come "
        "first)"
    ),
    _GROWING: (
        "held up behind {who}, which waits for an idle GPU to set up more local memory (issued "
        "before it, it would have come first; priorities do not count here)"
    ),
    _COMPLETION: (
        "for the launch completion event of {who} (without the WaitEvent it would not wait for "
        "that)"
    ),
    _AGAIN: "for {who}, of an earlier launch of its graph (a graph does not run beside itself)",
    _ITSELF: (
        "for {who}, before it in its stream (in another stream it would wait, too: a graph does "
        "not run beside itself)"
    ),
    _DECIDING: "for a conditional node of its graph to decide (which a kernel of the driver does)",
    _RELAY: "held up behind a relay of {who}, the block that starts what follows in its graph",
    "policy": "for the policy to choose an SM for it, beside {who} (an SM had room)",
    "host": "for the host, which never makes its call",
    "partition": "for an SM of its partition, beside {who}",
    "slots": "for thread block slots, beside {who} (fewer, larger blocks need fewer)",
    "warps": "for warp slots, beside {who} (blocks of fewer threads would have fitted sooner)",
    "registers": (
        "for registers, beside {who} (fewer per thread, or smaller blocks, would have fitted "
        "sooner)"
    ),
    "shared_memory": (
        "for shared memory, beside {who} (less of it per block would have fitted sooner)"
    ),
    "configuration": (
        "for {unit}s with another shared-memory configuration than {who} set (launches that ask "
        "for the same can share one)"
    ),
    "local_memory": (
        "for the GPU to be idle of {who}, to set up more local memory (issued first, it would "
        "not wait for that)"
    ),
}
_RESOURCES = {
    "slots": "thread block slots",
    "warps": "warp slots",
    "registers": "registers",
    "shared_memory": "shared memory",
    "configuration": "another shared-memory configuration",
}
# Causes that name no launch: what runs holds the resource.
_OF_AN_SM = {
    "slots", "warps", "registers", "shared_memory", "configuration", "local_memory", "cooperative",
    "partition", "policy",
}  # fmt: skip


def explanation(trace: Trace, launch: int) -> str:
    """Why a launch waited (see :meth:`tbsched.Trace.explain`)."""
    return waits_of(trace).explanation(launch)


@functools.lru_cache(maxsize=1)
def waits_of(trace: Trace) -> Waits:
    """The waits of a trace that is asked about each of its launches; traces compare by identity."""
    return Waits(trace)


class Waits:
    """What the launches of a trace waited for; made once, asked about each of them.

    Raises:
        ValueError: nobody recorded what launches waited for.
    """

    def __init__(self, trace: Trace) -> None:
        if trace.waits is None:
            raise ValueError(
                "explain: nobody recorded what the launches waited for; "
                + (
                    "predict() says it"
                    if trace.sequence.timed
                    else "give launches durations: Launch(..., duration=seconds)"
                )
            )
        self._trace = trace
        self._rows = trace.waits
        self._launch = trace.waits["launch"].copy()
        self._nodes = nodes_of(trace.sequence)
        self._gpus = trace.sequence.launch_gpus

    def of(self, launch: int) -> StructuredArray:
        """The rows of ``trace.waits`` of one launch, a number from 0 on."""
        first, last = self._launch.searchsorted([launch, launch + 1])
        return self._rows[first:last]

    def explanation(self, launch: int) -> str:
        """Returns why it waited, in words; a negative number counts from the end.

        Raises:
            TypeError, ValueError: no such launch.
        """
        trace = self._trace
        launch = integer("explain", "launch", launch, -len(trace), len(trace) - 1) % len(trace)
        waits = self.of(launch)
        ran = self._ran(launch)
        whose = numbered(trace.sequence, launch).replace("l", "L", 1)
        held_up = self._held_call(self._event_of[launch])
        ran = f"{held_up} {ran}" if held_up else ran
        if not len(waits):
            where = " on the GPU" if held_up else ""
            return f"{whose} did not wait{where}. {ran}"
        shares = shares_of(waits)
        parts = []
        for (cause, behind), waited in shares[:_PARTS_SHOWN]:
            blocker = behind_words(trace.sequence, behind)
            if cause in _OF_AN_SM:
                rows = waits[waits["cause"] == cause]
                running = self._running.during(rows["begin_ns"].min(), rows["end_ns"].max())
                running = [
                    other_launch
                    for other_launch in running
                    if self._gpus[other_launch] == self._gpus[launch]
                ]
                blocker = self._names(running, launch) or "blocks that were leaving"
            words = CAUSE_WORDS[self.specific_cause(cause, launch, behind)].format(
                who=blocker, queue=trace[launch].hardware_queue, unit=configured_unit(trace.device)
            )
            also = self._at_once(launch, cause, waits)
            parts.append(f"{seconds_words(waited / 1e9)} {words}{also}")
        if len(shares) > _PARTS_SHOWN:
            parts.append(f"the rest for {counted(len(shares) - _PARTS_SHOWN, 'cause')} more")
        total = seconds_words(waited_ns(waits) / 1e9)
        return f"{whose} waited {total}: {'; '.join(parts)}. {ran}"

    def _ran(self, launch: int) -> str:
        """Returns when a launch's blocks ran; in a hang, how many never start or end."""
        placement = self._trace[launch]
        begin_ns, end_ns = span_of(launch, placement)
        begin, end = seconds_words(begin_ns / 1e9), seconds_words(end_ns / 1e9)
        if end_ns != NEVER_NS:
            return f"Its blocks ran from {begin} to {end}."
        hang = self._trace.hang
        stranded = [] if hang is None else [item for item in hang.stranded if item.launch == launch]
        never = [
            f"{counted(item.blocks, 'block')} never start{'s' if item.blocks == 1 else ''}: "
            f"{LIMITER_WORDS.get(item.cause, item.cause)}."
            for item in stranded
        ]
        if begin_ns != NEVER_NS:
            never.insert(0, f"Its blocks start at {begin}, and wait for ever for those they meet.")
        return " ".join(never)

    def _at_once(self, launch: int, cause: str, waits: StructuredArray) -> str:
        """Returns words for other limiters when the longest wait for a resource began."""
        if self._trace.wait_limiters is None or cause not in OF_SMS:
            return ""
        (rows,) = (waits["cause"] == cause).nonzero()
        longest = rows[(waits["end_ns"] - waits["begin_ns"])[rows].argmax()]
        first = self._launch.searchsorted(launch)
        other_limiters = self._trace.wait_limiters(int(first + longest))[1:]
        return (
            f", and for {' and '.join(map(_RESOURCES.__getitem__, other_limiters))}"
            if other_limiters
            else ""
        )

    def _held_call(self, event: int) -> str:
        """What held up the host thread before or in the call of an event; empty: nothing did."""
        held_up = self._blocked[event]
        return f"Its call{held_up}." if held_up else self._before[event]

    @functools.cached_property
    def _blocked(self) -> list[str]:
        """Returns for each event what held up its call, in words."""
        return [self._blocked_call(index) for index in range(len(self._trace.sequence))]

    @functools.cached_property
    def _before(self) -> list[str]:
        """Returns for each event the call that its host thread was in before, in words."""
        calls_before: list[str] = []
        last: dict[int, str] = {}  # by host thread
        for event_index, event in enumerate(self._trace.sequence):
            thread, blocked = _thread(event), self._blocked[event_index]
            calls_before.append(last.get(thread, ""))
            call = (
                f"Before the call, its host thread was in {self._calls[event_index]} "
                f"(event {event_index})"
            )
            if waits_for_gpu(event):
                last[thread] = f"{call}{_until(self._times, event_index)}."
            elif blocked:
                last[thread] = f"{call}, which{blocked}."
        return calls_before

    @functools.cached_property
    def _times(self) -> tuple[tuple[float, float], ...] | None:
        return self._trace.call_times

    def _blocked_call(self, event_index: int) -> str:
        """Returns what held up the call of an event that launches, in words; empty: nothing did."""
        sequence, times = self._trace.sequence, self._times
        if not sequence[event_index].launches:
            return ""
        lasted = "" if times is None else f",{_until(times, event_index)},"
        for copy in self._blocking_copies:
            if _thread(sequence[copy]) != _thread(sequence[event_index]) and self._holds(
                copy, event_index
            ):
                return (
                    f"{lasted} was held up by {self._calls[copy]} (event {copy}) of host thread "
                    f"{_thread(sequence[copy])}, which blocks in the legacy stream"
                )
        launch = sequence[event_index]
        if times is None or not isinstance(launch, Launch) or not self._grows(event_index):
            return ""
        if math.isinf(times[event_index][1]):
            return ""
        began_ns, returned_ns = (round(time * 1e9) for time in times[event_index])
        during = self._running.during(began_ns, returned_ns)
        if not during or any(span_of(k, self._trace[k])[1] > returned_ns for k in during):
            return ""
        return f"{lasted} waited for {self._names(during, -1)} to set up more local memory"

    def _holds(self, copy: int, event_index: int) -> bool:
        """Returns whether a launch call of another thread waited until the copy was over."""
        times = self._times
        if times is not None:
            return times[event_index][0] < times[copy][1] <= times[event_index][1]
        sequence, thread = self._trace.sequence, _thread(self._trace.sequence[event_index])
        calls_of_thread = [k for k in range(event_index) if _thread(sequence[k]) == thread]
        later = copy > event_index or any(sequence[k].launches for k in calls_of_thread if k > copy)
        if (
            later
            or any(waits_for_gpu(sequence[k]) for k in calls_of_thread)
            or self._trace.transfer_ns is None
        ):
            return False
        launch = self._first_launch[event_index]
        end_ns = self._trace.transfer_ns[self._transfer_of[copy]][1]
        return bool(end_ns <= span_of(launch, self._trace[launch])[0])

    def _grows(self, event_index: int) -> bool:
        """Returns whether a launch needs more local memory than those before it."""
        launch = self._first_launch[event_index]
        memory = self._trace.sequence.launches[launch].local_memory
        return memory > (self._local_memory[launch - 1] if launch else 0)

    @functools.cached_property
    def _local_memory(self) -> list[int]:
        """The most bytes per thread that a launch up to each one needs."""
        sizes = (launch.local_memory for launch in self._trace.sequence.launches)
        return list(itertools.accumulate(sizes, max))

    @functools.cached_property
    def _blocking_copies(self) -> list[int]:
        """Returns events that are copies which block in the legacy stream."""
        return [
            index
            for index, event in enumerate(self._trace.sequence)
            if isinstance(event, Copy) and event.stream == LEGACY_STREAM and waits_for_gpu(event)
        ]

    @functools.cached_property
    def _transfer_of(self) -> dict[int, int]:
        """Returns the number of each copy, memset and host function in a stream, by event."""
        before, transfer_by_event = 0, {}
        for index, event in enumerate(self._trace.sequence):
            if isinstance(event, Transfer):
                transfer_by_event[index] = before
            before += len(event.graph.transfers if isinstance(event, GraphLaunch) else ())
            before += index in transfer_by_event
        return transfer_by_event

    @functools.cached_property
    def _gpu_of(self) -> tuple[int, ...]:
        return self._trace.sequence.launch_gpus

    @functools.cached_property
    def _event_of(self) -> list[int]:
        """The event of each launch."""
        return [index for index, event in enumerate(self._trace.sequence) for _ in event.launches]

    @functools.cached_property
    def _first_launch(self) -> dict[int, int]:
        """The first launch of each event that launches."""
        return {
            event_index: launch for launch, event_index in reversed([*enumerate(self._event_of)])
        }

    @functools.cached_property
    def _calls(self) -> list[str]:
        return call_names(self._trace.sequence)

    def specific_cause(self, cause: str, launch: int, behind: int) -> str:
        """Returns the cause, or a more specific key of CAUSE_WORDS that the trace shows."""
        waits = self.of(launch)
        rows = waits[(waits["cause"] == cause) & (waits["behind"] == behind)]
        if behind == -1 or not len(rows):
            return _DECIDING if cause == "node" else cause
        end = 0 if behind < 0 else span_of(behind, self._trace[behind])[1]
        if cause == "event" and rows["end_ns"].max() < end:
            return _COMPLETION
        if behind in self._nodes:
            if cause == "node" and self._nodes[behind].graph != self._nodes[launch].graph:
                return _AGAIN
            if cause == "stream" and self._graph_of(behind) == self._graph_of(launch):
                return _ITSELF
            if cause == "priority" and rows["begin_ns"].min() >= end:
                return _RELAY
        if behind < 0 or cause not in ("queue", "priority"):
            return cause
        if self._waits_for_memory(behind, rows):
            return _GROWING
        if self._trace.sequence.launches[behind].cooperative:
            return _WHOLE
        return _FIRST if cause == "queue" and self._is_most_urgent(launch) else cause

    def _waits_for_memory(self, launch: int, during: StructuredArray) -> bool:
        """Returns whether a launch waits for local memory in some of these waits."""
        rows = self.of(launch)
        rows = rows[rows["cause"] == "local_memory"]
        begin, end = (np.atleast_2d(during[name]).T for name in ("begin_ns", "end_ns"))
        return bool(((rows["begin_ns"] < end) & (rows["end_ns"] > begin)).any())

    def _is_most_urgent(self, launch: int) -> bool:
        """Returns whether no priority would be more urgent than that of a launch."""
        this_launch = self._trace.sequence.launches[launch]
        if this_launch.cooperative:
            return True
        device = self._trace.devices[self._gpu_of[launch]]
        spec = device_titled(device.name, device.sms)
        return this_launch.priority <= (_MOST_URGENT if spec is None else 1 - spec.priority_levels)

    def _graph_of(self, launch: int) -> Graph | None:
        node = self._nodes.get(launch)
        return None if node is None else self._graphs[node.graph]

    @functools.cached_property
    def _graphs(self) -> list[Graph]:
        return [event.graph for event in self._trace.sequence if isinstance(event, GraphLaunch)]

    @functools.cached_property
    def _running(self) -> Running:
        return Running(self._trace.timeline)

    def _names(self, launches: list[int], own_launch: int) -> str:
        """Returns words that name several launches."""
        named = launches[:_BESIDE_SHOWN]
        names = [
            "its own blocks" if launch == own_launch else numbered(self._trace.sequence, launch)
            for launch in named
        ]
        hidden = len(launches) - len(named)
        more = [f"{counted(hidden, 'launch', 'launches')} more"] if hidden else []
        return " and ".join(filter(None, (", ".join(names), *more)))


def _until(times: tuple[tuple[float, float], ...] | None, event_index: int) -> str:
    """Returns until when a call lasted, in words; empty: unknown."""
    if times is None:
        return ""
    returned = times[event_index][1]
    return " for ever" if math.isinf(returned) else f" until {seconds_words(returned)}"


def _thread(event: Event) -> int:
    """Returns the host thread that makes the call."""
    return getattr(event, "host", 0)
