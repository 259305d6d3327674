"""One instruction of a kernel: what it reads and writes, and where it goes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_GUARD = re.compile(r"^@(!?)(U?P\d|U?PT)\s+")
_BRANCH = re.compile(r"^BRA(?:\.\S+)?\s+(?:(!?)(U?P\d)\s*,\s*)?(?:\S+\s*,\s*)?0x([0-9a-f]+)")
_REGISTER = re.compile(r"(?<![\w.])(U?R\d+|U?P\d)(\.64)?(?![\w])")
DESCRIPTOR = re.compile(r"desc\[[^]]*\](?=\[)")
_CALL = re.compile(r"^CALL\.REL\S*\s+(?:\S+\s*,\s*)?0x([0-9a-f]+)")
CLOCK = re.compile(r"^(?:CS2R|S2R|S2UR)\S*\s+\S+\s*,\s*SR_(?:CLOCK|GLOBALTIMER)")
COUNTS = re.compile(r"^(?:U?IADD|VIADD|U?IMAD(?!\.MOV)|FADD|FFMA|FMUL|U?SHF\.|U?LEA\b)")
_WIDE = re.compile(r"\.(?:64|WIDE)\b|\.WIDE\.|^CS2R |^LDC\.64|^S2UR64")
_WRITES_NOTHING = re.compile(
    r"^(?:ST|RED|BRA|EXIT|BAR|NOP|MEMBAR|ERRBAR|CCTL|NANOSLEEP|YIELD|WARPSYNC|BSYNC|BSSY|DEPBAR"
    r"|CGAERRBAR|RET|BREAK|KILL|FENCE)"
)


class Instruction:
    """An instruction: what it reads and writes."""

    __slots__ = (
        "at", "body", "called", "guard", "is_conditional", "reads", "target", "text", "writes",
    )  # fmt: skip

    def __init__(self, at: int, text: str) -> None:
        self.at, self.text = at, text
        guard = _GUARD.match(text)
        self.guard = guard[2] if guard is not None and not guard[2].endswith("T") else None
        self.body = text[guard.end() :] if guard is not None else text
        never = guard is not None and guard[1] == "!" and guard[2].endswith("T")
        branch = _BRANCH.match(self.body)
        self.target = int(branch[3], 16) if branch is not None and not never else None
        called = _CALL.match(self.body)
        self.called = int(called[1], 16) if called is not None else None
        if branch is not None and branch[2] is not None:
            self.guard = branch[2]
        self.is_conditional = self.guard is not None or bool(
            branch is not None and branch[0].startswith(("BRA.DIV", "BRA.CONV"))
        )
        self.writes, self.reads = self._registers()

    def _registers(self) -> tuple[frozenset[str], frozenset[str]]:
        """Returns the registers that an instruction writes, and those that it reads."""
        body = DESCRIPTOR.sub("", self.body)
        operation, _, rest = body.partition(" ")
        pieces = split(rest)
        if _WRITES_NOTHING.match(operation):
            return frozenset(), frozenset(names(pieces, True)) | self.guards
        count = 1
        while count < len(pieces) and re.fullmatch(r"!?U?P[\dT]", pieces[count - 1].strip()):
            count += 1  # a result may come after one or two predicates
        # Two predicates, or a value and its carry, come first.
        first = pieces[:count]
        if count < len(pieces) and re.fullmatch(r"U?P\d", pieces[count].strip()):
            first = pieces[: count + 1]
        if operation.startswith(("ISETP", "FSETP", "DSETP", "UISETP", "PLOP3", "HSETP")):
            first = pieces[:2]
        if operation.startswith("VOTE"):  # the last one is what is voted on
            first = pieces[: max(len(pieces) - 1, 1)]
        written = set(names(first, False))
        if _WIDE.search(f"{operation} "):
            written |= {after(each) for each in written if "P" not in each}
        if operation.startswith(("LDG", "LD.", "LDC", "ULDC")) and ".128" in operation:
            for each in list(written):
                for _ in range(3):
                    each = after(each)
                    written.add(each)
        read = frozenset(names(pieces[len(first) :], True)) | self.guards
        return frozenset(written), read

    @property
    def guards(self) -> frozenset[str]:
        return frozenset() if self.guard is None else frozenset([self.guard])


def registers_written(text: str) -> frozenset[str]:
    """Returns the registers and predicates that an instruction writes."""
    return Instruction(0, text).writes


def counts(text: str) -> bool:
    """Returns whether an instruction reads a clock, or adds to its own earlier result."""
    own = Instruction(0, text)
    return bool(CLOCK.match(own.body) or (COUNTS.match(own.body) and own.writes & own.reads))


def split(text: str) -> list[str]:
    """Splits operands at commas that are in no brackets."""
    pieces, depth, begin = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter in "[{(") - (letter in "]})")
        if letter == "," and depth == 0:
            pieces.append(text[begin:at])
            begin = at + 1
    return [*pieces, text[begin:]]


def names(pieces: Iterable[str], with_pairs: bool) -> Iterator[str]:
    """Yields the registers of operands, the second of a pair, too."""
    for piece in pieces:
        for row in _REGISTER.finditer(piece):
            yield row[1]
            if with_pairs and (row[2] or "[" in piece) and "P" not in row[1]:
                yield after(row[1])


def after(name: str) -> str:
    head = "UR" if name.startswith("U") else "R"
    return f"{head}{int(name.removeprefix(head)) + 1}"
