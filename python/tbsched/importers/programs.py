"""Programs out of the files that profilers write."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from tbsched import storage
from tbsched.hardware.catalogue import device as find_device
from tbsched.hardware.spec import DeviceSpec
from tbsched.importers import kineto
from tbsched.importers.assemble import assembled
from tbsched.importers.durations import by_waves, known_device
from tbsched.importers.packed import head_of
from tbsched.importers.records import Recording
from tbsched.importers.selection import Selection
from tbsched.program.program import Program


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of file that a profiler writes.

    Attributes:
        name: what it is called.
        takes: whether a file is of this format, by its first bytes, unpacked.
        read: what it tells.
    """

    name: str
    takes: Callable[[bytes], bool]
    read: Callable[[Path, Selection], Recording]


FORMATS = (Format(kineto.NAME, kineto.takes, kineto.read),)


def is_profile(place: Path) -> bool:
    """Whether a file is one that a profiler wrote, by looking at it."""
    head = head_of(place)
    return any(known.takes(head) for known in FORMATS)


def load_program(
    path: str | os.PathLike[str],
    device: str | os.PathLike[str] | DeviceSpec | None = None,
    *,
    start: float | None = None,
    end: float | None = None,
    streams: Iterable[int] | None = None,
    match: str | None = None,
) -> Program:
    """Reads the profile of a real program: what it launched, when it called, and when kernels ran.

    The file is looked at to find out what wrote it: torch.profiler.
    What the file does not say is assumed, and ``assumed`` of the result says so.

    Args:
        path: of the file.
        device: a name, the path of a ``.toml`` file, or a spec: where the program ran. None: the
            one that the profile names, if it is known.
        start, end: only kernels, copies and memsets that start in this time, in seconds from the
            first one.
        streams: only these streams, as the profile numbers them.
        match: only kernels in whose names this regular expression is found.

    Raises:
        FileNotFoundError: no such file.
        ImportError: a library that reads the format is missing.
        TypeError: an argument of a wrong type.
        ValueError: a file of no known format, damaged or incomplete; no kernels in it, or none that
            is wanted; an argument out of its range. The message names the file and the place.

    Example:
        >>> program = tb.load_program("trace.json.gz")  # doctest: +SKIP
        >>> tb.predict(program.sequence, "h200", host=program.host)  # doctest: +SKIP
    """
    place = storage.as_path(path)
    selection = Selection.of(start, end, streams, match)
    spec = None if device is None else find_device(device)
    recording = _recording(place, selection)
    try:
        program = assembled(recording)
    except (ValueError, TypeError) as error:
        hint = "; nothing else is selected" if selection else ""
        raise ValueError(f"{storage.shown(place)}: {error}{hint}") from None
    return by_waves(program, spec or known_device(recording.device, recording.sms))


def _recording(place: Path, selection: Selection) -> Recording:
    head = head_of(place)
    for known in FORMATS:
        if known.takes(head):
            return known.read(place, selection)
    names = ", ".join(known.name for known in FORMATS)
    what = "a folder" if storage.is_folder(place) else "of no known format"
    raise ValueError(f"{storage.shown(place)}: {what}; known are {names}")
