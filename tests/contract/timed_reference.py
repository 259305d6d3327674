"""Streams, hardware queues, events and durations on one SM with block slots, written plainly.

Slow, and independent of the core: at every instant all rules are tried until none applies. What it
leaves out is the subject of other tests: SMs, warps, registers, shared memory.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tbsched.program.sequence import LEGACY_STREAM, Launch, RecordEvent, Sequence, WaitEvent


@dataclass(eq=False)
class Work:
    """One event of the sequence, on its way."""

    item: Launch | RecordEvent | WaitEvent
    stream: object
    issue: int
    must_be_done: list[Work] = field(default_factory=list)
    record: Work | None = None  # of a wait, what it waits for
    rank: tuple[int, int] = (0, 0)
    issued: bool = False
    queue: int = -1  # of a launch that is issued
    taken: int = -1  # the place of a launch among those that the GPU has taken from a queue
    done: bool = False
    done_at: int = 0
    freed_at: int = (
        0  # of the legacy stream: when all work before it was done, if that took a while
    )
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)


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
    legacy_latency: int = 0
    launch_switch: int = 0

    def gone(self, work: Work, now: int) -> bool:
        """Whether the room of all blocks of a launch is free again."""
        return (
            isinstance(work.item, Launch)
            and len(work.ends) == work.item.blocks
            and max(work.ends) + self.exit_latency <= now
        )


@dataclass
class Scheduler:
    """Turns from one launch to another no sooner than a while after the last turn."""

    current: Work | None = None
    next_turn: int = 0


def nanoseconds(launch: Launch) -> list[int]:
    durations = launch.block_durations()
    assert durations is not None
    return [round(seconds * 1e9) for seconds in durations.tolist()]


def arranged(sequence: Sequence, toy: Toy, issue_ns: list[int]) -> list[Work]:
    """All work, with what each has to wait for."""
    works: list[Work] = []
    by_stream: dict[object, Work] = {}
    records: dict[int, Work] = {}
    launches = 0
    for position, item in enumerate(sequence):
        assert isinstance(item, Launch | RecordEvent | WaitEvent)
        stream: object = item.stream if item.stream is not None else ("own", position)
        # An event is issued together with the launch before it, or with the first.
        is_launch = isinstance(item, Launch)
        with_launch = launches if is_launch else max(0, launches - 1)
        work = Work(item, stream, issue_ns[with_launch] if issue_ns else 0)
        launches += is_launch
        if stream in by_stream:
            work.must_be_done.append(by_stream[stream])
        if stream == LEGACY_STREAM:
            work.must_be_done += works
        else:
            work.must_be_done += [w for w in works if w.stream == LEGACY_STREAM]
        if isinstance(item, WaitEvent) and item.event in records:
            work.record = records[item.event]
        if isinstance(item, RecordEvent):
            records[item.event] = work
        if isinstance(item, Launch):
            work.rank = (item.priority if toy.by_priority else 0, position)
        by_stream[stream] = work
        works.append(work)
    return works


def chosen_queue(work: Work, called: list[Work], toy: Toy) -> int:
    """The queue of a launch, after the launch calls before it."""
    users = [[other for other in called if other.queue == queue] for queue in range(toy.queues)]
    earlier = [other for other in called if other.stream == work.stream]
    if earlier and users[earlier[-1].queue][-1].stream == work.stream:
        return earlier[-1].queue
    empty = [q for q in range(toy.queues) if all(other.taken >= 0 for other in users[q])]
    last_use = [called.index(mine[-1]) if mine else -1 for mine in users]
    return min(empty or range(toy.queues), key=lambda queue: (last_use[queue], queue))


def simulate(sequence: Sequence, toy: Toy, issue_ns: list[int]) -> list[Work]:
    """The launches of a sequence, with the queue of each, and start and end of its blocks in ns."""
    works = arranged(sequence, toy, issue_ns)
    launches = [work for work in works if isinstance(work.item, Launch)]
    now = 0
    scheduler = Scheduler()
    while True:
        while step(works, launches, toy, scheduler, now):
            pass
        if all(work.done for work in works):
            return launches
        times = [work.issue for work in works] + [scheduler.next_turn]
        times += [work.issue + toy.launch_latency for work in launches]
        exits = [end + toy.exit_latency for work in launches for end in work.ends]
        times += exits + [time + toy.completion_latency for time in exits]
        times += [work.done_at + toy.event_latency for work in works]
        times += [work.freed_at + toy.legacy_latency for work in works]
        times += [work.done_at + toy.legacy_latency for work in works]
        now = min(time for time in times if time > now)


def met(work: Work, toy: Toy, now: int) -> bool:
    """Whether a work that is issued waits for nothing any more."""
    if not all(other.done for other in work.must_be_done):
        return False
    if work.record is not None:
        late = work.record.done_at > work.issue or not work.record.done
        if not work.record.done or (late and work.record.done_at + toy.event_latency > now):
            return False
    if work.stream == LEGACY_STREAM and isinstance(work.item, Launch):
        # Within the legacy stream it takes no longer than in any other.
        others = [other for other in work.must_be_done if other.stream != LEGACY_STREAM]
        last = max((other.done_at for other in others), default=0)
        work.freed_at = last if last > work.issue else 0
        return work.freed_at == 0 or work.freed_at + toy.legacy_latency <= now
    if work.stream != LEGACY_STREAM:
        for other in work.must_be_done:
            crosses = other.stream == LEGACY_STREAM and isinstance(other.item, Launch)
            if crosses and other.done_at > work.issue and other.done_at + toy.legacy_latency > now:
                return False
    return True


def step(works: list[Work], launches: list[Work], toy: Toy, scheduler: Scheduler, now: int) -> bool:
    """Applies the first rule that does something; False if none does."""
    for work in works:
        event = work.issued and not isinstance(work.item, Launch) and met(work, toy, now)
        if not work.done and (event or toy.gone(work, now - toy.completion_latency)):
            work.done = True
            work.done_at = now
            return True
    for work in works:
        if not work.issued and work.issue <= now:
            work.issued = True
            if isinstance(work.item, Launch):
                called = [other for other in launches if other.queue >= 0]
                work.queue = chosen_queue(work, called, toy)
            return True
    heads = [
        work
        for queue in range(toy.queues)
        for work in [w for w in launches if w.queue == queue and w.taken < 0][:1]
    ]
    ready = [
        work for work in heads if work.issue + toy.launch_latency <= now and met(work, toy, now)
    ]
    resident = [work for work in launches if work.taken >= 0 and not toy.gone(work, now)]
    if ready and len(resident) < toy.grids:
        first = min(ready, key=lambda work: work.rank)
        first.taken = 1 + max(work.taken for work in launches)
        return True
    waiting = [w for w in resident if len(w.starts) < w.item.blocks]  # type: ignore[union-attr]
    may_turn = now >= scheduler.next_turn
    waiting = [work for work in waiting if work is scheduler.current or may_turn]
    there = [end for work in launches for end in work.ends if end + toy.exit_latency > now]
    if waiting and len(there) < toy.slots:
        # All blocks are alike, so none fits where an earlier one does not.
        first = min(waiting, key=lambda work: (work.rank[0], work.taken))
        assert isinstance(first.item, Launch)
        if first is not scheduler.current:
            scheduler.current = first
            scheduler.next_turn = now + toy.launch_switch
        first.ends.append(now + nanoseconds(first.item)[len(first.starts)])
        first.starts.append(now)
        return True
    return False
