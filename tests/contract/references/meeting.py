"""Blocks that meet, on GPUs of one SM with block slots, played literally.

Slow, and independent of the core: time goes on by one microsecond, and all rules are tried until
none applies. The host issues everything at once, nothing takes time but blocks, and a stream has a
hardware queue of its own. What it leaves out is the subject of other tests.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tbsched.program.sequence import (
    Event,
    Launch,
    RecordEvent,
    Sequence,
    WaitEvent,
    WaitValue,
    WriteValue,
)

_US = 1e-6


@dataclass
class Block:
    """A block that has started."""

    start: int
    left: int  # microseconds until it ends, once it has met the others


@dataclass
class Work:
    """An event of the sequence."""

    event: Event
    stream: object  # None: of its own
    record: Work | None = None
    blocks: list[Block] = field(default_factory=list)
    in_line: bool = False
    done: bool = False


@dataclass(frozen=True)
class Played:
    """What became of a program: the start of each block that starts, and whether it hangs."""

    starts: list[list[int]]  # by launch, microseconds
    hangs: bool


def play(sequence: Sequence, slots: int) -> Played:
    """Plays a sequence on GPUs that have so many slots for blocks each."""
    works: list[Work] = []
    for event in sequence:
        assert isinstance(event, Launch | RecordEvent | WaitEvent | WriteValue | WaitValue)
        work = Work(event, None if event.stream is None else (event.gpu, event.stream))
        if isinstance(event, WaitEvent):
            records = [
                w
                for w in works
                if isinstance(w.event, RecordEvent) and w.event.event == event.event
            ]
            work.record = records[-1] if records else None
        works.append(work)
    line: list[Work] = []
    values: dict[str, int] = {}
    now = 0
    while True:
        while _change(works, line, values, slots, now):
            pass
        running = [b for w in line if not w.done and _has_met(w, works) for b in w.blocks if b.left]
        if not running:
            break
        now += 1
        for block in running:
            block.left -= 1
    return Played(
        [[block.start for block in w.blocks] for w in works if isinstance(w.event, Launch)],
        not all(work.done for work in works),
    )


def _change(
    works: list[Work], line: list[Work], values: dict[str, int], slots: int, now: int
) -> bool:
    """Applies the first rule that does something; False if none does."""
    ready = [
        work
        for place, work in enumerate(works)
        if not work.done
        and all(w.done or w.stream != work.stream for w in works[:place] if w.stream is not None)
    ]
    for work in ready:
        event = work.event
        if _is_over(work, works, values):
            work.done = True
            if isinstance(event, WriteValue):
                values[event.name] = event.value
            return True
    for work in ready:
        if isinstance(work.event, Launch) and not work.in_line:
            work.in_line = True
            line.append(work)
            return True
    return any(_place(gpu, works, line, slots, now) for gpu in range(3))


def _is_over(work: Work, works: list[Work], values: dict[str, int]) -> bool:
    """Whether an event is over that nothing in its stream keeps waiting."""
    event = work.event
    if isinstance(event, Launch):
        all_started = len(work.blocks) == event.blocks
        return all_started and _has_met(work, works) and not any(b.left for b in work.blocks)
    if isinstance(event, WaitEvent):
        return work.record is None or work.record.done
    if isinstance(event, WaitValue):
        return values.get(event.name, 0) >= event.value
    return True


def _place(gpu: int, works: list[Work], line: list[Work], slots: int, now: int) -> bool:
    """Starts the next block of the first launch in line that has one, if there is a slot."""
    mine = [w for w in line if getattr(w.event, "gpu", 0) == gpu]
    resident = sum(1 for w in mine for b in w.blocks if b.left or not _has_met(w, works))
    for work in mine:
        launch = work.event
        assert isinstance(launch, Launch)
        if len(work.blocks) == launch.blocks:
            continue
        if resident == slots:
            return False
        durations = launch.block_durations()
        assert durations is not None
        work.blocks.append(Block(now, round(durations[len(work.blocks)] / _US)))
        return True
    return False


def _has_met(work: Work, works: list[Work]) -> bool:
    """Whether every block that the blocks of a launch wait for has started."""
    launch = work.event
    assert isinstance(launch, Launch)
    if launch.meets is None or launch.in_block_order:
        return True
    group = [w for w in works if isinstance(w.event, Launch) and w.event.meets == launch.meets]
    return all(len(w.blocks) == w.event.blocks for w in group)  # type: ignore[union-attr]
