"""What is known of a launch's constant bank 0: the sizes of its grid, and its small arguments."""

from __future__ import annotations

from collections.abc import Mapping

from tbsched.hangs.unfinished import Operation

Range = tuple[int, int]  # the least and the greatest value
Constants = Mapping[int, Range]  # values of 4 bytes, signed, by their place in bytes
MAX_BLOCKS = 1 << 16  # of a grid, for the numbers of its blocks; more are never resident at once
MAX_THREADS = 1024  # of a block
_LAST_WITH_SIZES_FIRST = 0x210  # if the arguments begin here or before, up to compute capability 9
_SIZES_LATER = 0x360
_GRID = 0xC  # bytes from the sizes of a block to those of the grid; 16 from 10.0 on
_GRID_LATER = 0x10


def block_sizes_at(parameters_at: int) -> int:
    """Returns where the three sizes of a block are, if a kernel's arguments begin there."""
    return 0 if parameters_at <= _LAST_WITH_SIZES_FIRST else _SIZES_LATER


def grid_sizes_at(parameters_at: int) -> int:
    """Returns where the three sizes of the grid are, if a kernel's arguments begin there."""
    if parameters_at <= _LAST_WITH_SIZES_FIRST:
        return _GRID
    return _SIZES_LATER + _GRID_LATER


def constants_of_any(parameters_at: int) -> Constants:
    """Returns what holds for every launch of a kernel whose arguments begin there."""
    block = block_sizes_at(parameters_at)
    return dict.fromkeys(range(block, block + 12, 4), (1, MAX_THREADS))


def constants_of(launch: Operation, parameters_at: int) -> Constants:
    """Returns what is known of a launch of a kernel whose arguments begin there."""
    places = (
        (block_sizes_at(parameters_at), launch.block),
        (grid_sizes_at(parameters_at), launch.grid),
    )
    sizes = {at + 4 * axis: size for at, extent in places for axis, size in enumerate(extent)}
    words = {parameters_at + place: value for place, value in launch.small_arguments.items()}
    return {place: (value, value) for place, value in (sizes | words).items()}
