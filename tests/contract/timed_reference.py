"""Streams, hardware queues, events and durations on one SM with block slots, written plainly.

Slow, and independent of the core: at every instant all rules are tried until none applies. What it
leaves out is the subject of other tests: SMs, warps, registers, shared memory.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tbsched.sequence import LEGACY_STREAM, Launch, RecordEvent, Sequence, WaitEvent


@dataclass
class Work:
    """One event of the sequence, on its way."""

    item: Launch | RecordEvent | WaitEvent
    issue: int
    must_be_done: list[Work] = field(default_factory=list)
    queue: int = 0
    rank: tuple[int, int] = (0, 0)
    passed: bool = False  # left its hardware queue
    done: bool = False
    admitted: int = -1
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Toy:
    """A GPU of one SM."""

    slots: int
    queues: int
    grids: int
    by_priority: bool


def nanoseconds(launch: Launch) -> list[int]:
    durations = launch.block_durations()
    assert durations is not None
    return [round(seconds * 1e9) for seconds in durations.tolist()]


def arranged(sequence: Sequence, toy: Toy, interval: int) -> list[Work]:
    """All work, with what each has to wait for."""
    works: list[Work] = []
    by_stream: dict[object, Work] = {}
    queue_of: dict[object, int] = {}
    records: dict[int, Work] = {}
    launches = 0
    for position, item in enumerate(sequence):
        assert isinstance(item, Launch | RecordEvent | WaitEvent)
        stream: object = item.stream if item.stream is not None else ("own", position)
        # An event is issued together with the launch before it.
        is_launch = isinstance(item, Launch)
        work = Work(item, interval * (launches if is_launch else max(0, launches - 1)))
        launches += is_launch
        work.queue = queue_of.setdefault(stream, len(queue_of) % toy.queues)
        if stream in by_stream:
            work.must_be_done.append(by_stream[stream])
        if stream == LEGACY_STREAM:
            work.must_be_done += works
        else:
            work.must_be_done += [w for w in works if w.item.stream == LEGACY_STREAM]
        if isinstance(item, WaitEvent) and item.event in records:
            work.must_be_done.append(records[item.event])
        if isinstance(item, RecordEvent):
            records[item.event] = work
        if isinstance(item, Launch):
            work.rank = (item.priority if toy.by_priority else 0, position)
        by_stream[stream] = work
        works.append(work)
    return works


def simulate(sequence: Sequence, toy: Toy, interval: int = 0) -> list[Work]:
    """The launches of a sequence, with the start and end of each block in nanoseconds."""
    works = arranged(sequence, toy, interval)
    launches = [work for work in works if isinstance(work.item, Launch)]
    now = 0
    while not all(work.done for work in works):
        while step(works, launches, toy, now):
            pass
        future = [work.issue for work in works if work.issue > now]
        future += [end for work in launches for end in work.ends if end > now]
        if future:
            now = min(future)
    return launches


def step(works: list[Work], launches: list[Work], toy: Toy, now: int) -> bool:
    """Applies the first rule that does something; False if none does."""
    for work in launches:
        assert isinstance(work.item, Launch)
        if not work.done and len(work.ends) == work.item.blocks and max(work.ends) <= now:
            work.done = True
            return True
    ready = [
        work
        for queue in range(toy.queues)
        for work in [w for w in works if w.queue == queue and not w.passed][:1]
        if work.issue <= now and all(other.done for other in work.must_be_done)
    ]
    for work in ready:
        if not isinstance(work.item, Launch):
            work.passed = work.done = True
            return True
    resident = [work for work in launches if work.passed and not work.done]
    if ready and len(resident) < toy.grids:
        first = min(ready, key=lambda work: work.rank)
        first.passed = True
        first.admitted = 1 + max(work.admitted for work in launches)
        return True
    waiting = [w for w in resident if len(w.starts) < w.item.blocks]  # type: ignore[union-attr]
    free = toy.slots - sum(end > now for work in launches for end in work.ends)
    if waiting and free > 0:
        # All blocks are alike, so none fits where an earlier one does not.
        first = min(waiting, key=lambda work: (work.rank[0], work.admitted))
        assert isinstance(first.item, Launch)
        first.ends.append(now + nanoseconds(first.item)[len(first.starts)])
        first.starts.append(now)
        return True
    return False
