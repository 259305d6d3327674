"""The memory controllers alone."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import numpy as np

from tbsched import _core
from tbsched.program.arrays import StructuredArray, read_only
from tbsched.sm.parameters import Config
from tbsched.sm.parameters import config as config_named

_COMMANDS = np.dtype(
    [
        ("cycle", np.int64),
        ("controller", np.int32),
        ("bank", np.int32),
        ("kind", np.uint8),
        ("row", np.int64),
        ("column", np.int32),
        ("prefetch", np.bool_),
    ]
)


def commands_of(columns: tuple[Any, ...]) -> StructuredArray:
    """The columns of commands as one array."""
    found = np.empty(len(columns[0]), _COMMANDS)
    for name, column in zip(_COMMANDS.names or (), columns, strict=True):
        found[name] = column
    return read_only(found)


def dram_commands(
    requests: Iterable[tuple[int, int, bool]],
    config: str | os.PathLike[str] | Config = "owl-table1",
    *,
    prefetch: bool = False,
) -> StructuredArray:
    """The commands that the memory controllers send for some requests, without cores and caches.

    Args:
        requests: of each the DRAM cycle in which it comes, the address in bytes, and whether it
            writes; by cycle.
        config: the simulated GPU: a name, the path of a ``.toml`` file, or a config.
        prefetch: whether open rows are prefetched.

    Returns:
        The commands, as a :class:`tbsched.sm.Simulation` has them.

    Raises:
        ValueError: cycles that go down, or no such config.

    Example:
        >>> found = tb.sm.dram_commands([(0, 0, False), (0, 64, False)])
        >>> found[["cycle", "kind", "column"]].tolist()
        [(0, 0, 0), (12, 1, 0), (16, 1, 1)]
    """
    rows = list(requests)
    columns = _core.sm_dram_commands(
        np.array([row[0] for row in rows], np.int64),
        np.array([row[1] for row in rows], np.uint64),
        np.array([row[2] for row in rows], np.uint8),
        dict(config_named(config).values),
        bool(prefetch),
    )
    return commands_of(columns)
