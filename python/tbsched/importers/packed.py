"""Files of profilers: looked at, unpacked and read piece by piece, with a bar for long ones."""

from __future__ import annotations

import contextlib
import gzip
import os
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

from tbsched import storage

HEAD = 1 << 16  # bytes that tell of what format a file is
_PIECE = 1 << 20
_BAR_FROM = 1 << 25  # bytes of a file that takes so long that a bar is worth it
_GZIP = b"\x1f\x8b"
_BROKEN = (gzip.BadGzipFile, EOFError, zlib.error)


def head_of(place: Path) -> bytes:
    """The first bytes of a file, unpacked; empty for a folder, or if they cannot be unpacked.

    Raises:
        FileNotFoundError, ValueError: as ``storage.opened``.
    """
    if storage.is_folder(place):
        return b""
    with storage.opened(place) as file:
        head = file.read(HEAD)
    if not head.startswith(_GZIP):
        return head
    with contextlib.suppress(zlib.error):
        return zlib.decompressobj(wbits=31).decompress(head, HEAD)
    return b""


def pieces_of(place: Path) -> Iterator[bytes]:
    """A file, unpacked if it is packed by gzip.

    Raises:
        FileNotFoundError: no such file.
        ValueError: it cannot be read, or its packing is damaged.
    """
    with storage.opened(place) as file, _bar(place, os.fstat(file.fileno()).st_size) as advance:
        is_packed = file.read(2) == _GZIP
        file.seek(0)
        source = gzip.GzipFile(fileobj=file) if is_packed else file
        while True:
            try:
                piece = source.read(_PIECE)
            except _BROKEN as error:
                raise ValueError(
                    f"{storage.shown(place)}: damaged near byte {file.tell()}: {error}; was it "
                    "copied whole?"
                ) from None
            if not piece:
                return
            advance(file.tell())
            yield piece


@contextlib.contextmanager
def _bar(place: Path, size: int) -> Iterator[Callable[[int], object]]:
    """A bar on standard error, if that is a terminal and the file is large."""
    if size < _BAR_FROM or sys.stderr is None or not sys.stderr.isatty():
        yield lambda position: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(f"reading {place.name}", total=size)
        yield lambda position: progress.update(task, completed=position)
