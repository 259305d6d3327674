"""A literal machine: it executes steps one by one, and says from whom each got its operands.

A result of fixed latency is there so many clocks after the step went; one that a scoreboard tells
of is there when someone waits for that scoreboard, and not before. Operands are read when the step
goes; those of a step that sets a scoreboard when they have been read, as late as possible. Whoever
comes too soon finds the old value. Nothing here knows of blocks or dependences.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from tbsched.sm.characterization.toolkit import Instruction, Place
from tbsched.sm.characterization.words import NO_SCOREBOARD, Control
from tbsched.sm.rewriting.effects import Step

Who = tuple[int, int]  # number of a step in the original order, and how often it came before
Value = tuple[object, ...]
Latency = Callable[[Step, Step], int]  # from who writes to who reads
SPACES = ("global", "shared", "local")


@dataclass
class Run:
    """What happened.

    Attributes:
        inputs: what each step read, from registers and from memory.
        final: what registers and memories hold in the end.
        apart: the least clocks from a result of fixed latency to who reads it, by opcodes.
    """

    inputs: dict[Who, dict[object, Value]] = field(default_factory=dict)
    final: dict[object, Value] = field(default_factory=dict)
    apart: dict[tuple[str, str], int] = field(default_factory=dict)


@dataclass
class _Write:
    """A value, and since when it is there; None: only when its scoreboard was waited for."""

    value: Value
    by: Step | None = None
    at: int | None = 0
    old: _Write | None = None


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


def execute(
    steps: Sequence[Step],
    order: Sequence[tuple[int, Control]],
    places: Iterable[int],
    latency: Latency | None = None,
) -> Run:
    """Executes steps.

    Args:
        steps: in the original order.
        order: at each place, which step is there and how it is issued.
        places: in which order a thread comes to them.
        latency: clocks until a result can be read; None: any time, to find out the least.
    """
    run = Run()
    registers: dict[Place, _Write] = defaultdict(lambda: _Write(()))
    memories: dict[str, Value] = {space: () for space in SPACES}
    pending: dict[int, list[Callable[[], None]]] = defaultdict(list)
    often: Counter[int] = Counter()
    now = 0
    for place in places:
        number, control = order[place]
        step = steps[number]
        who = number, often[number]
        often[number] += 1
        for scoreboard in range(6):
            if control.waits >> scoreboard & 1:
                for finish in pending.pop(scoreboard, []):
                    finish()
        found = run.inputs[who] = {}
        in_guard = {p: _read(run, registers[p], step, now, latency) for p in step.guard}
        found.update(in_guard)

        def read(step: Step = step, found: dict[object, Value] = found, now: int = now) -> None:
            for p in step.reads:
                if p not in found:
                    found[p] = _read(run, registers[p], step, now, latency)

        if control.reads == NO_SCOREBOARD:
            read()
        else:
            pending[control.reads].append(read)
            if control.writes != NO_SCOREBOARD:
                pending[control.writes].append(read)
        spaces = () if step.space is None else (step.space,) if step.space else SPACES
        for space in spaces:
            found[space] = memories[space]
            if step.stores:
                memories[space] = ("after", who, memories[space])
        for p in step.writes:
            write = _Write((*who, p), step, now, registers[p])
            if step.guard:
                write.value = (*write.value, "or", registers[p].value)
            registers[p] = write
            if control.writes != NO_SCOREBOARD:
                write.at = None
                pending[control.writes].append(lambda write=write: setattr(write, "by", None))
        now += max(1, control.stall)
    for finishes in pending.values():
        for finish in finishes:
            finish()
    run.final = {p: write.value for p, write in registers.items()} | dict(memories)
    return run


def _read(run: Run, write: _Write, step: Step, now: int, latency: Latency | None) -> Value:
    """What a step finds in a register."""
    if write.by is None:
        return write.value
    if write.at is None:  # nobody waited for it
        return ("too soon", *write.value)
    apart = now - write.at
    key = write.by.opcode, step.opcode
    if latency is None:
        run.apart[key] = min(apart, run.apart.get(key, apart))
    elif apart < latency(write.by, step):
        return ("too soon", *write.value)
    return write.value


def same(first: Run, second: Run) -> bool:
    """Whether every step read the same, and in the end everything is the same."""
    return first.inputs == second.inputs and first.final == second.final
