"""Which steps of a block must stay behind which, and by how many clocks."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from tbsched.sm.characterization.loops import SAFE_LATENCY
from tbsched.sm.characterization.toolkit import Place
from tbsched.sm.characterization.words import SCOREBOARDS
from tbsched.sm.rewriting.blocks import Block
from tbsched.sm.rewriting.effects import Kind, Step

_SEEN = 2  # clocks until a wait sees that a scoreboard was set
Key = tuple[str, ...]


@dataclass(slots=True)
class Compiled:
    """The least clocks that the compiler left anywhere in a kernel, which thus are enough.

    Attributes:
        apart: between two steps with such a dependence.
        stall: from an instruction to the next one, by their opcodes.
        order: from a slow or pinned step to a later slow one, by their opcodes: a barrier, for
            one, blocks only some clocks after it went.
    """

    apart: dict[Key, int] = field(default_factory=dict)
    stall: dict[tuple[str, str], int] = field(default_factory=dict)
    order: dict[tuple[str, str], int] = field(default_factory=dict)

    def between(self, first: Step, second: Step) -> int:
        """Clocks that are enough from a step to the next one."""
        return self.stall.get((first.opcode, second.opcode), first.clocks)


def compiled(blocks: Iterable[Block]) -> Compiled:
    """Returns which stalls and waits the compiler left between instructions of a kernel."""
    shown = Compiled()
    for block in blocks:
        times = issued(block.steps)
        for first, second in itertools.pairwise(block.steps):
            pair = first.opcode, second.opcode
            shown.stall[pair] = min(first.clocks, shown.stall.get(pair, first.clocks))
        for early, late, kind, register in dependences(block.steps):
            key = _key(block.steps[early], block.steps[late], kind, register)
            apart = times[late] - times[early]
            shown.apart[key] = min(shown.apart.get(key, apart), apart)
        for _, _, pair, apart in _in_order(block):
            shown.order[pair] = min(shown.order.get(pair, apart), apart)
    return shown


def issued(steps: Iterable[Step]) -> list[int]:
    """Returns the earliest clock at which each step is issued; and at the end that of what follows
    them."""
    times = [0]
    for step in steps:
        times.append(times[-1] + step.clocks)
    return times


def dependences(steps: tuple[Step, ...]) -> Iterator[tuple[int, int, Kind, Place]]:
    """Yields the pairs of steps that touch the same register, one of which writes it: indices of
    the earlier and of the later step, the kind, and the register. Pairs that follow from others are
    left out."""
    writers: dict[Place, list[int]] = defaultdict(list)
    readers: dict[Place, list[int]] = defaultdict(list)
    for late, step in enumerate(steps):
        for register in step.reads:
            yield from ((k, late, Kind.READ_AFTER_WRITE, register) for k in writers[register])
        for register in step.writes:
            yield from ((k, late, Kind.WRITE_AFTER_WRITE, register) for k in writers[register])
            yield from ((k, late, Kind.WRITE_AFTER_READ, register) for k in readers[register])
        for register in step.reads:
            readers[register].append(late)
        for register in step.writes:
            if not step.guard:  # otherwise the old value may remain
                writers[register].clear()
                readers[register].clear()
            writers[register].append(late)


Edges = Mapping[tuple[int, int], int]
BEFORE = -1  # stands for what comes before the block


def edges(block: Block, shown: Compiled) -> dict[tuple[int, int], int]:
    """Returns the least clocks between two steps, for each pair of which the second must come after
    the first: the key is their indices.

    ``BEFORE`` stands for the beginning of the block, and the number of its steps for its end.
    """
    clocks_by_edge: dict[tuple[int, int], int] = {}
    for early, late, clocks in _constraints(block, shown):
        if early != late:
            clocks_by_edge[early, late] = max(clocks_by_edge.get((early, late), 0), clocks)
    return clocks_by_edge


def _constraints(block: Block, shown: Compiled) -> Iterator[tuple[int, int, int]]:
    """Yields all constraints of a block, with duplicates: indices of the earlier and of the later
    step, and the least clocks between them."""
    steps = block.steps
    times = issued(steps)
    for early, late, kind, register in dependences(steps):
        first, second = steps[early], steps[late]
        scoreboards = first.sets if kind is Kind.WRITE_AFTER_READ else _written(first)
        waiting = next((k for s in scoreboards if (k := _wait(steps, s, early + 1)) <= late), None)
        if waiting is not None:
            yield early, waiting, 1
            yield waiting, late, 1
            continue
        apart = times[late] - times[early]
        clocks = shown.apart.get(_key(first, second, kind, register), apart)
        waits = list(_later_waits(steps, early, late)) if first.slow else []
        yield from ((k, late, 1) for k in waits)
        if first.slow and not waits:
            yield early, late, apart  # nothing tells when it is over
        else:
            yield early, late, min(clocks, SAFE_LATENCY)
    yield from _scoreboards(block)
    # They end in order, or read their operands in order: the scoreboard of one tells of those
    # before it that have none.
    slow = [k for k, step in enumerate(steps) if step.slow]
    yield from ((early, late, 1) for early, late in itertools.pairwise(slow))
    for early, late, pair, _ in _in_order(block):
        # What happened before the block is past, as far as it is known.
        past = block.entry.since[pair[0]] if early == BEFORE else 0
        yield early, late, min(shown.order[pair], SAFE_LATENCY) - past
    if block.entry.unknown:
        yield from ((BEFORE, k, min(times[k], SAFE_LATENCY)) for k in slow)
    last = {steps[k].opcode: k for k in slow}
    yield from ((k, len(steps), min(times[-1] - times[k], SAFE_LATENCY)) for k in last.values())
    yield from _across_boundaries(block, times)


def _in_order(block: Block) -> Iterator[tuple[int, int, tuple[str, str], int]]:
    """Yields the pairs of slow steps that end in order: for each slow step, and each opcode, the
    last slow step of that opcode before it.

    Each row has the index of the earlier step (``BEFORE``: it is before the block) and of the later
    one, both opcodes, and the clocks between their issues.
    """
    times = issued(block.steps)
    last_issued: dict[str, tuple[int, int]] = {
        opcode: (BEFORE, -age) for opcode, age in block.entry.since.items()
    }
    for late, step in enumerate(block.steps):
        if step.slow:
            for opcode, (early, at) in last_issued.items():
                yield early, late, (opcode, step.opcode), times[late] - at
            last_issued[step.opcode] = late, times[late]


def _written(step: Step) -> tuple[int, ...]:
    return tuple(scoreboard for scoreboard in (step.control.writes,) if scoreboard < SCOREBOARDS)


def _wait(steps: tuple[Step, ...], scoreboard: int, first: int) -> int:
    """Returns the index of the first step from ``first`` on that waits for a scoreboard; the number
    of steps: none does."""
    return next((k for k in range(first, len(steps)) if steps[k].waits(scoreboard)), len(steps))


def _scoreboards(block: Block) -> Iterator[tuple[int, int, int]]:
    """Yields constraints by which each wait for a scoreboard stays behind the step that sets it
    before, and before the step that sets it next: indices of two steps, and the least clocks
    between."""
    steps = block.steps
    times = issued(steps)
    for scoreboard in range(SCOREBOARDS):
        last_wait = None
        for k, step in enumerate(steps):
            if step.waits(scoreboard):
                last_wait = k
            if scoreboard not in step.sets:
                continue
            waiting = _wait(steps, scoreboard, k + 1)
            yield k, waiting, min(_SEEN, times[waiting] - times[k])
            if last_wait is not None:
                yield last_wait, k, 1
        first = _wait(steps, scoreboard, 0)
        if block.entry.scoreboards >> scoreboard & 1 and first < len(steps):
            written: set[Place] = set()
            for k, step in enumerate(steps):
                touched = step.reads | step.writes
                if k > first and touched - written:
                    yield first, k, 1
                if not step.guard:
                    written |= step.writes


def _later_waits(steps: tuple[Step, ...], early: int, late: int) -> Iterator[int]:
    """Yields the indices of the steps behind ``early``, up to ``late``, that wait for a scoreboard
    which was set behind ``early``."""
    later: set[int] = set()
    for k in range(early + 1, late + 1):
        if any(steps[k].waits(scoreboard) for scoreboard in later):
            yield k
        later.update(steps[k].sets)


def _across_boundaries(block: Block, times: list[int]) -> Iterator[tuple[int, int, int]]:
    """Yields constraints with the beginning and the end of the block: indices of two steps, and the
    least clocks between. Work that is pending at the beginning has ended before a step needs it,
    and work of this block before the end."""
    steps, end = block.steps, len(block.steps)
    written: set[Place] = set()
    waits: list[int] = []
    last: dict[Place, list[int]] = defaultdict(list)
    yield BEFORE, end, min(times[end], SAFE_LATENCY)
    for k, step in enumerate(steps):
        for register in (step.reads | step.writes) - written:
            remaining_clocks = SAFE_LATENCY - block.entry.age(register)
            yield BEFORE, k, min(times[k], max(0, remaining_clocks))
            if register in block.entry.unsettled or block.entry.unknown:
                yield from ((waiting, k, 1) for waiting in waits)
        if step.control.waits:
            waits.append(k)
        for register in step.writes:
            if not step.guard:
                written.add(register)
                last[register].clear()
            last[register].append(k)
        clocks = times[end] - times[k]
        if step.slow and not step.sets:
            yield k, end, clocks  # nothing tells when it is over
        else:
            yield k, end, min(clocks, _SEEN if step.sets else 1)
    for k in {k for writers in last.values() for k in writers}:
        yield k, end, min(times[end] - times[k], SAFE_LATENCY)


def _key(first: Step, second: Step, kind: Kind, register: Place) -> Key:
    """Returns a key of a dependence. Dependences with equal keys need equally many clocks."""
    return (
        kind.value, register[0], first.opcode, str(first.use(register)),
        second.opcode, str(second.use(register)),
    )  # fmt: skip
