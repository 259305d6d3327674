"""Files of profilers: looked at, unpacked and read piece by piece, with a bar for long ones."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from tbsched import storage, unpacking
from tbsched.progress import bar

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # of UTF-8, which some editors put before a text
HEAD = 1 << 16  # bytes that tell of what format a file is
_PIECE = 1 << 20
# Limits of what a packed profile unpacks to, counted from its beginning at each piece: a minimum,
# and beyond that a multiple of the bytes that it was unpacked from. Profiles unpack to 30 times at
# most.
MAX_UNPACKED, BYTES_PER_BYTE = 2**24, 100


def head_of(path: Path) -> bytes:
    """Returns the first bytes of a file, unpacked and without a byte-order mark; of a folder those
    of its first ``.json`` file.

    Empty if there is nothing, or nothing that can be unpacked.

    Raises:
        FileNotFoundError, ValueError: as ``storage.opened``; a pipe, which cannot be read again
            from its beginning.
    """
    if storage.is_folder(path):
        files = sorted(file for file in path.glob("*.json") if file.is_file())
        return head_of(files[0]) if files else b""
    with storage.opened(path) as file:
        if not file.seekable():
            raise ValueError(
                f"{storage.shown(path)}: cannot be read: is a pipe, not a regular file; write what "
                "comes out of it to a file, and name that"
            )
        try:
            return unpacking.head(file.read(HEAD), HEAD).removeprefix(_BYTE_ORDER_MARK)
        except ValueError as error:
            raise ValueError(f"{storage.shown(path)}: {error}") from None


def pieces_of(path: Path) -> Iterator[bytes]:
    """Yields the pieces of a file, unpacked if it is packed by gzip or xz, without a byte-order
    mark.

    Raises:
        FileNotFoundError: no such file.
        ValueError: it cannot be read, or its packing is damaged.
    """
    with storage.opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        with bar(f"reading {path.name}", size) as advance:
            yield from _pieces(path, file, advance)


def _pieces(path: Path, file: BinaryIO, advance: Callable[[int], object]) -> Iterator[bytes]:
    """Yields the unpacked bytes of a file in pieces."""
    ending = unpacking.ending_of(file.read(8))
    file.seek(0)
    source = unpacking.unpacked(file, ending)
    size = 0
    while True:
        try:
            piece = source.read(_PIECE)
        except unpacking.DAMAGED as error:
            raise ValueError(
                f"{storage.shown(path)}: damaged near byte {file.tell()}: {error}; was it copied "
                "whole?"
            ) from None
        except ValueError as error:
            raise ValueError(f"{storage.shown(path)}: {error}") from None
        if not piece:
            return
        if not size:
            piece = piece.removeprefix(_BYTE_ORDER_MARK)
        size += len(piece)
        packed = file.tell()
        limit = max(MAX_UNPACKED, BYTES_PER_BYTE * packed)
        if ending and size > limit:
            raise ValueError(
                f"{storage.shown(path)}: {packed} bytes unpack to more than {limit} bytes; if they "
                "are a profile, unpack the file first"
            )
        advance(packed)
        yield piece
