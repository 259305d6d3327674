"""What a kernel may wait for, by its code: memory that others write, its own block, nothing."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from tbsched.hangs.constants import Constants, constants_of_any
from tbsched.hangs.control_flow import (
    ALL,
    barrier_arrivals,
    is_reached_surely,
    releases_lock,
    releases_lock_in_loop,
    releases_surely,
)
from tbsched.hangs.disassembler import Instructions
from tbsched.hangs.instruction import (
    ADDITIONS,
    CLOCK_READS,
    CONSTANT,
    DESCRIPTOR,
    Instruction,
    constant_place,
    register_names,
)
from tbsched.hangs.layout import components, with_loops_in_one_piece
from tbsched.hangs.ranges import Ranges
from tbsched.program.reachable import reachable

_GLOBAL = re.compile(r"c\[0x4\]\[(0x[0-9a-f]+|RZ|URZ)\]")  # the address of a __device__ variable
_ADDRESS = re.compile(r"\[([^]]*)\]")
_UNKNOWN_TARGETS = re.compile(r"^(BRX|BRXU|JMX|JMXU|JMP|CALL)\b")
# Loads that see what others write, and atomics.
_STRONG_LOADS = re.compile(r"^(?:LDG?|LD)\.\S*(?:STRONG|MMIO)|^(?:ATOMG?|ATOM)\.")
_PLAIN_LOADS = re.compile(r"^LDG?\.E(?:\.(?:64|128|CONSTANT|[SU](?:8|16)))*\s")
# Atomics that count in integers, and stores that others see at once.
_SIGNALS = re.compile(
    r"^(?:ATOMG?|REDG?)\.E\.(?:ADD|INC|DEC)\.(?!F|BF)|^STG?\.E\.(?:\S*\.)?(?:STRONG|MMIO)"
)
_ATOMIC_UPDATES = re.compile(r"^ATOMG?\.\S*(?:ADD|INC|DEC|OR|AND|XOR|MAX|MIN)")
_ATOMIC_COUNTERS = re.compile(r"^ATOMG?\.\S*(?:ADD|INC|DEC)")
_TENSOR_STORES = ("UTMAST", "UTMARED", "UBLKCP", "UBLKRED", "STAS", "SUST", "SURED")
_READS_BLOCK_INDEX = re.compile(r"^(?:S2R|S2UR)\s+\S+\s*,\s*SR_CTAID\.X")
_CALLS = re.compile(r"^(?:CALL|S2R|S2UR|CS2R)\b")
_CLOCK_OR_COUNTER = re.compile(f"{CLOCK_READS.pattern}|{_ATOMIC_COUNTERS.pattern}")
# What counts, moves a count, or halves it.
_COUNTING = re.compile(
    r"^(?:U?IADD3?|VIADD|IMAD\.IADD|U?IMAD\.MOV|U?MOV|USHF|SHF\.|U?LEA|IMAD\.SHL|U?SEL)\b"
)
_STEADY = re.compile(
    r"^(?:U?IADD3|VIADD|IMAD\.IADD|U?IMAD|U?IMAD\.MOV\S*|U?MOV|U?SHF\.R\S*|U?LEA)\s"
)
_OF_CLOCKS = re.compile(
    rf"{CLOCK_READS.pattern}|^(?:U?IADD3|IMAD)(?:\.X)?\s|^(?:IMAD\.)?MOV|^NANOSLEEP"
)
_EQUALITY_TESTS = re.compile(r"^U?ISETP\.(?:NE|EQ)\b")
MAX_CYCLES = 1 << 30  # of a thread that does not wait: half a second; longer is long
_CYCLES_OF_INSTRUCTION = 1 << 8  # at most: of one that waits for memory
_CYCLES_OF_SLEEP = 1 << 20  # at most: the longest sleep takes a millisecond
_FLOAT_TESTS = re.compile(r"^[FDH]SETP")
_TURNS_OF_OPEN_LOOP = 1 << 10  # of most loops that only their values end, if they end
_MANY_TURNS = 1 << 20  # fewer do not take long, whatever a turn does
_MAX_DEPTH = 16  # steps back from an address to what it is made of
_STORES = re.compile(r"^(?:STG?|REDG?|ATOMG?)\.")
_LOADS = re.compile(r"^(?:LD|LDG|ATOM|ATOMG|LDL|LDS)\b")
_BLOCK_LOCAL_LOADS = re.compile(r"^(?:LDS|ATOMS|LD\.|SYNCS\.PHASECHK)")
_ZERO = re.compile(r"^(?:MOV|CS2R|IMAD\.MOV\S*)\s+\S+,\s*(?:RZ,\s*RZ,\s*)?(?:RZ|SRZ|0x0)$")
_SPECIAL_READS = re.compile(r"^(?:S2R|S2UR|CS2R)\b")
_VARIES = re.compile(
    r"^(?:LD(?!C)|LDG|LDS|LDL|ATOM|ATOMG|ATOMS|CS2R|S2R|S2UR|SHFL|SYNCS|SUATOM|TEX|TLD|MATCH|VOTE|LDGSTS"
    r"|LDSM|REDUX|NANOTRAP|UTMALDG|R2B|B2R|CALL)"
)


@dataclass(frozen=True, slots=True)
class Poll:
    """A loop that a kernel leaves only when memory has another value.

    Attributes:
        address: the address of the load in the code.
        is_local: whether that is memory of the block.
        arguments: places of the kernel's arguments that its address comes from, in bytes; negative
            for ``__device__`` variables, a number for each of a module.
        is_indirect: whether the address was itself loaded from memory.
        offset: how far from its one argument it is, in bytes; None: that differs, or is unknown.
    """

    address: int
    is_local: bool
    arguments: tuple[int, ...]
    is_indirect: bool
    offset: int | None = None


@dataclass(frozen=True, slots=True)
class KernelCode:
    """What a kernel may wait for.

    Attributes:
        polls: loops that wait for memory.
        loops: how many loops it has.
        has_endless_loop: whether one has no way out, or none that changes while it runs.
        has_barrier: whether threads of a block, or of a grid, wait for each other.
        has_barrier_arrive: whether threads arrive at a barrier at which only others wait.
        written: places of the arguments that addresses of its stores and atomics come from, as of
            ``Poll.arguments``.
        writes_anywhere: whether it writes to addresses that it loads from memory.
        waits_for_earlier_blocks: whether a block waits only for what blocks before it write.
        lets_later_blocks_go_on: whether each block then writes that, whatever memory holds.
        is_whole: whether all of it was understood: no jump or call to an unknown place.
        grid_barrier: which blocks arrive at barriers of a cooperative grid (``barrier_arrivals``),
            if it polls nothing else; None: it has none, or blocks differ.
        releases_lock: whether it polls one lock alone, which one thread of a block takes and
            gives back on every way.
        open_loops: how many loops are left neither by a count nor by the time nor by memory that
            others write.
        is_one_open_loop: whether it has one loop, and that one is left by its own floating-point
            values alone: they come to rest, or go on for ever.
        only_waits: whether each of its loops waits, never ends, or has few turns by a count: a
            thread that takes long waits then.
        may_compute_long: whether threads may stay long in loops without a trace in memory of an
            argument: a count or a signal.
        instructions_at_least: how many instructions a thread surely executes, by known counts.
        instructions_without_store: likewise, without a store to memory that others may see.
        traced: places of the arguments, as of ``written``, in whose memory such traces are.
        written_while_polling: places, as of ``written``, to which its threads write between two
            polls of a loop that waits.
        triggers: whether a block lets the next kernel of its stream start before it polls.
        waits_for_previous: whether blocks of a programmatic launch wait for the one before.
    """

    polls: tuple[Poll, ...]
    loops: int
    has_endless_loop: bool
    has_barrier: bool
    has_barrier_arrive: bool
    written: frozenset[int]
    writes_anywhere: bool
    waits_for_earlier_blocks: bool
    lets_later_blocks_go_on: bool
    is_whole: bool
    grid_barrier: str | None = None
    releases_lock: bool = False
    open_loops: int = 0
    is_one_open_loop: bool = False
    only_waits: bool = False
    may_compute_long: bool = True
    instructions_at_least: int = 0
    instructions_without_store: int = 0
    traced: frozenset[int] = frozenset()
    written_while_polling: frozenset[int] = frozenset()
    triggers: bool = False
    waits_for_previous: bool = False

    @property
    def may_wait(self) -> bool:
        """Returns whether it may wait for ever: for others, for itself, or at a barrier."""
        return (bool(self.polls) and not self.is_chain) or self.waits_without_poll

    @property
    def is_chain(self) -> bool:
        """Whether a block waits only for what each block before it surely writes. Blocks start in
        their order. So it waits for some that run."""
        return self.waits_for_earlier_blocks and self.lets_later_blocks_go_on

    @property
    def waits_at_barriers_only(self) -> bool:
        """Whether it waits only at barriers of a cooperative grid at which all blocks arrive."""
        return self.grid_barrier == ALL and not self.waits_without_poll

    @property
    def waits_for_lock_only(self) -> bool:
        """Whether it waits for a lock alone, which each that takes it gives back."""
        return self.releases_lock and not self.waits_without_poll

    @property
    def waits_in_block_only(self) -> bool:
        """Whether it polls memory of its own block alone, and waits for nothing else."""
        is_local = all(poll.is_local for poll in self.polls)
        return bool(self.polls) and is_local and not self.waits_without_poll

    @property
    def waits_without_poll(self) -> bool:
        """Whether it may wait for ever without a poll, however often it has ended before."""
        return (
            self.has_endless_loop or not self.is_whole or self.must_wait or self.has_barrier_arrive
        )

    @property
    def is_quick(self) -> bool:
        """Whether a thread ends soon unless it waits at a barrier of its block."""
        ends = self.is_whole and self.only_waits and not self.has_endless_loop
        return ends and not self.polls

    @property
    def must_wait(self) -> bool:
        """Whether a block can only take long by waiting: no loop, and a barrier."""
        return self.has_barrier and not self.loops


def kernel_code(
    instructions: Instructions, parameters_at: int, constants: Constants | None = None
) -> KernelCode:
    """Returns what a kernel may wait for, from its instructions.

    Args:
        instructions: all of its code.
        parameters_at: where its arguments begin in constant bank 0.
        constants: what is known of that bank; None: what holds for every launch.
    """
    if constants is None:
        constants = constants_of_any(parameters_at)
    ordered = with_loops_in_one_piece(instructions)
    return _KernelReader(ordered, parameters_at, constants).answer()


def constants_read(instructions: Instructions) -> frozenset[int]:
    """Returns the places in constant bank 0 that a kernel reads, in bytes."""
    return frozenset(
        constant_place(row) for _, text in instructions for row in CONSTANT.findall(text)
    )


@dataclass(frozen=True, slots=True)
class _LinearSum:
    """Constant + factor · term + …; a term is an argument's word (``c528``) or an instruction."""

    constant: int = 0
    terms: tuple[tuple[int | str, int], ...] = ()

    def plus(self, other: _LinearSum) -> _LinearSum:
        """Returns the sum of two linear sums."""
        factors = dict(self.terms)
        for term, factor in other.terms:
            factors[term] = factors.get(term, 0) + factor
        terms = sorted(((t, f) for t, f in factors.items() if f), key=lambda each: str(each[0]))
        return _LinearSum(self.constant + other.constant, tuple(terms))

    def times(self, factor: int) -> _LinearSum:
        """Returns the linear sum multiplied by an integer."""
        terms = tuple((term, own * factor) for term, own in self.terms)
        return _LinearSum(self.constant * factor, terms)


def _global_number(place: str) -> int:
    """Returns the negative number of a ``__device__`` variable, by its place in constant bank 4."""
    return -1 - constant_place(place)


def _sum_of(values: Iterable[_LinearSum | None]) -> _LinearSum | None:
    """Returns the sum of several values; None if one is unknown."""
    total = _LinearSum()
    for value in values:
        if value is None:
            return None
        total = total.plus(value)
    return total


def _product(left: _LinearSum | None, right: _LinearSum | None) -> _LinearSum | None:
    """Returns the product of two linear sums; None: one is unknown, or neither is a constant."""
    if left is None or right is None or (left.terms and right.terms):
        return None
    return left.times(right.constant) if not right.terms else right.times(left.constant)


def _is_inside(loop: range, outer: range) -> bool:
    """Returns whether a loop is another one, or in it."""
    return outer.start <= loop.start and loop.stop <= outer.stop


class _KernelReader:
    """Instructions of a kernel by index, the reachable ones, and loops as ranges of indices."""

    def __init__(
        self, instructions: Instructions, parameters_at: int, constants: Constants
    ) -> None:
        self.parameters_at = parameters_at
        self.code = [Instruction(address, text) for address, text in instructions]
        self.bodies = [own.body for own in self.code]
        self.index_at = {own.address: index for index, own in enumerate(self.code)}
        self.reached = self._reached()
        self.loops = tuple(self._loops())
        self._known_changing: dict[range, set[int]] = {}
        self.ranges = Ranges(self.code, self.reached, self.loops, self._exits, constants)

    def _reached(self) -> set[int]:
        """Returns the indices of instructions that can be reached from the first."""
        reached: set[int] = set()
        starts = [0] if self.code else []
        while starts:
            index = starts.pop()
            while index < len(self.code) and index not in reached:
                reached.add(index)
                inst = self.code[index]
                targets = inst.target, inst.call_target
                starts += [self.index_at[target] for target in targets if target in self.index_at]
                if not inst.falls_through:
                    break
                index += 1
        return reached

    def answer(self) -> KernelCode:
        """Returns what the kernel may wait for."""
        loops = self.loops
        polling: dict[range, list[int]] = {}
        for index in sorted(self.reached):
            for loop in loops:
                if index in loop and self._is_polling_load(index, loop):
                    polling.setdefault(loop, []).append(index)
        polls: dict[Poll, None] = {}  # a load is in each loop around it, and counts once
        for loop, loads in polling.items():
            polls |= dict.fromkeys(self._polls(loads, loop))
        bodies = [self.bodies[index] for index in self.reached]
        sources = self.stores.values()
        releases = [self._releases_of_earlier_blocks(poll) for poll in polls]
        waits = [loop for loop in loops if self._waits(loop, polling)]
        works = [loop for loop in loops if loop not in waits]
        # Each turn of the others counts in memory of an argument, or signals there, or lets others
        # get on. A poll alone says nothing: it may be over at once.
        quiet = [
            loop
            for loop in works
            if not self.traces & self._natural_loop(loop) and not self._is_left_by_swap(loop)
        ]
        return KernelCode(
            polls=tuple(polls),
            loops=len(loops),
            has_endless_loop=any(self._is_endless(each) for each in loops),
            has_barrier=any(body.startswith(("BAR.", "UCGABAR", "SYNCS")) for body in bodies),
            has_barrier_arrive=any(body.startswith("BAR.ARV") for body in bodies),
            written=frozenset(offset for arguments, _ in sources for offset in arguments),
            writes_anywhere=any(is_indirect for _, is_indirect in sources)
            or any(body.startswith(_TENSOR_STORES) for body in bodies),
            waits_for_earlier_blocks=bool(polls) and all(releases),
            lets_later_blocks_go_on=all(
                each is not None and releases_surely(self.ranges.code, each) for each in releases
            ),
            is_whole=not any(self._has_unknown_target(self.code[index]) for index in self.reached),
            grid_barrier=self._grid_barrier(polls),
            releases_lock=self._releases_lock(polling, polls),
            open_loops=len(self._open_loops({*polling})),
            is_one_open_loop=len(loops) == 1 and self._is_one_open_loop({*polling}),
            only_waits=self._cycles_of_loops(works, waits) <= MAX_CYCLES,
            may_compute_long=self._cycles_of_loops(quiet, waits) > MAX_CYCLES,
            instructions_at_least=self._instructions_at_least(works),
            instructions_without_store=self._instructions_at_least(
                loop for loop in works if not self._outermost_stores(loop)
            ),
            traced=frozenset(place for at in self.traces for place in self.stores[at][0]),
            written_while_polling=self._written_while_polling(polls),
            waits_for_previous=any(body.startswith("ACQBULK") for body in bodies),
            triggers=self._triggers(min((loop.start for loop in polling), default=len(self.code))),
        )

    def _triggers(self, end: int) -> bool:
        """Returns whether each block triggers a programmatic launch before an instruction."""
        for index in range(end):
            instruction = self.code[index]
            if instruction.target is not None:
                return False
            if instruction.body.startswith("PREEXIT") and instruction.guard is None:
                return True
        return False

    def _waits(self, loop: range, polling_loads: dict[range, list[int]]) -> bool:
        """Returns whether a loop never ends, or polls and does nothing else; or is none."""
        return (
            self._is_endless(loop)
            or self._is_spin(polling_loads.get(loop, []), loop)
            or self._searches_shortly(loop, polling_loads)
            or loop.start not in self.ranges.code.can_reach((loop.stop - 1,), -1)
        )

    def _cycles_of_loops(self, loops: Iterable[range], waits: Iterable[range]) -> float:
        """Returns how many cycles a thread that does not wait takes at most in one of some loops,
        each with all turns of the others around it; infinite: unknown.

        ``waits``: the loops that wait. What is in a loop that never ends does not count.
        """
        every, waiting = [*loops], {at for loop in waits for at in loop}
        return max(
            (
                self._cycles_at_most(loop, waiting)
                * math.prod(
                    math.inf if (turns := self._turns(each)) is None else turns
                    for each in every
                    if _is_inside(loop, each) and each != loop
                )
                for loop in every
                if not any(_is_inside(loop, each) and self._is_endless(each) for each in self.loops)
            ),
            default=0,
        )

    def _instructions_at_least(self, loops: Iterable[range]) -> int:
        """Returns how many instructions some thread executes at least in one of some loops.

        By known counts alone, and where no memory decides whether a thread comes there.
        """
        counts = {loop: self._turns_and_length(loop) for loop in loops}
        most = 0
        for loop in sorted(counts, key=counts.__getitem__, reverse=True):
            if counts[loop] <= most:
                break
            if is_reached_surely(self.ranges.code, loop.start):
                most = counts[loop]
        return most

    def _turns_and_length(self, loop: range) -> int:
        """Returns how many instructions a thread that comes to a loop executes there at least."""
        turns = self.ranges.turns_at_least(loop)
        for outer in self.loops if turns > 1 else ():
            if _is_inside(loop, outer) and loop != outer and not self._avoids(outer, loop):
                turns *= self.ranges.turns_at_least(outer)
        return turns * self._shortest_turn(loop) if turns >= _MANY_TURNS else 0

    def _outermost_stores(self, loop: range) -> bool:
        """Returns whether a loop, or one around it with a known number of turns, stores."""
        around = [each for each in self.loops if _is_inside(loop, each)]
        return any(
            store in each
            for each in around
            if each == loop or self.ranges.turns_at_least(each) > 1
            for store in self.stores
        )

    def _shortest_turn(self, loop: range) -> int:
        """Returns how many instructions a turn of a loop takes at least."""
        lengths = {loop.start: 1}
        queue = [loop.start]
        for at in queue:
            for after in self._taken_from(at):
                if after in loop and after not in lengths:
                    lengths[after] = lengths[at] + 1
                    queue.append(after)
        return lengths.get(loop.stop - 1, 1)

    def _avoids(self, outer: range, loop: range) -> bool:
        """Returns whether a turn of a loop may leave out another one in it."""
        ways = reachable(
            [outer.start],
            lambda at: [to for to in self._taken_from(at) if to in outer and to != loop.start],
        )
        return outer.start != loop.start and outer.stop - 1 in ways

    def _taken_from(self, at: int) -> list[int]:
        """Returns the instructions that may come after one, without branches that are never taken
        and those that always are."""
        after = self.ranges.code.successors[at]
        if len(after) < 2 or self.code[at].guard is None:
            return [*after]
        if self.ranges.never_jumps(at):
            return [to for to in after if to == at + 1]
        if self.ranges.never_passes(at):
            return [to for to in after if to != at + 1]
        return [*after]

    def _cycles_at_most(self, loop: range, waiting: Collection[int]) -> float:
        """Returns how many cycles a thread takes at most in all turns of a loop; infinite: unknown.

        By a count, or by the clock. ``waiting``: instructions that do not count.
        """
        turns, by_clock = self._turns(loop), self._cycles(loop)
        counted = [self.bodies[at] for at in loop if at not in waiting]
        sleeps = sum(body.startswith("NANOSLEEP") for body in counted)
        of_turn = len(counted) * _CYCLES_OF_INSTRUCTION + sleeps * _CYCLES_OF_SLEEP
        by_count = math.inf if turns is None else float(turns * of_turn)
        return by_count if by_clock is None else min(by_count, by_clock)

    @functools.cached_property
    def traces(self) -> set[int]:
        """The indices of counting atomics and signals in memory of an argument."""
        return {
            at
            for at, (places, is_indirect) in self.stores.items()
            if places and not is_indirect and _SIGNALS.match(self.bodies[at])
        }

    def _is_left_by_swap(self, loop: range) -> bool:
        """Returns whether a compare-and-swap decides when a loop is left: else others get on."""
        return any(
            ".CAS" in self.bodies[at]
            for exit_ in self._exits(loop)
            for at in self._deciders(exit_, loop)
        )

    def _turns(self, loop: range) -> int | None:
        """Returns how often a loop runs at most, also one that a compiler made of a longer one, and
        one that does what it was written for."""
        ways = self.ranges.turns, self.ranges.turns_of_part, self.ranges.turns_of_work
        return next((turns for way in ways if (turns := way(loop)) is not None), None)

    def _natural_loop(self, loop: range) -> set[int]:
        """Returns the instructions from which a loop's branch back is reached within a turn."""
        return {loop.start} | self.ranges.code.can_reach((loop.stop - 1,), loop.start)

    def _written_while_polling(self, polls: Iterable[Poll]) -> frozenset[int]:
        """Returns places to which loops around polls write that have no such loop in them."""
        polling = {self.index_at[poll.address] for poll in polls}
        natural = [self._natural_loop(loop) for loop in self.loops]
        around = [body for body in natural if polling & body]
        innermost = [body for body in around if not any(other < body for other in around)]
        return frozenset(
            place
            for store, (places, _) in self.stores.items()
            if any(store in body for body in innermost)
            for place in places
        )

    def _searches_shortly(self, loop: range, polling_loads: dict[range, list[int]]) -> bool:
        """Returns whether a loop polls at a few addresses in turn, and does nothing else."""
        loads = polling_loads.get(loop, [])
        most = MAX_CYCLES // (len(loop) * _CYCLES_OF_INSTRUCTION)
        return not self._works(loop) and any(
            turns is not None and turns <= most
            for turns in (self._moves(loads, loop), self._places(loads, loop))
        )

    def _is_spin(self, load_indices: list[int], loop: range) -> bool:
        """Returns whether a loop polls, and polls the same addresses in each turn."""
        polls = [*self._polls(load_indices, loop)]
        return (
            bool(polls)
            and all(self._has_fixed_address(self.index_at[poll.address], loop) for poll in polls)
            and not self._works(loop)
        )

    def _works(self, loop: range) -> bool:
        """Returns whether a loop stores to other memory from turn to turn, or takes numbers, or
        stores to what it does not poll between waits of others.

        What it polls is no work: a compare-and-swap also searches.
        """
        stores = [at for at in self.stores if at in loop and not self._is_polling_load(at, loop)]
        waits = [
            inner
            for inner in self.loops
            if _is_inside(inner, loop)
            and inner.stop < loop.stop
            and any(self._is_polling_load(at, inner) for at in inner)
        ]
        if any(
            not self._has_fixed_address(store, loop)
            or bool(_ATOMIC_COUNTERS.match(self.bodies[store]) and self.code[store].writes)
            for store in stores
        ):
            return True
        polled = {self._address_source(at) for at in loop if self._is_polling_load(at, loop)}
        return bool(waits) and any(
            self.stores[store] not in polled and not any(store in inner for inner in waits)
            for store in stores
        )

    def _has_fixed_address(self, index: int, loop: range) -> bool:
        """Returns whether a load of a loop has the same address in each turn."""
        if self._address(index) is not None:
            return True
        changing = self._changing(loop)
        return not any(
            self._changes_in(name, index, loop, changing) for name in self._address_registers(index)
        )

    def _changing(self, loop: range) -> set[int]:
        """Returns the instructions of a loop that may have another result in another turn."""
        if loop not in self._known_changing:
            found: set[int] = set()
            self._known_changing[loop] = found
            while more := [
                at
                for at in loop
                if at not in found
                and (
                    self._varies(at)
                    or any(self._changes_in(name, at, loop, found) for name in self.code[at].reads)
                )
            ]:
                found.update(more)
        return self._known_changing[loop]

    def _changes_in(self, name: str, at: int, loop: range, changing: set[int]) -> bool:
        """Returns whether an instruction of a loop may read another value in another turn: of what
        changes, or first what was before the loop and then what a turn has written."""
        writers = self.ranges.code.writers(name, at)
        inside = [writer for writer in writers if writer in loop]
        guard = self.code[at].text.removesuffix(self.bodies[at])
        are_all = len(inside) == len(writers) or (
            bool(guard) and all(self.code[to].text.startswith(guard) for to in inside)
        )
        return bool(inside) and not (are_all and changing.isdisjoint(inside))

    def _varies(self, at: int) -> bool:
        """Returns whether an instruction may have another result each time, by itself."""
        body = self.bodies[at]
        is_of_thread = _SPECIAL_READS.match(body) and not CLOCK_READS.match(body)
        return bool(_VARIES.match(body)) and not is_of_thread

    def _address_registers(self, index: int) -> set[str]:
        """Returns the registers in the address of a load or store."""
        address = _ADDRESS.search(DESCRIPTOR.sub("", self.bodies[index]))
        return set(register_names([address[1]], True)) if address is not None else set()

    def _registers_written(self, loop: Iterable[int]) -> set[str]:
        """Returns the registers that the instructions of a loop write."""
        return {name for index in loop for name in self.code[index].writes}

    def _last_writer(self, register: str, index: int) -> int | None:
        """Returns the index of the last writer of a register before another index; None: none."""
        before = range(index - 1, -1, -1)
        return next((earlier for earlier in before if register in self.code[earlier].writes), None)

    def _cycles(self, loop: range) -> int | None:
        """Returns after how many cycles a loop is left that waits for a time; None: another loop.

        It compares how far a clock has come since before the loop with a constant.
        """
        known = [
            cycles
            for branch in self._exits(loop)
            if (cycles := self._cycles_until(self._deciders(branch, loop))) is not None
        ]
        return min(known, default=None)

    def _cycles_until(self, deciders: set[int]) -> int | None:
        """Returns with how many cycles some instructions compare a clock's way; None: something
        else."""
        tests = [index for index in sorted(deciders) if self.bodies[index].startswith("ISETP")]
        others = deciders - {*tests}
        is_clock = any(CLOCK_READS.match(self.bodies[index]) for index in others)
        if not is_clock or not all(_OF_CLOCKS.match(self.bodies[index]) for index in others):
            return None
        # The clock less what it was, as 64 bits: of the upper half nothing may be left.
        if len(tests) != 2 or self.code[tests[1]].operands[3] != "RZ":
            return None
        limit = self.ranges.value(self.code[tests[0]].operands[3], tests[0])
        differences = [index for index in others if "-R" in self.bodies[index]]
        return limit[1] if limit is not None and limit[0] >= 0 and differences else None

    def _moves(self, numbers: list[int], loop: range) -> int | None:
        """Returns in how many turns at most a loop that polls goes on to another address.

        None: it does not poll, or it goes on as long as memory says.
        """
        polls = [self.index_at[poll.address] for poll in self._polls(numbers, loop)]
        if not polls:
            return None
        written = self.ranges.code.writers

        def made_of(at: int) -> list[int]:
            """Returns the instructions of the loop from which an instruction has its values."""
            own = self.code[at]
            values = own.reads - own.guards
            return [to for name in values for to in written(name, at) if to in loop]

        first = [
            to for at in polls for name in self._address_registers(at) for to in written(name, at)
        ]
        found = reachable((at for at in first if at in loop), made_of)
        if any(_VARIES.match(self.code[at].body) for at in found):
            return None
        carried = [at for at in found if at in reachable(made_of(at), made_of)]
        moves = [self.ranges.steps(at, loop) for at in carried]
        known = [each for each in moves if each is not None]
        return sum(known) if len(known) == len(moves) else None

    def _places(self, load_indices: list[int], loop: range) -> int | None:
        """Returns at how many addresses at most a loop polls, turn by turn; None: unknown.

        Once it has been at all of them, it waits for one of them to change.
        """
        flow, sizes = self.ranges.code, dict[tuple[str, tuple[int, ...]], int]()

        def sources(register: str, before: int) -> list[int]:
            """Returns the instructions of the loop that a register comes from, unless it has one of
            a known number of values: then its number is kept."""
            writers = flow.writers(register, before)
            inside = [writer for writer in writers if writer in loop]
            values = self.ranges.value(register, before) if inside else None
            if values is None:
                return inside
            sizes[register, writers] = values[1] - values[0] + 1
            return []

        def made_of(index: int) -> list[int]:
            """Returns the instructions of the loop from which one has its values."""
            registers = [register for register in self.code[index].reads if "P" not in register]
            return [writer for register in registers for writer in sources(register, index)]

        polls = [self.index_at[poll.address] for poll in self._polls(load_indices, loop)]
        registers = [(name, at) for at in polls for name in self._address_registers(at)]
        found = reachable((at for register in registers for at in sources(*register)), made_of)
        differs = any(
            _VARIES.match(self.bodies[at]) or at in reachable(made_of(at), made_of) for at in found
        )
        return math.prod(sizes.values()) if polls and not differs else None

    def _open_loops(self, polling_loops: set[range]) -> list[range]:
        """Returns the loops that do not poll and that neither a count nor the clock ends."""
        return [
            loop
            for loop in self.loops
            if loop not in polling_loops
            and self.ranges.turns(loop) is None
            and not any(self._is_bounded(branch, loop) for branch in self._exits(loop))
        ]

    def _is_one_open_loop(self, polling_loops: set[range]) -> bool:
        """Returns whether the only loop is an open one, and reads no memory."""
        (loop,) = self.loops
        tests = [
            self.bodies[index]
            for exit_ in self._exits(loop)
            for index in self._deciders(exit_, loop)
        ]
        return (
            bool(self._open_loops(polling_loops))
            and any(_FLOAT_TESTS.match(test) for test in tests)
            and not any(
                _VARIES.match(self.bodies[index]) and not _CALLS.match(self.bodies[index])
                for index in loop
            )
        )

    def _is_bounded(self, branch: Instruction, loop: range) -> bool:
        """Returns whether a count or the clock helps to decide when a branch leaves a loop.

        A value that goes up and down, or by an amount that may be nothing, counts only if loops
        around have so many turns that the kernel is slow even if such a loop is soon over.
        """
        deciders = self._deciders(branch, loop)
        if any(_CLOCK_OR_COUNTER.match(self.bodies[index]) for index in deciders):
            return True
        cycles = self._cycles_of(deciders, loop)
        if any(all(self._is_steady(index, cycle, loop) for index in cycle) for cycle in cycles):
            return True
        around = math.prod(
            self.ranges.turns_at_least(each)
            for each in self.loops
            if _is_inside(loop, each) and each != loop
        )
        counts = any(_COUNTING.match(self.bodies[index]) for cycle in cycles for index in cycle)
        return counts and around * len(loop) * _TURNS_OF_OPEN_LOOP >= MAX_CYCLES

    def _cycles_of(self, deciders: set[int], loop: range) -> list[set[int]]:
        """Returns the groups of instructions whose results depend on those of the turn before."""
        made_of = {
            reader: [
                writer
                for register in self.code[reader].reads - self.code[reader].guards
                if "P" not in register
                for writer in self._possible_writers(register, reader, loop)
                if writer in deciders
            ]
            for reader in deciders
        }
        groups = components(deciders, made_of)
        return [{*each} for each in groups if len(each) > 1 or each[0] in made_of[each[0]]]

    def _is_steady(self, index: int, cycle: set[int], loop: range) -> bool:
        """Returns whether an instruction copies or halves what a loop counts, or adds to it an
        amount that is the same in each turn and comes from no memory."""
        own = self.code[index]
        if not _STEADY.match(own.body):
            return False
        others = {
            register
            for register in own.reads - own.guards
            if "P" not in register
            and not cycle.intersection(self._possible_writers(register, index, loop))
        }
        counted = [
            each
            for each in own.operands[1:]
            if each.removeprefix("-").removesuffix(".reuse") in own.reads - others - own.guards
            and "P" not in each
        ]
        return (
            len(counted) == 1
            and not any(self.ranges.is_idle(name, index) for name in own.writes)
            and not any(
                self._changes_in(each, index, loop, self._changing(loop))
                or self._is_loaded(each, index)
                for each in others
            )
        )

    def _is_loaded(self, register: str, before: int) -> bool:
        """Returns whether a register comes from memory."""
        writers = self.ranges.code.writers
        made_of = reachable(
            writers(register, before),
            lambda at: [to for name in self.code[at].reads for to in writers(name, at)],
        )
        return any(_LOADS.match(self.bodies[at]) for at in made_of)

    def _releases_lock(self, polling_loads: dict[range, list[int]], polls: Iterable[Poll]) -> bool:
        """Returns whether all polls take one lock, which every path afterwards releases.

        Either one thread of a block takes it. Or each thread releases it in the loop in which it
        tries to take it, so that the others of its warp do not keep it from that.
        """
        poll_indices = [self.index_at[poll.address] for poll in polls]
        sources = {self._address_source(index) for index in poll_indices}
        is_lock = all(".CAS" in self.bodies[index] for index in poll_indices)
        if len(poll_indices) != 1 or len(sources) != 1 or not is_lock:
            return False
        (acquire,), (source,) = poll_indices, sources
        releases = [
            store
            for store in self.stores
            if ".CAS" not in self.bodies[store] and self.stores[store] == source
        ]
        around = [loop for loop, loads in polling_loads.items() if acquire in loads]
        inner = min(around, key=len)
        if releases_lock_in_loop(self.ranges.code, acquire, inner, releases):
            return True
        end = min(loop.stop for loop in around)
        return end in self.reached and releases_lock(
            self.code, self.reached, acquire, end, releases
        )

    def _grid_barrier(self, polls: dict[Poll, None]) -> str | None:
        """Returns which blocks arrive at the barriers of a grid that polls nothing else; or None.
        Their memory is of the driver: its address is before the arguments in constant bank 0."""
        barrier = {self._driver_address(self.index_at[poll.address]) for poll in polls}
        arrivals = [
            index
            for index in sorted(self.reached)
            if _ATOMIC_UPDATES.match(self.bodies[index]) and self._driver_address(index) in barrier
        ]
        if not barrier or None in barrier or not arrivals:
            return None
        return barrier_arrivals(self.code, self.reached, arrivals)

    def _driver_address(self, index: int) -> _LinearSum | None:
        """Returns the address of a load or atomic if the driver gave it; None: another one."""
        address = self._address(index)
        if address is None or not address.terms:
            return None
        terms = [str(term) for term, _ in address.terms]
        is_given = all(t.startswith("c") and int(t[1:]) < self.parameters_at for t in terms)
        return address if is_given else None

    def _has_unknown_target(self, inst: Instruction) -> bool:
        """Returns whether an instruction jumps to, or calls, an address that is not known."""
        targets = {inst.target, inst.call_target} - {None}
        if targets:
            return not targets & self.index_at.keys()
        return bool(_UNKNOWN_TARGETS.match(inst.body))

    def _loops(self) -> Iterator[range]:
        """Yields the instructions of each loop, from a backward branch's target up to it. Two
        branches back to one place are two loops, one in the other."""
        spans: set[tuple[int, int]] = set()
        for index in self.reached:
            target = self.code[index].target
            if target is not None and target in self.index_at and self.index_at[target] <= index:
                spans.add((self.index_at[target], index + 1))
        yield from (range(begin, end) for begin, end in sorted(spans))

    def _is_polling_load(self, index: int, loop: range) -> bool:
        """Returns whether an instruction reads memory that other threads or the host may change."""
        body = self.bodies[index]
        if _STRONG_LOADS.match(body):  # an atomic that counts gets on each time: a counter of work
            return not _ATOMIC_COUNTERS.match(body) or self._adds_nothing(self.code[index])
        loop_bodies = [self.bodies[loop_index] for loop_index in loop]
        if _PLAIN_LOADS.match(body):
            return self._is_fenced_load(index, loop, loop_bodies)
        return bool(_BLOCK_LOCAL_LOADS.match(body)) and not any(
            body_.startswith(("BAR.", "STS")) for body_ in loop_bodies
        )

    def _is_fenced_load(self, index: int, loop: range, loop_bodies: list[str]) -> bool:
        """Returns whether a plain load is behind a fence, at one address, in a loop without stores.
        Compilers leave it in a loop only where a fence makes it see what others write."""
        return (
            any(body.startswith(("MEMBAR", "CCTL.IVALL")) for body in loop_bodies)
            and not any(_STORES.match(body) for body in loop_bodies)
            and not self._address_registers(index) & self._registers_written(loop)
        )

    def _polls(self, load_indices: list[int], loop: range) -> Iterator[Poll]:
        """Yields the loads that alone decide when a loop ends; none if other values decide, too."""
        deciding: set[int] = set()
        for branch in self._exits(loop):
            deciders = self._deciders(branch, loop)
            if not deciders & {*load_indices}:
                deciders |= self._deciders_of_coming(self.index_at[branch.address], loop)
            loads = deciders & {*load_indices}
            if not loads or any(self._changes_by_itself(decider, loop) for decider in deciders):
                return
            deciding |= loads
        for index in sorted(deciding):
            body = self.bodies[index]
            is_local = not _STRONG_LOADS.match(body) and not _PLAIN_LOADS.match(body)
            source = self._address_source(index)
            yield Poll(self.code[index].address, is_local, *source, self._offset(index))

    def _offset(self, index: int) -> int | None:
        """Returns how far from one argument the address of a load is, in bytes; None: unknown."""
        address = self._address(index)
        if address is None or len(address.terms) != 1:
            return None
        ((term, factor),) = address.terms
        return address.constant if isinstance(term, str) and factor == 1 else None

    def _changes_by_itself(self, index: int, loop: range) -> bool:
        """Returns whether a clock or a count changes an instruction's result from turn to turn.
        What counts only if memory that others may change says so does not go on by itself."""
        inst = self.code[index]
        if CLOCK_READS.match(inst.body):
            return True
        counted = inst.writes & inst.reads if ADDITIONS.match(inst.body) else ()
        if not any(index in self._possible_writers(register, index, loop) for register in counted):
            return False
        deciders = self._deciders(inst, loop) | self._deciders_of_coming(index, loop)
        return not any(self._is_polling_load(decider, loop) for decider in deciders)

    def _deciders_of_coming(self, index: int, loop: range) -> set[int]:
        """Returns the instructions of a loop that decide whether a turn comes to another one.

        Empty if a loop inside it polls: a turn then waits there until it comes on.
        """
        if any(
            self._is_polling_load(at, inner)
            for inner in self.loops
            if inner != loop and _is_inside(inner, loop)
            for at in inner
        ):
            return set()
        successors = self.ranges.code.successors
        inside = [at for at in loop if at in successors and at != index]
        before: dict[int, list[int]] = {}
        for at in inside:
            for after in successors[at]:
                before.setdefault(after, []).append(at)
        # From there a turn ends without it.
        avoids = reachable(before.get(loop.start, ()), lambda at: before.get(at, ()))
        return {
            decider
            for at in inside
            if self.code[at].guard is not None and self.code[at].target is not None
            if {after == loop.start or after in avoids for after in successors[at]} == {True, False}
            for decider in self._deciders(self.code[at], loop)
        }

    def _possible_writers(self, register: str, before: int, loop: range) -> Iterator[int]:
        """Yields indices of the instructions of a loop that may have written a register last. They
        are earlier in this turn, or in the turn before."""
        return (at for at in self.ranges.code.writers(register, before) if at in loop)

    def _deciders(self, branch: Instruction, loop: range) -> set[int]:
        """Returns the indices of a loop's instructions that decide whether a branch leaves it."""

        def written(registers: Iterable[tuple[str, int]]) -> Iterator[int]:
            """Returns indices that may have written registers, each with the index of a read."""
            return (
                writer
                for register, before in registers
                for writer in self._possible_writers(register, before, loop)
            )

        def made_of(index: int) -> Iterator[int]:
            """Yields the instructions from which an instruction has its values."""
            inst = self.code[index]
            registers = [(register, index) for register in inst.reads]
            for shared, store in (("LDS", "STS"), ("B2R", "BAR.RED")):
                # What threads of the block have stored, or voted.
                if inst.body.startswith(shared):
                    registers += [
                        (register, store_index)
                        for store_index in loop
                        if self.bodies[store_index].startswith(store)
                        for register in self.code[store_index].reads
                    ]
            return written(registers)

        guards = ((name, self.index_at[branch.address]) for name in branch.guards)
        return reachable(written(guards), made_of)

    def _adds_nothing(self, atomic: Instruction) -> bool:
        """Returns whether an atomic adds zero, and so only reads."""
        value = atomic.operands[-1]
        writers = [instruction.body for instruction in self.code if value in instruction.writes]
        return value in ("RZ", "URZ") or (bool(writers) and all(map(_ZERO.match, writers)))

    def _exits(self, loop: range) -> Iterator[Instruction]:
        """Yields the branches and exits that may leave a loop."""
        for index in loop:
            inst = self.code[index]
            if index not in self.reached:
                continue
            if inst.target is not None:
                target_index = self.index_at.get(inst.target)
                jumps_out = target_index is None or target_index not in loop
                falls_out = inst.is_conditional and index + 1 not in loop
                if (jumps_out or falls_out) and not inst.body.startswith(("BRA.DIV", "BRA.CONV")):
                    yield inst
            elif inst.leaves:
                yield inst

    def _is_endless(self, loop: range) -> bool:
        """Returns whether a loop has no exit, or nothing in it changes what its exits depend on."""
        exits = [
            branch
            for branch in self._exits(loop)
            if not self.ranges.never_leaves(self.index_at[branch.address], loop)
        ]
        if not exits:
            return True
        if any(exit_.guard is None for exit_ in exits):
            return False
        instructions = [self.code[index] for index in loop]
        # What varies by itself, or is computed from its own result of the turn before; and what a
        # turn reads before it writes it; and all that follows from these.
        changing: set[str] = set()
        written: set[str] = set()
        all_written = self._registers_written(loop)
        for instruction in instructions:
            idle = {name for name in instruction.writes if self._is_idle(name, instruction)}
            if instruction.writes & instruction.reads - idle or _VARIES.match(instruction.body):
                changing |= instruction.writes - idle
            changing |= (instruction.reads & all_written) - written - idle
            written |= instruction.writes
        dependents: dict[str, set[str]] = {}
        for instruction in instructions:
            for register in instruction.reads:
                dependents.setdefault(register, set()).update(instruction.writes)
        changing = reachable(changing, lambda register: dependents.get(register, ()))
        return not any(exit_.guards & changing for exit_ in exits)

    def _is_idle(self, name: str, instruction: Instruction) -> bool:
        """Returns whether an instruction leaves a register as it is."""
        return name in instruction.reads and self.ranges.is_idle(
            name, self.index_at[instruction.address]
        )

    def _address_source(self, index: int) -> tuple[tuple[int, ...], bool]:
        """Returns byte offsets of the arguments in an address, and whether it has loaded values."""
        arguments: set[int] = set()
        is_indirect, first = False, self.parameters_at

        def sources(register: tuple[str, int]) -> Iterator[tuple[str, int]]:
            """Yields the registers from which a register has its value."""
            nonlocal is_indirect
            writers = self.ranges.code.writers(*register)
            is_indirect |= not writers
            for writer in writers:
                instruction = self.code[writer]
                given = (constant_place(row) - first for row in CONSTANT.findall(instruction.body))
                arguments.update(place for place in given if place >= 0)
                arguments.update(map(_global_number, _GLOBAL.findall(instruction.body)))
                if _LOADS.match(instruction.body):
                    is_indirect = True
                else:
                    yield from ((each, writer) for each in instruction.reads if "P" not in each)

        reachable(((name, index) for name in self._address_registers(index)), sources)
        return tuple(sorted(arguments)), is_indirect

    def _releases_of_earlier_blocks(self, poll: Poll) -> list[int] | None:
        """Returns the stores of blocks with lower numbers for which a poll waits; None: others.

        Or it waits until as many have counted as the number of its block.
        """
        at = self.index_at[poll.address]
        counts = self._counts_up_to_block_index(at)
        if counts:
            return counts
        exact = self._address(at)
        polled = self._address(at, falls=True) if exact is None else exact
        found = []
        for index in self.stores:
            written = self._address(index)
            if polled is None or written is None or polled.terms != written.terms:
                continue
            block = [
                factor
                for term, factor in written.terms
                if isinstance(term, int) and _READS_BLOCK_INDEX.match(self.bodies[term])
            ]
            is_known = len(block) == 1 and (exact is not None or block[0] > 0)
            if is_known and (written.constant - polled.constant) * block[0] > 0:
                found.append(index)
        return found or None

    def _counts_up_to_block_index(self, poll: int) -> list[int]:
        """Returns what counts in memory if a poll waits until its count equals the block's number;
        empty: it does not."""
        source = self._address_source(poll)
        counts = [
            store
            for store in self.stores
            if _ATOMIC_COUNTERS.match(self.bodies[store]) and self.stores[store] == source
        ]
        loop = min((loop for loop in self.loops if poll in loop), key=len)
        deciders = [
            decider for branch in self._exits(loop) for decider in self._deciders(branch, loop)
        ]
        is_awaited = any(
            self._is_block_index(self._operand_value(register, decider, _MAX_DEPTH))
            for decider in deciders
            if _EQUALITY_TESTS.match(self.bodies[decider])
            for register in self.code[decider].reads
        )
        return counts if is_awaited else []

    def _is_block_index(self, value: _LinearSum | None) -> bool:
        """Returns whether a value is the number of the block."""
        if value is None or value.constant or len(value.terms) != 1:
            return False
        ((term, factor),) = value.terms
        is_index = isinstance(term, int) and _READS_BLOCK_INDEX.match(self.bodies[term])
        return factor == 1 and bool(is_index)

    def _address(self, index: int, falls: bool = False) -> _LinearSum | None:
        """Returns the address of a load or store as a linear sum; None: it is none.

        ``falls``: of one that each turn of a loop may make less, the greatest.
        """
        address = _ADDRESS.search(DESCRIPTOR.sub("", self.bodies[index]))
        if address is None:
            return None
        pieces = re.split(r"(?<=[\w.])\+", address[1])
        return _sum_of(self._operand_value(piece, index, _MAX_DEPTH, falls) for piece in pieces)

    def _operand_value(
        self, operand: str, before: int, depth: int, falls: bool = False
    ) -> _LinearSum | None:
        """Returns what an operand holds before an instruction, as a linear sum; None: unknown.

        ``falls``: as of ``_address``.
        """
        text = operand.strip().removesuffix(".reuse").removesuffix(".64")
        constant = CONSTANT.fullmatch(text)
        if constant is not None:
            return _LinearSum(0, ((f"c{constant_place(constant[1])}", 1),))
        variable = _GLOBAL.fullmatch(text)
        if variable is not None:
            return _LinearSum(0, ((f"g{_global_number(variable[1])}", 1),))
        if re.fullmatch(r"-?0x[0-9a-f]+", text):
            value = int(text, 16)
            return _LinearSum(value - (1 << 32) if value >= 1 << 31 else value)
        if text in ("RZ", "URZ"):
            return _LinearSum()
        if text.startswith("-"):
            negated = self._operand_value(text[1:], before, depth)
            return None if negated is None else negated.times(-1)
        if not re.fullmatch(r"U?R\d+", text) or depth == 0:
            return None
        writers = self.ranges.code.writers(text, before)
        if falls:
            writers = tuple(at for at in writers if not self.ranges.lowers(text, at)) or writers
        if len(writers) != 1 or self.code[writers[0]].guard:
            return None
        return self._instruction_value(writers[0], depth - 1, falls)

    def _instruction_value(self, index: int, depth: int, falls: bool = False) -> _LinearSum | None:
        """Returns the first result of an instruction as a linear sum; None: unknown."""
        operation = self.bodies[index].partition(" ")[0]
        _, *operands = self.code[index].operands
        operands = [operand for operand in operands if not re.fullmatch(r"!?U?P[\dT]", operand)]
        if _READS_BLOCK_INDEX.match(self.bodies[index]):
            return _LinearSum(0, ((index, 1),))
        values = [self._operand_value(operand, index, depth, falls) for operand in operands]
        if operation.startswith(("MOV", "UMOV", "LDC", "ULDC", "R2UR")) and len(values) == 1:
            return values[0]
        if operation.startswith(("VIADD", "IADD3", "UIADD3")) and ".X" not in operation:
            return _sum_of(values)
        if operation.startswith(("IMAD", "UIMAD")) and len(values) == 3 and ".X" not in operation:
            return _sum_of([_product(values[0], values[1]), values[2]])
        if operation in ("LEA", "ULEA") and len(values) == 3:
            shift = values[2].constant if values[2] is not None else -1
            if 0 <= shift < 32:
                return _sum_of([_product(values[0], _LinearSum(1 << shift)), values[1]])
        return None

    @functools.cached_property
    def stores(self) -> dict[int, tuple[tuple[int, ...], bool]]:
        """The instructions that change memory which other blocks may see, by index, each with what
        its address comes from, as of ``_address_source``."""
        return {
            index: self._address_source(index)
            for index in sorted(self.reached)
            if _STORES.match(self.bodies[index])
            and not (
                _ATOMIC_UPDATES.match(self.bodies[index]) and self._adds_nothing(self.code[index])
            )
        }
