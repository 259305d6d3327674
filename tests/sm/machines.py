"""Small simulated GPUs and workloads, for tests."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

import numpy as np
from hypothesis import strategies as st

from tbsched.sm.parameters import Config, config
from tbsched.sm.workloads import ALSO, BARRIER, LOAD, NONE, STORE, Workload

OWL = config("owl-table1")
LINE = OWL["line_bytes"]
# From one bank, row or controller to the next, in bytes.
CONTROLLER = OWL["channel_interleave"]
BANK = OWL["row_bytes"] * OWL["controllers"]
ROW = BANK * OWL["banks"]

Row = tuple[int, int, int]  # instructions that compute, the access, the line


def small(**values: int) -> Config:
    """Two cores and two controllers with little of everything, so that all of it runs full."""
    few = {
        "cores": 2, "controllers": 2, "mesh_width": 2, "mesh_height": 2, "warps_per_core": 8,
        "blocks_per_core": 4, "group_warps": 2, "l1_bytes": 512, "l1_ways": 2, "l1_mshrs": 2,
        "store_entries": 1, "l2_bytes": 1024, "l2_ways": 2, "l2_mshrs": 2, "dram_queue": 2,
        "banks": 2, "row_bytes": 256, "bank_interleave": 256, "channel_interleave": 128,
    }  # fmt: skip
    return OWL.changed(**{**few, **values})


def workload(warps: list[list[Row]], per_block: int = 1) -> Workload:
    """One of warps as lists of rows."""
    rows = [row for warp in warps for row in warp]
    ends = np.cumsum([0, *map(len, warps)])
    compute, access, lines = (np.array([row[at] for row in rows], np.int64) for at in range(3))
    return Workload("test", per_block, 64, ends, compute, access, lines * LINE)


@st.composite
def workloads(draw: st.DrawFn, *, recorded: bool = False) -> Workload:
    """Few warps and few lines, so that these are hit, missed and evicted.

    Args:
        draw: of Hypothesis.
        recorded: with barriers, and sectors of lines of 128 bytes, as recordings have them.
    """
    line = st.integers(0, 40)
    kinds = [
        st.tuples(st.integers(0, 3), st.sampled_from([LOAD, LOAD, STORE]), line).map(lambda x: [x]),
        st.tuples(st.integers(0, 3), st.sampled_from([LOAD, STORE]), line, line, line).map(
            lambda x: [x[:3], (0, ALSO, x[3]), (0, ALSO, x[4])]
        ),
        st.integers(1, 5).map(lambda x: [(x, NONE, 0)]),
    ]
    if recorded:
        kinds.append(st.integers(0, 3).map(lambda x: [(x, BARRIER, 0)]))
    warp = st.lists(st.one_of(kinds), min_size=1, max_size=6).map(lambda rows: [*chain(*rows)])
    per_block = draw(st.integers(1, 3))
    blocks = draw(st.integers(1, 8))
    kernel = workload([draw(warp) for _ in range(per_block * blocks)], per_block)
    if not recorded:
        return kernel
    rows = len(kernel.access)
    masks = draw(st.lists(st.integers(1, 15), min_size=rows, max_size=rows))
    touched = np.where(kernel.access < NONE, masks, 0)
    return replace(kernel, address=kernel.address * np.uint64(2), sectors=touched)
