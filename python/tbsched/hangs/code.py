"""What a kernel may wait for, by its code: memory that others write, its own block, nothing."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tbsched.hangs.control_flow import ALL, comes_back, reached_by
from tbsched.hangs.disassembler import Instructions
from tbsched.hangs.instruction import CLOCK, COUNTS, DESCRIPTOR, Instruction, names, split
from tbsched.hangs.ranges import Ranges
from tbsched.program.reachable import reachable

_CONSTANT = re.compile(r"c\[0x0\]\[(0x[0-9a-f]+)\]")
_ADDRESS = re.compile(r"\[([^]]*)\]")
_LEAVES = re.compile(r"^(EXIT|RET|BREAK|KILL)")
_NOT_KNOWN = re.compile(r"^(BRX|BRXU|JMX|JMXU|JMP|CALL)\b")
# Loads that see what others write, and atomics.
_SEES = re.compile(r"^(?:LDG?|LD)\.\S*(?:STRONG|MMIO)|^(?:ATOMG?|ATOM)\.")
_PLAIN = re.compile(r"^LDG?\.E(?:\.(?:64|128|CONSTANT|[SU](?:8|16)))*\s")
_ADDS = re.compile(r"^ATOMG?\.\S*(?:ADD|INC|DEC|OR|AND|XOR|MAX|MIN)")
_COUNTER = re.compile(r"^ATOMG?\.\S*(?:ADD|INC|DEC)")
_TENSOR_STORES = ("UTMAST", "UTMARED", "UBLKCP", "UBLKRED", "STAS", "SUST", "SURED")
_BLOCK = re.compile(r"^(?:S2R|S2UR)\s+\S+\s*,\s*SR_CTAID\.X")
_CALLS = re.compile(r"^(?:CALL|S2R|S2UR|CS2R)\b")
_CLOCK_OR_COUNTER = re.compile(f"{CLOCK.pattern}|{_COUNTER.pattern}")
# What counts, moves a count, or halves it.
_STEPS = re.compile(
    r"^(?:U?IADD3?|VIADD|IMAD\.IADD|U?IMAD\.MOV|U?MOV|USHF|SHF\.|U?LEA|IMAD\.SHL|U?SEL)\b"
)
_EQUALS = re.compile(r"^U?ISETP\.(?:NE|EQ)\b")
_SOON = 1 << 22  # instructions of a thread: a second, if each of them waits for memory
_SLEEP = 1 << 12  # instructions that take as long as the longest sleep, a millisecond
_DEEPEST = 16  # steps back from an address to what it is made of
_STORES = re.compile(r"^(?:STG?|REDG?|ATOMG?)\.")
_LOADED = re.compile(r"^(?:LD|LDG|ATOM|ATOMG|LDL|LDS)\b")
_LOCAL = re.compile(r"^(?:LDS|ATOMS|LD\.|SYNCS\.PHASECHK)")
_ZERO = re.compile(r"^(?:MOV|CS2R|IMAD\.MOV\S*)\s+\S+,\s*(?:RZ,\s*RZ,\s*)?(?:RZ|SRZ|0x0)$")
_VARIES = re.compile(
    r"^(?:LD|LDG|LDS|LDL|ATOM|ATOMG|ATOMS|CS2R|S2R|S2UR|SHFL|SYNCS|SUATOM|TEX|TLD|MATCH|VOTE|LDGSTS"
    r"|LDSM|REDUX|NANOTRAP|UTMALDG|R2B|B2R|CALL)"
)


@dataclass(frozen=True, slots=True)
class Poll:
    """A loop that a kernel leaves only when memory has another value.

    Attributes:
        at: the address of the load in the code.
        is_local: whether that is memory of the block.
        arguments: places of the kernel's arguments that its address comes from, in bytes.
        is_indirect: whether the address was itself loaded from memory.
    """

    at: int
    is_local: bool
    arguments: tuple[int, ...]
    is_indirect: bool


@dataclass(frozen=True, slots=True)
class KernelCode:
    """What a kernel may wait for.

    Attributes:
        polls: loops that wait for memory.
        loops: how many loops it has.
        has_endless_loop: whether one has no way out, or none that changes while it runs.
        has_barrier: whether threads of a block, or of a grid, wait for each other.
        hands_over: whether threads arrive at a barrier at which only others wait.
        written: places of the arguments that addresses of its stores and atomics come from.
        writes_anywhere: whether it writes to addresses that it loads from memory.
        follows: whether a block waits only for what blocks before it write, as in a chained scan.
        is_whole: whether all of it was understood: no jump or call to an unknown place.
        grid_barrier: who comes to the barriers of a cooperative grid, as of ``reached_by``, if it
            polls nothing else; None: it has none, or blocks differ.
        lock_comes_back: whether it polls one lock alone, which one thread of a block takes and
            gives back on every way.
        open_loops: how many loops are left neither by a count nor by the time nor by memory that
            others write.
        is_one_open_loop: whether it has one loop, and that one is left by its own values alone.
        only_waits: whether each of its loops waits, never ends, or has few turns by a count: a
            thread that takes long waits then.
        triggers: whether a block lets the next kernel of its stream start before it polls.
        waits_for_previous: whether blocks of a programmatic launch wait for the one before.
    """

    polls: tuple[Poll, ...]
    loops: int
    has_endless_loop: bool
    has_barrier: bool
    hands_over: bool
    written: frozenset[int]
    writes_anywhere: bool
    follows: bool
    is_whole: bool
    grid_barrier: str | None = None
    lock_comes_back: bool = False
    open_loops: int = 0
    is_one_open_loop: bool = False
    only_waits: bool = False
    triggers: bool = False
    waits_for_previous: bool = False

    @property
    def may_wait(self) -> bool:
        """Returns whether it may wait for ever: for others, for itself, or at a barrier.

        Blocks start in their order. So one that waits for blocks before it waits for some that run.
        """
        return (bool(self.polls) and not self.follows) or self._waits_without_poll

    @property
    def is_in_step(self) -> bool:
        """Whether it waits at barriers of a cooperative grid alone, to which all blocks come."""
        return self.grid_barrier == ALL and not self._waits_without_poll

    @property
    def takes_turns(self) -> bool:
        """Whether it waits for a lock alone, which each that takes it gives back."""
        return self.lock_comes_back and not self._waits_without_poll

    @property
    def waits_inside(self) -> bool:
        """Whether it waits for its own block alone: if it has ended before, it ends."""
        is_local = all(each.is_local for each in self.polls)
        return bool(self.polls) and is_local and not self._waits_without_poll

    @property
    def _waits_without_poll(self) -> bool:
        """Whether it may wait for ever without a poll, however often it has ended before."""
        return self.has_endless_loop or not self.is_whole or self.must_wait or self.hands_over

    @property
    def must_wait(self) -> bool:
        """Whether a block can only take long by waiting: no loop, and a barrier."""
        return self.has_barrier and not self.loops


def kernel_code(instructions: Instructions, parameters_at: int) -> KernelCode:
    """Returns what a kernel may wait for.

    Args:
        instructions: all of its code.
        parameters_at: where its arguments begin in constant bank 0.
    """
    return _Reading(instructions, parameters_at).answer()


@dataclass(frozen=True, slots=True)
class _Sum:
    """A constant, and terms with their factors: the word of an argument, or an instruction."""

    constant: int = 0
    terms: tuple[tuple[int | str, int], ...] = ()

    def plus(self, other: _Sum) -> _Sum:
        """Returns the sum of two linear expressions."""
        factors = dict(self.terms)
        for term, factor in other.terms:
            factors[term] = factors.get(term, 0) + factor
        terms = sorted(((t, f) for t, f in factors.items() if f), key=lambda each: str(each[0]))
        return _Sum(self.constant + other.constant, tuple(terms))

    def times(self, factor: int) -> _Sum:
        return _Sum(self.constant * factor, tuple((term, f * factor) for term, f in self.terms))


def _total(values: Iterable[_Sum | None]) -> _Sum | None:
    """Returns the sum of several values; None if one is unknown."""
    total = _Sum()
    for each in values:
        if each is None:
            return None
        total = total.plus(each)
    return total


def _product(one: _Sum | None, other: _Sum | None) -> _Sum | None:
    if one is None or other is None or (one.terms and other.terms):
        return None
    return one.times(other.constant) if not other.terms else other.times(one.constant)


class _Reading:
    def __init__(self, instructions: Instructions, parameters_at: int) -> None:
        self.parameters_at = parameters_at
        self.every = [Instruction(at, text) for at, text in instructions]
        self.place = {each.at: number for number, each in enumerate(self.every)}
        self.reached = self._reached()
        self.loops = tuple(self._loops())
        self.ranges = Ranges(self.every, self.reached, self.loops, self._exits, parameters_at)

    def _reached(self) -> set[int]:
        """Returns numbers of instructions that can be reached from the first."""
        found: set[int] = set()
        left = [0] if self.every else []
        while left:
            number = left.pop()
            while number < len(self.every) and number not in found:
                found.add(number)
                own = self.every[number]
                left += [self.place[to] for to in (own.target, own.called) if to in self.place]
                ends = own.target is not None or _LEAVES.match(own.body)
                if ends and not own.is_conditional:
                    break
                number += 1
        return found

    def answer(self) -> KernelCode:
        """Returns what the code of a kernel can wait for."""
        loops = self.loops
        looks: dict[range, list[int]] = {}
        for number in sorted(self.reached):
            for loop in loops:
                if number in loop and self._looks(number, loop):
                    looks.setdefault(loop, []).append(number)
        found = [poll for loop, numbers in looks.items() for poll in self._polls(numbers, loop)]
        polls = dict.fromkeys(found)  # a load is in each loop around it
        bodies = [self.every[number].body for number in self.reached]
        sources = [self._source(number) for number in self._stores()]
        return KernelCode(
            polls=tuple(polls),
            loops=len(loops),
            has_endless_loop=any(self._is_endless(each) for each in loops),
            has_barrier=any(body.startswith(("BAR.", "UCGABAR", "SYNCS")) for body in bodies),
            hands_over=any(body.startswith("BAR.ARV") for body in bodies),
            written=frozenset(place for arguments, _ in sources for place in arguments),
            writes_anywhere=any(is_indirect for _, is_indirect in sources)
            or any(body.startswith(_TENSOR_STORES) for body in bodies),
            follows=bool(polls) and all(self._follows(poll) for poll in polls),
            is_whole=not any(self._goes_elsewhere(self.every[number]) for number in self.reached),
            grid_barrier=self._grid_barrier(polls),
            lock_comes_back=self._lock_comes_back(looks, polls),
            open_loops=len(self._open_loops({*looks})),
            is_one_open_loop=len(loops) == 1 and self._is_one_open_loop({*looks}),
            only_waits=self._only_waits(looks),
            waits_for_previous=any(body.startswith("ACQBULK") for body in bodies),
            triggers=self._triggers(min((loop.start for loop in looks), default=len(self.every))),
        )

    def _triggers(self, before: int) -> bool:
        """Returns whether a block triggers a programmatic launch on its way to an instruction."""
        for number in range(before):
            own = self.every[number]
            if own.target is not None:
                return False
            if own.body.startswith("PREEXIT") and own.guard is None:
                return True
        return False

    def _only_waits(self, looks: dict[range, list[int]]) -> bool:
        """Returns whether no loop takes long without waiting."""
        endless = [loop for loop in self.loops if self._is_endless(loop)]
        return all(
            any(loop.start >= each.start and loop.stop <= each.stop for each in endless)
            or self._is_spin(looks.get(loop, []), loop)
            or self._is_short(loop, looks, self.ranges.turns(loop))
            or self._is_short(loop, looks, self._moves(looks.get(loop, []), loop))
            for loop in self.loops
        )

    def _is_spin(self, numbers: list[int], loop: range) -> bool:
        """Returns whether a loop polls, and at the same address in each turn."""
        polls = [*self._polls(numbers, loop)]
        return bool(polls) and all(self._is_fixed(self.place[poll.at], loop) for poll in polls)

    def _is_fixed(self, number: int, loop: range) -> bool:
        """Returns whether a load of a loop has the same address in each turn."""
        if self._address(number) is not None:
            return True
        return not self._of_address(number) & self._written_in(loop)

    def _of_address(self, number: int) -> set[str]:
        """Returns the registers of the address of a load or store."""
        address = _ADDRESS.search(DESCRIPTOR.sub("", self.every[number].body))
        return set(names([address[1]], True)) if address is not None else set()

    def _written_in(self, loop: Iterable[int]) -> set[str]:
        return {name for each in loop for name in self.every[each].writes}

    def _writer_before(self, name: str, number: int) -> int | None:
        """Returns the last instruction before another one, in the code, that writes a register."""
        before = range(number - 1, -1, -1)
        return next((each for each in before if name in self.every[each].writes), None)

    def _is_short(self, loop: range, looks: dict[range, list[int]], turns: int | None) -> bool:
        """Returns whether a thread is soon through so many turns of a loop; None: unknown.

        Loops around it that wait or never end do not count: a thread is in one turn of those.
        """
        bodies = [self.every[at].body for at in loop]
        sleeps = sum(body.startswith("NANOSLEEP") for body in bodies)
        executed = math.inf if turns is None else float(len(bodies) + sleeps * _SLEEP) * turns
        for each in self.loops:
            is_around = each.start <= loop.start and loop.stop <= each.stop and each != loop
            waits = is_around and (
                self._is_endless(each) or self._is_spin(looks.get(each, []), each)
            )
            if is_around and not waits:
                around = self.ranges.turns(each)
                executed *= math.inf if around is None else around
        return executed <= _SOON

    def _moves(self, numbers: list[int], loop: range) -> int | None:
        """Returns in how many turns at most a loop that polls goes on to another address.

        None: it does not poll, or it goes on as long as memory says.
        """
        polls = [self.place[poll.at] for poll in self._polls(numbers, loop)]
        if not polls:
            return None
        written = self.ranges.code.writers

        def made_of(at: int) -> list[int]:
            """Returns the instructions of the loop from which an instruction has its values."""
            own = self.every[at]
            values = own.reads - own.guards
            return [to for name in values for to in written(name, at) if to in loop]

        first = [to for at in polls for name in self._of_address(at) for to in written(name, at)]
        found = reachable((at for at in first if at in loop), made_of)
        if any(_VARIES.match(self.every[at].body) for at in found):
            return None
        carried = [at for at in found if at in reachable(made_of(at), made_of)]
        moves = [self.ranges.steps(at, loop) for at in carried]
        known = [each for each in moves if each is not None]
        return sum(known) if len(known) == len(moves) else None

    def _open_loops(self, looking: set[range]) -> list[range]:
        """Loops that neither a count nor the time ends, and that look at no memory of others."""
        return [
            loop
            for loop in self.loops
            if loop not in looking
            and not any(self._is_bound(leaving, loop) for leaving in self._exits(loop))
        ]

    def _is_one_open_loop(self, looking: set[range]) -> bool:
        """Returns whether the only loop is an open one that reads no memory."""
        (loop,) = self.loops
        return bool(self._open_loops(looking)) and not any(
            _VARIES.match(self.every[each].body) and not _CALLS.match(self.every[each].body)
            for each in loop
        )

    def _is_bound(self, leaving: Instruction, loop: range) -> bool:
        """Returns whether a count or the time has a say in when a branch leaves a loop."""
        found = self._deciders(leaving, loop)
        return any(
            _CLOCK_OR_COUNTER.match(self.every[each].body) or self._is_counter(each, found, loop)
            for each in found
        )

    def _is_counter(self, number: int, among: set[int], loop: range) -> bool:
        """Returns whether an integer is added to its own value of the turn before, or shifted."""

        def steps(at: int) -> Iterator[int]:
            for name in self.every[at].reads:
                for writer in self._writers(name, at, loop):
                    if writer in among and _STEPS.match(self.every[writer].body):
                        yield writer

        is_step = _STEPS.match(self.every[number].body)
        return bool(is_step) and number in reachable(steps(number), steps)

    def _lock_comes_back(self, looks: dict[range, list[int]], polls: Iterable[Poll]) -> bool:
        """Returns whether all polls take one lock, which is given back on every way."""
        numbers = [self.place[poll.at] for poll in polls]
        places = {self._source(number) for number in numbers}
        is_lock = all(".CAS" in self.every[number].body for number in numbers)
        if len(numbers) != 1 or len(places) != 1 or not is_lock:
            return False
        (taken,), (place,) = numbers, places
        given = [
            each
            for each in self._stores()
            if ".CAS" not in self.every[each].body and self._source(each) == place
        ]
        behind = min(loop.stop for loop, own in looks.items() if taken in own)
        return behind in self.reached and comes_back(self.every, self.reached, taken, behind, given)

    def _grid_barrier(self, polls: dict[Poll, None]) -> str | None:
        """Returns who comes to the barriers of a cooperative grid, if it polls nothing else.

        Their memory is of the driver: its address is before the arguments in constant bank 0.
        """
        looked = {self._in_driver_memory(self.place[poll.at]) for poll in polls}
        arrivals = [
            number
            for number in sorted(self.reached)
            if _ADDS.match(self.every[number].body) and self._in_driver_memory(number) in looked
        ]
        if not looked or None in looked or not arrivals:
            return None
        return reached_by(self.every, self.reached, arrivals)

    def _in_driver_memory(self, number: int) -> _Sum | None:
        """Returns the address of a load or atomic that the driver gave; None: another."""
        address = self._address(number)
        if address is None or not address.terms:
            return None
        words = [str(term) for term, _ in address.terms]
        is_given = all(
            each.startswith("c") and int(each[1:]) < self.parameters_at for each in words
        )
        return address if is_given else None

    def _goes_elsewhere(self, own: Instruction) -> bool:
        """Returns whether an instruction goes to a place that is not known."""
        if own.target is not None or own.called is not None:
            return own.target not in self.place and own.called not in self.place
        return bool(_NOT_KNOWN.match(own.body))

    def _loops(self) -> Iterator[range]:
        """Yields the instructions of each loop, from a backward branch's target up to it.

        Two branches back to one place are two loops, one in the other.
        """
        found: set[tuple[int, int]] = set()
        for number in self.reached:
            target = self.every[number].target
            if target is not None and target in self.place and self.place[target] <= number:
                found.add((self.place[target], number + 1))
        yield from (range(begin, end) for begin, end in sorted(found))

    def _looks(self, number: int, loop: range) -> bool:
        """Returns whether an instruction reads memory that other blocks or the host may change."""
        body = self.every[number].body
        if _SEES.match(body):  # an atomic that counts gets on each time: a counter of work
            return not _COUNTER.match(body) or self._adds_nothing(self.every[number])
        inside = [self.every[each].body for each in loop]
        if _PLAIN.match(body):
            return self._is_read_again(number, loop, inside)
        return bool(_LOCAL.match(body)) and not any(
            each.startswith(("BAR.", "STS")) for each in inside
        )

    def _is_read_again(self, number: int, loop: range, inside: list[str]) -> bool:
        """Returns whether a plain load reads the same address in each turn, which none writes.

        Compilers leave it in a loop only where a fence makes it see what others write.
        """
        return (
            any(each.startswith(("MEMBAR", "CCTL.IVALL")) for each in inside)
            and not any(_STORES.match(each) for each in inside)
            and not self._of_address(number) & self._written_in(loop)
        )

    def _polls(self, numbers: list[int], loop: range) -> Iterator[Poll]:
        """Yields the loads of a loop that is left by what they load alone."""
        deciding: set[int] = set()
        for leaving in self._exits(loop):
            found = self._deciders(leaving, loop)
            own = found & {*numbers}
            if not own or any(self._goes_on(each, loop) for each in found):
                return
            deciding |= own
        for number in sorted(deciding):
            body = self.every[number].body
            is_local = not _SEES.match(body) and not _PLAIN.match(body)
            yield Poll(self.every[number].at, is_local, *self._source(number))

    def _goes_on(self, number: int, loop: range) -> bool:
        """Returns whether an instruction has another result by itself: a clock, or a count.

        What counts only if memory that others may change says so does not go on by itself.
        """
        own = self.every[number]
        if CLOCK.match(own.body):
            return True
        counted = own.writes & own.reads if COUNTS.match(own.body) else frozenset()
        if not any(number in self._writers(name, number, loop) for name in counted):
            return False
        return not any(self._looks(each, loop) for each in self._deciders(own, loop))

    def _writers(self, name: str, before: int, loop: range) -> Iterator[int]:
        """Yields numbers of the instructions of a loop that may have written a register last.

        They are earlier in this turn, or later in the turn before.
        """
        for at in (*range(before - 1, loop.start - 1, -1), *reversed(loop)):
            own = self.every[at]
            if name in own.writes:
                yield at
                if own.guard is None:
                    return

    def _deciders(self, leaving: Instruction, loop: range) -> set[int]:
        """Returns the numbers of the instructions of a loop that decide whether a branch leaves."""

        def written(registers: Iterable[tuple[str, int]]) -> Iterator[int]:
            return (at for name, before in registers for at in self._writers(name, before, loop))

        def made_of(at: int) -> Iterator[int]:
            """Yields the instructions from which an instruction has its values."""
            own = self.every[at]
            registers = [(each, at) for each in own.reads]
            for shared, store in (("LDS", "STS"), ("B2R", "BAR.RED")):
                if own.body.startswith(shared):  # what threads of the block have stored, or voted
                    registers += [
                        (each, to)
                        for to in loop
                        if self.every[to].body.startswith(store)
                        for each in self.every[to].reads
                    ]
            return written(registers)

        guards = ((name, self.place[leaving.at]) for name in leaving.guards)
        return reachable(written(guards), made_of)

    def _adds_nothing(self, own: Instruction) -> bool:
        """Returns whether an atomic leaves the value as it is."""
        value = split(own.body.partition(" ")[2])[-1].strip()
        written = [each.body for each in self.every if value in each.writes]
        return value in ("RZ", "URZ") or (bool(written) and all(map(_ZERO.match, written)))

    def _exits(self, loop: range) -> Iterator[Instruction]:
        """Yields the branches that may leave a loop."""
        for number in loop:
            own = self.every[number]
            if number not in self.reached:
                continue
            if own.target is not None:
                goes = self.place.get(own.target)
                leaves = goes is None or goes not in loop
                falls = own.is_conditional and number + 1 not in loop
                if (leaves or falls) and not own.body.startswith(("BRA.DIV", "BRA.CONV")):
                    yield own
            elif _LEAVES.match(own.body):
                yield own

    def _is_endless(self, loop: range) -> bool:
        """Returns whether nothing inside a loop changes what its exits depend on."""
        exits = list(self._exits(loop))
        if not exits:
            return True
        if any(each.guard is None for each in exits):
            return False
        inside = [self.every[each] for each in loop]
        # What varies by itself, or is computed from its own result of the turn before; and what a
        # turn reads before it writes it; and all that follows from these.
        changing: set[str] = set()
        written: set[str] = set()
        all_written = self._written_in(loop)
        for each in inside:
            if each.writes & each.reads or _VARIES.match(each.body):
                changing |= each.writes
            changing |= (each.reads & all_written) - written
            written |= each.writes
        follows: dict[str, set[str]] = {}
        for each in inside:
            for name in each.reads:
                follows.setdefault(name, set()).update(each.writes)
        changing = reachable(changing, lambda name: follows.get(name, ()))
        return all(each.guard not in changing for each in exits)

    def _source(self, number: int) -> tuple[tuple[int, ...], bool]:
        """Returns the arguments that an instruction's address comes from, and whether it is
        loaded."""
        arguments: set[int] = set()
        is_indirect = False

        def made_of(register: tuple[str, int]) -> Iterator[tuple[str, int]]:
            """Yields the registers from which a register has its value."""
            nonlocal is_indirect
            name, before = register
            at = self._writer_before(name, before)
            if at is None:
                is_indirect = True
                return
            own = self.every[at]
            arguments.update(
                int(row, 16) - self.parameters_at for row in _CONSTANT.findall(own.body)
            )
            if _LOADED.match(own.body):
                is_indirect = True
                return
            if own.guard is not None:
                yield name, at
            yield from ((each, at) for each in own.reads if "P" not in each)

        reachable(((name, number) for name in self._of_address(number)), made_of)
        return tuple(sorted(each for each in arguments if each >= 0)), is_indirect

    def _follows(self, poll: Poll) -> bool:
        """Returns whether a poll looks at what an earlier block writes: at its number less some.

        Or it waits until as many have counted as the number of its block.
        """
        if self._is_turn(poll):
            return True
        looked = self._address(self.place[poll.at])
        if looked is None:
            return False
        for number in self._stores():
            written = self._address(number)
            if written is None or looked.terms != written.terms:
                continue
            of_block = [
                factor
                for term, factor in written.terms
                if isinstance(term, int) and _BLOCK.match(self.every[term].body)
            ]
            if len(of_block) == 1 and (written.constant - looked.constant) * of_block[0] > 0:
                return True
        return False

    def _is_turn(self, poll: Poll) -> bool:
        """Returns whether a poll waits until a count is the number of the block."""
        number = self.place[poll.at]
        source = self._source(number)
        counts = any(
            _COUNTER.match(self.every[each].body) and self._source(each) == source
            for each in self._stores()
        )
        loop = min((loop for loop in self.loops if number in loop), key=len)
        deciders = [each for leaving in self._exits(loop) for each in self._deciders(leaving, loop)]
        return counts and any(
            self._is_block(self._value(name, each, _DEEPEST))
            for each in deciders
            if _EQUALS.match(self.every[each].body)
            for name in self.every[each].reads
        )

    def _is_block(self, value: _Sum | None) -> bool:
        """Returns whether a value is the number of the block."""
        if value is None or value.constant or len(value.terms) != 1:
            return False
        ((term, factor),) = value.terms
        return factor == 1 and isinstance(term, int) and bool(_BLOCK.match(self.every[term].body))

    def _address(self, number: int) -> _Sum | None:
        """Returns the address of a load or store as a sum; None: it is no sum of known terms."""
        address = _ADDRESS.search(DESCRIPTOR.sub("", self.every[number].body))
        if address is None:
            return None
        pieces = re.split(r"(?<=[\w.])\+", address[1])
        return _total(self._value(piece, number, _DEEPEST) for piece in pieces)

    def _value(self, operand: str, before: int, depth: int) -> _Sum | None:
        """Returns what an operand of an instruction is, as a sum of arguments and other values."""
        text = operand.strip().removesuffix(".reuse").removesuffix(".64")
        constant = _CONSTANT.fullmatch(text)
        if constant is not None:
            return _Sum(0, ((f"c{int(constant[1], 16)}", 1),))
        if re.fullmatch(r"-?0x[0-9a-f]+", text):
            value = int(text, 16)
            return _Sum(value - (1 << 32) if value >= 1 << 31 else value)
        if text in ("RZ", "URZ"):
            return _Sum()
        if text.startswith("-"):
            own = self._value(text[1:], before, depth)
            return None if own is None else own.times(-1)
        if not re.fullmatch(r"U?R\d+", text) or depth == 0:
            return None
        at = self._writer_before(text, before)
        if at is None or self.every[at].guard is not None or self._is_carried(text, at, before):
            return None
        return self._result(at, depth - 1)

    def _is_carried(self, name: str, written: int, read: int) -> bool:
        """Returns whether a loop around the reader, not the writer, writes the register, too."""
        return any(
            name in self.every[each].writes
            for loop in self.loops
            if read in loop and written not in loop
            for each in loop
        )

    def _result(self, number: int, depth: int) -> _Sum | None:
        """Returns the first result of an instruction as a sum."""
        operation, _, rest = self.every[number].body.partition(" ")
        operands = [each.strip() for each in split(rest)]
        operands = [each for each in operands[1:] if not re.fullmatch(r"!?U?P[\dT]", each)]
        if _BLOCK.match(self.every[number].body):
            return _Sum(0, ((number, 1),))
        values = [self._value(each, number, depth) for each in operands]
        if operation.startswith(("MOV", "UMOV", "LDC", "ULDC", "R2UR")) and len(values) == 1:
            return values[0]
        if operation.startswith(("VIADD", "IADD3", "UIADD3")) and ".X" not in operation:
            return _total(values)
        if operation.startswith(("IMAD", "UIMAD")) and len(values) == 3 and ".X" not in operation:
            return _total([_product(values[0], values[1]), values[2]])
        if operation in ("LEA", "ULEA") and len(values) == 3:
            shift = values[2].constant if values[2] is not None else -1
            if 0 <= shift < 32:
                return _total([_product(values[0], _Sum(1 << shift)), values[1]])
        return None

    def _stores(self) -> Iterator[int]:
        """Yields numbers of the instructions that change memory which others may see."""
        for number in sorted(self.reached):
            body = self.every[number].body
            if not _STORES.match(body):
                continue
            if not (_ADDS.match(body) and self._adds_nothing(self.every[number])):
                yield number
