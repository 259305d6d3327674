"""Files that users name: read within limits, and written without harm to what is at the path.

Everything in the package that opens a path of a user's goes through here.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from tbsched.errors import on_one_line
from tbsched.errors import shown as value_shown

MAX_BYTES = 2**27  # limit of a file that is read whole, and of a line of any other file


def as_path(path: object) -> Path:
    """Returns the path that a user gave.

    Raises:
        TypeError: not a path.
    """
    if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str):
        raise TypeError(f"path: a string or a path is needed, got {value_shown(path)}")
    return Path(path)


def shown(path: os.PathLike[str] | str) -> str:
    """Returns the path for a message: on one line, and cut if it is long."""
    return on_one_line(os.fspath(path))


def is_folder(path: Path) -> bool:
    """Returns whether there is a folder at the path.

    Raises:
        ValueError: no name that a file can have.
    """
    status = _status(path, "read")
    return status is not None and stat.S_ISDIR(status.st_mode)


def opened(path: Path) -> BinaryIO:
    """Returns an open file for reading: a regular one, or a pipe that this process was started with
    (``/dev/fd/63``).

    Any other FIFO or device may never end, or never begin.

    Raises:
        FileNotFoundError: no such file.
        ValueError: something else is at the path, or it cannot be read.
    """
    status = _status(path, "read")
    if status is not None and not stat.S_ISREG(status.st_mode) and not _is_inherited(path):
        raise ValueError(f"{shown(path)}: cannot be read: {_kind(status)}, not a regular file")
    with _named(path, "read"):
        return open(path, "rb")


def content(path: Path, most: int = MAX_BYTES) -> bytes:
    """Returns a whole file.

    Raises:
        FileNotFoundError, ValueError: as :func:`opened`; more than ``most`` bytes.
    """
    with opened(path) as file:
        return limited(file, shown(path), most)


def limited(file: BinaryIO, name: str, most: int = MAX_BYTES) -> bytes:
    """Returns the rest of a file.

    Raises:
        ValueError: more than ``most`` bytes.
    """
    found = file.read(most + 1)
    if len(found) > most:
        raise ValueError(f"{name}: more than {most} bytes, the most that is read")
    return found


def is_same_file(a: Path, b: Path) -> bool:
    """Returns whether two paths lead to one regular file; who opens them says what is wrong."""
    try:
        found = [path.stat() for path in (a, b)]
    except (OSError, ValueError):
        return False
    return all(stat.S_ISREG(status.st_mode) for status in found) and os.path.samestat(*found)


def opened_to_append(path: Path) -> int:
    """Returns the descriptor of a regular file, made if nothing is there, that is read and appended
    to.

    Raises:
        FileNotFoundError: no such folder.
        ValueError: something else is at the path, or it cannot be written.
    """
    status = _status(path, "written")
    if status is not None and not stat.S_ISREG(status.st_mode):
        what = f"{_kind(status)}, not a regular file"
        raise ValueError(f"{shown(path)}: cannot be appended to: {what}")
    with _named(path, "written"):
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)


def check_writable(path: Path) -> bool:
    """Refuses what :func:`replacing` would refuse, before there is something to write.

    Returns:
        Whether a regular file is there, which will be replaced.

    Raises:
        FileNotFoundError, ValueError: as :func:`replacing`.
    """
    status = _status(path, "written")
    if status is not None and _own_output(status) is not None:
        return False
    if status is None or stat.S_ISREG(status.st_mode):
        target = Path(os.path.realpath(path))
        if not target.parent.is_dir():
            raise FileNotFoundError(2, "no such folder", shown(target.parent))
        needed = [target.parent] if status is None else [target.parent, target]
        if not all(os.access(each, os.W_OK) for each in needed):
            raise ValueError(f"{shown(path)}: cannot be written: permission denied")
        return status is not None
    if not (stat.S_ISCHR(status.st_mode) or _is_pipe(status)):
        raise ValueError(f"{shown(path)}: cannot be written: {_kind(status)}")
    return False


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Writes a file that appears whole or not at all.

    A symbolic link stays and what it leads to is replaced, with its permissions. A pipe, a
    character device and this process's own output, such as ``/dev/stdout``, are written to.

    Raises:
        FileNotFoundError: no such folder.
        ValueError: a folder or another thing that cannot be written to is at the path.
        OSError: writing failed, as on a full disk; names the path.
    """
    check_writable(path)
    status = _status(path, "written")
    own = None if status is None else _own_output(status)
    try:
        if own is not None:
            with open(os.dup(own), "wb") as out:
                yield out
        elif status is None or stat.S_ISREG(status.st_mode):
            with _replaced(Path(os.path.realpath(path)), status) as out:
                yield out
        else:
            with open(os.open(path, os.O_WRONLY), "wb") as out:
                yield out
    except OSError as error:
        error.filename = error.filename or shown(path)
        raise


@contextlib.contextmanager
def _replaced(target: Path, status: os.stat_result | None) -> Iterator[BinaryIO]:
    """Yields a new file that takes the place of ``target`` at the end of this context; after an
    error nothing has changed. ``status``: of what is there, whose permissions stay."""
    temporary = target.with_name(f".tbsched-{secrets.token_hex(8)}")
    try:
        with open(temporary, "xb") as out:
            if status is not None:
                os.fchmod(out.fileno(), stat.S_IMODE(status.st_mode))
            yield out
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def put_in_place(made: Path, path: Path) -> None:
    """Renames the file ``made`` to ``path`` in the same folder. A file that is there is replaced,
    and its permissions stay."""
    with contextlib.suppress(FileNotFoundError):
        shutil.copymode(path, made)
    os.replace(made, path)


def _own_output(status: os.stat_result) -> int | None:
    """Returns the number of this process's standard output, or error, if that is what is there.

    A file that the shell opened for it must not be replaced: what is printed would be lost.
    """
    for number, stream in ((1, sys.stdout), (2, sys.stderr)):
        try:
            is_own = os.path.samestat(status, os.fstat(number))
        except OSError:
            continue  # closed
        if is_own:
            if stream is not None:
                stream.flush()
            return number
    return None


def _status(path: Path, done: str) -> os.stat_result | None:
    """Returns the status of a path, through symbolic links; None: nothing is there."""
    with _named(path, done):
        try:
            return path.stat()
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise ValueError(f"{shown(path)!r}: no file can have this name: {error}") from None


@contextlib.contextmanager
def _named(path: Path, done: str) -> Iterator[None]:
    """Turns an error of the system within this context into bad input that names the path."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ValueError(f"{shown(path)}: cannot be {done}: {error.strerror}") from None


def _is_pipe(status: os.stat_result) -> bool:
    return stat.S_ISFIFO(status.st_mode) or stat.S_ISSOCK(status.st_mode)


def _is_inherited(path: Path) -> bool:
    """Returns whether a path is a nameless pipe, to which the parent process writes."""
    return os.path.realpath(path).startswith(("/proc/", "/dev/fd/"))


def _kind(status: os.stat_result) -> str:
    """Returns what is at a path, in words, such as "a folder"."""
    names = {
        stat.S_IFDIR: "is a folder",
        stat.S_IFIFO: "is a FIFO",
        stat.S_IFCHR: "is a device",
        stat.S_IFBLK: "is a device",
        stat.S_IFSOCK: "is a socket",
    }
    return names.get(stat.S_IFMT(status.st_mode), "is no file")
