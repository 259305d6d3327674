"""Files of captures: only a capture is ever replaced, and only by one with work in it."""

from __future__ import annotations

import os
import re
import secrets
from pathlib import Path

from tbsched import storage
from tbsched.importers.capture import takes
from tbsched.importers.reading.packed import head_of

_WORK = (b'{"ran":', b'{"copy":', b'{"memset":', b'{"issued":')
_LAUNCH = b'{"ran":'
_ISSUED = re.compile(rb'\{"issued":(\d+),"what":"(?:launch|graph)",')
_CALL = re.compile(rb'"call":(\d+),')


def is_capture(path: Path) -> bool:
    """Returns whether a capture is at the path, packed or not."""
    return path.is_file() and takes(head_of(path))


def check_replaceable(path: Path) -> None:
    """Checks that a capture can be written to a path.

    Raises:
        FileNotFoundError: no such folder.
        ValueError: something is there that is no capture, or it cannot be written.
    """
    storage.check_writable(path)
    if path.exists() and not is_capture(path):
        raise ValueError(
            f"{storage.shown(path)} is there and is no capture, so it is not replaced; choose "
            "another name"
        )


def place_for(path: Path) -> Path:
    """Returns the path to write to: the given one, or one next to it if it exists."""
    if not os.path.lexists(path):
        return path
    return path.with_name(f"{path.stem}.part-{secrets.token_hex(4)}{path.suffix}")


def launches_of(path: Path) -> int:
    """Returns the number of launches of an unpacked capture, unended ones and graphs among them. A
    launch of a graph that has not ended is one, too."""
    ran = 0
    unended: set[bytes] = set()
    with storage.opened(path) as file:
        for line in file:
            if line.startswith(_LAUNCH):
                ran += 1
                if unended and (call := _CALL.search(line)):
                    unended.discard(call[1])
            elif issued := _ISSUED.match(line):
                unended.add(issued[1])
    return ran + len(unended)


def has_work(path: Path) -> bool:
    """Returns whether an unpacked capture has a launch, a copy or a memset."""
    with storage.opened(path) as file:
        return any(line.startswith(_WORK) for line in file)


def is_free(path: Path) -> bool:
    """Returns whether a capture may be put at a path: nothing is there, or a capture."""
    return not os.path.lexists(path) or is_capture(path)
