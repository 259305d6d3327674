"""What warps do, as arrays."""

from __future__ import annotations

import io
import lzma
import math
import os
import struct
import zipfile
import zlib
from dataclasses import dataclass, fields
from tokenize import TokenError
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from tbsched import storage, unpacking
from tbsched.counting import counted
from tbsched.errors import shown
from tbsched.program.arrays import HoldsArrays, Int32Array, Int64Array
from tbsched.program.checks import instance, integer

LOAD, STORE, ALSO, NONE, BARRIER = range(5)
_MAX_VALUE = 2**31 - 1
Access: TypeAlias = npt.NDArray[np.uint8]
Addresses: TypeAlias = npt.NDArray[np.uint64]
Sectors: TypeAlias = npt.NDArray[np.uint8]
# Sizes that the sectors of a workload refer to, independent of the simulated GPU.
LINE_BYTES, SECTOR_BYTES = 128, 32


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Workload(HoldsArrays):
    """One kernel: what each warp of each block does.

    A warp executes its rows in order. A row is some instructions that compute, and then an access
    of a cache line. With ``sectors``, it accesses some of the 128 bytes from its address on.

    Attributes:
        name: for tables.
        warps_per_block: so many warps form a block; the first ones are block 0.
        blocks_per_core: resident at most, because of what a block needs; the config may allow less.
        rows: int64 (warps + 1,), the first row of each warp; and the number of rows.
        compute: int32 (rows,), instructions before the access.
        access: uint8 (rows,): 0 a load, 1 a store, 2 another line of the instruction in the row
            before, 3 no access, 4 a barrier: it waits for the warps of its block that have not
            ended.
        address: uint64 (rows,), in bytes, less than 2^60.
        sectors: uint8 (rows,), which 32 bytes of the 128 bytes from the address on, a bit each; the
            address is then a multiple of 128. None: a whole line, whatever the size of a line.

    Raises:
        TypeError, ValueError: arrays of other lengths, or whose values mean nothing.

    Example:
        >>> import numpy as np
        >>> one = tb.sm.Workload("one", 1, 8, np.array([0, 2]), np.array([5, 3]),
        ...                      np.array([0, 3]), np.array([4096, 0]))
        >>> one.instructions, one.blocks
        (9, 1)
    """

    name: str
    warps_per_block: int
    blocks_per_core: int
    rows: Int64Array
    compute: Int32Array
    access: Access
    address: Addresses
    sectors: Sectors | None = None

    def __post_init__(self) -> None:
        instance("workload", "name", self.name, str)
        integer("workload", "warps_per_block", self.warps_per_block, 1, 64)
        integer("workload", "blocks_per_core", self.blocks_per_core, 1, _MAX_VALUE)
        for name, kind in _KINDS.items():
            object.__setattr__(self, name, integers(name, getattr(self, name), kind))
        if self.sectors is not None:
            object.__setattr__(self, "sectors", _sectors(self.sectors, self.access, self.address))
        if not len(self.compute) == len(self.access) == len(self.address):
            raise ValueError("workload.rows: compute, access and address differ in length")
        HoldsArrays.__post_init__(self)

    def __repr__(self) -> str:
        return (
            f"<Workload: {self.name}, {counted(self.blocks, 'block')} of "
            f"{counted(self.warps_per_block, 'warp')}, "
            f"{self.instructions:,} instructions>"
        )

    @property
    def blocks(self) -> int:
        """How many blocks it has."""
        return (len(self.rows) - 1) // self.warps_per_block

    @property
    def instructions(self) -> int:
        """Instructions of all warps."""
        accesses = np.count_nonzero((self.access != ALSO) & (self.access != NONE))
        return int(self.compute.sum(dtype=np.int64)) + int(accesses)

    def lines_of_blocks(self, line_bytes: int) -> tuple[Int64Array, Int64Array]:
        """Returns every line that a block touches, once.

        Args:
            line_bytes: bytes of a line.

        Returns:
            The block and the number of the line, int64 (pairs,) each, by block and line.

        Example:
            >>> block, line = tb.sm.preset("SCP", blocks=8).lines_of_blocks(64)
            >>> len(block) == len(line)
            True
        """
        line_bytes = integer("lines_of_blocks", "line_bytes", line_bytes, 1, _MAX_VALUE)
        warps = np.repeat(np.arange(len(self.rows) - 1), np.diff(self.rows))
        touches = self.access < NONE
        block = (warps // self.warps_per_block)[touches]
        line = (self.address[touches] // np.uint64(line_bytes)).astype(np.int64)
        order = np.lexsort((line, block))
        block, line = block[order], line[order]
        first = np.ones(len(order), np.bool_)
        first[1:] = (block[1:] != block[:-1]) | (line[1:] != line[:-1])
        return block[first], line[first]


_Number = TypeVar("_Number", bound=np.integer[Any])
_KINDS: dict[str, type[np.integer[Any]]] = {
    "rows": np.int64,
    "compute": np.int32,
    "access": np.uint8,
    "address": np.uint64,
}
_STEP = "address_step"
_NAMES = ("name", "warps_per_block", "blocks_per_core", "rows", "compute", "access", _STEP)
_MAX_BYTES = 2**29  # of all arrays of a file
_DICTIONARY_AT = 5  # of the size of the dictionary, in what ZIP has before data packed by LZMA
# What NumPy and its libraries raise of files that are no archives, or are broken.
_BROKEN = (
    ArithmeticError, AttributeError, EOFError, KeyError, MemoryError, NotImplementedError,
    RuntimeError, SyntaxError, TokenError, TypeError, ValueError, lzma.LZMAError, struct.error,
    zipfile.BadZipFile, zlib.error,
)  # fmt: skip


def integers(
    name: str, values: object, kind: type[_Number], owner: str = "workload"
) -> npt.NDArray[_Number]:
    """Returns a row of integers as an array.

    Raises:
        TypeError, ValueError: something else, or out of the range of the kind.
    """
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise TypeError(f"{owner}.{name}: one row of integers is needed")
    limits = np.iinfo(kind)
    if len(array) and not limits.min <= int(array.min()) <= int(array.max()) <= limits.max:
        raise ValueError(f"{owner}.{name}: a value is outside {limits.min}..{limits.max}")
    return np.ascontiguousarray(array, kind)


def _sectors(values: object, access: Access, address: Addresses) -> Sectors:
    """Returns the sectors of each access, checked."""
    sectors = integers("sectors", values, np.uint8)
    if not len(sectors) == len(address) == len(access):
        raise ValueError("workload.sectors: access, address and sectors differ in length")
    if len(without := np.flatnonzero((sectors == 0) & (access < NONE))):
        raise ValueError(f"workload.sectors: row {without[0]} has none")
    if len(sectors) and int(sectors.max()) >= 1 << LINE_BYTES // SECTOR_BYTES:
        raise ValueError("workload.sectors: a value is outside 0..15")
    if (address % np.uint64(LINE_BYTES) != 0).any():
        raise ValueError(f"workload.address: with sectors, each is a multiple of {LINE_BYTES}")
    return sectors


class Rows(NamedTuple):
    """The arrays of a workload, with the lines and sectors of a simulated GPU."""

    rows: Int64Array
    compute: Int32Array
    access: Access
    address: Addresses
    sectors: Sectors  # bit mask of a line's sectors; an empty array: whole lines


def fitted(workload: Workload, line_bytes: int, line_sectors: int) -> Rows:
    """Returns a workload as rows for a GPU with lines of this size.

    Args:
        workload: its arrays stay as they are if it has no sectors.
        line_bytes: bytes of a line.
        line_sectors: of a line.
    """
    arrays = Rows(
        workload.rows, workload.compute, workload.access, workload.address,
        np.array([], np.uint8) if workload.sectors is None else workload.sectors,
    )  # fmt: skip
    has_such_lines = (line_bytes, line_sectors) == (LINE_BYTES, LINE_BYTES // SECTOR_BYTES)
    if has_such_lines or not len(arrays.sectors):
        return arrays
    sector_index = np.arange(LINE_BYTES // SECTOR_BYTES)
    touched = arrays.sectors[:, None] >> sector_index & 1 == 1
    touched[arrays.access >= NONE, 0] = True
    row, sector = np.nonzero(touched)
    address = arrays.address[row] + (sector * SECTOR_BYTES).astype(np.uint64)
    line, offset = np.divmod(address, np.uint64(line_bytes))
    # Neighbours of one row and line are one access.
    is_other = (row[1:] != row[:-1]) | (line[1:] != line[:-1])
    first = np.flatnonzero(np.concatenate([[True], is_other]))
    sectors = np.uint8(1) << (offset // np.uint64(line_bytes // line_sectors)).astype(np.uint8)
    of_row = row[first]
    is_further = np.concatenate([[False], of_row[1:] == of_row[:-1]])
    return Rows(
        np.searchsorted(of_row, arrays.rows),
        np.where(is_further, 0, arrays.compute[of_row]).astype(np.int32),
        np.where(is_further, ALSO, arrays.access[of_row]).astype(np.uint8),
        line[first] * np.uint64(line_bytes),
        np.where(arrays.access[of_row] < NONE, np.bitwise_or.reduceat(sectors, first), 0).astype(
            np.uint8
        ),
    )


def save_workload(workload: Workload, path: str | os.PathLike[str]) -> None:
    """Writes a workload to an ``.npz`` file, which ``numpy.load`` reads, too.

    :doc:`The page on the format </reference/workload-format>` says what is in it.

    Args:
        workload: what to write.
        path: of the file.

    Raises:
        FileNotFoundError, ValueError: no such folder, the file cannot be written, or the workload
            is larger than :func:`load_workload` reads.

    Example:
        >>> tb.sm.save_workload(tb.sm.preset("SCP", blocks=8), "scp.npz")
        >>> tb.sm.load_workload("scp.npz").name
        'SCP'
    """
    instance("save_workload", "workload", workload, Workload)
    values = {field.name: getattr(workload, field.name) for field in fields(Workload)}
    # Kernels go through memory in steps that repeat, which take little room.
    values[_STEP] = np.diff(values.pop("address").astype(np.int64), prepend=0)
    if workload.sectors is None:
        values.pop("sectors")
    total = sum(np.asanyarray(value).nbytes for value in values.values())
    if total > _MAX_BYTES:
        raise ValueError(f"workload: its arrays take {total} bytes, more than {_MAX_BYTES}")
    with storage.replacing(storage.as_path(path)) as file, zipfile.ZipFile(file, "w") as out:
        for name, value in values.items():
            entry = zipfile.ZipInfo(f"{name}.npy")
            entry.compress_type = zipfile.ZIP_LZMA
            with out.open(entry, "w") as column:
                np.lib.format.write_array(column, np.asanyarray(value), allow_pickle=False)


def load_workload(path: str | os.PathLike[str]) -> Workload:
    """Reads a workload from an ``.npz`` file.

    Args:
        path: of the file, such as :func:`save_workload` writes.

    Raises:
        FileNotFoundError: no such file.
        ValueError: the file cannot be read; an array is missing, or means nothing.

    Example:
        >>> tb.sm.save_workload(tb.sm.preset("SCP", blocks=8), "scp.npz")
        >>> tb.sm.load_workload("scp.npz").warps_per_block
        4
    """
    file = storage.as_path(path)
    content = storage.content(file)
    try:
        if not zipfile.is_zipfile(io.BytesIO(content)):
            raise ValueError("not an .npz file such as tb.sm.save_workload writes")
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            arrays = _arrays(archive, content)
        if missing := [name for name in _NAMES if name not in arrays]:
            raise ValueError(f"{missing[0]} is missing")
        return Workload(
            str(arrays["name"]),
            int(arrays["warps_per_block"]),
            int(arrays["blocks_per_core"]),
            arrays["rows"],
            arrays["compute"],
            arrays["access"],
            arrays[_STEP].cumsum(dtype=np.int64),
            arrays.get("sectors"),
        )
    except _BROKEN as error:
        why = str(error) or type(error).__name__
        raise ValueError(f"{storage.shown(file)}: no workload: {why}") from None


def _arrays(archive: zipfile.ZipFile, content: bytes) -> dict[str, npt.NDArray[Any]]:
    """Returns the arrays that a workload has, by name.

    Raises:
        ValueError: they take more memory than the limits; or what NumPy and ``zipfile`` raise.
    """
    names = {f"{name}.npy": name for name in (*_NAMES, "sectors")}
    entries = [entry for entry in archive.infolist() if entry.filename in names]
    total = sum(entry.file_size for entry in entries)
    max_bytes = min(unpacking.most_unpacked(len(content)), _MAX_BYTES)
    if total > max_bytes:
        raise ValueError(f"{len(content)} bytes unpack to {total}, more than {max_bytes}")
    arrays = {}
    for entry in entries:
        _check_dictionary(entry, content)
        with archive.open(entry) as file:
            arrays[names[entry.filename]] = _array(names[entry.filename], file.read())
    return arrays


def _array(name: str, data: bytes) -> npt.NDArray[Any]:
    """Returns an array from an ``.npy`` file, whose header may claim any size."""
    file = io.BytesIO(data)
    version = np.lib.format.read_magic(file)
    if version != (1, 0):
        raise ValueError(f"{name}: an array of version 1.0 is needed, got {version}")
    shape, _, kind = np.lib.format.read_array_header_1_0(file)
    if math.prod(shape) * kind.itemsize > len(data):
        raise ValueError(f"{name}: an array of {shown(shape)} in {len(data)} bytes")
    file.seek(0)
    array: npt.NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
    return array


def _check_dictionary(entry: zipfile.ZipInfo, content: bytes) -> None:
    """Refuses an entry that takes much memory to unpack."""
    if entry.compress_type != zipfile.ZIP_LZMA:
        return
    name, extra = struct.unpack_from("<HH", content, entry.header_offset + 26)
    at = entry.header_offset + 30 + name + extra + _DICTIONARY_AT
    (size,) = struct.unpack_from("<I", content, at)
    if size > unpacking.MAX_DICTIONARY:
        raise ValueError(f"{entry.filename}: unpacking takes {size} bytes of memory")
