"""The ways through a kernel: who comes to barriers of its grid, and whether locks come back."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from tbsched.hangs.instruction import Instruction
from tbsched.program.reachable import reachable

# All blocks, whatever happens; all, unless memory that they share says otherwise to some.
ALL, BY_MEMORY = "all", "by_memory"
# What differs from block to block, and the time.
_DIFFERS_BY_BLOCK = re.compile(r"^(?:CS2R|S2R|S2UR)\S*\s+\S+\s*,\s*SR_(?!TID|LANEID|NTID|\w+MASK)")
_READS_MEMORY = re.compile(r"^(?:LDG?|LDS|LDL|LDSM|ATOMG?|ATOMS|TEX|TLD|SULD|SYNCS|B2R|MATCH)\b")
_READS_THREAD_INDEX = re.compile(r"^(?:S2R|S2UR)\S*\s+\S+\s*,\s*SR_TID")
_WAITS_FOR_WARP = re.compile(r"^(?:WARPSYNC|BAR|VOTE|SHFL|MATCH|REDUX)\b")
_COMPARES_WITH_ZERO = re.compile(
    r"^ISETP\.(NE|EQ)(?:\.U32)?\.AND P\d, PT, (R\d+)(?:\.reuse)?, RZ, PT$"
)


class ControlFlow:
    """The reachable instructions of a kernel, by index, and which may come before and after each.

    ``BRA.DIV`` goes where the threads of a warp come together again, and so decides nothing.
    """

    def __init__(self, code: list[Instruction], reached: set[int]) -> None:
        self.code = code
        index_at = {instruction.address: index for index, instruction in enumerate(code)}
        self.successors: dict[int, tuple[int, ...]] = {}
        self.predecessors: dict[int, list[int]] = {index: [] for index in reached}
        self.exits: list[int] = []  # from which the kernel is left
        self.calls: dict[int, list[int]] = {}  # of a function, by its first instruction
        self._writers: dict[tuple[str, int], tuple[int, ...]] = {}
        for index in reached:
            instruction = code[index]
            targets = [] if instruction.target is None else [index_at.get(instruction.target, -1)]
            if instruction.falls_through:
                targets.append(index + 1)
            self.successors[index] = tuple([target for target in targets if target in reached])
            if instruction.leaves or len(self.successors[index]) < len(targets):
                self.exits.append(index)
            for target in self.successors[index]:
                self.predecessors[target].append(index)
            if instruction.call_target in index_at:
                self.calls.setdefault(index_at[instruction.call_target], []).append(index)

    def can_reach(self, targets: Iterable[int], avoided: int) -> set[int]:
        """Returns the indices from which a target can be reached without passing another index."""
        return reachable(
            (index for index in targets if index != avoided),
            lambda later: [index for index in self.predecessors[later] if index != avoided],
        )

    def deciders(self, index: int) -> Iterator[int]:
        """Yields branches and guarded exits that decide whether an instruction is reached again."""
        avoiding = self.can_reach(self.exits, index)
        for index_, targets in self.successors.items():
            branch = self.code[index_]
            if branch.guard is None or (branch.target is None and not branch.leaves):
                continue
            may_leave = index_ in self.exits or any(target in avoiding for target in targets)
            if may_leave and any(target not in avoiding for target in targets):
                yield index_

    def writers(self, name: str, number: int) -> tuple[int, ...]:
        """Returns the instructions that may have written a register last before another."""
        key = name, number
        if key not in self._writers:
            before = self.predecessors.get(number, []) + self.calls.get(number, [])
            self._writers[key] = tuple(sorted(self.writers_before(name, before)))
        return self._writers[key]

    def test_of(self, number: int) -> int | None:
        """Returns the one instruction that decides whether the guard of another one holds; None:
        it has no guard, or several may decide."""
        guards = [*self.code[number].guards]
        tests = self.writers(guards[0], number) if len(guards) == 1 else ()
        return tests[0] if len(tests) == 1 else None

    def writers_before(self, name: str, last: Iterable[int]) -> Iterator[int]:
        """Returns those that may have written a register when one of some has been executed."""

        def before(at: int) -> list[int]:
            """Returns the instructions that may be executed before one, those of callers too."""
            if self._surely_writes(at, name):
                return []
            return self.predecessors[at] + self.calls.get(at, [])

        ways = reachable(last, before)
        return (at for at in ways if name in self.code[at].writes)

    def _surely_writes(self, number: int, name: str) -> bool:
        own = self.code[number]
        return name in own.writes and own.guard is None


def barrier_arrivals(code: list[Instruction], reached: set[int], arrivals: list[int]) -> str | None:
    """Returns which blocks arrive at a grid's barriers: ``all`` equally often, or ``by_memory``.

    What decides is followed back to what it is made of. None: it differs from block to block.
    ``arrivals``: the instructions that count a block at a barrier.
    """
    causes = _dependencies(ControlFlow(code, reached), arrivals) - {*arrivals}
    if any(
        _DIFFERS_BY_BLOCK.match(code[index].body) or code[index].call_target is not None
        for index in causes
    ):
        return None
    return BY_MEMORY if any(_READS_MEMORY.match(code[index].body) for index in causes) else ALL


def is_reached_surely(flow: ControlFlow, index: int) -> bool:
    """Returns whether no memory decides whether a thread comes to an instruction."""
    return not any(
        _READS_MEMORY.match(flow.code[cause].body) or flow.code[cause].call_target is not None
        for cause in _dependencies(flow, [index]) - {index}
    )


def releases_surely(flow: ControlFlow, releases: list[int]) -> bool:
    """Returns whether neither memory nor the number of a block decides whether one of some
    instructions is executed."""
    return any(
        not any(
            _DIFFERS_BY_BLOCK.match(flow.code[cause].body)
            or _READS_MEMORY.match(flow.code[cause].body)
            or flow.code[cause].call_target is not None
            for cause in _dependencies(flow, [release]) - {release}
        )
        for release in releases
    )


def releases_lock(
    code: list[Instruction], reached: set[int], acquire: int, loop_end: int, releases: Iterable[int]
) -> bool:
    """Returns whether one thread of a block takes a lock, and releases it on every path.

    ``loop_end``: the instruction behind the loop that takes it; ``releases``: those that release.
    """
    flow = ControlFlow(code, reached)
    surely_released = {release for release in releases if code[release].guard is None}
    held = reachable(
        [loop_end], lambda index: () if index in surely_released else flow.successors[index]
    )
    held -= surely_released
    if any(index in flow.exits or acquire in flow.successors[index] for index in held):
        return False
    return any(
        _READS_THREAD_INDEX.match(code[cause].body) for cause in _dependencies(flow, [acquire])
    )


def releases_lock_in_loop(
    flow: ControlFlow, acquire: int, loop: range, releases: Iterable[int]
) -> bool:
    """Returns whether a thread that takes a lock in a loop releases it before it leaves the loop,
    and before threads of its warp wait for each other.

    ``acquire``: the compare-and-swap; it has taken the lock if it returns 0.
    """
    surely_released = {each for each in releases if each in loop and flow.code[each].guard is None}
    if any(_WAITS_FOR_WARP.match(flow.code[index].body) for index in loop):
        return False

    def after(index: int) -> list[int]:
        """Returns the instructions that may come next if the lock has been taken."""
        if index in surely_released:
            return []
        follows = flow.successors[index]
        instruction = flow.code[index]
        is_true = _is_true_of_zero(flow, index, acquire)
        if is_true is None or instruction.target is None or len(follows) != 2:
            return [*follows]
        is_taken = is_true != instruction.text.startswith("@!")
        return [each for each in follows if (each != index + 1) == is_taken]

    held = reachable(flow.successors[acquire], after) - surely_released
    return bool(surely_released) and all(index in loop and index != acquire for index in held)


def _is_true_of_zero(flow: ControlFlow, branch: int, acquire: int) -> bool | None:
    """Returns the guard of a branch if an instruction has returned 0; None: it says nothing."""
    test = flow.test_of(branch)
    compares = None if test is None else _COMPARES_WITH_ZERO.match(flow.code[test].body)
    if test is None or compares is None or flow.writers(compares[2], test) != (acquire,):
        return None
    return compares[1] == "EQ"


def _dependencies(flow: ControlFlow, first: list[int]) -> set[int]:
    """Returns the instructions that decide whether others come, and those that these depend on."""

    def made_of(index: int) -> Iterator[int]:
        """Yields the instructions that an instruction depends on."""
        yield from flow.deciders(index)
        instruction = flow.code[index]
        # Whether one of the first comes depends on its guard, and not on what it reads.
        for register in instruction.guards if index in first else instruction.reads:
            yield from flow.writers(register, index)

    return reachable(first, made_of)
