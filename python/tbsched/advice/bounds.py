"""Between what limits the makespan of a program lies, whatever its blocks' durations."""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from tbsched.advice.copying import TransferBounds, count_streams
from tbsched.advice.crowding import ROUNDING_SLACK, Durations, RoomBounds, max_full_ns, min_span_ns
from tbsched.errors import shown
from tbsched.hardware.assumed import needs_of_sequence, rules_of
from tbsched.hardware.catalogue import device as find_device
from tbsched.hardware.initial_state import InitialState
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.model import policy_of
from tbsched.prediction.predict import predict
from tbsched.prediction.ties import Ties
from tbsched.program.arrays import Int64Array
from tbsched.program.checks import instance, integer, items, seconds
from tbsched.program.events.transfers import Transfer
from tbsched.program.one_gpu import one_gpu
from tbsched.program.sequence import (
    GraphLaunch,
    HostCall,
    HostFunction,
    Launch,
    RecordEvent,
    Sequence,
    WaitValue,
    WriteValue,
    with_durations,
)
from tbsched.traces.trace import Trace

MAX_LAUNCHES = 1024
# With more of them, no launch counts as one that must wait for another.
MAX_ORDERED = 256
_LONG_NS = 10**14
Interval = tuple[float, float]
Ends = list[float]  # of each launch


@dataclass(frozen=True, slots=True)
class MakespanBounds:
    """Limits of a makespan, in seconds.

    Attributes:
        least: no makespan is shorter.
        greatest: no makespan is longer.
        seen: the shortest and the longest makespan that was predicted on the way.
        predictions: how many predictions that were.
        ends: of each launch, between how many seconds after the program's first block its last
            block ends.
        seen_ends: of each launch the first and the last end that were predicted on the way.
        begins: between how many seconds the first block starts, on the clock of the calls.
        widened_by: what makes the limits wider than needed, as the page "Bounds of a makespan" has
            it; what can be changed first. Empty if the limits are exact.
        assumed_rules: which rules they rest on that are assumed for the GPU, in words.

    Example:
        >>> program = tb.Sequence([tb.Launch(300, 1024, 32, duration=1e-4, stream=0)])
        >>> found = tb.makespan_bounds(program, "h200", durations=(1e-4, 2e-4))
        >>> f"{found.least:.6f} to {found.greatest:.6f}"
        '0.000200 to 0.000400'
        >>> found.exact
        True
    """

    least: float
    greatest: float
    seen: Interval
    predictions: int
    ends: tuple[Interval, ...] = field(default=(), repr=False)
    seen_ends: tuple[Interval, ...] = field(default=(), repr=False)
    begins: Interval = field(default=(0.0, 0.0), repr=False)
    widened_by: tuple[str, ...] = ()
    assumed_rules: tuple[str, ...] = ()

    @property
    def exact(self) -> bool:
        """Whether both limits are makespans that were predicted, so that none are narrower."""
        return self.seen == (self.least, self.greatest)


def makespan_bounds(
    seq: Sequence,
    device: str | os.PathLike[str] | DeviceSpec,
    durations: Interval | Iterable[Interval | None] | None = None,
    policy: str | None = None,
    *,
    launch_interval: float = 0.0,
    issue_times: Iterable[float] | None = None,
    predictions: int = 256,
) -> MakespanBounds:
    """Returns the least and greatest makespan of a program with intervals of durations.

    A shorter block can make a program longer: another launch may then come first, and hold up the
    rest. So the makespans of the shortest and of the longest durations are no limits. These are:
    every makespan that :func:`tbsched.predict` gives is within them, for all durations in the
    intervals, block by block, from each latent state, and in whatever order the GPU takes what
    happens at the same time.

    If all durations are known, each latent state is predicted, with each order of launches that
    have waited until the same moment. Then the limits are exact, for blocks that run exactly so
    long. An interval, however narrow, also counts all orders in which equal blocks can end.

    For intervals, and where there are too many states and orders, the limits can be wider than
    needed. They are exact all the same for launches that run one after the other and are alike
    within themselves. The page "Bounds of a makespan" says what widens them. ``seen`` shows how
    much it can be: the true limits are between it and these.

    Copies and memsets delay what waits for them, and count in any order of their engines. They do
    not count themselves: as in every makespan, the first block begins it, and the last one ends it.
    With them the limits are those for intervals.

    Args:
        seq: a timed program.
        device, policy, launch_interval, issue_times: as for :func:`tbsched.predict`.
        durations: between how many seconds each block runs: one pair for all launches, or for each
            launch a pair, or None for its own duration. None: all launches have their own.
        predictions: how many programs are predicted, 1 to 2**20. For intervals these are the
            shortest and the longest durations, and others drawn block by block, from all latent
            states in turn, in orders of chance.

    Raises:
        TypeError, ValueError: as :func:`tbsched.predict`; durations that are no intervals, or not
            one for each launch; a program without launches, or with more than 1024; one for which
            no limits are known: with programmatic launches or memory waits, with more local memory
            than the GPU starts with, with graphs and more launches and nodes together than grids
            that can be resident, with copies or memsets in graphs, with copies by several host
            threads, or with host functions, host calls or values in memory. The message names the
            launch, the copy or the event.

    Example:
        >>> program = tb.Sequence([
        ...     tb.Launch(264, 512, 32, carveout=100, stream=0, duration=1e-4),
        ...     tb.Launch(264, 512, 32, carveout=100, stream=1, duration=1e-4),
        ... ])
        >>> found = tb.makespan_bounds(program, "h200", [(1e-4, 2e-4), None])
        >>> found.least <= found.seen[0] <= found.seen[1] <= found.greatest
        True
    """
    instance("makespan_bounds", "sequence", seq, Sequence)
    one_gpu("makespan_bounds", seq)
    spec = find_device(device)
    predictions = integer("makespan_bounds", "predictions", predictions, 1, 2**20)
    _check(seq, spec)
    shortest, longest = _shortest_and_longest(seq, durations)
    seq = with_durations(seq, shortest)  # its own durations are in no interval, and count no more
    issued = None
    if issue_times is not None:
        issued = tuple(items("makespan_bounds", "issue_times", issue_times))
    fields = spec.assumed_fields(policy_of(spec, policy))
    assumed = rules_of(fields, needs_of_sequence(seq))
    program = _BoundedProgram(seq, spec, policy, launch_interval, issued)
    low, high = (
        [
            Durations.of(launch.duration_ns(), launch.blocks, spec.exit_latency_ns)
            for launch in launches
        ]
        for launches in (shortest, longest)
    )
    soonest_ns, latest_ns = program.begin_bounds_ns(low, high)
    begins = soonest_ns / 1e9, latest_ns / 1e9
    if shortest == longest and not seq.transfers:
        all_ends = program.all_ends(predictions)
        if all_ends is not None:
            least, greatest = _least_and_greatest(all_ends)
            exact = min(map(max, all_ends)), max(map(max, all_ends))
            ends_ = tuple(zip(least, greatest, strict=True))
            return MakespanBounds(
                *exact, exact, len(all_ends), ends_, ends_, begins, assumed_rules=assumed
            )
    sampled = program.some_ends(shortest, longest, predictions)
    first = [max(ns - latest_ns, span) for ns, span in program.min_ends_ns(low)]
    last = [ns - soonest_ns for ns in program.max_ends_ns(high)]
    ends = [(a / 1e9, b / 1e9) for a, b in zip(first, last, strict=True)]
    bounds = MakespanBounds(
        max(program.min_makespan_end_ns(low) - latest_ns, *first, 0) / 1e9,
        max(end for _, end in ends), (min(map(max, sampled)), max(map(max, sampled))), len(sampled),
        tuple(ends), tuple(zip(*_least_and_greatest(sampled), strict=True)), begins,
        assumed_rules=assumed,
    )  # fmt: skip
    if bounds.exact:
        return bounds
    return replace(bounds, widened_by=_widened_by(program, high))


class _BoundedProgram:
    """A program on a device, and the same program where nothing is short."""

    def __init__(
        self, seq: Sequence, spec: DeviceSpec, policy: str | None, launch_interval: float,
        issue_times: tuple[float, ...] | None,
    ) -> None:  # fmt: skip
        self.seq = seq
        self.spec = spec
        self._policy = policy
        self._interval = launch_interval
        self._issue_times = issue_times
        self.room = RoomBounds(seq.launches, spec, policy)
        self.transfers = TransferBounds(seq, spec, policy)
        graphs = [event for event in seq if isinstance(event, GraphLaunch)]
        self._nodes = sum(len(graph.launches) for graph in graphs)
        # A node may have a block before it that the driver runs to start it.
        relay_ns = np.array([spec.relay_ns + spec.exit_latency_ns])
        relays = [Durations(relay_ns, np.array([self._nodes]))] if self._nodes else []
        self._hidden = [*relays, *self.transfers.kernels]
        self._hidden_blocks = sum(own.blocks for own in self._hidden)
        self._hidden_kernels = self._nodes + len(self.transfers.kernels)
        streams = [e.stream for e in seq if isinstance(e, Launch)] + self.transfers.queued
        self._stream_count = count_streams(streams) + self._nodes

    def all_ends(self, most: int) -> list[Ends] | None:
        """Returns the end times of the launches, for each latent state and each order in which
        waiting launches may be taken; None: there are more than ``most``.

        Also None if the prediction is not among them: where host threads decide who comes first,
        orders of launches do not have all.
        """
        ties = self._ties(self.seq)
        ends: list[Ends] = []
        for state in self.spec.initial_states(self._policy):
            predicted = _ends_of(self._predicted(self.seq, self.spec, self._policy, state))
            state_ends: list[Ends] = []
            for trace in ties.all(state):
                if len(ends) + len(state_ends) == most:
                    return None
                state_ends.append(_ends_of(trace))
            if predicted not in state_ends:
                return None
            ends += state_ends
        return ends

    def some_ends(
        self, shortest: list[Launch], longest: list[Launch], predictions: int
    ) -> list[Ends]:
        """Returns the end times of the launches in each of some predictions: with the shortest, the
        longest and then random durations."""
        states = itertools.cycle(self.spec.initial_states(self._policy))
        draw = np.random.default_rng(0)
        count = len(shortest)
        ends = []
        for index, state in zip(range(predictions), states, strict=False):
            launches, turns = _random_launches(shortest, longest, draw), draw.permutation(count)
            if index < 2:
                launches, turns = [shortest, longest][index], np.arange(count)
            ties = self._ties(with_durations(self.seq, launches))
            ends.append(_ends_of(ties.predict(state, tuple(turns.tolist()))))
        return ends

    def _ties(self, seq: Sequence) -> Ties:
        """Returns a predictor of a sequence in each order of launches that wait together."""
        return Ties(seq, self.spec, self._policy, self._interval, self._issue_times)

    def begin_bounds_ns(self, low: list[Durations], high: list[Durations]) -> tuple[int, int]:
        """Returns the earliest and the latest time, in ns, at which the first block of all can
        start. No launch has ended then, so that durations do not matter; but copies may have."""
        if not self._hidden_kernels and not self._copies_ns.any():
            trace = self._predicted(self.seq, self.spec, self._policy)
            begin_ns = int(trace.timeline["start_ns"].min())
            return begin_ns, begin_ns
        starts, _ = self._run_alone(self._longest_ns(high), self._queues)
        late = [self._dispatch_ns(k) + self._driver_ns(k) for k in range(len(high))]
        latest_ns = int((starts + late + self._copies_ns).min())
        return int(self._earliest_ns(low)[0].min()), latest_ns

    def _driver_ns(self, launch: int) -> int:
        """Returns an upper bound of the ns for which the driver's kernels alone can keep a launch
        out."""
        _, _, full = self.room.weights([launch], [launch], self.room.sms[launch])
        return max_full_ns(self._hidden, np.ones(len(self._hidden)), full, 0.0)

    def _earliest_ns(self, durations: list[Durations]) -> tuple[Int64Array, Int64Array]:
        """Returns the earliest start and the earliest end of each launch, int64 ns (launches,)
        each: those if room never lacks."""
        return self._run_alone(self._shortest_ns(durations), queues=MAX_LAUNCHES, least=True)

    def _shortest_ns(self, durations: list[Durations]) -> list[int]:
        """Returns a lower bound of the ns that each launch takes."""
        return [
            min_span_ns(blocks, at_once) - self.spec.exit_latency_ns
            for blocks, at_once in zip(durations, self.room.at_once, strict=True)
        ]

    def min_ends_ns(self, durations: list[Durations]) -> list[tuple[int, int]]:
        """Returns for each launch a lower bound of the end of its last block, and of its duration,
        in ns."""
        return list(
            zip(self._earliest_ns(durations)[1].tolist(), self._shortest_ns(durations), strict=True)
        )

    def min_makespan_end_ns(self, kept: list[Durations]) -> int:
        """Returns a lower bound of the end of the last block of all launches, in ns."""
        exit_ns = self.spec.exit_latency_ns
        starts, ends = self._earliest_ns(kept)
        least = int(ends.max())
        for sms in set(self.room.sms):
            within = [k for k, own in enumerate(self.room.sms) if own <= sms]
            within.sort(key=lambda k: -starts[k])
            work = np.array([kept[k].total for k in within])[:, None] * self.room.shares[within]
            needed = np.cumsum(work, axis=0).max(axis=1) / len(sms)
            sooner = np.floor(starts[within] + needed - exit_ns - 1e-9 * needed)
            least = max(least, int(sooner.max()))
        return least

    def max_ends_ns(self, kept: list[Durations]) -> list[int]:
        """Returns an upper bound of the end of each launch's last block, in ns. The proof of the
        makespan holds for each launch."""
        spec = self.spec
        apart = self._longest_ns(kept)
        full_ns = self.max_full_ns(kept)
        queues = self._queues
        if self._stream_count > spec.resident_grids:
            step_ns = spec.exit_latency_ns + spec.completion_latency_ns + spec.event_latency_ns
            last_ns = int(self._run_alone([0] * len(kept), queues)[1].max())
            last_ns += sum(apart) + step_ns * len(kept) + full_ns
            return [last_ns + sum(self._station_delays_ns.values())] * len(kept)
        ends = self._run_alone(apart, queues)[1] + full_ns
        if not self._hidden and len(kept) <= MAX_ORDERED:
            waiting = [own + self._max_wait_ns(k, kept) for k, own in enumerate(apart)]
            ends = np.minimum(ends, self._run_alone(waiting, queues)[1])
        found: list[int] = (ends + self._copies_ns).tolist()
        return found

    def max_full_ns(self, durations: list[Durations]) -> int:
        """Returns for how many ns SMs can be full while a launch waits for room; 0: none waits."""
        everyone = list(range(len(durations)))
        return self._max_full_ns(everyone, everyone, durations, min(self.room.sms, key=len), None)

    def _longest_ns(self, durations: list[Durations]) -> list[int]:
        """Returns an upper bound of the ns that each launch takes from when it may start, if room
        never lacks."""
        exit_ns = self.spec.exit_latency_ns
        return [
            blocks.longest - exit_ns + self._dispatch_ns(k) for k, blocks in enumerate(durations)
        ]

    @property
    def _queues(self) -> int:
        """A number of hardware queues that hold up no more work than those of the device."""
        return MAX_LAUNCHES if self._stream_count <= self.spec.hardware_queues else 1

    @functools.cached_property
    def _station_delays_ns(self) -> dict[int, int]:
        """For each copy station an upper bound of the ns by which contention there can delay the
        work that waits for it."""
        if not self.transfers:
            return {}
        kernel_ns = (
            self._max_scheduler_ns(list(range(len(self.seq.launches)))) + self._watch_delay_ns
        )
        none = [0] * len(self.seq.launches)
        times = self._trace(none, self._queues, self.transfers.uncontended()).transfer_ns
        assert times is not None
        return {
            station: self.transfers.max_delay_ns(station, times, kernel_ns, self._watch_delay_ns)
            for station in self.transfers.stations
        }

    @functools.cached_property
    def _copies_ns(self) -> Int64Array:
        """Upper bound of the ns by which contention of copies can delay each launch, int64
        (launches,)."""
        no_spans = [0] * len(self.seq.launches)
        delays = np.zeros(len(no_spans), np.int64)
        for station, delay_ns in self._station_delays_ns.items():
            starts, delayed = (
                self._trace(no_spans, self._queues, transfers).timeline["start_ns"]
                for transfers in (self.transfers.uncontended(), self.transfers.endless(station))
            )
            delays[delayed >= starts + _LONG_NS // 2] += delay_ns
        return delays

    def _max_wait_ns(self, launch: int, durations: list[Durations]) -> int:
        """Returns an upper bound of the ns for which other launches can keep a ready launch from
        entering."""
        sms = self.room.sms[launch]
        others = np.flatnonzero(self._may_overlap[launch]).tolist()
        all_ = sorted({launch, *others})
        one_line = self.spec.launch_order == "one_line"
        if one_line:
            sms = min((self.room.sms[k] for k in all_), key=len)
        near = [k for k in all_ if one_line or self.room.sms[k] & sms]
        full_ns = self._max_full_ns(near, all_, durations, sms, launch)
        if self.spec.launch_order != "leftover":
            return full_ns
        urgent = [k for k in all_ if self._urgency[k] <= self._urgency[launch]]
        less_ns = [durations[k].longest for k in all_ if self._urgency[k] > self._urgency[launch]]
        # Of less urgent launches only those blocks are there that started before this one waited.
        started_ns = max(less_ns, default=0) + self._dispatch_ns(launch)
        near = [k for k in near if k in urgent]
        return min(full_ns, started_ns + self._max_full_ns(near, urgent, durations, sms, launch))

    def _max_full_ns(
        self, near: list[int], everyone: list[int], durations: list[Durations], sms: frozenset[int],
        last: int | None,
    ) -> int:  # fmt: skip
        """Returns an upper bound of the ns for which the SMs ``sms`` can be full for some launch.

        Args:
            near: the launches that can be on these SMs.
            everyone: those, and the others that can run meanwhile.
            durations: of all launches.
            sms: the SMs.
            last: the launch whose last block is not among those that run; None: one of any launch
                is not.
        """
        weighed, weights, full = self.room.weights(near, everyone, sms)
        if self._hidden:
            weights = np.ones(len(weighed))
        excluded = float(weights.min() if last is None else weights[weighed.index(last)])
        running = [durations[k] for k in weighed]
        heavy = [w * own.blocks for w, own in zip(weights, running, strict=True)]
        if last is not None:
            heavy[weighed.index(last)] -= excluded
        if self._max_weight_at_once(weighed, heavy) + self._hidden_blocks < full * (
            1 - ROUNDING_SLACK
        ):
            return 0
        weights = np.append(weights, np.ones(len(self._hidden)))
        return max_full_ns([*running, *self._hidden], weights, full, excluded)

    def _max_weight_at_once(self, launches: list[int], weights: list[float]) -> float:
        """Returns the greatest sum of the weights of launches that can run at the same time. Of
        those that never do (_exclusive_rows) only the heaviest counts.

        Args:
            launches: their numbers.
            weights: of each of these, with all of its blocks.
        """
        row_weights = np.zeros(len(self._may_overlap))
        np.maximum.at(row_weights, self._exclusive_rows[launches], weights)
        return float(row_weights.sum())

    @functools.cached_property
    def _exclusive_rows(self) -> Int64Array:
        """Row of each launch, int64 (launches,); launches of one row never run at the same time."""
        rows: list[list[int]] = []
        row_of = np.zeros(len(self._may_overlap), np.int64)
        for launch, may_meet in enumerate(self._may_overlap):
            free = (k for k, members in enumerate(rows) if not may_meet[members].any())
            row_of[launch] = row = next(free, len(rows))
            if row == len(rows):
                rows.append([])
            rows[row].append(launch)
        return row_of

    def _dispatch_ns(self, launch: int) -> int:
        """Returns an upper bound of the ns from when a launch may be taken until the scheduler
        takes it, if it has room."""
        others = np.flatnonzero(self._may_overlap[launch]).tolist()
        in_clusters = self.seq.launches[launch].cluster > 1
        return self._max_scheduler_ns(others, in_clusters) + self._watch_delay_ns

    def _max_scheduler_ns(self, others: list[int], in_clusters: bool = False) -> int:
        """Returns an upper bound of the ns for which the scheduler can be busy with these other
        launches. ``in_clusters``: whether the launch that waits has clusters."""
        spec = self.spec
        launches = self.seq.launches
        turns = 2 * (len(others) + self._hidden_kernels)
        if (
            len(set(self.room.sms)) > 1
            or spec.launch_order == "pass_by"
            or in_clusters
            or any(launches[k].cluster > 1 for k in others)
        ):  # others pass it, with each of their blocks
            turns = sum(launches[k].blocks for k in others) + len(others)
            turns += self._hidden_blocks + self._hidden_kernels
        if turns or spec.exit_latency_ns + spec.completion_latency_ns < spec.launch_switch_ns:
            turns += 1
        return (2 if self._nodes else 1) * turns * spec.launch_switch_ns

    @functools.cached_property
    def _urgency(self) -> list[int]:
        """Priority of each launch as the scheduler counts it; lower is more urgent."""
        most_urgent = 1 - self.spec.priority_levels
        return [
            most_urgent if launch.cooperative else min(max(launch.priority, most_urgent), 0)
            for launch in self.seq.launches
        ]

    @property
    def _watch_delay_ns(self) -> int:
        """Greatest delay in ns until a front end sees that work can go on."""
        spec = self.spec
        watch_ns = 0
        if self._stream_count > spec.front_ends:
            watch_ns = self._stream_count * spec.queue_watch_ns + spec.host_watch_ns
        return max(watch_ns, spec.host_write_ns)

    @functools.cached_property
    def _may_overlap(self) -> npt.NDArray[np.bool_]:
        """Which launches may run at the same time, bool (launches, launches): none waits for the
        other."""
        count = len(self.seq.launches)
        after = np.eye(count, dtype=np.bool_)
        for launch in range(count if count <= MAX_ORDERED else 0):
            spans = [0] * count
            spans[launch] = _LONG_NS
            starts, _ = self._run_alone(spans, queues=MAX_LAUNCHES)
            after[launch] |= starts >= starts[launch] + _LONG_NS
        return ~(after | after.T)

    @functools.cached_property
    def _one_warp_launches(self) -> list[Launch]:
        """Each launch as a block of one warp that ends at once."""
        return [
            replace(
                launch, blocks=1, threads=32, registers=16, shared_memory=0, local_memory=0,
                carveout=None, cluster=1, cooperative=False, partition=None, duration=0.0,
            )
            for launch in self.seq.launches
        ]  # fmt: skip

    def _run_alone(
        self, spans_ns: list[int], queues: int, *, least: bool = False
    ) -> tuple[Int64Array, Int64Array]:
        """Returns the start and the end of each launch, int64 ns (launches,) each, if it runs for
        ``spans_ns`` and room never lacks.

        Args:
            spans_ns: how long each launch runs.
            queues: number of hardware queues.
            least: whether copies take the least time that they can; else those that are counted
                take none.
        """
        copying = self.transfers
        transfers = copying.shortest() if least else copying.without_counted()
        rows = self._trace(spans_ns, queues, transfers, least=least).timeline
        return rows["start_ns"], rows["end_ns"]

    def _trace(
        self, spans_ns: list[int], queues: int, transfers: Iterable[Transfer], *,
        least: bool = False,
    ) -> Trace:  # fmt: skip
        """Returns the prediction if room never lacks: on a device with enough SMs, and launches of
        one block.

        Args:
            spans_ns: how long each launch runs.
            queues: number of hardware queues.
            transfers: the copies and memsets.
            least: as for _run_alone().
        """
        count = len(self.seq.launches)
        sms = 2 * count + 1
        roomy = replace(
            self.transfers.roomy_device(least), sms=sms, sm_preference=tuple(range(sms)), gpcs=(),
            hardware_queues=queues, resident_grids=2 * count + 1, launch_switch_ns=0,
            queue_watch_ns=0, host_watch_ns=0,
        )  # fmt: skip
        launches = [
            replace(launch, duration=ns / 1e9) if ns else launch
            for launch, ns in zip(self._one_warp_launches, spans_ns, strict=True)
        ]
        return self._predicted(with_durations(self.seq, launches, transfers), roomy, "most_room")

    def _predicted(
        self, seq: Sequence, spec: DeviceSpec, policy: str | None, state: InitialState | None = None
    ) -> Trace:
        """Returns the prediction of a sequence with the issue times of the program."""
        return predict(
            seq, spec, policy, state,
            launch_interval=self._interval, issue_times=self._issue_times,
        )  # fmt: skip


def _ends_of(trace: Trace) -> Ends:
    """Returns when the last block of each launch ends, in seconds after the first block of all
    starts. Launches without end times are left out."""
    begin_ns = int(trace.timeline["start_ns"].min())
    ends = (placement.end_ns for placement in trace)
    return [(int(row.max()) - begin_ns) / 1e9 for row in ends if row is not None]


def _least_and_greatest(predictions: list[Ends]) -> tuple[Ends, Ends]:
    """Returns the first and the last end of each launch, over some predictions."""
    columns = list(zip(*predictions, strict=True))
    return [min(column) for column in columns], [max(column) for column in columns]


def _widened_by(program: _BoundedProgram, high: list[Durations]) -> tuple[str, ...]:
    """Returns sentences that say what makes the limits wide, as far as it shows in the program.
    ``high``: the longest durations."""
    launches, copies, queues = (
        program.seq.launches,
        program.transfers,
        program.spec.hardware_queues,
    )
    streams = count_streams([launch.stream for launch in launches])
    compete = (streams > 1 or copies.kernels) and program.max_full_ns(high)
    smaller = [k for k, one in enumerate(launches) if one.carveout != 100]
    reasons: dict[str, object] = {
        "copies of several streams: each waits for all others of its engine": copies.shares_engine,
        "memsets or copies within the GPU: a block of them counts as a full SM": copies.kernels,
        f"{_numbered(smaller)} without carveout=100: a block may keep others off its SM. With "
        "carveout=100 for all launches the limits can be tighter": (
            compete and program.room.keeps_out
        ),
        "clusters or cooperative launches: one block may be what they wait for": (
            compete and any(launch.cluster > 1 or launch.cooperative for launch in launches)
        ),
        f"{streams} streams share {queues} hardware queues": streams > queues,
        "several streams: where launches compete for room, any order of them counts": compete,
    }
    return tuple(words for words, applies in reasons.items() if applies)


def _numbered(launches: list[int]) -> str:
    """Returns ``launch 3``, or how many launches there are."""
    return f"launch {launches[0]}" if len(launches) == 1 else f"{len(launches)} launches"


def _check(seq: Sequence, spec: DeviceSpec) -> None:
    """Refuses a program for which no limits are known."""
    if not seq.timed or not seq.launches:
        raise ValueError("makespan_bounds: sequence: launches with durations are needed")
    if len(seq.launches) > MAX_LAUNCHES:
        raise ValueError(
            f"makespan_bounds: sequence: {len(seq.launches)} launches, at most {MAX_LAUNCHES}"
        )
    for event in (*seq, *seq.transfers):
        is_timed = isinstance(event, RecordEvent) and event.timing
        if is_timed or isinstance(event, HostFunction | HostCall | WriteValue | WaitValue):
            raise ValueError(
                f"makespan_bounds: sequence: {shown(event)}: with host functions, host calls, "
                "values and records with timing no limits are known"
            )
    for event in seq if seq.transfers else ():
        if isinstance(event, GraphLaunch) and event.graph.transfers:
            raise ValueError(
                f"makespan_bounds: sequence: {shown(event.graph.transfers[0])} is a node of a "
                "graph: no limits are known with it"
            )
        if host := getattr(event, "host", 0):
            raise ValueError(
                f"makespan_bounds: sequence: {shown(event)} is called by host thread {host}: no "
                "limits are known of copies and memsets with several threads"
            )
    nodes = sum(len(e.launches) for e in seq if isinstance(e, GraphLaunch))
    if nodes and len(seq.launches) + nodes > spec.resident_grids:
        # A node may have a grid of the driver before it.
        raise ValueError(
            f"makespan_bounds: sequence: {len(seq.launches)} launches, {nodes} of them nodes of "
            f"graphs; with graphs, launches and nodes must be at most {spec.resident_grids}, the "
            "grids that can be resident"
        )
    for number, launch in enumerate(seq.launches):
        for name in ("programmatic", "memory_wait"):
            value = getattr(launch, name)
            if value not in (None, False):
                raise ValueError(
                    f"makespan_bounds: launch {number}: Launch.{name}: {value}: no limits are "
                    "known with it"
                )
        if launch.local_memory > spec.local_memory_initial:
            raise ValueError(
                f"makespan_bounds: launch {number}: Launch.local_memory: {launch.local_memory} is "
                f"more than {spec.local_memory_initial}, with which the GPU starts"
            )


def _shortest_and_longest(
    seq: Sequence, durations: Interval | Iterable[Interval | None] | None
) -> tuple[list[Launch], list[Launch]]:
    """Returns the launches with the shortest and with the longest durations."""
    count = len(seq.launches)
    given: list[object] = [None] * count
    if durations is not None:
        given = list(items("makespan_bounds", "durations", durations))
        if given and isinstance(given[0], int | float):
            given = [tuple(given)] * count
    if len(given) != len(seq.launches):
        raise ValueError(
            f"makespan_bounds: durations: {len(given)} intervals for {len(seq.launches)} launches"
        )
    pairs = [
        (launch.duration,) * 2 if pair_ is None else _interval(f"durations[{number}]", pair_)
        for number, (launch, pair_) in enumerate(zip(seq.launches, given, strict=True))
    ]
    shortest, longest = (
        [replace(pair_, duration=pair[at]) for pair_, pair in zip(seq.launches, pairs, strict=True)]
        for at in (0, 1)
    )
    return shortest, longest


def _interval(field: str, value: object) -> Interval:
    """Returns a pair of seconds, least and greatest, checked."""
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise TypeError(f"makespan_bounds.{field}: a pair of seconds is needed, got {shown(value)}")
    low, high = (seconds("makespan_bounds", field, limit) for limit in value)
    if low > high:
        raise ValueError(f"makespan_bounds.{field}: {low} is more than {high}")
    return low, high


def _random_launches(
    shortest: list[Launch], longest: list[Launch], rng: np.random.Generator
) -> list[Launch]:
    """Returns the launches with durations drawn between the shortest and the longest ones: one for
    all blocks of a launch, or one per block."""
    launches = []
    for low, high in zip(shortest, longest, strict=True):
        if low.duration == high.duration:
            launches.append(low)
            continue
        assert isinstance(low.duration, float)
        assert isinstance(high.duration, float)
        alike = rng.random() < 0.5
        parts = rng.random(1 if alike else low.blocks)
        if rng.random() < 0.5:
            parts = np.round(parts)  # the limits themselves
        values = (low.duration + parts * (high.duration - low.duration)).tolist()
        launches.append(replace(low, duration=values[0] if alike else tuple(values)))
    return launches
