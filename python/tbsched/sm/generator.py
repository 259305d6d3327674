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
_SEED = 2013
_REUSED = 1 << 40  # address of the bytes that blocks reuse, behind those of the matrix
# Issue slots that the 28 cores of owl-table1 have while its memory moves the two lines of a load:
# 28 * 1300 / 4 million instructions and 8 * 800 / 4 million lines a second.
_SLOTS_PER_LOAD = 2 * (28 * 1300 / 4) / (8 * 800 / 4)


@dataclass(frozen=True, slots=True)
class Knobs:
    """What a synthetic workload is like.

    Blocks read a matrix whose rows are stored one after the other. Each block has a tile of it,
    which its warps read from top to bottom. A share of the loads goes to bytes of the block's own
    instead. The warps read these again and again: a part of them each, and then the next warp's.
    By default those of eight blocks are half as many again as an L1 cache of 32 KB holds.

    Attributes:
        name: of the workload.
        blocks: blocks of the kernel.
        warps_per_block: warps of a block.
        blocks_per_core: resident blocks at most.
        loads: loads of a warp.
        compute: instructions before each load.
        lines: lines of 64 bytes that a load reads.
        reuse: percent of the loads that go to reused bytes.
        reuse_bytes: how many these are.
        blocks_per_row: tiles in 2,048 bytes of a row of the matrix.
        consecutive: percent of the blocks whose tiles are in the order of the blocks; the others
            are shuffled.
        stores: percent of the loads behind which the warp writes what it has read from its tile.

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
    compute: int = 5
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
    "compute": (0, 1 << 20),
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
    # Which loads reuse, and which are stored: spread evenly.
    reuses = _spread(load, knobs.reuse)
    stores = _spread(load, knobs.stores) & ~reuses
    streamed = np.cumsum(~reuses) - 1
    line = np.arange(knobs.lines)
    tile = _tile_lines(knobs, block, warp, streamed[:, None] * knobs.lines + line)
    own = _reused_lines(knobs, block, warp, (np.cumsum(reuses) - 1)[:, None] * knobs.lines + line)
    address = np.where(reuses[:, None], own, tile) * _LINE
    # Behind a load its store, of the same lines.
    times = 1 + stores
    kinds = np.repeat(np.full(knobs.loads, LOAD), times)
    kinds[np.cumsum(times)[stores] - 1] = STORE
    access = np.full((len(kinds), knobs.lines), ALSO)
    access[:, 0] = kinds
    compute = np.zeros_like(access)
    compute[kinds == LOAD, 0] = knobs.compute
    address = np.repeat(address, times, axis=1)
    return Workload(
        knobs.name,
        knobs.warps_per_block,
        knobs.blocks_per_core,
        np.arange(warps + 1) * access.size,
        np.tile(compute.ravel(), warps),
        np.tile(access.ravel(), warps),
        address.ravel(),
    )


def _spread(load: Int64Array, percent: int) -> Any:
    return (load + 1) * percent // 100 > load * percent // 100


def _tile_lines(knobs: Knobs, block: Int64Array, warp: Int64Array, nth: Int64Array) -> Int64Array:
    """Returns the nth line that each warp reads of its block's tile, (warps, *nth)."""
    across = max(1, 2048 // knobs.blocks_per_row // _LINE)  # lines of a tile's row
    pitch = -(-knobs.blocks * across // 256) * 256  # lines of the matrix's row: whole DRAM rows
    columns = pitch // across
    own = nth[None] // knobs.lines * knobs.warps_per_block + warp[:, None, None]
    number = own * knobs.lines + nth[None] % knobs.lines  # in the tile, row by row
    height = -(-knobs.loads * knobs.lines * knobs.warps_per_block // across)
    tile = _order(knobs)[block][:, None, None]
    row = tile // columns * height + number // across
    return np.asarray(row * pitch + tile % columns * across + number % across)


def _order(knobs: Knobs) -> Int64Array:
    """Returns the tile of each block."""
    random = np.random.RandomState(_SEED)  # whose numbers are the same in every version
    tiles = np.arange(knobs.blocks)
    moved = random.permutation(knobs.blocks)[: knobs.blocks * (100 - knobs.consecutive) // 100]
    tiles[np.sort(moved)] = moved
    return tiles


def _reused_lines(knobs: Knobs, block: Int64Array, warp: Int64Array, nth: Int64Array) -> Int64Array:
    """Returns the nth line that each warp reads of its block's own bytes, (warps, *nth)."""
    part = max(1, knobs.reuse_bytes // _LINE // knobs.warps_per_block)
    sweep, place = np.divmod(nth[None], part)
    whose = (warp[:, None, None] + sweep) % knobs.warps_per_block
    first = _REUSED // _LINE + block[:, None, None] * part * knobs.warps_per_block
    return np.asarray(first + whose * part + place)


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
    """A workload that imitates an application, as far as the tables of the paper describe it.

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
    if name not in _rows():
        raise ValueError(
            f"preset: {shown(name)} is unknown; there are {', '.join(presets())}"
            f"{did_you_mean(name, presets())}"
        )
    known = {field.name for field in fields(Knobs)} - {"name"}
    unknown = next((knob for knob in knobs if knob not in known), None)
    if unknown is not None:
        raise ValueError(f"preset: {shown(unknown)} is no knob; there are {', '.join(_LIMITS)}")
    # With a perfect L1, the compute instructions and the load take all the time.
    row = dict(_rows()[name])
    row["compute"] = max(0, round(_SLOTS_PER_LOAD / row.pop("pmem")) - 1)
    return synthetic(Knobs(name, **{"stores": 12, **row, **knobs}))
