"""Which integers the registers of a kernel can hold, and how often a loop can run at most."""

from __future__ import annotations

import functools
import re
import struct
from collections.abc import Callable, Iterable

from tbsched.hangs.constants import (
    MAX_BLOCKS,
    MAX_THREADS,
    Constants,
    Range,
)
from tbsched.hangs.control_flow import ControlFlow
from tbsched.hangs.instruction import CONSTANT, Instruction, constant_place
from tbsched.program.reachable import reachable

_MAX_DEPTH = 16  # instructions from a value back to what it is made of
_INTEGERS = range(-(1 << 31), 1 << 31)
_PREDICATE = re.compile(r"!?U?P[\dT]")
_SPECIAL: tuple[tuple[str, Range], ...] = (
    (r"SR_TID\.[XYZ]", (0, MAX_THREADS - 1)),
    (r"SR_LANEID", (0, 31)),
    (r"SR_CTAID\.[XYZ]", (0, MAX_BLOCKS - 1)),
    (r"SR_CgaCtaId", (0, 15)),
    (r"SRZ", (0, 0)),
)
_TEST = re.compile(r"^U?ISETP\.(NE|LT|LE|GT|GE)\b")
_EQUALS = re.compile(r"^U?ISETP\.EQ\b")
_STEP = re.compile(r"^(?:U?IADD3|VIADD|IMAD\.IADD)\s")
_PRODUCT_STEP = re.compile(r"^U?IMAD\s")  # it adds the product of two others
_IS_NEGATED = re.compile(r"@!|BRA\S*\s+!")  # a branch is taken if its predicate is false
_MIRRORED = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE", "NE": "NE"}
_NOT = {"LT": "GE", "GE": "LT", "GT": "LE", "LE": "GT", "NE": "EQ"}
_WARP = 32  # threads
# Ends a loop that the compiler makes where a register must be the same in all threads of a warp: a
# turn for each value.
_FOR_EACH_VALUE = "BRA.U.ANY"
_AND = "0xc0"  # the table of LOP3 for its first two operands


class Ranges:
    """The values that registers can have, by all ways that lead to an instruction."""

    def __init__(
        self,
        every: list[Instruction],
        reached: set[int],
        loops: Iterable[range],
        exits: Callable[[range], Iterable[Instruction]],
        constants: Constants,
    ) -> None:
        """Takes the code of a kernel.

        Args:
            every: its instructions.
            reached: numbers of those that can be reached.
            loops: their numbers in each loop.
            exits: returns the branches that may leave a loop.
            constants: what is known of constant bank 0.
        """
        self.constants = constants
        self.every, self.reached = every, reached
        self.loops, self.exits = tuple(loops), exits
        self.place = {own.address: number for number, own in enumerate(every)}
        self.known: dict[tuple[str, int], Range | None] = {}
        self.known_turns: dict[range, int | None] = {}

    @functools.cached_property
    def code(self) -> ControlFlow:
        return ControlFlow(self.every, self.reached)

    @functools.cached_property
    def written_by_calls(self) -> set[str]:
        """The registers that functions write which the kernel calls."""
        called = (self.every[at].call_target for at in self.reached)
        first = [self.place[each] for each in called if each in self.place]
        inside = reachable(first, lambda at: self.code.successors.get(at, ()))
        return {name for at in inside for name in self.every[at].writes}

    def value(self, operand: str, at: int, depth: int = _MAX_DEPTH) -> Range | None:
        """Returns what an operand of an instruction can be; None: anything."""
        text = operand.strip().removesuffix(".reuse")
        if text in ("RZ", "URZ", "SRZ"):
            return 0, 0
        if re.fullmatch(r"-?0x[0-9a-f]+", text):
            number = int(text, 16)
            number -= (1 << 32) if number >= 1 << 31 else 0
            return number, number
        constant = CONSTANT.fullmatch(text)
        if constant is not None:
            return self.constants.get(constant_place(constant[1]))
        if text.startswith("-"):
            own = self.value(text[1:], at, depth)
            return None if own is None else (-own[1], -own[0])
        if not re.fullmatch(r"U?R\d+", text) or depth == 0 or at not in self.code.predecessors:
            return None
        if (text, at) not in self.known:
            self.known[text, at] = None  # what is made of itself can be anything
            writers = self.code.writers(text, at)
            self.known[text, at] = self._written(text, writers, depth)
        return self.known[text, at]

    def _written(self, name: str, writers: Iterable[int], depth: int) -> Range | None:
        """Returns what a register can be after one of some instructions has written it."""
        if depth == 0:
            return None
        if name in self.written_by_calls:
            return None
        found = [self._result(name, writer, depth - 1) for writer in writers]
        known = [each for each in found if each is not None]
        if not known or len(known) < len(found):
            return None
        return min(low for low, _ in known), max(high for _, high in known)

    def _result(self, name: str, number: int, depth: int) -> Range | None:
        """Returns what an instruction can write to a register."""
        counted = self._counted(name, number, depth)
        if counted is not None:
            return counted
        operation = self.every[number].body.partition(" ")[0]
        operands = self.every[number].operands
        operands = [each for each in operands if not re.fullmatch(r"!?U?P[\dT]", each)] or [""]
        for pattern, of_special in _SPECIAL:
            if operation.startswith(("S2R", "S2UR", "CS2R")) and re.fullmatch(
                pattern, operands[-1]
            ):
                return of_special
        base, *kinds = operation.removeprefix("U").split(".")
        constant = CONSTANT.fullmatch(operands[-1])
        if base in ("LDC", "LDCU") and kinds == ["64"] and constant is not None:
            half = 4 * (operands[0] != name)  # the second register of the pair has the second half
            return self.constants.get(constant_place(constant[1]) + half)
        if operands[:1] != [name]:
            return None
        if base == "HFMA2" and operands[1:3] == ["-RZ", "RZ"]:
            return _of_halves(*operands[3:])
        if base == "SHF":
            return self._shifted(kinds, operands[1:], number, depth)
        if {"X", "WIDE", "HI"} & {*kinds}:
            return None
        values = [self.value(each, number, depth) for each in operands[1:]]
        match base, values:
            case (("MOV" | "LDC" | "LDCU" | "R2UR"), [one]):
                return one
            case (("VIADD" | "IADD3"), [*terms]):
                return _sum(*terms)
            case "IMAD", [one, two, three]:
                return _sum(_product(one, two), three)
            case "LEA", [one, two, (int(shift), int(_))] if 0 <= shift < 31:
                return _sum(_product(one, (1 << shift, 1 << shift)), two)
            case "LOP3", [(a, b), (c, d), *_] if operands[-1] == _AND and a == b and c == d:
                return a & c, a & c
            case "LOP3", [one, two, *_] if operands[-1] == _AND:
                masks = [each[1] for each in (one, two) if each is not None and each[0] >= 0]
                return (0, min(masks)) if masks else None
            case (("SEL" | "VIMNMX" | "IMNMX"), [(int(), int()) as one, (int(), int()) as two]):
                return min(one[0], two[0]), max(one[1], two[1])
        return None

    def _shifted(self, kinds: list[str], operands: list[str], at: int, depth: int) -> Range | None:
        """Returns what a value can be that was shifted by a constant."""
        low, by, high = (self.value(each, at, depth) for each in operands[:3])
        if by is None or by[0] != by[1] or not 0 <= by[0] < 31:
            return None
        if kinds == ["L", "U32"] and operands[2] in ("RZ", "URZ"):
            return _product(low, (1 << by[0], 1 << by[0]))
        if kinds == ["R", "U32", "HI"] and operands[0] in ("RZ", "URZ"):
            if high is not None and high[0] >= 0:
                return high[0] >> by[0], high[1] >> by[0]
            return (0, (1 << (32 - by[0])) - 1) if by[0] else None
        return None

    def _counted(self, name: str, step: int, depth: int) -> Range | None:
        """Returns what a register can be to which each turn of a loop adds something."""
        loop = min((each for each in self.loops if step in each), key=len, default=None)
        if loop is None or sum(name in self.every[at].writes for at in loop) != 1:
            return None
        by, turns = self._step(name, step, depth), self.turns(loop, depth)
        if by is None or turns is None:
            return None
        return _sum(self._at_entry(name, loop, depth), _product(by, (0, turns)))

    def turns(self, loop: range, depth: int = _MAX_DEPTH) -> int | None:
        """Returns how often a loop runs at most; None: unknown."""
        if loop not in self.known_turns:
            self.known_turns[loop] = None  # what depends on itself
            self.known_turns[loop] = self._least_turns(loop, depth, comes_to_limit=False)
        return self.known_turns[loop]

    def _least_turns(self, loop: range, depth: int, comes_to_limit: bool) -> int | None:
        """Returns the least of what the branches that leave a loop allow, as ``_turns_by``."""
        branches = (self.place[each.address] for each in self.exits(loop))
        found = [self._turns_by(each, loop, depth, comes_to_limit) for each in branches]
        return min((each[1] for each in found if each is not None), default=None)

    def turns_at_least(self, loop: range) -> int:
        """Returns how often a loop surely runs once it has begun: one way leads out of it, by a
        count; 1: unknown."""
        branches = [self.place[each.address] for each in self.exits(loop)]
        found = self._turns_by(branches[0], loop, _MAX_DEPTH, False) if len(branches) == 1 else None
        return 1 if found is None else max(found[0], 1)

    def turns_of_work(self, loop: range) -> int | None:
        """Returns how often a loop runs at most, if it does what it was written for; None: unknown.

        A loop that ends at one value of its counter is taken to come to it. Where it passes it, it
        runs for hours, and nobody wrote it for that.
        """
        return self._least_turns(loop, _MAX_DEPTH, comes_to_limit=True)

    def _turns_by(
        self, leaving: int, loop: range, depth: int, comes_to_limit: bool
    ) -> Range | None:
        """Returns how often a loop runs at least, if by no other branch, and at most, by one branch
        that may leave it; None: unknown.

        Each turn must add to a counter, and compare it with a limit that it comes closer to.
        ``comes_to_limit``: it is known to have the value of the limit, if one value is the limit.
        """
        own = self.every[leaving]
        if own.body.startswith(_FOR_EACH_VALUE):
            return 1, _WARP
        comparison = self._comparison_of(leaving)
        if comparison is None or comparison[0] not in loop:
            return None
        test, compares, first, second = comparison
        if self._counter_of(first, test, loop, depth) is None:
            first, second, compares = second, first, _MIRRORED[compares]
        limit = self.value(second, test, depth)
        counter, ahead = self._counter_of(first, test, loop, depth) or ("", None)
        steps = [at for at in loop if counter in self.every[at].writes]
        if len(steps) != 1 or limit is None or ahead is None:
            return None
        (step,) = steps
        by = self._step(counter, step, depth)
        begin = _sum(self._at_entry(counter, loop, depth), ahead)
        if by is None or begin is None:
            return None
        if not all(self._is_in_each_turn(at, loop) for at in (step, test, leaving)):
            return None
        stays = compares if self._stays_if_true(leaving, loop) else _NOT[compares]
        is_unsigned = ".U32" in self.every[test].body.partition(" ")[0]
        if is_unsigned and min(begin[0], limit[0]) < 0:
            return None
        inner = [each for each in self.loops if step in each and len(each) < len(loop)]
        if any(each.start != loop.start or stays == "NE" for each in inner):
            return None
        rises = by[0] > 0
        if stays == "NE" and comes_to_limit:
            return 1, _turns_over(max(abs(limit[1] - begin[0]), abs(begin[1] - limit[0])), by)
        if stays == "NE":
            if not self._comes_to(limit, by, begin) or not self._is_passed(
                counter, limit[0], begin, loop
            ):
                return None
        elif stays not in (("LT", "LE") if rises else ("GT", "GE")):
            return None
        last = limit[1] + by[1] if rises else limit[0] + by[0]
        if last not in _INTEGERS or (is_unsigned and last < 0):
            return None
        near, far = limit[0] - begin[1], limit[1] - begin[0]
        if not rises:
            near, far = begin[0] - limit[1], begin[1] - limit[0]
        return near // max(map(abs, by)), _turns_over(far, by)

    def _is_stepped(self, name: str, test: int, loop: range) -> bool:
        """Returns whether a turn of a loop makes what a test reads of what it was before."""
        return any(
            at in loop and name in self.every[at].reads for at in self.code.writers(name, test)
        )

    def _counter_of(
        self, name: str, test: int, loop: range, depth: int
    ) -> tuple[str, Range | None] | None:
        """Returns the counter of which a test reads a value, and how far that is ahead of it.

        That is nothing, or what each turn adds to it without keeping it. None: it reads no counter.
        """
        if self._is_stepped(name, test, loop):
            return name, (0, 0)
        sums = [at for at in self.code.writers(name, test) if at in loop]
        own = self.every[sums[0]] if len(sums) == 1 else None
        if own is None or not _STEP.match(own.body) or own.guard is not None:
            return None
        result, *operands = [each.removesuffix(".reuse") for each in own.operands]
        if result != name or (own.body.startswith("IMAD.IADD") and operands.pop(1) != "0x1"):
            return None
        counters = [each for each in operands if self._is_stepped(each, sums[0], loop)]
        others = [self.value(each, sums[0], depth) for each in operands if each not in counters]
        return (counters[0], _sum(*others)) if len(counters) == 1 else None

    def _comparison_of(self, leaving: int) -> tuple[int, str, str, str] | None:
        """Returns the comparison of two integers that alone decides whether a branch is taken.

        Its index, how it compares, such as ``"LT"``, and the two operands; None: there is no such
        one.
        """
        test = self.code.test_of(leaving)
        if test is None:
            return None
        kind, operands = _TEST.match(self.every[test].body), self.every[test].operands
        if kind is None or not self._is_alone(operands):
            return None
        first, second = (operand.removesuffix(".reuse") for operand in operands[2:4])
        return test, kind[1], first, second

    def never_leaves(self, leaving: int, loop: range) -> bool:
        """Returns whether a branch never leaves a loop, by the values that it compares."""
        if self.every[leaving].target is None:
            return False
        return self._is_never(leaving, not self._stays_if_true(leaving, loop))

    def never_jumps(self, branch: int) -> bool:
        """Returns whether a branch is never taken, by the values that it compares."""
        return self._is_never(branch, not _IS_NEGATED.match(self.every[branch].text))

    def never_passes(self, branch: int) -> bool:
        """Returns whether a branch is always taken, by the values that it compares."""
        return self._is_never(branch, bool(_IS_NEGATED.match(self.every[branch].text)))

    def _is_never(self, branch: int, outcome: bool) -> bool:
        """Returns whether the comparison that decides a branch never has an outcome."""
        comparison = self._comparison_of(branch)
        if comparison is None:
            return False
        test, compares, first, second = comparison
        operation = self.every[test].body.partition(" ")[0]
        left, right = self.value(first, test), self.value(second, test)
        if left is None or right is None or ".EX" in operation:
            return False
        if ".U32" in operation and min(left[0], right[0]) < 0:
            return False
        match compares if outcome else _NOT[compares]:
            case "LT":
                return left[0] >= right[1]
            case "LE":
                return left[0] > right[1]
            case "GT":
                return left[1] <= right[0]
            case "GE":
                return left[1] < right[0]
            case "EQ":
                return left[1] < right[0] or right[1] < left[0]
        return left == right and left[0] == left[1]

    def turns_of_part(self, loop: range) -> int | None:
        """Returns how often a loop runs at most if a compiler has made it of a longer one.

        Then it comes to its limit, as it begins where the parts before it have stopped. None: it is
        no such loop, or the number is unknown.
        """
        for exit_ in self.exits(loop):
            comparison = self._comparison_of(self.place[exit_.address])
            if comparison is None or comparison[0] not in loop:
                continue
            test, compares, counter, second = comparison
            if not self._is_stepped(counter, test, loop):
                counter, second, compares = second, counter, _MIRRORED[compares]
            limit = self.value(second, test)
            steps = [at for at in loop if counter in self.every[at].writes]
            by = self._step(counter, steps[0], _MAX_DEPTH) if len(steps) == 1 else None
            if by is None or limit is None or not self._is_in_each_turn(steps[0], loop):
                continue
            leaving = self.place[exit_.address]
            stays = compares if self._stays_if_true(leaving, loop) else _NOT[compares]
            if stays not in ("NE", *(("LT", "LE") if by[0] > 0 else ("GT", "GE"))):
                continue
            begin = self._before_all_steps(counter, loop, by[0] > 0)
            if begin is not None:
                return _turns_over(limit[1] - begin[0] if by[0] > 0 else begin[1] - limit[0], by)
        return None

    def _before_all_steps(self, counter: str, loop: range, rises: bool) -> Range | None:
        """Returns what a counter can be before the steps in one direction that lead to a loop."""
        ways = {at for at in self.code.predecessors.get(loop.start, ()) if at not in loop}

        def is_step(at: int) -> bool:
            """Returns whether an instruction moves the counter in that direction."""
            by = self._step(counter, at, _MAX_DEPTH)
            return by is not None and (by[0] > 0) == rises

        found = reachable(
            self.code.writers_before(counter, ways),
            lambda at: self.code.writers(counter, at) if is_step(at) else (),
        )
        first = [at for at in found if not is_step(at)]
        return self._written(counter, first, _MAX_DEPTH)

    def steps(self, step: int, loop: range) -> int | None:
        """Returns how often an instruction moves a counter in all turns of a loop; None: unknown.

        Its guard must let it only as long as the counter has not come to a limit.
        """
        own = self.every[step]
        (counter, *others) = sorted(own.writes) or [""]
        test = self.code.test_of(step)
        if others or test is None or test not in range(loop.start, step):
            return None
        operation = self.every[test].body.partition(" ")[0]
        kind, operands = _TEST.match(operation), self.every[test].operands
        is_negated = own.text.startswith("@!")
        # A comparison that another condition joins: not both, or neither, of them is true.
        holds = ".OR" if is_negated else ".AND"
        if kind is None or len(operands) != 5 or operands[2].removesuffix(".reuse") != counter:
            return None
        if holds not in operation and operands[4] not in ("PT", "UPT"):
            return None
        if ".U32" in operation or not self._is_in_each_turn(test, loop):
            return None
        if sum(counter in self.every[at].writes for at in loop) != 1:
            return None
        by, begin = self._step(counter, step, _MAX_DEPTH), self._at_entry(counter, loop, _MAX_DEPTH)
        limit = self.value(operands[3], test)
        if by is None or begin is None or limit is None:
            return None
        rises = by[0] > 0
        moves = _NOT[kind[1]] if is_negated else kind[1]
        if moves not in (("LT", "LE") if rises else ("GT", "GE")):
            return None
        far = limit[1] - begin[0] if rises else begin[1] - limit[0]
        return max(far, 0) // min(map(abs, by)) + 2

    def is_idle(self, counter: str, step: int) -> bool:
        """Returns whether an instruction adds nothing to a register."""
        return self._added(counter, step, _MAX_DEPTH) == (0, 0)

    def lowers(self, counter: str, step: int) -> bool:
        """Returns whether an instruction makes a register less than it was."""
        by = self._step(counter, step, _MAX_DEPTH)
        return by is not None and by[1] < 0

    def _comes_to(self, limit: Range, by: Range, begin: Range) -> bool:
        """Returns whether a counter has the one value of its limit after some steps."""
        if limit[0] != limit[1] or by[0] != by[1]:
            return False
        far = (limit[0] - begin[0]) * by[0], (limit[0] - begin[1]) * by[0]
        is_whole = begin[0] == begin[1] and (limit[0] - begin[0]) % by[0] == 0
        return min(far) >= 0 and (is_whole or abs(by[0]) == 1)

    def _is_alone(self, operands: list[str]) -> bool:
        """Returns whether a test depends on one comparison alone: ``P0, PT, R1, 0x8, PT``."""
        return len(operands) == 5 and operands[4] in ("PT", "UPT") and operands[1].endswith("PT")

    def _step(self, counter: str, step: int, depth: int) -> Range | None:
        """Returns what an instruction adds to a counter; None: it may be nothing, or is unknown."""
        by = self._added(counter, step, depth)
        return None if by is None or by[0] <= 0 <= by[1] else by

    def _added(self, counter: str, step: int, depth: int) -> Range | None:
        """Returns what an instruction adds to a register; None: unknown."""
        body = self.every[step].body
        operands = [each.removesuffix(".reuse") for each in self.every[step].operands]
        operands = [each for each in operands if not _PREDICATE.fullmatch(each)]
        if _PRODUCT_STEP.match(body) and operands[0] == operands[-1] == counter:
            return _product(*(self.value(each, step, depth) for each in operands[1:3]))
        if not _STEP.match(body) or counter not in self.every[step].reads:
            return None
        is_product = self.every[step].body.startswith("IMAD.IADD")
        if is_product and (len(operands) != 4 or operands.pop(2) != "0x1"):
            return None  # it subtracts
        if operands[0] != counter or operands[1:].count(counter) != 1:
            return None
        operands.remove(counter)
        operands.remove(counter)
        return _sum(*(self.value(each, step, depth) for each in operands))

    def _is_in_each_turn(self, number: int, loop: range) -> bool:
        """Returns whether no branch of a loop leads past an instruction that is always executed."""
        own = self.every[number]
        jumps = [(at, self.place.get(self.every[at].target or 0, -1)) for at in loop]
        is_passed = any(at < number < to for at, to in jumps if to in loop)
        return not is_passed and (own.guard is None or own.target is not None)

    def _at_entry(self, counter: str, loop: range, depth: int) -> Range | None:
        """Returns what a counter can be when a loop begins."""
        ways = {
            at for number in loop for at in self.code.predecessors.get(number, ()) if at not in loop
        }
        writers = [*self.code.writers_before(counter, ways)]
        if any(at in loop for at in writers):
            return None
        return self._written(counter, writers, depth)

    def _stays_if_true(self, leaving: int, loop: range) -> bool:
        """Returns whether a branch goes on with a loop where the comparison is true."""
        own = self.every[leaving]
        goes_inside = own.target is not None and self.place.get(own.target) in loop
        return goes_inside != bool(_IS_NEGATED.match(own.text))

    def _is_passed(self, counter: str, limit: int, begin: Range, loop: range) -> bool:
        """Returns whether a loop is not begun with a counter that is at its limit already.

        Then a branch leads past it that depends on what the counter begins with.
        """
        if not begin[0] <= limit <= begin[1]:
            return True
        ways = {at for at in self.code.predecessors.get(loop.start, ()) if at not in loop}
        origins = self._copied_from(counter, ways)
        for at in self.reached:
            own = self.every[at]
            if at >= loop.start or len(own.guards) != 1 or own.target is None:
                continue
            leads_past = own.target > self.every[loop.stop - 1].address
            if leads_past and any(
                self._compares(test, limit, origins)
                for guard in own.guards
                for test in self.code.writers(guard, at)
            ):
                return True
        return False

    def _compares(self, test: int, limit: int, origins: set[int]) -> bool:
        """Returns whether an instruction compares a value of one of some others with a limit."""
        own = self.every[test]
        if own.body.startswith(("LOP3", "ULOP3")):  # the predicate is whether its result is not 0
            return test in origins and limit == 0
        operands = own.operands
        return (
            bool(_TEST.match(own.body) or _EQUALS.match(own.body))
            and len(operands) == 5
            and self.value(operands[3], test) == (limit, limit)
            and any(origins & {*self.code.writers(name, test)} for name in own.reads)
        )

    def _copied_from(self, name: str, ways: Iterable[int]) -> set[int]:
        """Returns the instructions that a value is of, through those that only copy it."""
        found: set[int] = set()
        for writer in self.code.writers_before(name, ways):
            found.add(writer)
            if re.match(r"U?MOV|IMAD\.MOV", self.every[writer].body):
                for each in self.every[writer].reads:
                    found |= {*self.code.writers(each, writer)}
        return found


def _turns_over(far: int, by: Range) -> int:
    """Returns in how many turns at most a counter covers a distance, by so much in each; with one
    before it begins, and one after it has come there."""
    return max(far, 0) // min(map(abs, by)) + 2


def _of_halves(upper: str, lower: str) -> Range | None:
    """Returns the value of 4 bytes of which two halves are given as floating-point numbers."""
    try:
        (value,) = struct.unpack("<i", struct.pack("<ee", float(lower), float(upper)))
    except (ValueError, OverflowError):
        return None
    return value, value


def _sum(*values: Range | None) -> Range | None:
    low = high = 0
    for each in values:
        if each is None:
            return None
        low, high = low + each[0], high + each[1]
    return (low, high) if low in _INTEGERS and high in _INTEGERS else None


def _product(one: Range | None, other: Range | None) -> Range | None:
    if (0, 0) in (one, other):
        return 0, 0
    if one is None or other is None:
        return None
    ends = [a * b for a in one for b in other]
    found = min(ends), max(ends)
    return found if found[0] in _INTEGERS and found[1] in _INTEGERS else None
