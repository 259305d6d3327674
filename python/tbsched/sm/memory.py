"""The memory controllers alone."""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np

from tbsched import _core
from tbsched.errors import shown
from tbsched.program.arrays import StructuredArray, structured
from tbsched.program.checks import flag, integer, items
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
    """Returns the columns of commands as one array."""
    return structured(columns, _COMMANDS)


def dram_commands(
    requests: Iterable[tuple[int, int, bool]],
    config: str | os.PathLike[str] | Config = "owl-table1",
    *,
    prefetch: bool = False,
) -> StructuredArray:
    """Returns the commands that memory controllers send, without cores and caches.

    Args:
        requests: of each the DRAM cycle in which it comes, up to 2^40, the address in bytes, less
            than 2^60, and whether it writes; by cycle.
        config: the simulated GPU: a name, the path of a ``.toml`` file, or a config.
        prefetch: whether open rows are prefetched.

    Returns:
        The commands, as a :class:`tbsched.sm.Simulation` has them.

    Raises:
        TypeError, ValueError: requests that are no such triples or whose cycles go down, naming
            the first one; no such config.

    Example:
        >>> found = tb.sm.dram_commands([(0, 0, False), (0, 64, False)])
        >>> found[["cycle", "kind", "column"]].tolist()
        [(0, 0, 0), (12, 1, 0), (16, 1, 1)]
    """
    rows = [
        _request(f"requests[{index}]", request)
        for index, request in enumerate(items("dram_commands", "requests", requests))
    ]
    for index, (before, after) in enumerate(pairwise(rows), 1):
        if after[0] < before[0]:
            raise ValueError(
                f"dram_commands.requests[{index}]: cycle {after[0]} is before {before[0]}, that "
                "of the request before it; sort them by cycle"
            )
    columns = _core.sm_dram_commands(
        np.array([row[0] for row in rows], np.int64),
        np.array([row[1] for row in rows], np.uint64),
        np.array([row[2] for row in rows], np.uint8),
        dict(config_named(config).values),
        flag("dram_commands", "prefetch", prefetch),
    )
    return commands_of(columns)


def _request(name: str, request: object) -> tuple[int, int, bool]:
    """Returns a request as (cycle, address, whether it writes), checked."""
    values = request.tolist() if isinstance(request, np.ndarray | np.generic) else request
    if not isinstance(values, tuple | list) or len(values) != 3:
        raise TypeError(
            f"dram_commands.{name}: a cycle, an address and whether it writes are needed, "
            f"got {shown(request)}"
        )
    cycle, address, write = values
    return (
        integer("dram_commands", f"{name}: cycle", cycle, 0, 1 << 40),
        integer("dram_commands", f"{name}: address", address, 0, (1 << 60) - 1),
        flag(
            "dram_commands",
            f"{name}: write",
            bool(write) if isinstance(write, np.bool_) else write,
        ),
    )
