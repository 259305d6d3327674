"""Files packed by gzip or xz, unpacked piece by piece and within limits.

Everything in the package that unpacks a user's file goes through here.
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import io
import lzma
import os
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeAlias, cast

from tbsched import storage

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

MAX_DICTIONARY = 2**27  # bytes that unpacking xz may take: twice what the best packing, -9, needs
# Limits of what a packed file unpacks to: a minimum, and beyond that a multiple of its size, so
# that costs are proportional to it. Recordings unpack to 300 times at most, a line per ten bytes;
# a recorded workload to 1,232 times, 53 MB. The page on the trace format is made from these.
MAX_BYTES, BYTES_PER_BYTE = 2**26, 1000
MAX_LINES, LINES_PER_BYTE = 100_000, 1
# What a damaged file makes the unpackers raise.
DAMAGED = (gzip.BadGzipFile, EOFError, lzma.LZMAError, zlib.error)
_GZIP, _XZ = b"\x1f\x8b", b"\xfd7zXZ"
_PIECE = 2**16


def unpacked(file: BinaryIO, ending: str) -> BinaryIO:
    """Returns a file to read from, unpacked as its ending says: ``.gz``, ``.xz`` or another."""
    if ending == ".gz":
        return cast(BinaryIO, gzip.GzipFile(fileobj=file))
    return io.BufferedReader(_Xz(file)) if ending == ".xz" else file


def ending_of(head: bytes) -> str:
    """Returns the ending that a file should have that begins so; empty: it is not packed."""
    return ".gz" if head.startswith(_GZIP) else ".xz" if head.startswith(_XZ) else ""


def head(data: bytes, most: int) -> bytes:
    """Returns the first bytes of a file, unpacked, from its first packed ones.

    Raises:
        ValueError: unpacking takes too much memory.
    """
    with contextlib.suppress(*DAMAGED):
        match ending_of(data):
            case ".gz":
                return zlib.decompressobj(wbits=31).decompress(data, most)
            case ".xz":
                with _within_memory():
                    return _xz_decompressor().decompress(data, most)
            case _:
                return data[:most]
    return b""


def most_unpacked(size: int) -> int:
    """Returns to how many bytes a packed file of a size may unpack."""
    return max(MAX_BYTES, BYTES_PER_BYTE * size)


def lines(file: BinaryIO, path: Path, most_of_line: int = storage.MAX_BYTES) -> Iterator[bytes]:
    """Yields the lines of a file, unpacked as the ending of its path says.

    Raises:
        ValueError: longer, or more, than the limits.
    """
    size = os.fstat(file.fileno()).st_size
    most_bytes = most_unpacked(size)
    most_lines = max(MAX_LINES, LINES_PER_BYTE * size)
    source = unpacked(file, path.suffix)
    number = total = 0
    while line := source.readline(most_of_line + 1):
        number += 1
        total += len(line)
        if len(line) > most_of_line:
            raise ValueError(f"more than {most_of_line} bytes, the most of a line")
        if source is not file and (total > most_bytes or number > most_lines):
            raise ValueError(
                f"{size} bytes unpack to more than {most_bytes} bytes or {most_lines} lines; if "
                "they are what you mean, unpack the file first"
            )
        yield line


class _Xz(io.RawIOBase):
    """What a file packed by xz unpacks to; its dictionary is within the limit."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._decompressor = _xz_decompressor()
        self._rest = b""  # behind the end of a stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Fills a buffer with unpacked bytes, and returns how many; 0: the file has ended."""
        with memoryview(buffer) as whole, whole.cast("B") as view:
            piece = self._piece(len(view))
            view[: len(piece)] = piece
        return len(piece)

    def _piece(self, most: int) -> bytes:
        """Returns the next unpacked bytes, at most ``most``; empty: the file has ended."""
        while not self._decompressor.eof:
            data = self._rest
            if not data and self._decompressor.needs_input and not (data := self._read()):
                raise EOFError("the packed file ends early")
            self._rest = b""
            with _within_memory():
                piece = self._decompressor.decompress(data, most)
            if self._decompressor.eof:
                self._next_stream()
            if piece:
                return piece
        return b""

    def _next_stream(self) -> None:
        """Moves on behind the blanks to the next stream of the file, if there is one."""
        rest = self._decompressor.unused_data.lstrip(b"\0")
        while not rest and (more := self._read()):
            rest = more.lstrip(b"\0")
        if rest:
            self._rest, self._decompressor = rest, _xz_decompressor()

    def _read(self) -> bytes:
        return self._file.read(_PIECE)


def _xz_decompressor() -> lzma.LZMADecompressor:
    return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MAX_DICTIONARY)


@contextlib.contextmanager
def _within_memory() -> Iterator[None]:
    """Turns an error of xz that it needs too much memory into a ValueError."""
    try:
        yield
    except lzma.LZMAError as error:
        if "Memory usage limit" not in str(error):
            raise
        raise ValueError(
            f"unpacking takes more than {MAX_DICTIONARY} bytes of memory; pack it with xz -9 or "
            "less"
        ) from None


Packer: TypeAlias = Callable[[BinaryIO], BinaryIO]
PACKERS: dict[str, Packer] = {
    ".xz": cast(Packer, functools.partial(lzma.LZMAFile, mode="wb")),
    ".gz": lambda file: cast(BinaryIO, gzip.GzipFile(fileobj=file, mode="wb")),
}
