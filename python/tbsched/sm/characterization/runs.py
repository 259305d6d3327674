"""What one launch of a loop recorded, and the file that keeps all of them."""

from __future__ import annotations

import base64
import json
import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeVar

import numpy as np

from tbsched import parsing, storage, unpacking
from tbsched.errors import shown
from tbsched.growing import GrowingFile
from tbsched.program.arrays import HoldsArrays, StructuredArray
from tbsched.program.checks import flag, integer, known_fields
from tbsched.sm.characterization.loops import Loop, Mode
from tbsched.sm.characterization.placing import Placed, Scope

VERSION = 2
_Word = TypeVar("_Word", bound=StrEnum)
_BEGINS = b'{"tbsched_characterization"'
# What the kernel writes for each warp. kind: 0 nothing, 1 it measured, 2 its block held a place.
RECORD = np.dtype(
    [
        ("start", "<u8"), ("end", "<u8"), ("start_ns", "<u8"), ("end_ns", "<u8"),
        ("kind", "<u4"), ("smid", "<u4"), ("slot", "<u4"), ("result", "<u4"),
    ]
)  # fmt: skip
ABSENT, MEASURED, HELD = range(3)
_COLUMNS = ("start", "end", "start_ns", "end_ns", "smid", "slot", "result")
_BY_GPU = ("start_ns", "end_ns")
_MAX_VALUE = 2**63 - 1
_MAX_WARPS = 2**17  # of a launch; a GPU holds a tenth
# Warps of a file: a minimum, and beyond that as many as it has bytes. Recordings have one in ten.
_MAX_WARPS_OF_FILE, _WARPS_PER_BYTE = 2**20, 1
_FIELDS = 13  # of a line


class Key(NamedTuple):
    """Which run it is."""

    opcode: str
    mode: Mode
    distance: int
    spacing: int
    updates: int
    scope: Scope
    warps: int
    repeat: int


@dataclass(frozen=True, slots=True, eq=False)
class Run(HoldsArrays):
    """One launch of a loop.

    Attributes:
        key: which run it is.
        instructions: of the opcode, that a warp executed.
        as_predicted: whether every block was where the predictor said, from some latent state.
        warps: structured array, a row per warp that measured: ``start`` and ``end`` in clocks of
            its SM, ``start_ns`` and ``end_ns`` by the GPU's clock, ``smid``, ``slot`` (the warp
            slot), and ``result``, a number made of the chain registers at the end.
    """

    key: Key
    instructions: int
    as_predicted: bool
    warps: StructuredArray

    @classmethod
    def of(
        cls, loop: Loop, placed: Placed, repeat: int, iterations: int, records: StructuredArray
    ) -> Run:
        """Returns the run from the kernel's records."""
        key = Key(
            loop.opcode, loop.mode, loop.distance, loop.spacing, loop.updates,
            placed.scope, placed.warps, repeat,
        )  # fmt: skip
        first_warps = records.reshape(placed.blocks, -1)[:, 0]
        as_predicted = any((first_warps["smid"] == smid).all() for smid in placed.possible)
        measured = records[records["kind"] == MEASURED][list(_COLUMNS)]
        return cls(key, loop.instructions * iterations, as_predicted, measured)


class RunFile:
    """The runs of one GPU, kept as they are made; one process at a time may hold the file.

    Args:
        path: a ``.jsonl`` file, created if it is not there.
        device: of what GPU, and by which tools its loops were made.

    Attributes:
        runs: what the file held when it was opened.

    Raises:
        ValueError: a file of something else or of another GPU, or one that is in use.
        FileNotFoundError: no such folder.
    """

    def __init__(self, path: str | os.PathLike[str], device: Mapping[str, Any]) -> None:
        self._file = GrowingFile(path, "file of runs", _BEGINS, sync_every=1000)
        try:
            nothing: tuple[dict[str, Any], tuple[Run, ...]] = ({}, ())
            content, self.runs = self._file.read(lambda file: _read(self._file.path, file), nothing)
            if not content:
                header = {"tbsched_characterization": VERSION, "device": dict(device)}
                self._file.append(_line(header))
            elif content != device:
                name = storage.shown(self._file.path)
                raise ValueError(f"{name}: has runs of {shown(content)}, not of {shown(device)}")
        except BaseException:
            self._file.close()
            raise

    def append(self, run: Run) -> None:
        """Keeps one more."""
        on_all = run.key.scope is Scope.ALL_SMS
        row = [*run.key, run.instructions, run.as_predicted, len(run.warps)]
        self._file.append(_line([*row, *_packed(run.warps, on_all)]))

    def close(self) -> None:
        self._file.close()


def load_runs(path: str | os.PathLike[str]) -> tuple[dict[str, Any], tuple[Run, ...]]:
    """Reads a file of runs, which may be compressed as ``.xz``.

    Returns:
        The GPU, and the runs.

    Raises:
        FileNotFoundError, ValueError: there is none, or it is broken; names the line.
    """
    name = storage.as_path(path)
    with storage.opened(name) as file:
        return _read(name, file)


def _read(name: Path, file: BinaryIO) -> tuple[dict[str, Any], tuple[Run, ...]]:
    """Returns the header and the runs of a file."""
    runs: list[Run] = []
    header: dict[str, Any] | None = None
    line_number = size = warps = 0
    try:
        for line_number, line in enumerate(unpacking.lines(file, name), 1):  # noqa: B007 - for the error
            size += len(line)
            if header is None:
                header = _header(line)
                continue
            runs.append(_run(parsing.json_value(line)))
            warps += len(runs[-1].warps)
            if warps > max(_MAX_WARPS_OF_FILE, _WARPS_PER_BYTE * size):
                raise ValueError(f"{warps} warps in {size} bytes are more than are read")
    except (ValueError, TypeError, *unpacking.DAMAGED) as error:
        raise ValueError(f"{storage.shown(name)}, line {line_number}: {error}") from None
    if header is None:
        raise ValueError(f"{storage.shown(name)}: not a file of runs")
    return header, tuple(runs)


def _header(line: bytes) -> dict[str, Any]:
    """Returns what the first line tells of the GPU."""
    if not line.startswith(_BEGINS):
        raise ValueError("not a file of runs")
    keys = ("tbsched_characterization", "device")
    fields = known_fields("header", parsing.json_value(line), keys, keys)
    if fields["tbsched_characterization"] != VERSION:
        raise ValueError("made by another version of tbsched; measure again")
    if not isinstance(fields["device"], dict):
        raise TypeError(f"device: an object is needed, got {shown(fields['device'])}")
    return dict(fields["device"])


def _run(row: object) -> Run:
    """Returns the run that a row of a file has."""
    if not isinstance(row, list) or len(row) != _FIELDS:
        raise ValueError(f"a list of {_FIELDS} values is needed, got {shown(row)}")
    opcode, mode, distance, spacing, updates, scope, warps, repeat, *remaining_fields = row
    instructions, as_predicted, recorded, shared, columns = remaining_fields
    if not isinstance(opcode, str):
        raise TypeError(f"opcode: text is needed, got {shown(opcode)}")
    integers_of_key = {
        "distance": distance,
        "spacing": spacing,
        "updates": updates,
        "repeat": repeat,
    }
    for field, value in integers_of_key.items():
        integer("run", field, value, 0, _MAX_VALUE)
    integer("run", "warps", warps, 1, _MAX_WARPS)
    integer("run", "instructions", instructions, 0, _MAX_VALUE)
    integer("run", "recorded", recorded, 0, _MAX_WARPS)
    mode, scope = _one_of("mode", Mode, mode), _one_of("scope", Scope, scope)
    key = Key(opcode, mode, distance, spacing, updates, scope, warps, repeat)
    records = _unpacked(shared, columns, recorded)
    return Run(key, instructions, flag("run", "as_predicted", as_predicted), records)


def _one_of(field: str, kind: type[_Word], value: object) -> _Word:
    """Returns the member of an enumeration that has this value. Raises ValueError: naming
    ``field``."""
    word = next((known for known in kind if known == value), None)
    if word is None:
        raise ValueError(f"{field}: {shown(value)} is none of {', '.join(kind)}")
    return word


def _line(data: Mapping[str, Any] | list[Any]) -> bytes:
    return json.dumps(data, separators=(",", ":")).encode() + b"\n"


def _packed(warps: StructuredArray, on_all: bool) -> tuple[dict[str, int], str]:
    """Returns records in a smaller form: the values that all warps share, and the differences
    between warps as text.

    The GPU's clock is kept where clocks of several SMs are to be compared.
    """
    names = [name for name in _COLUMNS if on_all or name not in _BY_GPU]
    columns = {name: warps[name].astype(np.int64) for name in names}
    shared = {name: int(column[0]) for name, column in columns.items() if len(set(column)) == 1}
    varying = [column for name, column in columns.items() if name not in shared]
    differences = np.diff(
        np.array(varying, np.int64).reshape(len(varying), len(warps)), axis=1, prepend=0
    )
    return shared, base64.b64encode(zlib.compress(differences.tobytes())).decode()


def _unpacked(shared_values: object, text: object, count: int) -> StructuredArray:
    """Returns the records of what :func:`_packed` made of them.

    Raises:
        TypeError, ValueError: not that.
    """
    if not isinstance(text, str):
        raise TypeError(f"columns: text is needed, got {shown(text)}")
    shared = known_fields("same", shared_values, _COLUMNS, ())
    content = _inflated(text, 8 * count * len(_COLUMNS))
    on_all = len(shared) + len(content) // (8 * max(count, 1)) == len(_COLUMNS)
    names = [name for name in _COLUMNS if on_all or name not in _BY_GPU]
    varying = [name for name in names if name not in shared]
    if len(content) != 8 * count * len(varying):
        raise ValueError(f"columns: {len(content)} bytes for {len(varying)} of {count} warps")
    columns = np.frombuffer(content, np.int64).reshape(len(varying), count).cumsum(axis=1)
    warps = np.zeros(count, RECORD)[list(_COLUMNS)]
    for name, values in zip(varying, columns, strict=True):
        warps[name] = values
    for name, value in shared.items():
        warps[name] = integer("same", name, value, 0, np.iinfo(RECORD[name]).max)
    return warps


def _inflated(text: str, max_bytes: int) -> bytes:
    """Returns the unpacked columns of a run, refusing more than ``max_bytes`` bytes."""
    try:
        content = base64.b64decode(text, validate=True)
        unpacked = zlib.decompressobj().decompress(content, max_bytes + 1)
    except (ValueError, zlib.error) as error:
        raise ValueError(f"columns: {error}") from None
    if len(unpacked) > max_bytes:
        raise ValueError(f"columns: more than {max_bytes} bytes, the most of so many warps")
    return unpacked
