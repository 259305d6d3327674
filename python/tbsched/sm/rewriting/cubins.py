"""Writes variants of a kernel into its cubin."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

from tbsched.errors import shown
from tbsched.sm.characterization.toolkit import code_of, refusing_torn, sections
from tbsched.sm.characterization.words import BYTES, PATIENT, REUSE, STALL, STAYS, Control

_COUNT = 0x2F  # the attribute that says how many registers a thread has
_SIZED = 4
_SYMBOL = 24  # bytes of a symbol
_SHIFT = 24  # in a text section's header, before compute capability 9.0
MOST_REGISTERS = 255


def attributes(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Yields the attributes with a sized payload in an ``.nv.info`` section: of each its kind, the
    byte at which its payload begins, and how many bytes that has."""
    at = 0
    while at + 4 <= len(data):
        form, kind, size = struct.unpack_from("<BBH", data, at)
        at += 4
        if form == _SIZED:
            yield kind, at, size
            at += size


def registers_of(cubin: bytes, kernel: str) -> int:
    """Returns how many registers a thread of a kernel has.

    Raises:
        ValueError: the cubin does not say.
    """
    with refusing_torn():
        counts = [struct.unpack_from("<I", cubin, offset)[0] for offset in _counts(cubin, kernel)]
    if not counts:
        raise ValueError(f"kernel: the cubin does not say how many registers {shown(kernel)} has")
    if not 0 < counts[0] <= MOST_REGISTERS:
        raise ValueError(f"kernel: {counts[0]} registers are outside 1..{MOST_REGISTERS}")
    return int(counts[0])


def padded(cubin: bytes, kernel: str, registers: int) -> bytes:
    """Returns the same machine code with more registers per thread.

    Raises:
        ValueError: fewer than it uses, or more than there are.
    """
    used = registers_of(cubin, kernel)
    if not used <= registers <= MOST_REGISTERS:
        raise ValueError(f"registers: {registers} is outside {used}..{MOST_REGISTERS}")
    changed = bytearray(cubin)
    for offset in _counts(cubin, kernel):
        struct.pack_into("<I", changed, offset, registers)
    for section in sections(cubin):
        if section.name == f".text.{kernel}" and section.info >> _SHIFT:
            info = section.info & (1 << _SHIFT) - 1 | registers << _SHIFT
            struct.pack_into("<I", changed, section.header + 0x2C, info)
    return bytes(changed)


def _counts(cubin: bytes, kernel: str) -> list[int]:
    """Returns the offsets at which the cubin has the kernel's number of registers."""
    offsets = []
    listed = sections(cubin)
    for section in listed:
        if section.name not in (".nv.info", ".nv.merc.nv.info"):
            continue
        symbols = listed[section.link]
        names = listed[symbols.link].offset
        data = cubin[section.offset : section.offset + section.size]
        for kind, at, _ in attributes(data):
            if kind != _COUNT:
                continue
            (symbol,) = struct.unpack_from("<I", data, at)
            (name,) = struct.unpack_from("<I", cubin, symbols.offset + _SYMBOL * symbol)
            if cubin[names + name : cubin.index(0, names + name)] == kernel.encode():
                offsets.append(section.offset + at + 4)
    return offsets


Written = tuple[int, Control]  # which instruction comes there, and how it is issued


def rewritten(cubin: bytes, kernel: str, order: Sequence[Written]) -> bytes:
    """Returns the cubin with the instructions of a kernel in another order."""
    begin, end = code_of(cubin, kernel)
    words = [int.from_bytes(cubin[at : at + BYTES], "little") for at in range(begin, end, BYTES)]
    changed = bytearray(cubin)
    for index, (number, control) in enumerate(order):
        word = words[number]
        if control.stall != STALL.of(word):
            word = STALL.set(word, control.stall)
            word = STAYS.set(word, int(control.stall <= PATIENT))
        follower = order[index + 1][0] if index + 1 < len(order) else None
        if follower != number + 1:
            word = REUSE.set(word, 0)  # it was for the one that came next
        at = begin + index * BYTES
        changed[at : at + BYTES] = word.to_bytes(BYTES, "little")
    return bytes(changed)
