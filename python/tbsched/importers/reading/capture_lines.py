"""Lines of a capture file: JSON objects, of which the first key says what they are about."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from tbsched import parsing, storage
from tbsched.errors import shown
from tbsched.importers.reading.packed import pieces_of
from tbsched.program.gpu_facts import MAX_SMS

Line: TypeAlias = dict[str, Any]
MAX_INTEGER = 2**63 - 1


def lines_of(path: Path) -> Iterator[tuple[int, object]]:
    """Yields the number and content of each line; a last line that is cut is left out.

    Raises:
        FileNotFoundError: no such file.
        ValueError: a line is not JSON, or too long; names the file and the line.
    """
    for line_number, text, is_last in _pieces(path):
        try:
            yield line_number, parsing.json_value(text.decode("utf-8", "replace"))
        except ValueError as error:
            if is_last:
                return
            raise refused(path, line_number, f"not JSON: {error}") from None


def take_lines(path: Path, take: Callable[[object], None]) -> None:
    """Calls a function with each line of a capture.

    Raises:
        FileNotFoundError: no such file.
        ValueError: as of :func:`lines_of`, or the reader refuses a line; names the file and it.
    """
    for line_number, line in lines_of(path):
        try:
            take(line)
        except (TypeError, ValueError) as error:
            raise refused(path, line_number, error) from None


def refused(path: Path, line_number: int, why: object) -> ValueError:
    """Returns the error that names a file, a line and the reason."""
    return ValueError(f"{storage.shown(path)}: line {line_number}: {why}")


def _pieces(path: Path) -> Iterator[tuple[int, bytes, bool]]:
    """Yields each line with its number, and True for a last line that does not end."""
    line_number, rest = 0, b""
    for piece in pieces_of(path):
        *lines, rest = (rest + piece).split(b"\n")
        for text in lines:
            line_number += 1
            yield line_number, text, False
        if len(rest) > storage.MAX_BYTES:
            raise refused(path, line_number + 1, f"more than {storage.MAX_BYTES} bytes")
    if rest:
        yield line_number + 1, rest, True


def times(line: Line) -> tuple[int, int]:
    """Returns the start and end of a line, in ns."""
    value = line.get("at")
    if isinstance(value, list) and len(value) == 2:
        start, end = value
        if type(start) is type(end) is int and -MAX_INTEGER <= start <= end <= MAX_INTEGER:
            return start, end
    raise ValueError(f"at: two times in ns are needed, the second not earlier, got {shown(value)}")


def integer(line: Line, field: str, low: int = 0, high: int = MAX_INTEGER) -> int:
    """Returns an integer of a line, checked to be in a range."""
    value = line.get(field)
    if type(value) is int and low <= value <= high:
        return value
    to = "" if high == MAX_INTEGER else f" to {high}"
    raise ValueError(f"{field}: a number from {low}{to} is needed, got {shown(value)}")


def sms_of(line: Line) -> int:
    """Returns how many SMs a line gives a GPU."""
    return integer(line, "sms", high=MAX_SMS)


@dataclass(frozen=True, slots=True)
class Integers:
    """Numbers from 0 of a line, by their fields; quick, since most lines are right."""

    fields: tuple[str, ...]

    def __call__(self, line: Line) -> tuple[int, ...]:
        values: tuple[Any, ...] = tuple(map(line.get, self.fields))
        if (
            _INTEGERS.issuperset(map(type, values))
            and 0 <= min(values) <= max(values) <= MAX_INTEGER
        ):
            return values
        return tuple(integer(line, field) for field in self.fields)


_INTEGERS = frozenset({int})


def optional(line: Line, field: str, low: int = 0) -> int | None:
    """Returns an integer of a line; None: the line does not have it."""
    return integer(line, field, low) if field in line else None


def text(line: Line, field: str) -> str:
    """Returns a text of a line, checked."""
    value = line.get(field)
    if isinstance(value, str):
        return value
    raise ValueError(f"{field}: text is needed, got {shown(value)}")


def flag(line: Line, field: str) -> bool | None:
    """Returns a bool of a line; None: the line does not have it."""
    value = line.get(field)
    if value is None or isinstance(value, bool):
        return value
    raise ValueError(f"{field}: true or false is needed, got {shown(value)}")


def three(line: Line, field: str) -> tuple[int, int, int]:
    """Returns three positive numbers of a line, such as a grid."""
    value = line.get(field)
    if isinstance(value, list) and len(value) == 3:
        x, y, z = value
        if type(x) is type(y) is type(z) is int and all(0 < n < 2**31 for n in value):
            return x, y, z
    raise ValueError(f"{field}: three numbers from 1 are needed, got {shown(value)}")
