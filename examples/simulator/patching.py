"""Changes a checkout of a simulator, or refuses to: all changes are made, or none."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

Change = Callable[[str], str]


class Refused(Exception):
    """The checkout is not what this script knows."""


def closing(text: str, opening: int) -> int:
    """Index of the bracket that closes the one at ``opening``; comments and strings are skipped."""
    pairs = {"(": ")", "{": "}"}
    token = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|[(){}]', re.S)
    mine, theirs = text[opening], pairs[text[opening]]
    depth = 0
    for found in token.finditer(text, opening):
        depth += (found[0] == mine) - (found[0] == theirs)
        if depth == 0:
            return found.start()
    raise Refused(f"no bracket closes {text[opening : opening + 40]!r}")


def body(text: str, name: str) -> tuple[int, int]:
    """Where the body of the function that is defined here begins and ends, within its braces."""
    bodies = []
    for found in re.finditer(rf"(?m)^[^\n/#;]*\b{re.escape(name)}\s*(?=\()", text):
        rest = closing(text, found.end()) + 1
        opening = re.compile(r"(?:\s*const)?(?:\s*:[^{};]*)?\s*\{").match(text, rest)
        if opening:
            bodies.append((opening.end(), closing(text, opening.end() - 1)))
    if len(bodies) != 1:
        raise Refused(f"{name} is defined {len(bodies)} times")
    return bodies[0]


def before(found: str, line: str) -> Change:
    """Before the first place where this is."""

    def change(text: str) -> str:
        if found not in text:
            raise Refused(f"no {found}")
        return text.replace(found, f"{line}\n{found}", 1)

    return change


def digest(checkout: Path, files: Iterable[str], simulator: str) -> str:
    """SHA-256 of the files, one after the other."""
    names = list(files)
    missing = [name for name in names if not (checkout / name).is_file()]
    if missing:
        raise Refused(f"{checkout}: not a checkout of {simulator}: no {missing[0]}")
    contents = [(checkout / name).read_bytes() for name in names]
    return hashlib.sha256(b"".join(contents)).hexdigest()


def version(found: str, versions: Mapping[str, str], checkout: Path, other: str | None) -> str:
    """Name of the version with this digest; ``other`` is a version that was not tried.

    Raises:
        Refused: no version has it.
    """
    name = next((name for name, known in versions.items() if known == found), None)
    if name is None:
        what = f"{other}, not tried" if other else f"unknown version {found}, or changed already"
        raise Refused(f"{checkout}: {what}. Known: {'; '.join(versions)}")
    return name


def change(checkout: Path, changes: Iterable[tuple[str, Change]]) -> None:
    """Makes each change in its file.

    Raises:
        Refused: one cannot be made. Then nothing is written.
    """
    texts: dict[str, str] = {}
    for name, one in changes:
        texts[name] = one(texts.get(name) or (checkout / name).read_text("utf-8"))
    for name, text in texts.items():
        (checkout / name).write_text(text, "utf-8")


def run(put_into: Callable[[Path, Path], str], usage: str | None, arguments: list[str]) -> int:
    """Changes the checkout that the arguments name; returns the exit status."""
    if len(arguments) != 2:
        print(usage, file=sys.stderr)
        return 2
    try:
        print("changed:", put_into(Path(arguments[0]), Path(arguments[1])))
    except Refused as refused:
        print(refused, file=sys.stderr)
        return 2
    return 0
