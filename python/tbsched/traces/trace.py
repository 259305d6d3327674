"""Where the blocks of a sequence went: predicted, observed or read from a file."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import InitVar, dataclass, field
from typing import Any

import numpy as np

from tbsched.counting import counted
from tbsched.errors import shown
from tbsched.hardware.assumed import HOST, needs_of_sequence, rules_of, unmeasured_rules
from tbsched.program.arrays import (
    Float64Array,
    HoldsArrays,
    Int64Array,
    StructuredArray,
    read_only,
)
from tbsched.program.checks import array, instance, integer, items, seconds
from tbsched.program.sequence import Sequence
from tbsched.shown import Shown, explanation
from tbsched.traces.annotations import NEVER_NS, called_ns, issued_ns
from tbsched.traces.hang import Hang, refuse_hang
from tbsched.traces.placement import (
    DeviceInfo,
    Placement,
    Room,
    first_outside,
    wrong_shape,
)
from tbsched.traces.residents import Residents
from tbsched.traces.timeline import busiest_ns, makespan_of, span_of, timeline_of

# Words of limiters that are of single SMs.
OF_SMS = frozenset({"slots", "warps", "registers", "shared_memory", "configuration"})


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Trace(Shown, HoldsArrays):
    """A sequence and where its blocks went; ``trace[k]`` is launch k's :class:`Placement`.

    Attributes:
        sequence: what ran.
        device: what it ran on.
        placements: one per launch.
        id: the trace's name in its file.
        extra: further keys of the file, kept when it is written again.
        capacities: for a prediction of a held sequence, a function that computes the
            :class:`Room` of each launch.
        waits: for a prediction of a timed sequence, what its launches waited for: a structured
            array by launch and time, (launch, begin_ns, end_ns, cause, behind). A launch waits
            from when it reaches the GPU until its last block is placed. ``cause`` is one of the
            words of ``Placement.limiter``. ``behind`` is the launch that it waited for. It is -1
            where that is no single launch: room on the SMs, a place among the resident grids, or an
            event of the legacy stream. It is -2 - k for ``sequence.transfers[k]``, such as a copy.
        transfer_ns: when each of ``sequence.transfers`` moved its bytes, or ran: start and end,
            int64 (transfers, 2). None where nobody recorded it, as of an observation.
        call_ns: for a prediction with ``host=``, when the call of each event began and returned,
            int64 (events, 2), by the clock of its blocks.
        replay: for a prediction, a function that computes what every SM holds after so many
            events, or, of a timed sequence, at so many nanoseconds (:meth:`residents` asks it).
        wait_limiters: for a prediction of a timed sequence, a function of the number of a row of
            ``waits``: its cause and, where that is a resource of an SM, all others that left no
            room at its begin.
        others: the devices of the GPUs behind the first one, which is ``device``, where the
            sequence runs on several; :attr:`devices` has all of them.
        hang: of a prediction, what never starts and who waits for whom, a :class:`Hang`. None:
            everything ends. A block that never starts has the SM -1. It starts and ends, and what
            never ends ends, at ``NEVER_NS``, the largest of the 64-bit integers.
        check: whether arrays are looked through for a wrong shape or an SM that is not there;
            False where the core made them.

    Raises:
        TypeError, ValueError: not one placement per launch, an array of another shape than the
            launch has, or an SM that the device does not have; names the array and the launch.

    Example:
        >>> trace = tb.predict(tb.Sequence([tb.Launch(41, 512, 32)]), "rtx3090")
        >>> trace
        <Trace: 1 launch, 41 blocks on NVIDIA GeForce RTX 3090, 82 SMs, policy ampere>
        >>> trace[0].smid[:4].tolist()
        [0, 2, 4, 6]
    """

    sequence: Sequence
    device: DeviceInfo
    placements: tuple[Placement, ...]
    id: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)
    capacities: Callable[[], tuple[Room, ...]] | None = None
    waits: StructuredArray | None = None
    replay: Callable[..., Residents] | None = None
    transfer_ns: Int64Array | None = None
    call_ns: Int64Array | None = None
    wait_limiters: Callable[[int], tuple[str, ...]] | None = None
    others: tuple[DeviceInfo, ...] = ()
    hang: Hang | None = None
    check: InitVar[bool] = True

    def __post_init__(self, check: bool) -> None:
        HoldsArrays.__post_init__(self)
        if check:
            instance("Trace", "sequence", self.sequence, Sequence)
            for device in self.devices:
                instance("Trace", "device", device, DeviceInfo)
            if self.hang is not None:
                instance("Trace", "hang", self.hang, Hang)
            if self.sequence.gpus > len(self.devices):
                raise ValueError(
                    f"trace {self.id!r}: {len(self.devices)} devices, but the sequence needs "
                    f"{self.sequence.gpus} GPUs"
                )
            instance("Trace", "id", self.id, str)
            if not isinstance(self.extra, Mapping):
                raise TypeError(f"Trace.extra: a dict is needed, got {shown(self.extra)}")
            for name in ("waits", "transfer_ns", "call_ns"):
                if getattr(self, name) is not None:
                    array("Trace", name, getattr(self, name))
            for placement in items("Trace", "placements", self.placements):
                instance("Trace", "placements", placement, Placement)
        launches = self.sequence.launches
        if len(self.placements) != len(launches):
            raise ValueError(
                f"trace {self.id!r}: {counted(len(self.placements), 'placement')} for "
                f"{counted(len(launches), 'launch', 'launches')}"
            )
        if not check:
            return
        times = (len(self.sequence.transfers), 2)
        if self.transfer_ns is not None and self.transfer_ns.shape != times:
            raise ValueError(
                f"trace {self.id!r}: transfer_ns has shape {self.transfer_ns.shape}, the sequence "
                f"needs {times}"
            )
        for index, (launch, placement) in enumerate(zip(launches, self.placements, strict=True)):
            wrong = wrong_shape(launch, placement)
            if wrong is not None:
                key, shape, needed = wrong
                raise ValueError(
                    f"trace {self.id!r}: {key}[{index}] has shape {shape}, the launch has {needed}"
                )
        gpu_of_launch = self.sequence.launch_gpus if self.others else (0,) * len(launches)
        for gpu, device in enumerate(self.devices):
            on_gpu = [index for index, launch_gpu in enumerate(gpu_of_launch) if launch_gpu == gpu]
            for key in ("smid", "final_smid"):
                columns = [getattr(self.placements[index], key) for index in on_gpu]
                far = first_outside(columns, device.sms)
                if far is not None:
                    raise ValueError(
                        f"trace {self.id!r}: {key}[{on_gpu[far]}] has an SM outside "
                        f"0..{device.sms - 1}"
                    )

    @property
    def devices(self) -> tuple[DeviceInfo, ...]:
        """Returns the device of each GPU, by its index.

        Example:
            >>> kernel = tb.Launch(8, 64, 32, gpu=1, duration=1e-5)
            >>> trace = tb.predict(tb.Sequence([kernel]), ["h200", "rtx3090"])
            >>> [device.sms for device in trace.devices]
            [132, 82]
        """
        return (self.device, *self.others)

    @property
    def assumed_rules(self) -> tuple[str, ...] | None:
        """Returns the rules, in words, that this prediction rests on and that are assumed.

        None where nobody says, as of an observation, or of a file of an older version.

        Example:
            >>> tb.predict(tb.Sequence([tb.Launch(8, 64, 32)]), "a100").assumed_rules
            ('layout of shared memory',)
            >>> tb.predict(tb.Sequence([tb.Launch(8, 64, 32)]), "h200").assumed_rules
            ()
        """
        assumed: list[str] = []
        for device in self.devices:
            if device.assumed is None:
                return None
            assumed += device.assumed
        needs = needs_of_sequence(self.sequence)
        if self.call_ns is not None:
            needs.add(HOST)
        return rules_of(assumed, needs) + unmeasured_rules(self.sequence)

    @property
    def limiters(self) -> tuple[tuple[str, ...], ...]:
        """Returns, per launch, all limiters of its waiting blocks, ``Placement.limiter`` first.

        Where several resources of an SM bind at once, it has no room until there is more of each.
        Only a prediction knows more than the first. With several kinds of SMs, these are the words
        of most SMs on which the first binds. In a timed sequence they are of the first wait, and of
        the first such SM. Empty where nothing waits.

        Example:
            >>> full = tb.Launch(132, 1024, 64, 200 * 1024)
            >>> trace = tb.predict(tb.Sequence([full, tb.Launch(1, 1024, 64, 100 * 1024)]), "h200")
            >>> trace[1].limiter, trace.limiters[1]
            ('registers', ('registers', 'shared_memory'))
        """
        limiters_by_launch: list[tuple[str, ...]] = [
            () if placement.limiter is None else (placement.limiter,)
            for placement in self.placements
        ]
        if self.wait_limiters is not None and self.waits is not None:
            launches, rows = np.unique(self.waits["launch"], return_index=True)
            for launch, row in zip(launches.tolist(), rows.tolist(), strict=True):
                limiters_by_launch[launch] = self.wait_limiters(row)
            return tuple(limiters_by_launch)
        if self.capacities is None or not any(
            placement.limiter in OF_SMS for placement in self.placements
        ):
            return tuple(limiters_by_launch)
        return tuple(map(_all_that_bind, limiters_by_launch, self.capacities()))

    def __len__(self) -> int:
        return len(self.placements)

    def __getitem__(self, launch: int) -> Placement:
        return self.placements[launch]

    def __iter__(self) -> Iterator[Placement]:
        return iter(self.placements)

    @property
    def timeline(self) -> StructuredArray:
        """Returns one row per block, by launch and block: (launch, block, sm, start_ns, end_ns).

        A structured array: launch, block and sm are int32, the times int64 nanoseconds. ``sm`` is
        -1 for a block that never ran, and its times mean nothing.

        Raises:
            ValueError: nobody recorded when blocks ran.

        Example:
            >>> program = tb.Sequence([tb.Launch(2, 64, 32, duration=1e-5)])
            >>> rows = tb.predict(program, "xavier").timeline
            >>> rows[["sm", "start_ns", "end_ns"]].tolist()
            [(0, 0, 10000), (2, 0, 10000)]
        """
        return timeline_of(self.placements)

    @property
    def issue_times(self) -> tuple[float, ...] | None:
        """Returns when the host made each launch call, in seconds.

        A recording counts from the first of them, a prediction from when the program began.

        They ascend in each host thread, and ``predict(..., issue_times=...)`` takes them. A
        recording has them, and so has ``predict(..., host=...)``. None: nobody says. In a program
        that hangs, infinity for a call that is never made.

        Example:
            >>> recorded = tb.observe(program)  # doctest: +SKIP
            >>> tb.predict(program, "h200", issue_times=recorded.issue_times)  # doctest: +SKIP
        """
        times_ns = issued_ns(self.extra)
        return None if times_ns is None else tuple(map(_seconds_or_never, times_ns))

    @property
    def call_times(self) -> tuple[tuple[float, float], ...] | None:
        """Returns when each event's call began and returned, in seconds from the first call.

        A recording has them, and so has ``predict(..., host=...)``, whose times count from when the
        program began. None: nobody says.

        Example:
            >>> program = tb.Sequence([tb.Launch(2, 64, 32, duration=1e-3), tb.Synchronize()])
            >>> began, returned = tb.predict(program, "h200", host=0.0).call_times[1]
            >>> returned - began > 1e-3
            True
        """
        times_ns = self._called_ns()
        if times_ns is None:
            return None
        return tuple(
            (_seconds_or_never(began), _seconds_or_never(returned)) for began, returned in times_ns
        )

    @property
    def host_gaps(self) -> tuple[float, ...] | None:
        """Returns, for each event, the seconds since its host's last call returned.

        Of a thread's first call it is the time since the first call of all.
        ``predict(..., host=...)`` takes them: so a changed program is issued as its host would
        issue it. None without :attr:`call_times`, and where the program hangs.

        Example:
            >>> recorded = tb.observe(program)  # doctest: +SKIP
            >>> tb.predict(program, "h200", host=recorded.host_gaps)  # doctest: +SKIP
        """
        times_ns = self._called_ns()
        if times_ns is None or self.hang is not None:
            return None
        returned: dict[int, int] = {}
        gaps = []
        for event, (begin, end) in zip(self.sequence, times_ns, strict=True):
            host = getattr(event, "host", 0)
            gaps.append((begin - returned.get(host, 0)) / 1e9)
            returned[host] = end
        return tuple(gaps)

    def _called_ns(self) -> list[list[int]] | None:
        """Returns when each call began and returned, in ns; None: nobody says."""
        times_ns = called_ns(self.extra)
        if times_ns is None and self.call_ns is not None:
            times_ns = self.call_ns.tolist()
        return times_ns

    @property
    def makespan(self) -> float:
        """Returns the seconds from the first block's start to the last end; infinity in a hang.

        Copies and memsets before the first block and after the last one do not count: recordings do
        not have their times. ``print(trace)`` says how long it takes with them.

        Raises:
            ValueError: nobody recorded when blocks ran.

        Example:
            >>> program = tb.Sequence([tb.Launch(2, 64, 32, duration=1e-5)])
            >>> tb.predict(program, "xavier").makespan
            1e-05
        """
        return makespan_of(self.placements)

    def response_times(self, issue_times: Iterable[float] | None = None) -> Float64Array:
        """Returns, for each launch, the seconds from its call to the end of its last block.

        Args:
            issue_times: when each launch was called, in seconds from the start of the program:
                those that :func:`tbsched.predict` was given. None: the trace's own, which a
                prediction with ``host`` has.

        Returns:
            A read-only array, float64 (launches,).

        Raises:
            TypeError, ValueError: the program hangs; no prediction of a timed sequence (the clock
                of a recording begins with its first block, and that of its calls with the first
                call); nobody says when launches were called; not one time for each launch; a time
                after the launch reached the GPU, as of a prediction without ``issue_times``.

        Example:
            >>> launch = tb.Launch(16, 1024, 32, stream=0, duration=1e-3)
            >>> times = (0.0, 0.0005)
            >>> trace = tb.predict(tb.Sequence([launch, launch]), "xavier", issue_times=times)
            >>> trace.response_times(times).tolist()
            [0.001, 0.0015]
        """
        if self.waits is None:
            raise ValueError("response_times: a prediction of a timed sequence is needed")
        times = self.issue_times
        if issue_times is not None:
            times = tuple(items("response_times", "issue_times", issue_times))
        if times is None:
            raise ValueError("response_times: issue_times: None; the trace does not have them")
        if len(times) != len(self):
            launches = counted(len(self), "launch", "launches")
            raise ValueError(f"response_times: issue_times: {len(times)} for {launches}")
        refuse_hang("response_times", self)
        called_ns = [round(seconds("response_times", "issue_times", time) * 1e9) for time in times]
        starts_ns, ends_ns = (
            np.array(
                [span_of(launch, placement) for launch, placement in enumerate(self)], np.int64
            )
            .reshape(-1, 2)
            .T
        )
        reached_ns = starts_ns.copy()
        np.minimum.at(reached_ns, self.waits["launch"], self.waits["begin_ns"])
        for launch in np.flatnonzero(reached_ns < called_ns)[:1].tolist():
            raise ValueError(
                f"response_times: issue_times[{launch}]: {called_ns[launch] / 1e9:g} s is after "
                f"launch {launch} reached the GPU, at {reached_ns[launch] / 1e9:g} s; give predict "
                "the same issue_times"
            )
        return read_only((ends_ns - np.array(called_ns, np.int64)) / 1e9)

    def concurrent(self, a: int, b: int) -> bool:
        """Returns whether launches a and b overlapped in time.

        A launch lasts from the start of its first block to the end of its last.

        Args:
            a, b: numbers of launches, from 0; negative ones count from the end.

        Raises:
            TypeError, ValueError: no such launch, or nobody recorded when blocks ran.

        Example:
            >>> launch = tb.Launch(2, 64, 32, duration=1e-5)
            >>> tb.predict(tb.Sequence([launch, launch]), "xavier").concurrent(0, 1)
            True
        """
        for name, launch in (("a", a), ("b", b)):
            integer("concurrent", name, launch, -len(self), len(self) - 1)
        (a_begin, a_end), (b_begin, b_end) = (span_of(k, self[k]) for k in (a, b))
        return max(a_begin, b_begin) < min(a_end, b_end)

    def residents(self, at: float | None = None, *, gpu: int = 0) -> Residents:
        """Returns what each SM of a GPU holds at one moment: blocks, warps, registers, memory.

        Args:
            at: the moment. In a held sequence it is after so many events, or after all of them for
                None. In a timed one it is a time in seconds, or for None the moment when most
                blocks are resident.
            gpu: the index of the GPU.

        Raises:
            TypeError, ValueError: no such moment or GPU, or the trace is no prediction: what an SM
                holds cannot be observed.

        Example:
            >>> sequence = tb.Sequence([tb.Launch(132, 256, 32), tb.Launch(264, 64, 32)])
            >>> prediction = tb.predict(sequence, "h200")
            >>> [prediction.residents(at).used_slots[0].item() for at in (0, 1, 2)]
            [0, 1, 3]
        """
        if self.replay is None:
            raise ValueError(
                "residents: only a prediction knows what an SM holds; predict the trace's sequence"
            )
        integer("residents", "gpu", gpu, 0, len(self.devices) - 1)
        if not self.sequence.timed:
            events = len(self.sequence)
            return self.replay(events if at is None else integer("residents", "at", at, 0, events))
        if at is None:
            rows = self.timeline
            if self.others:
                rows = rows[np.array(self.sequence.launch_gpus)[rows["launch"]] == gpu]
            at_ns = busiest_ns(rows)
        else:
            at_ns = round(seconds("residents", "at", at) * 1e9)
        return self.replay(at_ns, gpu) if self.others else self.replay(at_ns)

    def explain(self, launch: int) -> str:
        """Returns why a launch of a timed prediction waited, and how long, in words.

        For each wait it says what would have avoided it.

        Args:
            launch: the number of the launch, from 0; a negative one counts from the end.

        Raises:
            TypeError, ValueError: no such launch, or no prediction of a timed sequence.

        Example:
            >>> launch = tb.Launch(2, 64, 32, stream=0, duration=1e-5)
            >>> words = tb.predict(tb.Sequence([launch, launch]), "xavier").explain(1)
            >>> print(words.partition(":")[0])
            Launch 1 waited 10 us
        """
        return explanation(self, launch)


def _seconds_or_never(time_ns: int | None) -> float:
    return math.inf if time_ns is None or time_ns == NEVER_NS else time_ns / 1e9


def _all_that_bind(named_limiters: tuple[str, ...], room: Room) -> tuple[str, ...]:
    """Returns all limiters that bind on most of those SMs on which the named one binds."""
    if not OF_SMS.issuperset(named_limiters):
        return named_limiters
    kinds = Counter(limiters for limiters in room.limiters if limiters[:1] == named_limiters)
    return max(kinds, key=kinds.__getitem__, default=named_limiters)
