"""Files of profilers: looked at, unpacked and read piece by piece, with a bar for long ones."""

from __future__ import annotations

import contextlib
import gzip
import lzma
import os
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from tbsched import storage
from tbsched.progress import bar

HEAD = 1 << 16  # bytes that tell of what format a file is
_PIECE = 1 << 20
_GZIP, _XZ = b"\x1f\x8b", b"\xfd7zXZ"
_OPENERS: dict[bytes, Callable[[BinaryIO], Any]] = {
    _GZIP: lambda file: gzip.GzipFile(fileobj=file),
    _XZ: lzma.LZMAFile,
}
_BROKEN = (gzip.BadGzipFile, EOFError, lzma.LZMAError, zlib.error)


def head_of(place: Path) -> bytes:
    """Returns the first bytes of a file, unpacked; of a folder those of its first ``.json`` file.

    Empty if there is nothing, or nothing that can be unpacked.

    Raises:
        FileNotFoundError, ValueError: as ``storage.opened``.
    """
    if storage.is_folder(place):
        files = sorted(file for file in place.glob("*.json") if file.is_file())
        return head_of(files[0]) if files else b""
    with storage.opened(place) as file:
        head = file.read(HEAD)
    with contextlib.suppress(zlib.error, lzma.LZMAError):
        if head.startswith(_GZIP):
            return zlib.decompressobj(wbits=31).decompress(head, HEAD)
        if head.startswith(_XZ):
            return lzma.LZMADecompressor().decompress(head, HEAD)
        return head
    return b""


def pieces_of(place: Path) -> Iterator[bytes]:
    """Yields the pieces of a file, unpacked if it is packed by gzip or xz.

    Raises:
        FileNotFoundError: no such file.
        ValueError: it cannot be read, or its packing is damaged.
    """
    with storage.opened(place) as file:
        size = os.fstat(file.fileno()).st_size
        with bar(f"reading {place.name}", size) as advance:
            yield from _pieces(place, file, advance)


def _pieces(place: Path, file: BinaryIO, advance: Callable[[int], object]) -> Iterator[bytes]:
    head = file.read(len(_XZ))
    file.seek(0)
    source = next((wrap(file) for magic, wrap in _OPENERS.items() if head.startswith(magic)), file)
    while True:
        try:
            piece = source.read(_PIECE)
        except _BROKEN as error:
            raise ValueError(
                f"{storage.shown(place)}: damaged near byte {file.tell()}: {error}; was it copied "
                "whole?"
            ) from None
        if not piece:
            return
        advance(file.tell())
        yield piece
