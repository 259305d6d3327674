"""Recorded kernels with small blocks."""

from __future__ import annotations

import numpy as np
import pytest

import tbsched as tb
from lab.inside.addresses import SMALL_BLOCKS
from sm.owl.kernels import FOLDER, file_of, small_blocks
from tbsched.sm.workloads import ALSO, LOAD, STORE

MOST_BYTES = 300_000
THREADS = 2 * 28 * 1024
INSTRUCTION = (LOAD, STORE)


def instructions(kernel: tb.sm.Workload, warp: int) -> list[tuple[int, list[int]]]:
    """Returns the kind and the lines of 128 bytes of each access of a warp."""
    rows = slice(kernel.rows[warp], kernel.rows[warp + 1])
    access, line = kernel.access[rows], (kernel.address[rows] // np.uint64(128)).tolist()
    found: list[tuple[int, list[int]]] = []
    for kind, at in zip(access.tolist(), line, strict=True):
        if kind in INSTRUCTION:
            found.append((kind, [at]))
        elif kind == ALSO:
            found[-1][1].append(at)
    return found


def test_files_are_small_and_all_are_used() -> None:
    files = {file.stem: file.stat().st_size for file in FOLDER.glob("*.npz")}
    assert set(files) == {file_of(name) for name in SMALL_BLOCKS}
    assert max(files.values()) < MOST_BYTES


@pytest.mark.parametrize("name", SMALL_BLOCKS)
def test_kernel_fills_cores_with_blocks(name: str) -> None:
    kernel = small_blocks(name)
    assert kernel.warps_per_block * kernel.blocks_per_core == 32
    if name != "gemm256":
        assert kernel.blocks * kernel.warps_per_block * 32 == THREADS


@pytest.mark.parametrize("name", ["products128", "products256"])
def test_products_touches_what_its_source_says(name: str) -> None:
    kernel, of_vector, pairs = small_blocks(name), 2048 * 4 // 128, THREADS // int(name[-3:])
    for warp in (0, 1, 50, kernel.blocks * kernel.warps_per_block - 1):
        block, number = divmod(warp, kernel.warps_per_block)
        lines = block * of_vector + np.arange(number, of_vector, kernel.warps_per_block)
        expected = [(LOAD, [at + more]) for at in lines.tolist() for more in (0, pairs * of_vector)]
        expected.append((STORE, [2 * pairs * of_vector + warp]))
        assert instructions(kernel, warp) == expected


def test_matvec_touches_what_its_source_says() -> None:
    kernel = small_blocks("matvec128")
    vector = THREADS * 64 * 4 // 128
    for warp in (0, 777):
        rows = [warp * 32 + lane for lane in range(32)]
        expected = []
        for column in range(64):
            expected.append((LOAD, [(row * 64 + column) * 4 // 128 for row in rows]))
            expected.append((LOAD, [vector + column * 4 // 128]))
        # The vector has 256 bytes, and data begin at multiples of 512.
        expected.append((STORE, [vector + 4 + warp]))
        assert instructions(kernel, warp) == expected


def test_blocks_of_32_warps_leave_nothing_to_choose() -> None:
    kernel = small_blocks("spmv128")
    large = tb.sm.Workload(
        "spmv1024", 32, 1, *(getattr(kernel, name)
        for name in ("rows", "compute", "access", "address", "sectors")),
    )  # fmt: skip
    cycles = {
        tb.sm.simulate(large, name).counts["cycles"]
        for name in ("round_robin", "cta_aware", "locality", "bank_parallel")
    }
    assert len(cycles) == 1
