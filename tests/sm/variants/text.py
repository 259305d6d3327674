"""What each instruction reads and writes, by the names in nvdisasm's plain text.

The code that reorders takes this from nvdisasm's life ranges, which leave some registers out. The
text has them all, but for the further ones of a wide operand: it names only the first.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

from tbsched.sm.characterization.toolkit import Place, tool
from tbsched.sm.characterization.words import BYTES
from tbsched.sm.rewriting.effects import Step

_LINE = re.compile(r"/\*([0-9a-f]{4,})\*/ +(?:(@\S+) +)?([A-Z0-9_.]+) *([^;]*);")
_NAMED = re.compile(r"\b(UR|UP|R|P)(\d+)\b")
_PREDICATE = re.compile(r"U?P(\d|T)")
_REGISTER = re.compile(r"U?R(\d+|Z)")
_TESTS = re.compile(r"\w*SETP2?|U?PLOP3|VOTEU?")  # two results
_NO_RESULT = re.compile(r"ST\w*|RED\w*|BRX?|BRA|JMP|CALL|RET|BAR|WARPSYNC|NOP|EXIT")

Names = tuple[frozenset[Place], frozenset[Place]]


def names(cubin: bytes, kernel: str) -> dict[int, Names]:
    """Registers that are read and written, by the number of the instruction."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin)
        command = [tool("nvdisasm"), "-c", path]
        shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    begin = shown.index(f".text.{kernel},")
    found = {}
    for line in shown[begin:].splitlines():
        if line.startswith("//-----"):
            break
        if match := _LINE.search(line):
            at, guard, opcode, operands = match.groups()
            parts = operands.strip().replace(".reuse", "").split(", ")
            found[int(at, 16) // BYTES] = _of(guard or "", opcode.split(".")[0], parts)
    return found


def _of(guard: str, opcode: str, operands: list[str]) -> Names:
    results = _results(opcode, operands)
    mask = int(operands[-1], 16) if "PR" in operands else 0
    packed = {("P", number) for number in range(7) if mask >> number & 1}
    writes = _places(operands[:results]) | (packed if operands[0] == "PR" else set())
    reads = _places([guard, *operands[results:]]) | (packed if operands[0] != "PR" else set())
    return frozenset(reads), frozenset(writes)


def _results(opcode: str, operands: list[str]) -> int:
    """How many of the operands are written: they come first."""
    if _NO_RESULT.fullmatch(opcode) or "[" in operands[0]:
        return 0
    if opcode == "FCHK":
        return 1
    if _TESTS.fullmatch(opcode):
        return 2
    if _PREDICATE.fullmatch(operands[0]):
        return 2 if len(operands) > 1 and _REGISTER.fullmatch(operands[1]) else 1
    count = 1
    while count < min(3, len(operands)) and _PREDICATE.fullmatch(operands[count]):
        count += 1
    return count


def _places(texts: list[str]) -> set[Place]:
    return {(kind, int(number)) for text in texts for kind, number in _NAMED.findall(text)}


def with_names(steps: tuple[Step, ...], found: dict[int, Names]) -> tuple[Step, ...]:
    """The steps, with what the text names beside what they are said to touch."""
    return tuple(
        replace(step, reads=step.reads | found[k][0], writes=step.writes | found[k][1])
        for k, step in enumerate(steps)
    )
