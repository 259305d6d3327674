"""One instruction of a kernel: what it reads and writes, and where it goes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_GUARD = re.compile(r"^@(!?)(U?P\d|U?PT)\s+")
_BRANCH = re.compile(r"^BRA(?:\.\S+)?\s+(?:(!?)(U?P\d)\s*,\s*)?(?:\S+\s*,\s*)?0x([0-9a-f]+)")
_REGISTER = re.compile(r"(?<![\w.])(U?R\d+|U?P\d)(\.64)?(?![\w])")
DESCRIPTOR = re.compile(r"desc\[[^]]*\](?=\[)")
_LEAVES = re.compile(r"^(?:EXIT|RET|KILL|BPT)\b")
_CALL = re.compile(r"^CALL\.REL\S*\s+(?:\S+\s*,\s*)?0x([0-9a-f]+)")
CONSTANT = re.compile(r"c\[0x0\]\[(0x[0-9a-f]+|U?RZ)\]")  # of bank 0
CLOCK_READS = re.compile(r"^(?:CS2R|S2R|S2UR)\S*\s+\S+\s*,\s*SR_(?:CLOCK|GLOBALTIMER)")
ADDITIONS = re.compile(r"^(?:U?IADD|VIADD|U?IMAD(?!\.MOV)|FADD|FFMA|FMUL|U?SHF\.|U?LEA\b)")
_WIDE = re.compile(r"\.(?:64|WIDE)\b|\.WIDE\.|^CS2R |^LDC\.64|^S2UR64")
# Addresses of shared memory have 32 bits.
_SHARED = re.compile(r"^(?:LDS|LDSM|STS|STSM|ATOMS|SYNCS|LDGSTS|ARRIVES|LDL|STL)\b")
_WRITES_NOTHING = re.compile(
    r"^(?:ST|RED|BRA|EXIT|BAR|NOP|MEMBAR|ERRBAR|CCTL|NANOSLEEP|YIELD|WARPSYNC|BSYNC|BSSY|DEPBAR"
    r"|CGAERRBAR|RET|BREAK|KILL|FENCE)"
)


def constant_place(number: str) -> int:
    """Returns the place of a constant in its bank, in bytes: of ``0x210``, or of ``RZ``."""
    return 0 if number.endswith("RZ") else int(number, 16)


class Instruction:
    """An instruction: what it reads and writes, and where it may jump."""

    __slots__ = (
        "address", "body", "call_target", "guard", "guards", "is_conditional", "reads", "target",
        "text", "writes",
    )  # fmt: skip

    def __init__(self, address: int, text: str) -> None:
        self.address, self.text = address, text
        guard = _GUARD.match(text)
        self.guard = guard[2] if guard is not None and not guard[2].endswith("T") else None
        self.body = text[guard.end() :] if guard is not None else text
        never = guard is not None and guard[1] == "!" and guard[2].endswith("T")
        branch = _BRANCH.match(self.body)
        self.target = int(branch[3], 16) if branch is not None and not never else None
        call = _CALL.match(self.body)
        self.call_target = int(call[1], 16) if call is not None else None
        # The predicates that decide whether it is executed, or a branch taken: at most two, as of
        # ``@!P0 BRA P1, 0x50``.
        self.guards = frozenset[str]() if self.guard is None else frozenset([self.guard])
        if branch is not None and branch[2] is not None:
            self.guard = branch[2]
            self.guards |= {branch[2]}
        self.is_conditional = self.guard is not None or bool(
            branch is not None and branch[0].startswith(("BRA.DIV", "BRA.CONV"))
        )
        self.writes, self.reads = self._registers()

    def _registers(self) -> tuple[frozenset[str], frozenset[str]]:
        """Returns the registers that it writes, and those that it reads."""
        body = DESCRIPTOR.sub("", self.body)
        operation, _, rest = body.partition(" ")
        pieces = split_operands(rest)
        has_wide_addresses = _SHARED.match(operation) is None
        if _WRITES_NOTHING.match(operation):
            read = register_names(pieces, True, has_wide_addresses)
            return frozenset(), frozenset(read) | self.guards
        count = 1
        while count < len(pieces) and re.fullmatch(r"!?U?P[\dT]", pieces[count - 1].strip()):
            count += 1  # a result may come after one or two predicates
        # Two predicates, or a value and its carry, come first.
        results = pieces[:count]
        if count < len(pieces) and re.fullmatch(r"U?P\d", pieces[count].strip()):
            results = pieces[: count + 1]
        if operation.startswith(("ISETP", "FSETP", "DSETP", "UISETP", "PLOP3", "HSETP")):
            results = pieces[:2]
        if operation.startswith("VOTE"):  # the last one is what is voted on
            results = pieces[: max(len(pieces) - 1, 1)]
        while results and "[" in results[-1]:  # an address: SYNCS.PHASECHK.TRANS64 P0, [R6], R9
            results = results[:-1]
        written = set(register_names(results, False))
        if _WIDE.search(f"{operation} "):
            written |= {next_register(register) for register in written if "P" not in register}
        if operation.startswith(("LDG", "LD.", "LDC", "ULDC")) and ".128" in operation:
            for register in list(written):
                for _ in range(3):
                    register = next_register(register)
                    written.add(register)
        read = register_names(pieces[len(results) :], True, has_wide_addresses)
        return frozenset(written), frozenset(read) | self.guards

    @property
    def leaves(self) -> bool:
        """Whether it ends a thread, or a function."""
        return _LEAVES.match(self.body) is not None

    @property
    def falls_through(self) -> bool:
        """Whether the instruction behind it may come next."""
        return self.is_conditional or not (self.target is not None or self.leaves)

    @property
    def operands(self) -> list[str]:
        """What follows the operation, split at the commas outside brackets."""
        return [operand.strip() for operand in split_operands(self.body.partition(" ")[2])]


def registers_written(text: str) -> frozenset[str]:
    """Returns the registers and predicates that an instruction writes."""
    return Instruction(0, text).writes


def is_clock_or_count(text: str) -> bool:
    """Returns whether an instruction reads a clock, or adds to its own earlier result."""
    inst = Instruction(0, text)
    is_count = ADDITIONS.match(inst.body) and inst.writes & inst.reads
    return bool(CLOCK_READS.match(inst.body) or is_count)


def split_operands(text: str) -> list[str]:
    """Returns operands, split at the commas that are outside brackets."""
    pieces, depth, begin = [], 0, 0
    for position, letter in enumerate(text):
        depth += (letter in "[{(") - (letter in "]})")
        if letter == "," and depth == 0:
            pieces.append(text[begin:position])
            begin = position + 1
    return [*pieces, text[begin:]]


def register_names(
    pieces: Iterable[str], with_pairs: bool, has_wide_addresses: bool = True
) -> Iterator[str]:
    """Yields the registers of operands; with pairs, also the second of each 64-bit pair.

    ``has_wide_addresses``: whether registers in brackets are such pairs.
    """
    for piece in pieces:
        for row in _REGISTER.finditer(piece):
            yield row[1]
            is_wide = row[2] or (has_wide_addresses and "[" in piece)
            if with_pairs and is_wide and "P" not in row[1]:
                yield next_register(row[1])


def next_register(name: str) -> str:
    """Returns the register after another: ``R5`` after ``R4``."""
    prefix = "UR" if name.startswith("U") else "R"
    return f"{prefix}{int(name.removeprefix(prefix)) + 1}"
