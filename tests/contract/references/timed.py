"""Streams, hardware queues, events and durations on one SM with block slots, written plainly.

Slow, and independent of the core: at every instant all rules are tried until none applies. What it
leaves out is the subject of other tests: SMs, warps, registers, shared memory.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field

from contract.references.hosts import CallTimes, Hosts
from tbsched.program.sequence import (
    LEGACY_STREAM,
    HostCall,
    HostFunction,
    Launch,
    RecordEvent,
    Sequence,
    Synchronize,
    WaitEvent,
    WaitValue,
    WriteValue,
)


class HangError(Exception):
    """Nothing more happens, but not all work is done."""


@dataclass(frozen=True)
class Launched:
    """The completion event of a launch."""

    launch: Work


@dataclass(frozen=True)
class Loaded:
    """The kernel of a launch, which is loaded."""


def takes_queue(item: object) -> bool:
    """Whether an event takes a place in a hardware queue."""
    return isinstance(item, Launch | HostFunction) or is_memory_operation(item)


def is_memory_operation(item: object) -> bool:
    """Whether a stream writes a value or a time stamp in memory, or waits for a value."""
    is_timed_record = isinstance(item, RecordEvent) and item.timing
    return isinstance(item, WaitValue | WriteValue) or is_timed_record


@dataclass(eq=False)
class Work:
    """One event of the sequence, on its way."""

    item: (
        Launch | RecordEvent | WaitEvent | HostFunction | WriteValue | WaitValue | Launched | Loaded
    )
    stream: object
    issue: int
    must_be_done: list[Work] = field(default_factory=list)
    record: Work | None = None  # of a wait, what it waits for
    blocking: bool = True  # it and the legacy stream wait for each other
    before: list[Work] = field(default_factory=list)  # all work that was issued before it
    follows: Work | None = None  # the launch whose triggers it waits for, while it may still run
    late_wait: bool = False  # of a wait: its event had not happened when it was called
    rank: tuple[int, int] = (0, 0)
    queue: int = -1  # of what takes one, once it is issued
    taken: int = -1  # its place among those that the GPU has taken from a queue
    done: bool = False
    done_at: int = 0
    # When all before a kernel that is loaded was over, or when a function began.
    met_at: int = -1
    has_value: bool = False  # of a wait for a value
    taken_at: int = 0
    starts: list[int] = field(default_factory=list)
    ends: list[int | None] = field(default_factory=list)  # None: it waits for what comes before


FRONT_ENDS = 2  # each looks at every second hardware queue
MOST_URGENT = -2  # the most urgent of three priorities


@dataclass(frozen=True)
class Toy:
    """A GPU of one SM; latencies are nanoseconds."""

    slots: int
    queues: int
    grids: int
    by_priority: bool
    launch_latency: int = 0
    completion_latency: int = 0
    exit_latency: int = 0
    event_latency: int = 0
    launch_switch: int = 0
    trigger_latency: int = 0
    completed_latency: int = 0
    load: int = 0
    places: int = 1021  # in a hardware queue
    stretches: int = 56  # in a hardware queue, between functions
    calls: CallTimes = field(default_factory=CallTimes)
    head_of_line: bool = True

    def gone_at(self, work: Work) -> float:
        """When the room of all blocks of a launch is free again, as far as that is known."""
        ends = [end for end in work.ends if end is not None]
        if not isinstance(work.item, Launch) or len(ends) < work.item.blocks:
            return math.inf
        return max(ends) + self.exit_latency

    def over_at(self, work: Work) -> float:
        """When it is gone, and so is all work before it in its stream."""
        earlier = -math.inf if work.follows is None else self.over_at(work.follows)
        return max(self.gone_at(work), earlier)

    def triggered_at(self, work: Work) -> float:
        """When the last block of a launch has triggered, as far as that is known."""
        launch = work.item
        assert isinstance(launch, Launch)
        if len(work.starts) < launch.blocks:
            return math.inf
        return max(map(trigger_of(launch), work.starts, work.ends, nanoseconds(launch)))


@dataclass
class Scheduler:
    """Turns from one launch to another no sooner than a while after the last turn."""

    current: Work | None = None
    next_turn: int = 0


@dataclass
class State:
    """What has been called, and in part issued."""

    called: list[Work]  # not issued yet
    issued: list[Work]
    launches: list[Work]
    scheduler: Scheduler
    hosts: Hosts
    now: int = 0
    values: dict[str, int] = field(default_factory=dict)


def time_of(seconds: float | None) -> float:
    return math.inf if seconds is None else round(seconds * 1e9)


def trigger_of(launch: Launch) -> Callable[[int, int | None, int], float]:
    """When a block triggers, by its start, its end and its duration."""
    trigger, wait = time_of(launch.trigger), time_of(launch.memory_wait)

    def found(start: int, end: int | None, duration: int) -> float:
        if trigger <= min(wait, duration) or (end is None and trigger <= wait):
            return start + trigger
        return math.inf if end is None else end - max(0, duration - trigger)

    return found


def nanoseconds(launch: Launch) -> list[int]:
    durations = launch.block_durations()
    assert durations is not None
    return [round(seconds * 1e9) for seconds in durations.tolist()]


def works_of(sequence: Sequence, issue_ns: list[int]) -> list[Work | None]:
    """Returns the work of each event, None for a synchronisation."""
    works: list[Work | None] = []
    apart = {launch.stream for launch in sequence.launches if launch.non_blocking}
    launches = 0
    for position, item in enumerate(sequence):
        if isinstance(item, Synchronize | HostCall):
            works.append(None)
            continue
        assert isinstance(
            item, Launch | RecordEvent | WaitEvent | HostFunction | WriteValue | WaitValue
        )
        own = item.stream is None
        stream: object = ("own", position) if own else item.stream
        # An event is issued together with the launch before it, or with the first.
        is_launch = isinstance(item, Launch)
        with_launch = launches if is_launch else max(0, launches - 1)
        work = Work(item, stream, issue_ns[with_launch] if issue_ns else 0)
        work.blocking = not item.non_blocking if own else stream not in apart  # type: ignore[union-attr]
        launches += is_launch
        works.append(work)
    return works


def link(work: Work, issued: list[Work], toy: Toy) -> list[Work]:
    """What a work that is issued now has to wait for. Returns it, and what is issued with it."""
    if isinstance(work.item, WaitEvent):
        work.record = last_record(work.item.event, issued)
        if work.record is None:  # there is nothing to wait for
            return []
    same = [w for w in issued if w.stream == work.stream and not isinstance(w.item, Launched)]
    work.before = issued[:]
    work.must_be_done += same[-1:]
    work.must_be_done += [w for w in issued if isinstance(w.item, Loaded)]
    if work.stream == LEGACY_STREAM:
        work.must_be_done += [w for w in issued if w.blocking]
    elif work.blocking:
        work.must_be_done += [w for w in issued if w.stream == LEGACY_STREAM and w.blocking]
    if not isinstance(work.item, Launch):
        return [work]
    work.rank = (work.item.priority if toy.by_priority else 0, len(issued))
    if work.item.completion_event is None:
        return [work]
    return [work, Work(Launched(work), work.stream, work.issue, blocking=False)]


def last_record(event: int, issued: list[Work]) -> Work | None:
    """The last record of a CUDA event."""
    for work in reversed(issued):
        if isinstance(work.item, RecordEvent) and work.item.event == event:
            return work
        if isinstance(work.item, Launched):
            launch = work.item.launch.item
            assert isinstance(launch, Launch)
            if launch.completion_event == event:
                return work
    return None


def awaited(event: Synchronize | HostCall, issued: list[Work]) -> Callable[[], bool]:
    """Whether that is over which a call that waits, and is made now, waits for."""
    works = [w for w in issued if not isinstance(w.item, Launched | Loaded)]
    if isinstance(event, Synchronize) and event.event is not None:
        record = last_record(event.event, issued)
        works = [] if record is None else [record]
    elif event.stream == LEGACY_STREAM:
        works = [w for w in works if w.blocking]
    elif event.stream is not None:
        works = [w for w in works if w.stream == event.stream]
    return lambda: all(work.done for work in works)


MOST_UNDER_WAY = 8


def relax(work: Work) -> None:
    """Lets a programmatic launch that is called now wait for triggers, unless it must not."""
    launch = work.item
    assert isinstance(launch, Launch)
    same = [w for w in work.before if w.stream == work.stream and not isinstance(w.item, Launched)]
    mine = [w for w in same if isinstance(w.item, Launch)]
    if not launch.programmatic or launch.cooperative or not mine or mine[-1].done:
        return
    since = work.before[work.before.index(mine[-1]) + 1 :]
    waits = [w for w in since if w.late_wait and w.stream == work.stream]
    if any(w.record is not None and w.record.stream != w.stream for w in waits):
        return
    is_legacy = work.stream == LEGACY_STREAM
    if work.blocking and any(
        w.blocking and (w.stream != LEGACY_STREAM if is_legacy else w.stream == LEGACY_STREAM)
        for w in since
    ):
        return
    work.follows = mine[-1]
    work.must_be_done = mine[-MOST_UNDER_WAY:][:1] if len(mine) >= MOST_UNDER_WAY else []


def chosen_queue(work: Work, called: list[Work], toy: Toy) -> int:
    """The queue of a launch, after the launch calls before it."""
    users = [[other for other in called if other.queue == queue] for queue in range(toy.queues)]
    earlier = [other for other in called if other.stream == work.stream]
    if earlier and users[earlier[-1].queue][-1].stream == work.stream:
        return earlier[-1].queue
    empty = [q for q in range(toy.queues) if all(other.taken >= 0 for other in users[q])]
    last_use = [called.index(mine[-1]) if mine else -1 for mine in users]
    before = max(range(toy.queues), key=last_use.__getitem__) if any(users) else -1
    next_end = (before + 1) % FRONT_ENDS
    filled = [(set(range(toy.queues)) - set(empty)) & set(range(end, toy.queues, FRONT_ENDS))
              for end in range(FRONT_ENDS)]  # fmt: skip

    def preference(queue: int) -> tuple[int, ...]:
        if not empty:
            return last_use[queue], queue
        end = queue % FRONT_ENDS
        return len(filled[end]), end != next_end, last_use[queue], queue

    return min(empty or range(toy.queues), key=preference)


def pending_before(work: Work, queue: int, issued: list[Work]) -> list[Work]:
    """The last works of pending stretches of a queue, if the work would begin another one."""
    stretches: list[Work] = []
    waits: list[Work] = []
    begins = True
    wait_of: dict[object, Work] = {}
    last_of: dict[object, Work] = {}  # of a stream, its last function or work
    for each in issued:
        last = last_of.get(each.stream)
        if isinstance(each.item, WaitEvent):
            if last is not None and isinstance(last.item, HostFunction):
                wait_of[each.stream] = each
        elif takes_queue(each.item):
            wait = wait_of.pop(each.stream, None)
            last_of[each.stream] = each
            if each.queue != queue:
                continue
            if not isinstance(each.item, HostFunction):
                stretches = [*(stretches if begins else stretches[:-1]), each]
                begins = False
                continue
            waits += [] if wait is None else [wait]
            begins = begins or (last is not None and not isinstance(last.item, HostFunction))
    if isinstance(work.item, HostFunction):
        pending = waits if work.stream in wait_of else []
    else:
        pending = stretches if begins and takes_queue(work.item) else []
    return list(itertools.dropwhile(lambda each: each.done, pending))


def simulate(
    sequence: Sequence, toy: Toy, issue_ns: list[int], gap_ns: list[int] | None = None
) -> tuple[list[Work], list[int]]:
    """The launches of a sequence, and when each call of its hosts returned, in ns.

    A launch has its queue, and start and end of its blocks.
    """
    works = works_of(sequence, issue_ns)
    launches = [work for work in works if work is not None and isinstance(work.item, Launch)]
    hosts = Hosts([] if gap_ns is None else list(sequence), gap_ns or [], toy.calls)
    called: list[Work] = [] if gap_ns is not None else [w for w in works if w is not None]
    state = State(called, [], launches, Scheduler(), hosts)

    def issue(number: int, is_loaded: bool) -> None:
        work = works[number]
        assert work is not None
        if is_loaded:
            load = Work(Loaded(), None, state.now, blocking=False)
            waits_for = [w for w in state.issued if not isinstance(w.item, Launched)]
            load.must_be_done = waits_for
            state.issued.append(load)
        work.issue = state.now
        state.called.append(work)

    # Whether a call that found no place may look again; and those whose queue had one.
    looks_again: dict[int, Callable[[], bool]] = {}
    part_queues: set[int] = set()

    def has_place(number: int) -> bool:
        work = works[number]
        assert work is not None
        if number in looks_again and not looks_again[number]():
            return False
        queue = chosen_queue(work, [w for w in state.issued if w.queue >= 0], toy)
        if isinstance(work.item, Launch) or is_memory_operation(work.item):
            waiting = [
                w
                for w in state.issued
                if w.queue == queue and w.taken < 0 and not isinstance(w.item, HostFunction)
            ]
            if len(waiting) >= toy.places:
                leaves = waiting[-toy.places]
                looks_again[number] = lambda: leaves.taken >= 0
                part_queues.discard(number)
                return False
        pending = pending_before(work, queue, state.issued)
        if len(pending) >= toy.stretches:
            last = pending[-toy.stretches]
            looks_again[number] = lambda: last.done
            part_queues.add(number)
            return False
        return True

    def call() -> bool:
        if hosts.retry(state.now, lambda number: number in part_queues and has_place(number)):
            return True
        waits_for = functools.partial(awaited, issued=state.issued)
        return hosts.step(state.now, issue, has_place, waits_for)

    while True:
        while step(state, toy, call) or hosts.retry(state.now, has_place):
            pass
        if hosts.done() and all(w.done for w in [*state.issued, *state.called]):
            return launches, list(hosts.returned().values())
        times = [time for time in times_of(state, toy) if time > state.now]
        if not times:
            raise HangError
        state.now = min(times)


def times_of(state: State, toy: Toy) -> list[int]:
    """When something may happen by itself."""
    launches, works = state.launches, state.issued
    times = [work.issue for work in state.called] + [state.scheduler.next_turn, *state.hosts.dues()]
    times += [work.issue + toy.launch_latency for work in works if work.queue >= 0]
    exits = [end + toy.exit_latency for work in launches for end in work.ends if end is not None]
    times += exits + [time + toy.completion_latency for time in exits]
    times += [work.done_at + toy.event_latency for work in works]
    times += [work.met_at + lasts(work, toy) for work in works if work.met_at >= 0]
    functions = [work for work in works if isinstance(work.item, HostFunction)]
    times += [work.met_at + nanoseconds_of(work) for work in functions if work.met_at >= 0]
    times += [work.taken_at + toy.completed_latency for work in launches]
    triggers = map(toy.triggered_at, launches)
    return times + [int(at) + toy.trigger_latency for at in triggers if at < math.inf]


def lasts(work: Work, toy: Toy) -> int:
    """How long the loading of a kernel takes, or a function until others know that it is over."""
    if isinstance(work.item, HostFunction):
        return nanoseconds_of(work) + toy.completion_latency
    return toy.load


def met(work: Work, toy: Toy, now: int) -> bool:
    """Whether a work that is issued waits for nothing any more."""
    if isinstance(work.item, Launched):
        launch = work.item.launch
        return launch.taken >= 0 and launch.taken_at + toy.completed_latency <= now
    if not all(other.done for other in work.must_be_done):
        return False
    if isinstance(work.item, WaitValue):
        return work.has_value
    if is_memory_operation(work.item):
        return work.taken >= 0
    if isinstance(work.item, HostFunction):
        return 0 <= work.met_at <= now - lasts(work, toy)
    if isinstance(work.item, Loaded):
        work.met_at = now if work.met_at < 0 else work.met_at
        return work.met_at + lasts(work, toy) <= now
    if work.follows is not None:
        triggered = toy.triggered_at(work.follows) + toy.trigger_latency <= now
        return triggered or work.follows.done
    if work.record is not None:
        known_at = work.record.done_at + (toy.event_latency if work.late_wait else 0)
        if not work.record.done or known_at > now:
            return False
    return True


def step(state: State, toy: Toy, call: Callable[[], bool]) -> bool:
    """Applies the first rule that does something; False if none does."""
    launches, now = state.launches, state.now
    for work in state.issued:
        event = not isinstance(work.item, Launch) and met(work, toy, now)
        if not work.done and (event or toy.over_at(work) + toy.completion_latency <= now):
            work.done = True
            work.done_at = now
            if isinstance(work.item, WriteValue):
                state.values[work.item.name] = work.item.value
            return True
    if go_on(launches, toy, now) or call_function(state, now):
        return True
    for work in state.called:
        if work.issue <= now:
            state.called.remove(work)
            state.issued += link(work, state.issued, toy)
            if takes_queue(work.item):
                work.queue = chosen_queue(work, [w for w in state.issued if w.queue >= 0], toy)
            if isinstance(work.item, Launch):
                relax(work)
            if work.record is not None:
                work.late_wait = not work.record.done
            return True
    if call():
        return True
    heads = [
        work
        for queue in range(toy.queues)
        for work in [w for w in state.issued if w.queue == queue and w.taken < 0][:1]
    ]
    there = [work for work in heads if work.issue + toy.launch_latency <= now]
    for work in there:
        if isinstance(work.item, Launch) or not all(w.done for w in work.must_be_done):
            continue
        if isinstance(work.item, WaitValue):
            if state.values.get(work.item.name, 0) < work.item.value:
                continue
            work.has_value = True
        work.taken = next_taken(state)
        return True
    ready = [work for work in there if isinstance(work.item, Launch) and met(work, toy, now)]
    resident = [work for work in launches if work.taken >= 0 and toy.gone_at(work) > now]
    if ready and len(resident) < toy.grids:
        first = min(ready, key=lambda work: work.rank)
        first.taken = next_taken(state)
        first.taken_at = now
        return True
    return place(launches, resident, toy, state.scheduler, now)


def next_taken(state: State) -> int:
    return 1 + max(work.taken for work in state.issued)


def call_function(state: State, now: int) -> bool:
    """Calls the first function of the host that may begin, if no other one runs."""
    functions = [work for work in state.issued if isinstance(work.item, HostFunction)]
    ends = [work.met_at + nanoseconds_of(work) for work in functions if work.met_at >= 0]
    for work in functions:
        if work.met_at < 0 and work.taken >= 0:
            if max(ends, default=now) > now:
                return False
            work.met_at = now
            return True
    return False


def nanoseconds_of(function: Work) -> int:
    assert isinstance(function.item, HostFunction)
    return round(function.item.duration * 1e9)


def go_on(launches: list[Work], toy: Toy, now: int) -> bool:
    """Memory waits return once all work before in the stream is over."""
    for work in launches:
        if None not in work.ends or work.follows is None or toy.over_at(work.follows) > now:
            continue
        launch = work.item
        assert isinstance(launch, Launch)
        wait = round(time_of(launch.memory_wait))
        for block, duration in zip(range(len(work.ends)), nanoseconds(launch), strict=False):
            if work.ends[block] is None:
                work.ends[block] = max(now, work.starts[block] + wait) + duration - wait
        return True
    return False


def place(
    launches: list[Work], resident: list[Work], toy: Toy, scheduler: Scheduler, now: int
) -> bool:
    """Places a block of the first launch in line, or all of a cooperative one."""

    def in_line(work: Work) -> tuple[int, int]:
        launch = work.item
        assert isinstance(launch, Launch)
        goes_first = launch.cooperative and toy.by_priority
        return MOST_URGENT if goes_first else work.rank[0], work.taken

    waiting = [w for w in resident if len(w.starts) < w.item.blocks]  # type: ignore[union-attr]
    may_turn = now >= scheduler.next_turn
    waiting = [work for work in waiting if work is scheduler.current or may_turn]
    there = [
        end for work in launches for end in work.ends if end is None or end + toy.exit_latency > now
    ]
    for first in sorted(waiting, key=in_line):
        launch = first.item
        assert isinstance(launch, Launch)
        # All blocks are alike: where a launch does not fit, only one of fewer at once does.
        count = launch.blocks if launch.cooperative else 1
        if len(there) + count > toy.slots:
            if toy.head_of_line:
                return False
            continue
        if first is not scheduler.current:
            scheduler.current = first
            scheduler.next_turn = now + toy.launch_switch
        for duration in nanoseconds(launch)[len(first.starts) :][:count]:
            wait = time_of(launch.memory_wait)
            waits = first.follows is not None and toy.over_at(first.follows) > now
            first.ends.append(None if waits and wait <= duration else now + duration)
            first.starts.append(now)
        return True
    return False
