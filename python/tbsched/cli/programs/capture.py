"""``tbsched capture``."""

from __future__ import annotations

import contextlib
import gzip
import lzma
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer

from tbsched import storage
from tbsched.cli.console import note
from tbsched.cli.files import check_output
from tbsched.importers.capture import takes
from tbsched.importers.reading.packed import head_of
from tbsched.launcher.injection import injected

_PACKERS: dict[str, Callable[..., Any]] = {".xz": lzma.open, ".gz": gzip.open}
_LAUNCH = b'{"ran":'


def capture(
    program: Annotated[
        list[str],
        typer.Argument(
            help="What to run, and its arguments; after -- if they begin with a dash.",
            metavar="PROGRAM...",
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="Write the capture to this file; one that ends in .xz or .gz is packed when the "
            "program has ended.",
        ),
    ],
) -> int:
    """Run a CUDA program and record every launch, copy, event and wait of it.

    The exit status is the program's.
    """
    packer = _PACKERS.get(output.suffix)
    place = output if packer is None else output.with_suffix("")
    executable = shutil.which(program[0]) or ""
    words = (executable, *program[1:])  # of which any may be too long for a path
    own = [Path(word) for word in words if os.path.isfile(word)]  # noqa: PTH113
    for each in (output, place):
        check_output(each, *own)
    if not executable:
        raise ValueError(f"PROGRAM: {program[0]} is not found, or cannot be run")
    if packer is not None and place.exists() and not takes(head_of(place)):
        raise ValueError(
            f"--output: {place} is there and is no capture, but the capture is written there "
            "before it is packed; choose another name"
        )
    environment = injected(os.environ, place)
    place.unlink(missing_ok=True)
    begin = time.time()
    status = _run(program, environment)
    _report(_written(place, begin), packer, output.suffix)
    return status


def _run(program: list[str], environment: dict[str, str]) -> int:
    """Runs a program to its end, which signals for this process reach too."""
    with subprocess.Popen(program, env=environment) as process, _passing_on(process):
        status = process.wait()
    return 128 - status if status < 0 else status


@contextlib.contextmanager
def _passing_on(process: subprocess.Popen[bytes]) -> Iterator[None]:
    def pass_on(number: int, frame: FrameType | None) -> None:
        # The terminal sends Ctrl-C to all processes in its foreground.
        if number != signal.SIGINT or not _is_in_foreground():
            process.send_signal(number)

    before = {number: signal.signal(number, pass_on) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _is_in_foreground() -> bool:
    try:
        return os.tcgetpgrp(sys.__stdin__.fileno()) == os.getpgrp()  # type: ignore[union-attr]
    except (AttributeError, OSError, ValueError):
        return False


def _written(place: Path, begin: float) -> list[Path]:
    """The file of the first process that used CUDA, and those of the others."""
    other = re.compile(rf"{re.escape(place.stem)}\.\d+{re.escape(place.suffix)}")
    others = [each for each in place.parent.iterdir() if other.fullmatch(each.name)]
    return [
        each
        for each in (place, *sorted(others))
        if each.exists() and each.stat().st_mtime >= begin - 1
    ]


def _report(places: list[Path], packer: Callable[..., Any] | None, suffix: str) -> None:
    """Packs the files, and says what is in them."""
    if not places:
        note(
            "tbsched capture: nothing is captured: the program did not use CUDA, or what is above "
            "kept it from being captured"
        )
    for place in places:
        with storage.opened(place) as file:
            launches = sum(line.startswith(_LAUNCH) for line in file)
        written = place
        if packer is not None:
            written = place.with_name(place.name + suffix)
            with storage.opened(place) as file, packer(written, "wb") as packed:
                shutil.copyfileobj(file, packed)
            place.unlink()
        note(f"wrote {written}: {launches} launch{'es' if launches != 1 else ''}")
