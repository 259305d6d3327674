"""What warps do, as arrays."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from tbsched.errors import shown
from tbsched.program.arrays import HoldsArrays, Int32Array, Int64Array
from tbsched.program.checks import instance, integer

LOAD, STORE, ALSO, NONE = range(4)
_MOST = 2**31 - 1
Access: TypeAlias = npt.NDArray[np.uint8]
Addresses: TypeAlias = npt.NDArray[np.uint64]


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Workload(HoldsArrays):
    """One kernel: what each warp of each block does.

    A warp executes its rows in order. A row is some instructions that compute, and then an access
    of a cache line.

    Attributes:
        name: for tables.
        warps_per_block: so many warps form a block; the first ones are block 0.
        blocks_per_core: resident at most, because of what a block needs; the config may allow less.
        rows: int64 (warps + 1,), the first row of each warp; and the number of rows.
        compute: int32 (rows,), instructions before the access.
        access: uint8 (rows,): 0 a load, 1 a store, 2 another line of the instruction in the row
            before, 3 no access.
        address: uint64 (rows,), in bytes.

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

    def __post_init__(self) -> None:
        instance("workload", "name", self.name, str)
        integer("workload", "warps_per_block", self.warps_per_block, 1, 64)
        integer("workload", "blocks_per_core", self.blocks_per_core, 1, _MOST)
        for name, kind in _KINDS.items():
            object.__setattr__(self, name, _column(name, getattr(self, name), kind))
        HoldsArrays.__post_init__(self)

    def __repr__(self) -> str:
        return (
            f"<Workload: {self.name}, {self.blocks} blocks of {self.warps_per_block} warps, "
            f"{self.instructions:,} instructions>"
        )

    @property
    def blocks(self) -> int:
        """How many blocks it has."""
        return (len(self.rows) - 1) // self.warps_per_block

    @property
    def instructions(self) -> int:
        """Instructions of all warps."""
        accesses = np.count_nonzero((self.access == LOAD) | (self.access == STORE))
        return int(self.compute.sum(dtype=np.int64)) + int(accesses)

    def lines_of_blocks(self, line_bytes: int) -> tuple[Int64Array, Int64Array]:
        """Every line that a block touches, once.

        Args:
            line_bytes: bytes of a line.

        Returns:
            The block and the number of the line, int64 (pairs,) each, by block and line.

        Example:
            >>> block, line = tb.sm.preset("SCP", blocks=8).lines_of_blocks(64)
            >>> len(block) == len(line)
            True
        """
        warps = np.repeat(np.arange(len(self.rows) - 1), np.diff(self.rows))
        touches = self.access != NONE
        block = (warps // self.warps_per_block)[touches]
        line = (self.address[touches] // np.uint64(line_bytes)).astype(np.int64)
        pairs = np.unique(np.stack([block, line]), axis=1)
        return pairs[0], pairs[1]


_KINDS: dict[str, type[np.generic]] = {
    "rows": np.int64,
    "compute": np.int32,
    "access": np.uint8,
    "address": np.uint64,
}


def _column(name: str, given: object, kind: type[np.generic]) -> npt.NDArray[np.generic]:
    array = np.asarray(given)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise TypeError(f"workload.{name}: one row of integers is needed")
    limits = np.iinfo(kind)  # type: ignore[type-var]
    if len(array) and not limits.min <= int(array.min()) <= int(array.max()) <= limits.max:
        raise ValueError(f"workload.{name}: a value is outside {limits.min}..{limits.max}")
    return np.ascontiguousarray(array, kind)


def save_workload(workload: Workload, path: str | os.PathLike[str]) -> None:
    """Writes a workload to an ``.npz`` file, which ``numpy.load`` reads, too.

    Args:
        workload: what to write.
        path: of the file.

    Raises:
        OSError: the file cannot be written.

    Example:
        >>> tb.sm.save_workload(tb.sm.preset("SCP", blocks=8), "scp.npz")
        >>> tb.sm.load_workload("scp.npz").name
        'SCP'
    """
    values = {field.name: getattr(workload, field.name) for field in fields(Workload)}
    with open(path, "wb") as out:
        np.savez_compressed(out, **values)


def load_workload(path: str | os.PathLike[str]) -> Workload:
    """Reads a workload from an ``.npz`` file.

    Args:
        path: of the file. Its arrays are the attributes of a :class:`Workload`, by name.

    Raises:
        OSError: the file cannot be read.
        ValueError: an array is missing, or means nothing.

    Example:
        >>> tb.sm.save_workload(tb.sm.preset("SCP", blocks=8), "scp.npz")
        >>> tb.sm.load_workload("scp.npz").warps_per_block
        4
    """
    try:
        with np.load(Path(path), allow_pickle=False) as held:
            values = {field.name: held[field.name] for field in fields(Workload)}
            return Workload(
                str(values["name"]),
                int(values["warps_per_block"]),
                int(values["blocks_per_core"]),
                *(values[name] for name in _KINDS),
            )
    except (KeyError, ValueError, TypeError) as error:
        raise ValueError(f"{shown(os.fspath(path))}: no workload: {error}") from None
