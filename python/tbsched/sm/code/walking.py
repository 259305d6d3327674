"""One warp alone goes through machine code: in what order, and how long it waits for what."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tbsched.sm.characterization import words
from tbsched.sm.characterization.toolkit import Instruction
from tbsched.sm.characterization.words import Control
from tbsched.sm.code.classes import Class, Unit, class_of

TURNS = 8  # assumed for each loop, as the code does not contain the real number
_MAX_PATH = 20_000  # instructions of a path
_READ_WAIT = 20  # clocks until a memory instruction has read its registers
_REGISTER = re.compile(r"\bR(\d+)\b")
_BULK = ("UBLKCP", "UTMA")  # a register says how many bytes
_WIDTHS = (("128", 4), ("64", 2), ("WIDE", 2))


def path(code: tuple[Instruction, ...], max_turns: int = TURNS) -> list[int]:
    """Returns the indices of the instructions that a thread executes, in the order of execution.

    Forward branches under a condition are not taken, but for those to a loop where none would be
    met otherwise. Loops turn as often as given.
    """
    turns: dict[int, int] = {}
    executed: list[int] = []
    at = 0
    while at < len(code) and len(executed) < _MAX_PATH:
        executed.append(at)
        instruction = code[at]
        guarded = bool(instruction.guard) or (
            instruction.opcode == "BRA" and len(instruction.operands) > 1
        )
        if instruction.opcode == "EXIT" and not guarded:
            break
        target = instruction.target
        if target is not None and target <= at:
            if target == at:
                break  # what fills the end of the code
            turns[at] = turns.get(at, 0) + 1
            if turns[at] < max_turns:
                at = target
                continue
            _reset_turns(turns, target, at)
        elif target is not None and (not guarded or _leads_to_loop(code, at, target)):
            at = target
            continue
        at += 1
    return executed


def _leads_to_loop(code: tuple[Instruction, ...], at: int, target: int) -> bool:
    """Returns whether a forward branch leads to a loop, and there is no loop without it.

    The code between must leave: by an exit, or by a jump beyond the branch's target.
    """
    for k in range(at + 1, target):
        if _turns(code, k, at + 1):
            return False
        leaves = code[k].opcode in ("EXIT", "BRA") and not code[k].guard
        jump = code[k].target
        if leaves and (jump is None or jump > target):
            return any(_turns(code, n, target) for n in range(target, jump or len(code)))
    return False


def _turns(code: tuple[Instruction, ...], at: int, first: int) -> bool:
    """Returns whether an instruction branches back, no further than to the first."""
    target = code[at].target
    return target is not None and first <= target < at


def _reset_turns(turns: dict[int, int], first: int, last: int) -> None:
    """Resets the turns of loops within one that is left, in case it is entered again."""
    for branch in [branch_at for branch_at in turns if first <= branch_at <= last]:
        del turns[branch]


@dataclass(slots=True)
class Walk:
    """What a warp alone does on a path.

    Attributes:
        clocks: it takes.
        counts: instructions of each class.
        waited: clocks that it waited for memory, beyond what else it waits for.
        distances: for each measured opcode, the fewest instructions from one to the next that
            reads its result.
        uses: for each memory read, how many instructions follow until its result is needed.
        transfers: instructions between two accesses of memory.
        bytes: of memory that a thread touches.
        widest: of them, those of one access at most.
        in_bulk: accesses whose bytes the code does not say.
    """

    clocks: float = 0.0
    waited: float = 0.0
    counts: dict[Class, int] = field(default_factory=dict)
    distances: dict[str, int] = field(default_factory=dict)
    uses: list[int] = field(default_factory=list)
    transfers: list[int] = field(default_factory=list)
    bytes: int = 0
    widest: int = 0
    in_bulk: int = 0


def walk(
    code: tuple[Instruction, ...], latency: Callable[[Class], float], turns: int = TURNS
) -> Walk:
    """Simulates one warp that goes through the code alone. Returns its clocks, its waits for
    memory, and what it executes.

    Stalls and scoreboards are those of the control fields of the instructions.

    Args:
        code: of a kernel.
        latency: returns, for a class, the clocks from the issue of an instruction that sets a
            scoreboard until its result is there.
        turns: how often each loop is executed.
    """
    result = Walk()
    marks = [0.0] * words.SCOREBOARDS
    of_memory = [False] * words.SCOREBOARDS
    writers: dict[int, tuple[int, Class]] = {}
    last_access = None
    now = 0.0
    for position, at in enumerate(path(code, turns)):
        instruction = code[at]
        kind = class_of(instruction.opcode)
        control = Control.of(instruction.word)
        waits = [k for k in range(words.SCOREBOARDS) if control.waits >> k & 1]
        other_ready = max((marks[k] for k in waits if not of_memory[k]), default=0.0)
        ready = max((marks[k] for k in waits), default=0.0)
        result.waited += max(0.0, ready - max(now, other_ready))
        now = max(now, ready)
        result.counts[kind] = result.counts.get(kind, 0) + 1
        _note_registers(result, writers, position, instruction, kind)
        is_memory = kind.unit is Unit.MEMORY
        if is_memory:
            width = 4 * _width(instruction.opcode)
            result.bytes += width
            result.widest = max(result.widest, width)
            result.in_bulk += instruction.opcode.startswith(_BULK)
            if last_access is not None:
                result.transfers.append(position - last_access)
            last_access = position
        if control.writes != words.NO_SCOREBOARD:
            marks[control.writes] = now + latency(kind)
            of_memory[control.writes] = is_memory
        if control.reads != words.NO_SCOREBOARD:
            marks[control.reads] = max(marks[control.reads], now + _READ_WAIT)
        now += max(1, control.stall)
    result.clocks = max([now, *marks])
    return result


def _note_registers(
    result: Walk,
    writers: dict[int, tuple[int, Class]],
    position: int,
    instruction: Instruction,
    kind: Class,
) -> None:
    """Notes in ``result`` how far behind their writers registers are read, and in ``writers`` which
    registers this instruction writes."""
    written, read = _registers(instruction, kind)
    for register in read:
        if register not in writers:
            continue
        before, writer = writers[register]
        distance = position - before
        if writer.unit is Unit.MEMORY:
            result.uses.append(distance)
        elif writer.measured:
            known = result.distances.get(writer.measured, distance)
            result.distances[writer.measured] = min(known, distance)
        if writer.unit is Unit.MEMORY:
            del writers[register]
    for register in written:
        writers[register] = position, kind


def _registers(instruction: Instruction, kind: Class) -> tuple[list[int], list[int]]:
    """Returns the registers that an instruction writes, and those that it reads."""
    operands = list(instruction.operands)
    if not operands or kind.unit is Unit.CONTROL:
        return [], []
    stores = instruction.opcode.startswith(("ST", "RED"))
    first = next((k for k, text in enumerate(operands) if _REGISTER.search(text)), None)
    predicates = {text.strip() for text in operands[:2]} & {"PT", *(f"P{n}" for n in range(8))}
    written: list[int] = []
    if first is not None and not stores and not (predicates and first >= len(predicates) > 1):
        digits = _REGISTER.findall(operands.pop(first))
        width = _width(instruction.opcode) if kind.unit is not Unit.FP64 else 2
        written = list(range(int(digits[0]), int(digits[0]) + width))
    read = [int(register) for text in operands for register in _REGISTER.findall(text)]
    return written, read


def _width(opcode: str) -> int:
    """Returns how many registers the result of an instruction takes."""
    parts: Iterator[str] = iter(opcode.split("."))
    suffixes = set(parts)
    return next((width for name, width in _WIDTHS if name in suffixes), 1)
