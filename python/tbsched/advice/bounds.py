"""Between what limits the makespan of a program lies, whatever its blocks' durations."""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from tbsched.advice.copying import Copying, lines_of
from tbsched.advice.crowding import SLACK, Crowd, Durations, least_span_ns, longest_full_ns
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
    shortest, longest = _limits(seq, durations)
    seq = with_durations(seq, shortest)  # its own durations are in no interval, and count no more
    issued = None
    if issue_times is not None:
        issued = tuple(items("makespan_bounds", "issue_times", issue_times))
    fields = spec.assumed_fields(policy_of(spec, policy))
    assumed = rules_of(fields, needs_of_sequence(seq))
    program = _Program(seq, spec, policy, launch_interval, issued)
    low, high = (
        [Durations.of(one.duration_ns(), one.blocks, spec.exit_latency_ns) for one in launches]
        for launches in (shortest, longest)
    )
    soonest_ns, latest_ns = program.begins_ns(low, high)
    begins = soonest_ns / 1e9, latest_ns / 1e9
    if shortest == longest and not seq.transfers:
        every = program.all_ends(predictions)
        if every is not None:
            least, greatest = _least_and_greatest(every)
            exact = min(map(max, every)), max(map(max, every))
            each = tuple(zip(least, greatest, strict=True))
            return MakespanBounds(
                *exact, exact, len(every), each, each, begins, assumed_rules=assumed
            )
    some = program.some_ends(shortest, longest, predictions)
    first = [max(ns - latest_ns, span) for ns, span in program.least_ends_ns(low)]
    last = [ns - soonest_ns for ns in program.greatest_ends_ns(high)]
    ends = [(a / 1e9, b / 1e9) for a, b in zip(first, last, strict=True)]
    found = MakespanBounds(
        max(program.least_end_ns(low) - latest_ns, *first, 0) / 1e9,
        max(end for _, end in ends),
        (min(map(max, some)), max(map(max, some))),
        len(some),
        tuple(ends),
        tuple(zip(*_least_and_greatest(some), strict=True)),
        begins,
        assumed_rules=assumed,
    )
    if found.exact:
        return found
    return replace(found, widened_by=_widened_by(program, high))


class _Program:
    """A program on a device, and the same where nothing is short."""

    def __init__(
        self,
        seq: Sequence,
        spec: DeviceSpec,
        policy: str | None,
        launch_interval: float,
        issue_times: tuple[float, ...] | None,
    ) -> None:
        self.seq = seq
        self.spec = spec
        self._policy = policy
        self._interval = launch_interval
        self._issue_times = issue_times
        self.crowd = Crowd(seq.launches, spec, policy)
        self.copying = Copying(seq, spec, policy)
        graphs = [event for event in seq if isinstance(event, GraphLaunch)]
        self._nodes = sum(len(graph.launches) for graph in graphs)
        # A node may have a block before it that the driver runs to start it.
        relay_ns = np.array([spec.relay_ns + spec.exit_latency_ns])
        relays = [Durations(relay_ns, np.array([self._nodes]))] if self._nodes else []
        self._hidden = [*relays, *self.copying.kernels]
        self._hidden_blocks = sum(own.blocks for own in self._hidden)
        self._hidden_kernels = self._nodes + len(self.copying.kernels)
        streams = [e.stream for e in seq if isinstance(e, Launch)] + self.copying.queued
        self._lines = lines_of(streams) + self._nodes

    def all_ends(self, most: int) -> list[Ends] | None:
        """Returns what each latent state and each order gives; None if there are more of them.

        Also None if the prediction is not among them: where host threads decide who comes first,
        orders of launches do not have all.
        """
        ties = self._ties(self.seq)
        found: list[Ends] = []
        for state in self.spec.initial_states(self._policy):
            given = _ends(self._predicted(self.seq, self.spec, self._policy, state))
            own: list[Ends] = []
            for trace in ties.all(state):
                if len(found) + len(own) == most:
                    return None
                own.append(_ends(trace))
            if given not in own:
                return None
            found += own
        return found

    def some_ends(
        self, shortest: list[Launch], longest: list[Launch], predictions: int
    ) -> list[Ends]:
        """Returns the ends in predictions with the shortest, the longest and random durations."""
        states = itertools.cycle(self.spec.initial_states(self._policy))
        draw = np.random.default_rng(0)
        count = len(shortest)
        found = []
        for number, state in zip(range(predictions), states, strict=False):
            launches, turns = _drawn(shortest, longest, draw), draw.permutation(count)
            if number < 2:
                launches, turns = [shortest, longest][number], np.arange(count)
            ties = self._ties(with_durations(self.seq, launches))
            found.append(_ends(ties.predict(state, tuple(turns.tolist()))))
        return found

    def _ties(self, seq: Sequence) -> Ties:
        return Ties(seq, self.spec, self._policy, self._interval, self._issue_times)

    def begins_ns(self, low: list[Durations], high: list[Durations]) -> tuple[int, int]:
        """Returns between which times the first block of all starts.

        No launch has ended then, so that durations do not matter; but copies may have.
        """
        if not self._hidden_kernels and not self._later_ns.any():
            trace = self._predicted(self.seq, self.spec, self._policy)
            begin_ns = int(trace.timeline["start_ns"].min())
            return begin_ns, begin_ns
        starts, _ = self._alone(self._apart(high), self._queues)
        late = [self._delay_ns(k) + self._hidden_ns(k) for k in range(len(high))]
        latest_ns = int((starts + late + self._later_ns).min())
        return int(self._soonest(low)[0].min()), latest_ns

    def _hidden_ns(self, launch: int) -> int:
        """Returns for how many ns the driver's kernels alone can keep a launch out, at most."""
        _, _, full = self.crowd.weights([launch], [launch], self.crowd.sms[launch])
        return longest_full_ns(self._hidden, np.ones(len(self._hidden)), full, 0.0)

    def _soonest(self, kept: list[Durations]) -> tuple[Int64Array, Int64Array]:
        """Returns the earliest start and end of each launch in ns, by itself and what it awaits."""
        return self._alone(self._spans(kept), queues=MAX_LAUNCHES, least=True)

    def _spans(self, kept: list[Durations]) -> list[int]:
        """Returns how long each launch takes at least."""
        return [
            least_span_ns(own, at_once) - self.spec.exit_latency_ns
            for own, at_once in zip(kept, self.crowd.at_once, strict=True)
        ]

    def least_ends_ns(self, kept: list[Durations]) -> list[tuple[int, int]]:
        """The last block of each launch does not end sooner; and how long the launch takes."""
        return list(zip(self._soonest(kept)[1].tolist(), self._spans(kept), strict=True))

    def least_end_ns(self, kept: list[Durations]) -> int:
        """Returns a lower bound of the end of the last block of all launches, in ns."""
        exit_ns = self.spec.exit_latency_ns
        starts, ends = self._soonest(kept)
        least = int(ends.max())
        for sms in set(self.crowd.sms):
            within = [k for k, own in enumerate(self.crowd.sms) if own <= sms]
            within.sort(key=lambda k: -starts[k])
            work = np.array([kept[k].total for k in within])[:, None] * self.crowd.shares[within]
            needed = np.cumsum(work, axis=0).max(axis=1) / len(sms)
            sooner = np.floor(starts[within] + needed - exit_ns - 1e-9 * needed)
            least = max(least, int(sooner.max()))
        return least

    def greatest_ends_ns(self, kept: list[Durations]) -> list[int]:
        """Returns the last block of each launch does not end later.

        The argument is that of the block that ends last of all, for the last one of each launch.
        """
        spec = self.spec
        apart = self._apart(kept)
        full_ns = self.full_ns(kept)
        queues = self._queues
        if self._lines > spec.resident_grids:
            step_ns = spec.exit_latency_ns + spec.completion_latency_ns + spec.event_latency_ns
            last_ns = int(self._alone([0] * len(kept), queues)[1].max())
            last_ns += sum(apart) + step_ns * len(kept) + full_ns
            return [last_ns + sum(self._later_of.values())] * len(kept)
        ends = self._alone(apart, queues)[1] + full_ns
        if not self._hidden and len(kept) <= MAX_ORDERED:
            waiting = [own + self._full_before_ns(k, kept) for k, own in enumerate(apart)]
            ends = np.minimum(ends, self._alone(waiting, queues)[1])
        found: list[int] = (ends + self._later_ns).tolist()
        return found

    def full_ns(self, kept: list[Durations]) -> int:
        """For how long SMs can be full while a launch waits for room; 0 if launches never do."""
        everyone = list(range(len(kept)))
        return self._full_ns(everyone, everyone, kept, min(self.crowd.sms, key=len), None)

    def _apart(self, kept: list[Durations]) -> list[int]:
        """How long each launch takes at most from when it may be taken, if there is room."""
        exit_ns = self.spec.exit_latency_ns
        return [own.longest - exit_ns + self._delay_ns(k) for k, own in enumerate(kept)]

    @property
    def _queues(self) -> int:
        """Hardware queues that hold up no other work than those of the device can."""
        return MAX_LAUNCHES if self._lines <= self.spec.hardware_queues else 1

    @functools.cached_property
    def _later_of(self) -> dict[int, int]:
        """Returns how much later work can be that waits for a station of copies, by the station."""
        if not self.copying:
            return {}
        kernel_ns = self._turns_ns(list(range(len(self.seq.launches)))) + self._watch_ns
        none = [0] * len(self.seq.launches)
        times = self._trace(none, self._queues, self.copying.alone()).transfer_ns
        assert times is not None
        return {
            station: self.copying.later_ns(station, times, kernel_ns, self._watch_ns)
            for station in self.copying.stations
        }

    @functools.cached_property
    def _later_ns(self) -> Int64Array:
        """Returns how much later each launch can be because of the stations for which it waits."""
        none = [0] * len(self.seq.launches)
        found = np.zeros(len(none), np.int64)
        for station, later_ns in self._later_of.items():
            starts, late = (
                self._trace(none, self._queues, transfers).timeline["start_ns"]
                for transfers in (self.copying.alone(), self.copying.endless(station))
            )
            found[late >= starts + _LONG_NS // 2] += later_ns
        return found

    def _full_before_ns(self, launch: int, kept: list[Durations]) -> int:
        """Returns the longest time in ns for which others can keep a ready launch out."""
        sms = self.crowd.sms[launch]
        others = np.flatnonzero(self._may_meet[launch]).tolist()
        everyone = sorted({launch, *others})
        one_line = self.spec.launch_order == "one_line"
        if one_line:
            sms = min((self.crowd.sms[k] for k in everyone), key=len)
        near = [k for k in everyone if one_line or self.crowd.sms[k] & sms]
        full_ns = self._full_ns(near, everyone, kept, sms, launch)
        if self.spec.launch_order != "leftover":
            return full_ns
        urgent = [k for k in everyone if self._levels[k] <= self._levels[launch]]
        less_ns = [kept[k].longest for k in everyone if self._levels[k] > self._levels[launch]]
        # Of less urgent launches only those blocks are there that started before this one waited.
        started_ns = max(less_ns, default=0) + self._delay_ns(launch)
        near = [k for k in near if k in urgent]
        return min(full_ns, started_ns + self._full_ns(near, urgent, kept, sms, launch))

    def _full_ns(
        self,
        near: list[int],
        everyone: list[int],
        kept: list[Durations],
        sms: frozenset[int],
        last: int | None,
    ) -> int:
        """Returns the longest time in ns for which ``sms`` can be full for a launch of ``near``.

        One block is not among those that run: the last one of ``last``, or of any launch.
        """
        who, weights, full = self.crowd.weights(near, everyone, sms)
        if self._hidden:
            weights = np.ones(len(who))
        spared = float(weights.min() if last is None else weights[who.index(last)])
        running = [kept[k] for k in who]
        heavy = [w * own.blocks for w, own in zip(weights, running, strict=True)]
        if last is not None:
            heavy[who.index(last)] -= spared
        if self._most_at_once(who, heavy) + self._hidden_blocks < full * (1 - SLACK):
            return 0
        weights = np.append(weights, np.ones(len(self._hidden)))
        return longest_full_ns([*running, *self._hidden], weights, full, spared)

    def _most_at_once(self, launches: list[int], heavy: list[float]) -> float:
        """Returns the most that launches weigh at once; of each row, only one launch counts."""
        most = np.zeros(len(self._may_meet))
        np.maximum.at(most, self._rows[launches], heavy)
        return float(most.sum())

    @functools.cached_property
    def _rows(self) -> Int64Array:
        """Returns row of each launch; launches of one row never run at the same time."""
        rows: list[list[int]] = []
        found = np.zeros(len(self._may_meet), np.int64)
        for launch, may_meet in enumerate(self._may_meet):
            free = (k for k, members in enumerate(rows) if not may_meet[members].any())
            found[launch] = row = next(free, len(rows))
            if row == len(rows):
                rows.append([])
            rows[row].append(launch)
        return found

    def _delay_ns(self, launch: int) -> int:
        """How much later a launch is taken that may be taken, and for which there is room."""
        others = np.flatnonzero(self._may_meet[launch]).tolist()
        in_clusters = self.seq.launches[launch].cluster > 1
        return self._turns_ns(others, in_clusters) + self._watch_ns

    def _turns_ns(self, others: list[int], in_clusters: bool = False) -> int:
        """Returns for how many ns the scheduler can be busy with other launches."""
        spec = self.spec
        launches = self.seq.launches
        turns = 2 * (len(others) + self._hidden_kernels)
        if (
            len(set(self.crowd.sms)) > 1
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
    def _levels(self) -> list[int]:
        """Returns each launch's priority as the scheduler counts it; lower is more urgent."""
        most_urgent = 1 - self.spec.priority_levels
        return [
            most_urgent if one.cooperative else min(max(one.priority, most_urgent), 0)
            for one in self.seq.launches
        ]

    @property
    def _watch_ns(self) -> int:
        """Returns by how many ns a front end may see late that work can go on."""
        spec = self.spec
        watch_ns = 0
        if self._lines > spec.front_ends:
            watch_ns = self._lines * spec.queue_watch_ns + spec.host_watch_ns
        return max(watch_ns, spec.host_write_ns)

    @functools.cached_property
    def _may_meet(self) -> npt.NDArray[np.bool_]:
        """Returns which launches may run at the same time, bool (launches, launches).

        Each in turn runs for very long. What then starts as much later has waited for it.
        """
        count = len(self.seq.launches)
        after = np.eye(count, dtype=np.bool_)
        for launch in range(count if count <= MAX_ORDERED else 0):
            spans = [0] * count
            spans[launch] = _LONG_NS
            starts, _ = self._alone(spans, queues=MAX_LAUNCHES)
            after[launch] |= starts >= starts[launch] + _LONG_NS
        return ~(after | after.T)

    @functools.cached_property
    def _small(self) -> list[Launch]:
        """Returns each launch as a block of one warp that ends at once."""
        return [
            replace(
                launch, blocks=1, threads=32, registers=16, shared_memory=0, local_memory=0,
                carveout=None, cluster=1, cooperative=False, partition=None, duration=0.0,
            )
            for launch in self.seq.launches
        ]  # fmt: skip

    def _alone(
        self, spans_ns: list[int], queues: int, *, least: bool = False
    ) -> tuple[Int64Array, Int64Array]:
        """Returns when each launch starts and ends if it runs so long and room never lacks."""
        copying = self.copying
        transfers = copying.least() if least else copying.on_the_way()
        rows = self._trace(spans_ns, queues, transfers, least=least).timeline
        return rows["start_ns"], rows["end_ns"]

    def _trace(
        self,
        spans_ns: list[int],
        queues: int,
        transfers: Iterable[Transfer],
        *,
        least: bool = False,
    ) -> Trace:
        """Returns what happens then with these copies and memsets."""
        count = len(self.seq.launches)
        sms = 2 * count + 1
        roomy = replace(
            self.copying.roomy(least), sms=sms, sm_preference=tuple(range(sms)), gpcs=(),
            hardware_queues=queues, resident_grids=2 * count + 1, launch_switch_ns=0,
            queue_watch_ns=0, host_watch_ns=0,
        )  # fmt: skip
        launches = [
            replace(one, duration=ns / 1e9) if ns else one
            for one, ns in zip(self._small, spans_ns, strict=True)
        ]
        return self._predicted(with_durations(self.seq, launches, transfers), roomy, "most_room")

    def _predicted(
        self, seq: Sequence, spec: DeviceSpec, policy: str | None, state: InitialState | None = None
    ) -> Trace:
        """Predicts a sequence with the calls that the bounds are asked for."""
        return predict(
            seq, spec, policy, state,
            launch_interval=self._interval, issue_times=self._issue_times,
        )  # fmt: skip


def _ends(trace: Trace) -> Ends:
    """When the last block of each launch ended, in seconds after the first block of all began."""
    begin_ns = int(trace.timeline["start_ns"].min())
    ends = (placement.end_ns for placement in trace)
    return [(int(row.max()) - begin_ns) / 1e9 for row in ends if row is not None]


def _least_and_greatest(found: list[Ends]) -> tuple[Ends, Ends]:
    """Returns the first and the last end of each launch."""
    columns = list(zip(*found, strict=True))
    return [min(column) for column in columns], [max(column) for column in columns]


def _widened_by(program: _Program, high: list[Durations]) -> tuple[str, ...]:
    """Returns what makes the limits of a program wide, of what can be told from its launches."""
    launches, copying, queues = program.seq.launches, program.copying, program.spec.hardware_queues
    lines = lines_of([one.stream for one in launches])
    compete = (lines > 1 or copying.kernels) and program.full_ns(high)
    smaller = [k for k, one in enumerate(launches) if one.carveout != 100]
    reasons: dict[str, object] = {
        "copies of several streams: each waits for all others of its engine": copying.takes_turns,
        "memsets or copies within the GPU: a block of them counts as a full SM": copying.kernels,
        f"{_numbered(smaller)} without carveout=100: a block may keep others off its SM. With "
        "carveout=100 for all launches the limits can be tighter": (
            compete and program.crowd.keeps_out
        ),
        "clusters or cooperative launches: one block may be what they wait for": (
            compete and any(one.cluster > 1 or one.cooperative for one in launches)
        ),
        f"{lines} streams share {queues} hardware queues": lines > queues,
        "several streams: where launches compete for room, any order of them counts": compete,
    }
    return tuple(words for words, holds in reasons.items() if holds)


def _numbered(launches: list[int]) -> str:
    return f"launch {launches[0]}" if len(launches) == 1 else f"{len(launches)} launches"


def _check(seq: Sequence, spec: DeviceSpec) -> None:
    """Refuses programs for which nothing is known."""
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


def _limits(
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
        (launch.duration,) * 2 if one is None else _interval(f"durations[{number}]", one)
        for number, (launch, one) in enumerate(zip(seq.launches, given, strict=True))
    ]
    shortest, longest = (
        [replace(one, duration=pair[at]) for one, pair in zip(seq.launches, pairs, strict=True)]
        for at in (0, 1)
    )
    return shortest, longest


def _interval(field: str, value: object) -> Interval:
    """Returns a pair of seconds, the least and the greatest, checked."""
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise TypeError(f"makespan_bounds.{field}: a pair of seconds is needed, got {shown(value)}")
    low, high = (seconds("makespan_bounds", field, limit) for limit in value)
    if low > high:
        raise ValueError(f"makespan_bounds.{field}: {low} is more than {high}")
    return low, high


def _drawn(
    shortest: list[Launch], longest: list[Launch], draw: np.random.Generator
) -> list[Launch]:
    """Returns each launch with durations between: of all blocks alike, or of each block its own."""
    found = []
    for low, high in zip(shortest, longest, strict=True):
        if low.duration == high.duration:
            found.append(low)
            continue
        assert isinstance(low.duration, float)
        assert isinstance(high.duration, float)
        alike = draw.random() < 0.5
        parts = draw.random(1 if alike else low.blocks)
        if draw.random() < 0.5:
            parts = np.round(parts)  # the limits themselves
        values = (low.duration + parts * (high.duration - low.duration)).tolist()
        found.append(replace(low, duration=values[0] if alike else tuple(values)))
    return found
