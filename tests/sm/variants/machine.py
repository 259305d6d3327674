"""A literal machine: it executes steps one by one, and says from whom each got its operands.

A result of fixed latency is there so many clocks after its step went. One that a scoreboard tells
of is there when someone waits for that scoreboard, and not before; so is one without a scoreboard
once someone waits for a scoreboard that was set later, as such steps end in order. A step may read
its operands as late as its scoreboards allow. Whoever reads too soon, or overwrites too soon, is
marked. So is a step of unknown duration that comes too soon behind another one or a pinned one: a
barrier blocks some clocks after it went. Nothing here knows of blocks, edges or orders.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from tbsched.sm.characterization.toolkit import Instruction, Place
from tbsched.sm.characterization.words import NO_SCOREBOARD, Control
from tbsched.sm.rewriting.effects import Step

Who = tuple[int, int]  # number of a step in the original order, and how often it came before
Value = tuple[object, ...]
Pair = tuple[str, str, str]  # what for, and the opcodes of who came first and of who came second
SPACES = ("global", "shared", "local")


@dataclass
class Run:
    """What happened.

    Attributes:
        inputs: what each step read, from registers and from memory.
        final: what registers and memories hold in the end.
        marks: who came too soon.
        apart: the least clocks between two steps whose dependence no scoreboard tells of.
    """

    inputs: dict[Who, dict[object, Value]] = field(default_factory=dict)
    final: dict[object, Value] = field(default_factory=dict)
    marks: set[tuple[Who, Who, str]] = field(default_factory=set)
    apart: dict[Pair, int] = field(default_factory=dict)


@dataclass(eq=False)
class _Access:
    """A register that is written or read, and may still be."""

    what: str
    who: Who
    step: Step
    at: int
    over: bool = False


def walk(code: Sequence[Instruction], seed: int, most: int = 2000) -> list[int]:
    """Places that a thread comes to, which takes its branches by chance."""
    draw = random.Random(seed)
    found: list[int] = []
    at = 0
    while at < len(code) and len(found) < most:
        found.append(at)
        each = code[at]
        guarded = bool(each.guard) or (each.opcode == "BRA" and len(each.operands) > 1)
        if each.opcode.split(".")[0] in ("EXIT", "RET", "BRX") and not guarded:
            break
        if each.target == at:
            break
        taken = each.target is not None and (not guarded or draw.random() < 0.5)
        at = each.target if taken and each.target is not None else at + 1
    return found


class Machine:
    """Executes steps.

    Args:
        steps: in the original order.
        latency: clocks until a dependence is over that no scoreboard tells of; None: any number is
            enough, and the least is found out.
    """

    def __init__(self, steps: Sequence[Step], latency: Callable[[Pair], int] | None = None) -> None:
        self._steps, self._latency = steps, latency

    def run(self, order: Sequence[tuple[int, Control]], places: Iterable[int]) -> Run:
        """Executes what is at some places, one after the other.

        Args:
            order: at each place, which step is there and how it is issued.
            places: in which order a thread comes to them.
        """
        run = Run()
        registers: dict[Place, Value] = defaultdict(tuple)
        memories: dict[str, Value] = dict.fromkeys(SPACES, ())
        pending: dict[Place, list[_Access]] = defaultdict(list)
        told: dict[int, list[_Access]] = defaultdict(list)
        untold: list[_Access] = []
        often: Counter[int] = Counter()
        went: dict[str, tuple[Who, int]] = {}
        now = 0
        for place in places:
            number, control = order[place]
            step = self._steps[number]
            who = number, often[number]
            often[number] += 1
            for scoreboard in range(6):
                if control.waits >> scoreboard & 1:
                    for access in told.pop(scoreboard, []):
                        access.over = True
            for what, access in self._met(step, pending):
                if not access.over:
                    pair = what, access.step.opcode, step.opcode
                    self._judge(run, pair, access.who, who, now - access.at)
            for opcode, (other, at) in went.items() if step.slow else ():
                self._judge(run, ("order", opcode, step.opcode), other, who, now - at)
            if step.slow or step.pinned:
                went[step.opcode] = who, now
            run.inputs[who] = {p: registers[p] for p in step.reads}
            for space in () if step.space is None else (step.space,) if step.space else SPACES:
                run.inputs[who][space] = memories[space]
                if step.stores:
                    memories[space] = ("after", who, memories[space])
            made = [_Access("write", who, step, now) for _ in step.writes]
            read = [_Access("read", who, step, now) for _ in step.reads] if step.slow else []
            if not step.guard:  # what was there before is judged, and gone
                for p in step.writes:
                    pending[p] = []
            for p, access in (*zip(step.writes, made), *zip(step.reads, read)):  # noqa: B905
                pending[p] = [each for each in pending[p] if not each.over] + [access]
            for p in step.writes:
                value = (*who, p)
                registers[p] = (*value, "or", registers[p]) if step.guard else value
            if control.writes != NO_SCOREBOARD:
                told[control.writes] += made + read + untold
            elif step.slow:
                untold += made
            if control.reads != NO_SCOREBOARD:
                told[control.reads] += read + [each for each in untold if each.what == "read"]
            elif step.slow:
                untold += read
            untold = [each for each in untold if not each.over]
            now += max(1, control.stall)
        run.final = dict(registers) | dict(memories)
        return run

    @staticmethod
    def _met(step: Step, pending: dict[Place, list[_Access]]) -> Iterator[tuple[str, _Access]]:
        """Accesses that a step must not come before the end of."""
        for p in step.reads:
            yield from (("RAW", each) for each in pending[p] if each.what == "write")
        for p in step.writes:
            yield from ((each.what + " W", each) for each in pending[p])

    def _judge(self, run: Run, pair: Pair, first: Who, second: Who, apart: int) -> None:
        if self._latency is None:
            run.apart[pair] = min(apart, run.apart.get(pair, apart))
        elif apart < self._latency(pair):
            run.marks.add((first, second, pair[0]))


def same(first: Run, second: Run) -> bool:
    """Whether every step read the same, nobody came too soon, and all is the same in the end."""
    return (
        first.inputs == second.inputs
        and first.final == second.final
        and second.marks <= first.marks
    )
