"""The ways through a kernel: who comes to barriers of its grid, and whether locks come back."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from tbsched.hangs.instruction import Instruction
from tbsched.program.reachable import reachable

# All blocks, whatever happens; all, unless memory that they share says otherwise to some.
ALL, BY_MEMORY = "all", "by_memory"
# What differs from block to block, and the time.
_DIFFERS = re.compile(r"^(?:CS2R|S2R|S2UR)\S*\s+\S+\s*,\s*SR_(?!TID|LANEID|NTID|\w+MASK)")
_MEMORY = re.compile(r"^(?:LDG?|LDS|LDL|LDSM|ATOMG?|ATOMS|TEX|TLD|SULD|SYNCS|B2R|MATCH)\b")
_THREAD = re.compile(r"^(?:S2R|S2UR)\S*\s+\S+\s*,\s*SR_TID")
_LEAVES = re.compile(r"^(?:EXIT|RET|BREAK|KILL|BPT)\b")


class Reached:
    """The instructions of a kernel that can be reached, and which may come after each.

    ``BRA.DIV`` goes where the threads of a warp come together again, and so decides nothing.
    """

    def __init__(self, every: list[Instruction], reached: set[int]) -> None:
        self.every = every
        place = {own.at: number for number, own in enumerate(every)}
        self.next: dict[int, tuple[int, ...]] = {}
        self.before: dict[int, list[int]] = {number: [] for number in reached}
        self.ends: list[int] = []  # from which the kernel is left
        for number in reached:
            own = every[number]
            leaves = bool(_LEAVES.match(own.body))
            goes = [] if own.target is None else [place.get(own.target, -1)]
            if own.is_conditional or not (leaves or goes):
                goes.append(number + 1)
            self.next[number] = tuple([each for each in goes if each in reached])
            if leaves or len(self.next[number]) < len(goes):
                self.ends.append(number)
            for each in self.next[number]:
                self.before[each].append(number)

    def come_from(self, first: Iterable[int], without: int) -> set[int]:
        """Returns all from which one of the first can be reached without passing another."""
        return reachable(
            (each for each in first if each != without),
            lambda number: [each for each in self.before[number] if each != without],
        )

    def deciders(self, number: int) -> Iterator[int]:
        """Yields the branches and guarded exits after which it may come once more, or may not."""
        avoids = self.come_from(self.ends, number)
        for at, goes in self.next.items():
            own = self.every[at]
            if own.guard is None or not (own.target is not None or _LEAVES.match(own.body)):
                continue
            may_leave = at in self.ends or any(each in avoids for each in goes)
            if may_leave and any(each not in avoids for each in goes):
                yield at

    def writers(self, name: str, number: int) -> Iterator[int]:
        """Returns the instructions that may have written a register last before another."""
        return self.writers_before(name, self.before[number])

    def writers_before(self, name: str, last: Iterable[int]) -> Iterator[int]:
        """Returns those that may have written a register when one of some has been executed."""
        ways = reachable(
            last,
            lambda at: () if self._surely_writes(at, name) else self.before[at],
        )
        return (at for at in ways if name in self.every[at].writes)

    def _surely_writes(self, number: int, name: str) -> bool:
        own = self.every[number]
        return name in own.writes and own.guard is None


def reached_by(every: list[Instruction], reached: set[int], arrivals: list[int]) -> str | None:
    """Returns who comes to the barriers: ``all`` blocks equally often, or ``by_memory``.

    What decides is followed back to what it is made of. None: it differs from block to block.
    ``arrivals``: the instructions that count a block at a barrier.
    """
    found = _behind(Reached(every, reached), arrivals) - {*arrivals}
    if any(_DIFFERS.match(every[at].body) or every[at].called is not None for at in found):
        return None
    return BY_MEMORY if any(_MEMORY.match(every[at].body) for at in found) else ALL


def comes_back(
    every: list[Instruction], reached: set[int], taken: int, after: int, given: Iterable[int]
) -> bool:
    """Returns whether one thread of a block takes a lock, and on every way gives it back.

    ``after``: the instruction behind the loop that takes it; ``given``: those that give it back.
    """
    code = Reached(every, reached)
    gives = {each for each in given if every[each].guard is None}
    ways = reachable([after], lambda number: () if number in gives else code.next[number]) - gives
    if any(number in code.ends or taken in code.next[number] for number in ways):
        return False
    return any(_THREAD.match(every[at].body) for at in _behind(code, [taken]))


def _behind(code: Reached, first: list[int]) -> set[int]:
    """Returns what decides whether instructions come, and what that is made of."""

    def made_of(number: int) -> Iterator[int]:
        """Yields the instructions from which an instruction has its values."""
        yield from code.deciders(number)
        own = code.every[number]
        # Whether one of the first comes depends on its guard, and not on what it reads.
        for name in own.guards if number in first else own.reads:
            yield from code.writers(name, number)

    return reachable(first, made_of)
