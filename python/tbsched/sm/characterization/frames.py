"""A compiled kernel with a loop in it: where the loop is, and what an instruction looks like."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import resources

import jinja2

from tbsched.sm.characterization import words
from tbsched.sm.characterization.opcodes import Opcode
from tbsched.sm.characterization.toolkit import Instruction, assemble, code_of, disassemble

ITEMS = 480  # a multiple of most distances; 7.5 KiB, so that the instruction caches hold the loop
RECORD_BYTES = 48
BOARD_BYTES = 64  # before the words of the SMs
KERNEL = "tbsched_loop"
_FILLERS = ("PMTRIG", "NOP")
_CONTROL = 3  # instructions that count, test and branch
_RING_BYTES = 64  # a power of two, with a word for each chain
_TRIES = 1 << 20  # looks until a block gives up; 1 s or more
_SETTLE = 4096  # clocks from the last block's arrival to the start
_TYPES = {"f32": ".f32", "f64": ".f64"}


class Unverified(ValueError):
    """The machine code is not what is to be measured; the message says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A compiled kernel whose loop can be overwritten.

    Attributes:
        opcode: what its loop has one of for each chain.
        cubin: as ptxas wrote it.
        code: its instructions.
        at: where they are in the cubin, in bytes.
        first: the number of the loop's first instruction.
        last: the number of its last one.
        control: those that count, test and branch.
        template: the instruction, on any chain.
        other: the one that takes turns with it; the same if none does.
        sources: the fields that hold the chain register.
        chains: the chain registers.
        waits: whether the compiler tells by a scoreboard that the result is there, and not by a
            number of clocks.
    """

    opcode: Opcode
    cubin: bytes
    code: tuple[Instruction, ...]
    at: int
    first: int
    last: int
    control: tuple[int, ...]
    template: int
    other: int
    sources: tuple[words.Field, ...]
    chains: tuple[int, ...]
    waits: bool

    @property
    def items(self) -> int:
        """How many instructions the loop has room for."""
        return self.last - self.first + 1 - _CONTROL


def frames(opcodes: Iterable[Opcode], architecture: str) -> dict[str, Frame | Unverified]:
    """Returns the kernel that is compiled around a loop of each instruction.

    Args:
        opcodes: which instructions.
        architecture: of ptxas, such as ``sm_90``.

    Returns:
        By name the frame; or why the compiler's code is not what is to be measured.

    Raises:
        ToolMissing: ptxas or nvdisasm is not there.
    """
    rooms = {opcode: ITEMS - opcode.chains for opcode in opcodes}
    compiled_frames = _compiled(rooms, architecture)
    # For those of which the compiler needed more instructions, or added some.
    excess = {
        opcode: frame.items - ITEMS
        for opcode in rooms
        if isinstance(frame := compiled_frames[opcode.name], Frame) and frame.items != ITEMS
    }
    smaller_rooms = {opcode: rooms[opcode] - more for opcode, more in excess.items()}
    return compiled_frames | (_compiled(smaller_rooms, architecture) if smaller_rooms else {})


def ptx(opcode: Opcode, architecture: str, slots: int) -> str:
    """Returns the PTX source of the kernel that has a loop of an opcode. ``slots``: how many
    instructions the loop has room for."""
    template = resources.files("tbsched.sm.characterization") / "frame.ptx"
    environment = jinja2.Environment(
        trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    return environment.from_string(template.read_text("utf-8")).render(
        target=architecture,
        record_bytes=RECORD_BYTES,
        type=_TYPES.get(opcode.kind, ".b32"),
        constant_type=_TYPES.get(opcode.constant_kind or opcode.kind, ".b32"),
        width=64 if opcode.kind == "f64" else 32,
        registers=opcode.registers,
        constants=len(opcode.constants),
        shared=opcode.shared,
        ring_bytes=_RING_BYTES,
        board_bytes=BOARD_BYTES,
        tries=_TRIES,
        settle_clocks=_SETTLE,
        exemplars=opcode.chains,
        instruction=opcode.instruction,
        slots=slots,
    )


def _compiled(rooms: Mapping[Opcode, int], architecture: str) -> dict[str, Frame | Unverified]:
    """Returns the frame of each opcode by its name, or why there is none. ``rooms``: of each opcode
    for how many instructions its loop has room."""
    frames_by_name: dict[str, Frame | Unverified] = {}
    cubins = {}
    for opcode, slots in rooms.items():
        try:
            cubins[opcode] = assemble(ptx(opcode, architecture, slots), architecture)
        except ValueError as error:
            frames_by_name[opcode.name] = Unverified(f"{opcode.name}: {error}")
    code_ranges = [code_of(cubin, KERNEL) for cubin in cubins.values()]
    codes = [cubin[a:b] for cubin, (a, b) in zip(cubins.values(), code_ranges, strict=True)]
    for (opcode, cubin), (at, _), code in zip(
        cubins.items(), code_ranges, disassemble(codes, architecture), strict=True
    ):
        try:
            frames_by_name[opcode.name] = _framed(opcode, cubin, at, code)
        except Unverified as error:
            frames_by_name[opcode.name] = error
    return frames_by_name


def _framed(opcode: Opcode, cubin: bytes, at: int, code: tuple[Instruction, ...]) -> Frame:
    """Returns the frame of a compiled kernel: where its loop and the instructions under test are.

    Args:
        opcode: under test.
        cubin: the compiled kernel.
        at: the byte at which its machine code begins there.
        code: its instructions.
    """
    first, last = _loop(code)
    inside = range(first, last + 1)
    wanted = [k for k in inside if code[k].opcode == opcode.sass]
    measured_at = [k for k in inside if code[k].opcode in (opcode.sass, *opcode.also)]
    control = tuple(k for k in inside if k not in measured_at and code[k].opcode not in _FILLERS)
    if len(control) != _CONTROL:
        found_opcodes = ", ".join(sorted({code[k].opcode for k in control}))
        raise Unverified(
            f"{opcode.name}: {opcode.sass} and {_CONTROL} instructions of control were expected in "
            f"the loop, and {found_opcodes} were found"
        )
    chains = tuple(sorted({words.DESTINATION.of(code[k].word) for k in measured_at}))
    if len(chains) != opcode.chains or len(wanted) < 2:
        raise Unverified(
            f"{opcode.name}: {opcode.chains} chains of {opcode.sass} were expected in the loop; "
            f"{len(wanted)} instructions and {len(chains)} chains were found"
        )
    template = code[wanted[0]].word
    sources = _sources(opcode, [code[k].word for k in wanted])
    mixed = [code[k].word for k in measured_at if code[k].opcode == opcode.mixed] or [template]
    if opcode.mixed and (mixed == [template] or _sources(opcode, mixed) != sources):
        raise Unverified(f"{opcode.name}: {opcode.mixed} does not do the same as {opcode.sass}")
    waits = words.WRITES.of(template) != words.NO_SCOREBOARD
    return Frame(
        opcode, cubin, code, at, first, last, control, template, mixed[0], sources, chains, waits
    )


def _loop(code: tuple[Instruction, ...]) -> tuple[int, int]:
    """Returns the indices of the first and the last instruction of the loop that holds the
    placeholders. Raises Unverified: the clock is not read around it."""
    slots = [k for k, instruction in enumerate(code) if instruction.opcode == "PMTRIG"]
    last = next(k for k in range(slots[-1], len(code)) if code[k].opcode == "BRA")
    first = code[last].target or 0
    clocks = [k for k in (first - 1, last + 1) if "SR_CLOCKLO" in code[k].operands]
    if not 0 < first <= slots[0] or len(clocks) != 2:
        raise Unverified("the clock is not read just before and just after the loop")
    return first, last


def _sources(opcode: Opcode, exemplars: list[int]) -> tuple[words.Field, ...]:
    """Returns the fields of an instruction that name its chain, besides the destination. Raises
    Unverified: other fields differ between the chains."""
    varying = tuple(f for f in words.SOURCES if len({f.of(word) for word in exemplars}) > 1)
    known = words.DESTINATION.mask
    for field in (*varying, *words.ISSUE):
        known |= field.mask
    for word in exemplars:
        reads_another = any(field.of(word) != words.DESTINATION.of(word) for field in varying)
        if not varying or reads_another or (word ^ exemplars[0]) & ~known:
            raise Unverified(f"{opcode.name}: not every {opcode.sass} reads what it writes")
    return varying
