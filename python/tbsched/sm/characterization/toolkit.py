"""The programs that assemble PTX and take machine code apart: ptxas and nvdisasm."""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import os
import re
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from tbsched.errors import TbschedError
from tbsched.sm.characterization.words import BYTES, READS, SCOREBOARDS, WRITES

_HOMES = ("/usr/local/cuda",)
_ADDRESS = re.compile(r"(?<=\w)\[(?=R\d)")
_AT = re.compile(r"\s+/\*([0-9a-f]{4,})\*/")  # before an instruction
_LABEL = re.compile(r"\S+:\s")
_FILES = {"GPR": "R", "PRED": "P", "UGPR": "UR", "UPRED": "UP"}
_MOVED = 8  # the ABI since which the architecture lies a byte higher
_NEW_ABI = bytes((65, _MOVED))
_NEW_FLAGS = 0x06000004
_WHEEL = "nvidia-cuda-nvdisasm"
_INSTALL = {
    "ptxas": "install the CUDA toolkit, or name its folder in CUDA_HOME",
    "nvdisasm": f"pip install {_WHEEL}, or install the CUDA toolkit",
}


Place = tuple[str, int]  # a register: such as ("R", 4), ("UP", 0)


class ToolMissing(TbschedError):
    """A program of the CUDA toolkit is not there; the message says how to get it."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """One of machine code, as nvdisasm reads it.

    Attributes:
        opcode: with its modifiers, such as ``LOP3.LUT``.
        operands: as they are written, without ``.reuse``.
        guard: such as ``@!P0``; empty: none.
        target: the number of the instruction that a branch leads to.
        word: its 128 bits.
    """

    opcode: str
    operands: tuple[str, ...]
    guard: str
    target: int | None
    word: int

    @property
    def base(self) -> str:
        """Its opcode without modifiers."""
        return self.opcode.split(".")[0]


@dataclass(frozen=True, slots=True)
class Touched:
    """Registers that an instruction reads and writes."""

    reads: frozenset[Place] = frozenset()
    writes: frozenset[Place] = frozenset()


@functools.cache
def tool(name: str) -> Path:
    """Returns the path of a program of the CUDA toolkit.

    Raises:
        ToolMissing: nowhere.
    """
    homes = [os.environ["CUDA_HOME"], *_HOMES] if "CUDA_HOME" in os.environ else _HOMES
    which = shutil.which(name) or shutil.which(name, path=":".join(f"{h}/bin" for h in homes))
    path = Path(which) if which else _in_wheel(name)
    if path is None:
        raise ToolMissing(f"{name} is needed and was not found: {_INSTALL[name]}")
    return path


def assemble(ptx: str, architecture: str) -> bytes:
    """Returns the machine code of PTX, as a cubin.

    Raises:
        ToolMissing: there is no ptxas.
        ValueError: ptxas refuses it, in its words.
    """
    with tempfile.TemporaryDirectory() as folder:
        source, cubin = Path(folder) / "loop.ptx", Path(folder) / "loop.cubin"
        source.write_text(ptx, "utf-8")
        _run("ptxas", f"-arch={architecture}", "-o", str(cubin), str(source))
        return cubin.read_bytes()


@dataclass(frozen=True, slots=True)
class Section:
    """One of a cubin, which is an ELF file.

    Attributes:
        name: such as ``.text.saxpy``.
        offset, size: where its bytes are.
        link, info: numbers that its kind gives a meaning.
        header: where its header is.
    """

    name: str
    offset: int
    size: int
    link: int
    info: int
    header: int


@contextlib.contextmanager
def refusing_torn() -> Iterator[None]:
    """Turns the errors of reading beyond the end of a cubin into a ValueError.

    Raises:
        ValueError: it does.
    """
    try:
        yield
    except (struct.error, OverflowError, LookupError, ValueError):
        raise ValueError("kernel: the cubin is cut short or damaged; compile it again") from None


def sections(cubin: bytes) -> list[Section]:
    """Returns the sections of a cubin, in its order.

    Raises:
        struct.error, ValueError: it is cut short.
    """
    (table,) = struct.unpack_from("<Q", cubin, 0x28)
    size, count, names = struct.unpack_from("<HHH", cubin, 0x3A)
    header_offsets = [table + size * index for index in range(count)]
    rows = [
        struct.unpack_from("<I20xQQII", cubin, header_offset) for header_offset in header_offsets
    ]
    sections_read = []
    for header_offset, (name, offset, length, link, info) in zip(header_offsets, rows, strict=True):
        at = rows[names][1] + name
        text = cubin[at : cubin.index(0, at)].decode()
        sections_read.append(Section(text, offset, length, link, info, header_offset))
    return sections_read


def code_of(cubin: bytes, kernel: str) -> tuple[int, int]:
    """Returns at which bytes of a cubin a kernel's machine code begins and ends.

    Raises:
        ValueError: it has no such kernel.
    """
    for section in sections(cubin):
        if section.name == f".text.{kernel}":
            return section.offset, section.offset + section.size
    raise ValueError(f"cubin: it has no kernel {kernel}")


def lives(cubin: bytes, kernel: str) -> tuple[dict[int, Touched], set[int]]:
    """Returns which registers each instruction of a kernel touches, by its index; and the indices
    of the instructions with a label.

    Raises:
        ToolMissing: there is no nvdisasm.
        ValueError: nvdisasm refuses the cubin, in its words.
    """
    shown = _shown_by_nvdisasm(_in_new_form(cubin), "-lrm", "narrow", "-c")
    with refusing_torn():
        return _lives_in(shown, kernel)


def _lives_in(shown: str, kernel: str) -> tuple[dict[int, Touched], set[int]]:
    """Returns the same from what nvdisasm prints of a cubin."""
    begin = shown.index(f"\t.section\t.text.{kernel},")
    end = shown.find("\n//-----", begin)
    touched: dict[int, Touched] = {}
    labels: set[int] = set()
    files: list[str] = []  # by column: its register file
    starts: list[int] = []  # by column: the place of register 0
    labelled = False
    for line in shown[begin : end if end > 0 else None].splitlines():
        before, _, after = line.partition("// |")
        cells = after.split("|")[:-1]
        if _FILES.keys() & {cell.strip() for cell in cells}:
            files = [_FILES[cell.strip()] for cell in cells]
        elif any("#" in cell for cell in cells):
            starts = [cell.find("#") + 2 for cell in cells]
        elif address := _AT.match(before):
            at = int(address[1], 16) // BYTES
            touched[at] = _touched(files, [c[k:] for c, k in zip(cells, starts, strict=True)])
            if labelled:
                labels.add(at)
            labelled = False
        elif _LABEL.match(before):
            labelled = True
    return touched, labels


def _touched(files: Iterable[str], marks: Iterable[str]) -> Touched:
    """Reads a row of marks: a character for each register of each file."""
    marked_registers = [
        (mark, (file, index))
        for file, cell in zip(files, marks, strict=True)
        for index, mark in enumerate(cell)
    ]
    read = frozenset(register for mark, register in marked_registers if mark in "vx")
    return Touched(read, frozenset(register for mark, register in marked_registers if mark in "^x"))


def architecture_of(cubin: bytes) -> int:
    """Returns the compute capability for which a cubin is, such as 90 for 9.0."""
    flags: int
    (flags,) = struct.unpack_from("<I", cubin, 0x30)
    return flags >> 8 & 0xFF if cubin[8] >= _MOVED else flags & 0xFF


def _in_new_form(cubin: bytes) -> bytes:
    """Returns the cubin in CUDA 13's form: its nvdisasm follows no registers in older ones."""
    converted = bytearray(cubin)
    with refusing_torn():
        (table,) = struct.unpack_from("<Q", cubin, 0x20)
        size, count = struct.unpack_from("<HH", cubin, 0x36)
    missing = table + size * count - len(cubin)
    if missing > 1:
        raise ValueError(f"kernel: the cubin lacks its last {missing} bytes; compile it again")
    if missing == 1:
        converted.append(0)  # CuPy cuts it off, and no program minds but nvdisasm
    if cubin[8] >= _MOVED:
        return bytes(converted)
    converted[7:9] = _NEW_ABI
    struct.pack_into("<I", converted, 0x30, _NEW_FLAGS | architecture_of(cubin) << 8)
    return bytes(converted)


def disassemble(codes: Iterable[bytes], architecture: str) -> list[tuple[Instruction, ...]]:
    """Returns the instructions of pieces of machine code, by one call of nvdisasm.

    Raises:
        ToolMissing: there is no nvdisasm.
        ValueError: nvdisasm refuses it, in its words.
    """
    pieces = list(codes)
    code = b"".join(pieces)
    shown = _shown_by_nvdisasm(code, "-json", "-b", architecture.replace("sm_", "SM"))
    with refusing_torn():
        return _instructions_in(shown, code, pieces)


def _instructions_in(
    shown: str, code_bytes: bytes, pieces: list[bytes]
) -> list[tuple[Instruction, ...]]:
    """Returns the instructions of each piece of machine code, from nvdisasm's JSON for all of them.

    Args:
        shown: the JSON.
        code_bytes: the machine code of all pieces.
        pieces: that of each piece.
    """
    rows = json.loads(shown)[1][0]["sass-instructions"]
    words = [
        int.from_bytes(code_bytes[at : at + BYTES], "little")
        for at in range(0, len(code_bytes), BYTES)
    ]
    read = list(zip(rows, words, strict=True))
    ends = itertools.accumulate(len(piece) // BYTES for piece in pieces)
    return [
        tuple(_instruction(row, word, first, end) for row, word in read[first:end])
        for first, end in itertools.pairwise([0, *ends])
    ]


def _instruction(row: dict[str, Any], word: int, first: int, end: int) -> Instruction:
    """Returns an instruction from what nvdisasm says of it.

    Args:
        row: its JSON object in the output of nvdisasm.
        word: its machine code.
        first, end: the numbers of the first instruction of its piece of code, and of the one behind
            it. The target of a branch is counted from the first.

    Raises:
        LookupError, ValueError: it is none, it has a scoreboard that no SM has, or it is a branch
            that leads out of the piece.
    """
    if SCOREBOARDS in (WRITES.of(word), READS.of(word)):
        raise ValueError(f"scoreboard {SCOREBOARDS}: an SM has {SCOREBOARDS}")
    # Before CUDA 13.5 there is no comma between a register and an address.
    text = _ADDRESS.sub(",[", row.get("operands", "").replace(".reuse", ""))
    operands = tuple(text.split(","))
    guard = row.get("predicate", "")
    if row["opcode"].split(".")[0] in ("P2R", "R2P"):
        # nvdisasm takes PR for the guard: it swaps the two, or leaves one out.
        fields = (guard, *operands)
        guard = next((field for field in fields if field.startswith("@")), "")
        remaining = [field for field in fields if field and field not in (guard, "PR")]
        remaining.insert(row["opcode"].startswith("P2R"), "PR")
        operands = tuple(remaining)
    target = None
    if row["opcode"] == "BRA":
        target = range(first * BYTES, end * BYTES, BYTES).index(int(operands[-1], 16))
    return Instruction(row["opcode"], operands, guard, target, word)


@functools.lru_cache(maxsize=16)
def _shown_by_nvdisasm(content: bytes, *options: str) -> str:
    """Returns what nvdisasm prints of a file; of the last few it is kept: a call takes 0.3 s."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel"
        path.write_bytes(content)
        return _run("nvdisasm", *options, path)


def _run(name: str, *arguments: str | Path) -> str:
    """Runs a tool of the CUDA Toolkit, and returns its output."""
    done = subprocess.run(
        [tool(name), *arguments], capture_output=True, text=True, errors="replace", check=False
    )
    if done.returncode:
        message = (done.stderr or done.stdout).strip().splitlines()
        raise ValueError(f"{name}: {message[0] if message else 'failed'}")
    return done.stdout


def _in_wheel(name: str) -> Path | None:
    """Returns the path of a tool in NVIDIA's wheel from PyPI; None without it."""
    try:
        files = metadata.files(_WHEEL) or []
    except metadata.PackageNotFoundError:
        return None
    paths = (Path(str(file.locate())) for file in files if file.name == name)
    return next((path for path in paths if os.access(path, os.X_OK)), None)
