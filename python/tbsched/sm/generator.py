"""Synthetic workloads: from knobs, and 19 presets after the tables of a paper."""

from __future__ import annotations

import functools
import tomllib
from dataclasses import dataclass, fields
from importlib import resources
from typing import Any

import numpy as np

from tbsched.errors import did_you_mean, shown
from tbsched.program.arrays import Int64Array
from tbsched.program.checks import instance, integer
from tbsched.sm.workloads import ALSO, LOAD, STORE, Workload

_LINE = 64  # bytes; a config may have longer lines
_ROW_LINES = 32  # lines in 2,048 bytes, a row of the DRAM
_SEED = 2013


@dataclass(frozen=True, slots=True)
class Knobs:
    """What a synthetic workload is like.

    Blocks read a matrix. Each block has a tile of it, which its warps read from top to bottom,
    together. A part of the loads goes to lines that the block has read before.

    Attributes:
        name: of the workload.
        blocks: blocks of the kernel.
        warps_per_block: warps of a block.
        blocks_per_core: resident blocks at most.
        loads: loads of a warp, but those that are near.
        near: for each hundred of these, loads that read the lines of the last one once more.
        compute: instructions before each load.
        more_compute: percent of the loads before which there is one more.
        lines: lines of 64 bytes that a load reads.
        reuse: percent of the loads that read lines which another warp of the block has read.
        reuse_bytes: what the block has read since then. By default, those of eight blocks are half
            as many again as an L1 cache of 32 KB holds.
        blocks_per_row: tiles in 2,048 bytes of the matrix. With more than 32 some have the same
            line.
        consecutive: of the blocks whose tiles are in the same 2,048 bytes, percent that have the
            number before or after that of another of them; about.
        stores: percent of the loads behind which the warp writes what it has read.

    Raises:
        TypeError, ValueError: a knob that is no integer, or is out of range.

    Example:
        >>> tb.sm.synthetic(tb.sm.Knobs("mine", blocks=56, loads=10)).instructions
        13440
    """

    name: str
    blocks: int = 560
    warps_per_block: int = 4
    blocks_per_core: int = 8
    loads: int = 48
    near: int = 0
    compute: int = 5
    more_compute: int = 0
    lines: int = 2
    reuse: int = 0
    reuse_bytes: int = 6144
    blocks_per_row: int = 4
    consecutive: int = 100
    stores: int = 0

    def __post_init__(self) -> None:
        instance("knobs", "name", self.name, str)
        for name, (low, high) in _LIMITS.items():
            integer("knobs", name, getattr(self, name), low, high)


_LIMITS = {
    "blocks": (1, 1 << 20),
    "warps_per_block": (1, 64),
    "blocks_per_core": (1, 64),
    "loads": (1, 1 << 20),
    "near": (0, 100_000),
    "compute": (0, 1 << 20),
    "more_compute": (0, 100),
    "lines": (1, 32),
    "reuse": (0, 100),
    "reuse_bytes": (64, 1 << 30),
    "blocks_per_row": (1, 64),
    "consecutive": (0, 100),
    "stores": (0, 100),
}


def synthetic(knobs: Knobs) -> Workload:
    """Returns the workload that knobs describe. The same knobs give the same workload.

    Args:
        knobs: what it is like.

    Raises:
        TypeError: no knobs.

    Example:
        >>> tb.sm.synthetic(tb.sm.Knobs("mine")).blocks
        560
    """
    instance("synthetic", "knobs", knobs, Knobs)
    warps = knobs.blocks * knobs.warps_per_block
    block, warp = np.divmod(np.arange(warps), knobs.warps_per_block)
    load = np.arange(knobs.loads)
    part, times = _parts(knobs)
    # The warps of a block read a part together, a load of each after the other.
    whose = (warp[:, None] + times) % knobs.warps_per_block
    first = (part * knobs.warps_per_block + whose) * knobs.lines
    line = _tile_lines(knobs, block, first[:, :, None] + np.arange(knobs.lines))
    # Behind a load its near ones, and its store.
    stored = _spread(load, knobs.stores)
    near = (load + 1) * knobs.near // 100 - load * knobs.near // 100
    accesses = 1 + near + stored
    kinds = np.full(int(accesses.sum()), LOAD)
    kinds[np.cumsum(accesses)[stored] - 1] = STORE
    address: Any = np.repeat(line, accesses, axis=1) * _LINE
    access = np.full((len(kinds), knobs.lines), ALSO)
    access[:, 0] = kinds
    compute = np.zeros_like(access)
    loaded = np.arange(np.count_nonzero(kinds == LOAD))
    compute[kinds == LOAD, 0] = knobs.compute + _spread(loaded, knobs.more_compute)
    return Workload(
        knobs.name,
        knobs.warps_per_block,
        knobs.blocks_per_core,
        np.arange(warps + 1) * access.size,
        np.tile(compute.ravel(), warps),
        np.tile(access.ravel(), warps),
        address.ravel(),
    )


def _spread(index: Int64Array, percent: int) -> Any:
    """Returns of which numbers something holds for so many percent, evenly."""
    return (index + 1) * percent // 100 > index * percent // 100


def _parts(knobs: Knobs) -> tuple[Int64Array, Int64Array]:
    """Returns, for each load, which part of the tile it reads, and how often that part was read
    before; int64 (loads,) each.

    A part has a load of each warp. When it is read again, each warp reads what the next one read.
    """
    count = knobs.loads
    distance = knobs.reuse_bytes // (_LINE * knobs.lines * knobs.warps_per_block)  # so many parts
    distance = min(max(1, distance), count)
    # The first parts are new; then as many of the others as the share says, spread evenly.
    new_parts = max(0, round(count * (100 - knobs.reuse) / 100) - distance)
    later = np.arange(count - distance)
    size = max(1, len(later))
    new = np.ones(count, bool)
    new[distance:] = (later + 1) * new_parts // size > later * new_parts // size
    part = np.cumsum(new) - 1
    times = np.zeros(count, np.int64)
    for at in np.flatnonzero(~new):
        part[at] = part[at - distance]
        times[at] = times[at - distance] + 1
    return part, times


def _tile_lines(knobs: Knobs, block: Int64Array, line_index: Int64Array) -> Int64Array:
    """Returns the numbers of cache lines, int64 (blocks, ...): for each block the lines
    ``line_index`` of its tile.

    The matrix is as wide as a row of the DRAM, where its rows follow one another. From row to row
    the tiles move on by one, so that those of few lines use all sets of a cache.
    """
    across = max(1, _ROW_LINES // knobs.blocks_per_row)  # lines of a tile's row
    # An odd number of rows, so that the tiles next to each other begin in different banks.
    height = -(-(int(line_index.max()) + 1) // across) | 1
    strip, position = np.divmod(_order(knobs)[block], knobs.blocks_per_row)
    row, column = np.divmod(line_index, across)
    moved = (position[:, None, None] + row) % knobs.blocks_per_row
    first = moved * _ROW_LINES // knobs.blocks_per_row
    return np.asarray((strip[:, None, None] * height + row) * _ROW_LINES + first + column)


def _order(knobs: Knobs) -> Int64Array:
    """Returns the tile of each block, int64 (blocks,): in some strips of tiles the blocks are in
    order, in the others they are shuffled."""
    strips = -(-knobs.blocks // knobs.blocks_per_row)
    # How many blocks have a neighbour in their strip, by how many strips are in order: those of
    # the others have one by chance.
    ordered_strips = np.arange(strips + 1)
    shuffled_blocks = knobs.blocks_per_row * (strips - ordered_strips)
    alone = (1 - (knobs.blocks_per_row - 1) / np.maximum(shuffled_blocks - 1, 1)) ** 2
    share = (ordered_strips + (strips - ordered_strips) * (1 - alone)) / strips
    about = int(np.argmin(np.abs(share - knobs.consecutive / 100)))
    tried = [
        _shuffled(knobs, ordered_strips)
        for ordered_strips in range(max(0, about - 1), min(strips, about + 1) + 1)
    ]
    return min(
        tried, key=lambda tiles: abs(_neighbour_share(knobs, tiles) - knobs.consecutive / 100)
    )


def _shuffled(knobs: Knobs, ordered_strips: int) -> Int64Array:
    """Returns the tile of each block, int64 (blocks,), if ``ordered_strips`` strips of tiles are in
    order and the others are shuffled."""
    random = np.random.RandomState(_SEED)  # whose numbers are the same in every version
    tiles = np.arange(knobs.blocks)
    strips = -(-knobs.blocks // knobs.blocks_per_row)
    moved = np.isin(tiles // knobs.blocks_per_row, random.permutation(strips)[ordered_strips:])
    tiles[moved] = random.permutation(tiles[moved])
    return tiles


def _neighbour_share(knobs: Knobs, tiles: Int64Array) -> float:
    """Returns the share of blocks that have a neighbour in their strip."""
    is_neighbour = np.diff(tiles // knobs.blocks_per_row) == 0
    return float(np.mean(np.append(is_neighbour, False) | np.insert(is_neighbour, 0, False)))


# Knobs that all presets share. There are two waves of blocks on the 28 cores of owl-table1. The
# blocks of a core read three times as much as its L1 holds before they read the same again. A store
# follows each eighth load.
_COMMON = {"blocks": 448, "reuse_bytes": 12288, "stores": 12}


@functools.cache
def _rows() -> dict[str, dict[str, Any]]:
    text = (resources.files("tbsched.sm") / "presets.toml").read_text("utf-8")
    return tomllib.loads(text)


def presets() -> tuple[str, ...]:
    """Returns the names of the presets: the memory-intensive applications of OWL (ASPLOS 2013).

    Example:
        >>> len(tb.sm.presets())
        19
    """
    return tuple(_rows())


def preset(name: str, **knobs: int) -> Workload:
    """Returns a workload that imitates an application, as far as the paper's tables go.

    It is no recording: what the tables do not say, such as the number of warps, is assumed.

    Args:
        name: of the application (:func:`presets`).
        knobs: other values for knobs (:class:`Knobs`).

    Raises:
        TypeError, ValueError: an unknown application or knob; a knob out of range.

    Example:
        >>> tb.sm.preset("KMN", blocks=28).blocks
        28
    """
    if instance("preset", "name", name, str) not in _rows():
        raise ValueError(
            f"preset: {shown(name)} is unknown; there are {', '.join(presets())}"
            f"{did_you_mean(name, presets())}"
        )
    known = {field.name for field in fields(Knobs)} - {"name"}
    unknown = next((knob for knob in knobs if knob not in known), None)
    if unknown is not None:
        raise ValueError(f"preset: {shown(unknown)} is no knob; there are {', '.join(_LIMITS)}")
    return synthetic(Knobs(name, **{**_COMMON, **_rows()[name], **knobs}))
