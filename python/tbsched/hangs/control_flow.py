"""The ways through a kernel: who comes to barriers of its grid, and whether locks come back."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from tbsched.hangs.instruction import Instruction

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
        found: set[int] = set()
        left = [each for each in first if each != without]
        while left:
            number = left.pop()
            if number not in found:
                found.add(number)
                left += [each for each in self.before[number] if each != without]
        return found

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
        """Yields the instructions that may have written a register last before another."""
        seen: set[int] = set()
        left = [*self.before[number]]
        while left:
            at = left.pop()
            if at in seen:
                continue
            seen.add(at)
            own = self.every[at]
            if name in own.writes:
                yield at
            if name not in own.writes or own.guard is not None:
                left += self.before[at]


def reached_by(every: list[Instruction], reached: set[int], arrivals: list[int]) -> str | None:
    """Returns who comes to the barriers: ``all`` blocks equally often, or ``by_memory``.

    What decides is followed back to what it is made of. None: it differs from block to block.

    Args:
        every: the instructions.
        reached: numbers of those that can be reached.
        arrivals: numbers of those that count a block at a barrier.
    """
    found = _behind(Reached(every, reached), arrivals) - {*arrivals}
    if any(_DIFFERS.match(every[at].body) or every[at].called is not None for at in found):
        return None
    return BY_MEMORY if any(_MEMORY.match(every[at].body) for at in found) else ALL


def comes_back(
    every: list[Instruction], reached: set[int], taken: int, after: int, given: Iterable[int]
) -> bool:
    """Returns whether one thread of a block takes a lock, and on every way gives it back.

    Args:
        every: the instructions.
        reached: numbers of those that can be reached.
        taken: the one that takes the lock.
        after: the one behind the loop that takes it.
        given: those that give it back.
    """
    code = Reached(every, reached)
    ways: set[int] = {after}
    left = [after]
    gives = {*given}
    while left:
        number = left.pop()
        if number in gives and every[number].guard is None:
            continue
        if number in code.ends or taken in code.next[number]:
            return False
        fresh = [each for each in code.next[number] if each not in ways]
        ways |= {*fresh}
        left += fresh
    return any(_THREAD.match(every[at].body) for at in _behind(code, [taken]))


def _behind(code: Reached, first: list[int]) -> set[int]:
    """Returns what decides whether instructions come, and what that is made of."""
    seen: set[int] = set()
    left = [*first]
    while left:
        number = left.pop()
        if number in seen:
            continue
        seen.add(number)
        left += code.deciders(number)
        own = code.every[number]
        # Whether one of the first comes depends on its guard, and not on what it reads.
        registers = own.guards if number in first else own.reads
        left += [at for name in sorted(registers) for at in code.writers(name, number)]
    return seen
