"""Random programs of steps, compiled so simply that they are right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from hypothesis import strategies as st

from sm.variants.machine import Pair
from tbsched.sm.characterization.toolkit import Instruction, Place
from tbsched.sm.characterization.words import NO_SCOREBOARD, Control
from tbsched.sm.rewriting.blocks import blocks_of
from tbsched.sm.rewriting.dependences import compiled, edges
from tbsched.sm.rewriting.effects import Listing, Step
from tbsched.sm.rewriting.orders import Order, reordered

Written = list[tuple[int, Control]]


def plain(steps: Sequence[Step]) -> Written:
    """The order that was given."""
    return [(k, step.control) for k, step in enumerate(steps)]


def moved(listed: Listing, order: Order, seed: int = 0) -> Written:
    """Another order of all blocks."""
    blocks = blocks_of(listed)
    shown = compiled(blocks)
    found: Written = []
    for block in blocks:
        needed = edges(block, shown)
        steps = reordered(block, shown, needed, order, seed) if block.movable else None
        found += [(block.first + k, c) for k, c in steps or plain(block.steps)]
    return found


# Clocks until a result can be read; what is not here has a scoreboard.
LATENCIES = {"FADD": 4, "IMAD": 5, "ISETP": 13, "DFMA": 16}
SLOW = ("LDG", "STG", "LDS", "MUFU")
BLOCKS = 6  # clocks after a barrier until it does
_SPACES = {"LDG": "global", "STG": "global", "LDS": "shared"}
_REGISTERS = [("R", number) for number in range(6)] + [("P", 0), ("P", 1)]
_GAP = Step("NOP", Control(15), pinned=True)


def latency(pair: Pair) -> int:
    """What the literal machine takes for true."""
    if pair[0] == "order":
        return BLOCKS if pair[1] == "BAR" else 1
    return LATENCIES.get(pair[1], 1000)


@st.composite
def steps(draw: st.DrawFn) -> Step:
    """One that has not been compiled."""
    opcode = draw(st.sampled_from([*LATENCIES, *SLOW, "BAR"]))
    if opcode == "BAR":
        return Step(opcode, Control(1), pinned=True)
    some = st.lists(st.sampled_from(_REGISTERS), min_size=1, max_size=2).map(frozenset)
    reads = draw(some)
    writes = frozenset() if opcode == "STG" else draw(some)
    guard = draw(st.sampled_from([frozenset(), frozenset(), frozenset({("P", 0)})]))
    return Step(
        opcode, Control(1), reads | guard, writes, guard, False, _SPACES.get(opcode),
        opcode == "STG",
    )  # fmt: skip


@dataclass
class _Compiler:
    """Stalls and scoreboards such that nothing comes too soon on the straight way."""

    done: list[Step] = field(default_factory=list)
    now: int = 0
    written: dict[Place, list[tuple[int, int]]] = field(default_factory=dict)  # step, when
    read: dict[Place, list[int]] = field(default_factory=dict)
    waited: dict[int, int] = field(default_factory=dict)  # scoreboard, before which step
    barrier: int = -BLOCKS  # when the last one went

    def add(self, step: Step, scoreboards: tuple[int, int], told: bool) -> None:
        """One more. Scoreboards for its results and its operands; untold: none, if it can be."""
        waits, until = set(), self.now
        if step.opcode in SLOW:
            until = max(until, self.barrier + BLOCKS)
        for place in step.reads | step.writes:
            for number, at in self.written.get(place, []):
                first = self.done[number]
                if first.opcode in LATENCIES:
                    until = max(until, at + LATENCIES[first.opcode])
                else:
                    waits.add(self.told_by(number, results=True))
        for place in step.writes:
            waits |= {self.told_by(k, results=False) for k in self.read.get(place, [])}
        self._pass(until)
        # Who waited before need not wait again.
        fresh = {s for s, since in waits if self.waited.get(s, -1) <= since}
        number = len(self.done)
        self.waited |= dict.fromkeys(fresh, number)
        control = Control(1, waits=sum(1 << scoreboard for scoreboard in fresh))
        slow = step.opcode in SLOW
        if slow and told:
            results, operands = scoreboards
            control = replace(
                control, writes=results if step.writes else NO_SCOREBOARD, reads=operands
            )
        self._append(replace(step, control=control))
        for place in step.writes:
            if not step.guard:
                self.written[place] = []
                self.read[place] = []
            self.written.setdefault(place, []).append((number, self.now - 1))
        for place in step.reads if slow else ():
            self.read.setdefault(place, []).append(number)

    def told_by(self, number: int, results: bool) -> tuple[int, int]:
        """The scoreboard that tells of a slow step, or of a later one; and where it is set."""
        for at, step in enumerate(self.done[number:], number):
            sets = [step.control.writes] if results else [step.control.writes, step.control.reads]
            for scoreboard in sets:
                if scoreboard != NO_SCOREBOARD:
                    return scoreboard, at
        first = self.done[number]
        self.done[number] = replace(first, control=replace(first.control, writes=5))
        return 5, number

    def _pass(self, until: int) -> None:
        while until > self.now:
            last = self.done[-1]
            more = min(until - self.now, 15 - last.control.stall)
            if more <= 0:
                self._append(replace(_GAP, control=Control(1)))
                continue
            longer = replace(last.control, stall=last.control.stall + more)
            self.done[-1] = replace(last, control=longer)
            self.now += more

    def _append(self, step: Step) -> None:
        if step.opcode == "BAR":
            self.barrier = self.now
        self.done.append(step)
        self.now += step.clocks


@st.composite
def programs(draw: st.DrawFn) -> Listing:
    """Steps that are right in their order; perhaps all of it is a loop, left by chance."""
    compiler = _Compiler()
    marks = st.integers(0, 4)
    for step in draw(st.lists(steps(), min_size=2, max_size=24)):
        compiler.add(step, (draw(marks), draw(marks)), draw(st.booleans()))
    for number, step in enumerate(compiler.done):
        if step.opcode in SLOW:
            compiler.told_by(number, results=bool(step.writes))
    # Nothing is pending where it begins anew.
    end = Step("NOP", Control(15, waits=0b111111), pinned=True)
    done = [*compiler.done, end, _GAP, _GAP]
    labels = frozenset(draw(st.lists(st.integers(0, len(done) - 1), max_size=2)))
    code = [Instruction(step.opcode, (), "", None, 0) for step in done]
    code.append(Instruction("BRA", (), "@P0", 0, 0))
    done.append(Step("BRA", Control(5), pinned=True))
    return Listing(tuple(done), tuple(code), labels | {0})
