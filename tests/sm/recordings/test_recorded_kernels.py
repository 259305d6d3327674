"""Recorded kernels: what two GPUs recorded is right, and the simulator has nearly their hit rates.

``tests/sm/recordings/hit_rates.py`` compares all of them, and sweeps what is not known.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from sm.recordings.hit_rates import SM_BYTES, counted, simulated
from sm.recordings.kernels import FOLDER, GPUS, RECORDED, Measured, measured, recorded, sms, swept
from tbsched.sm.workloads import ALSO, BARRIER, LOAD, STORE, Workload

ROWS = [row for row in measured() if row.kernel in RECORDED]
MOST_BYTES = 1_500_000
BLOCKS = 20  # that are compared one by one


def name_of(row: Measured) -> str:
    return f"{row.gpu}-{row.kernel}-{(SM_BYTES - row.shared_bytes) >> 10}KB"


def sectors_of(kernel: Workload, kind: int) -> int:
    """How many sectors its instructions of a kind touch."""
    first = np.maximum.accumulate(np.where(kernel.access != ALSO, np.arange(len(kernel.access)), 0))
    assert kernel.sectors is not None
    touched = kernel.sectors[kernel.access[first] == kind]
    return int(np.unpackbits(touched).sum())


@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_recording_touches_as_much_as_the_plain_kernel(row: Measured) -> None:
    # On the first GPU exactly; on the other one, an earlier build of two kernels was profiled.
    off = 0 if row.gpu == GPUS[0] else 0.01
    kernel = recorded(row.kernel)
    assert sectors_of(kernel, LOAD) == pytest.approx(row.loads, rel=off)
    assert sectors_of(kernel, STORE) == pytest.approx(row.stores, rel=off)
    assert len(sms(row.gpu, row.kernel)) == kernel.blocks


def instructions(kernel: Workload) -> list[tuple[int, npt.NDArray[np.int64]]]:
    """Returns the kind and the lines of each instruction of the first blocks."""
    end = kernel.rows[BLOCKS * kernel.warps_per_block]
    access, address = kernel.access[:end], kernel.address[:end]
    begins = np.flatnonzero(access != ALSO)
    lines = np.split((address // np.uint64(128)).astype(np.int64), begins[1:])
    return list(zip(access[begins].tolist(), lines, strict=True))


def test_transpose_touches_what_its_source_says() -> None:
    side, tiles = 512, 16
    found = iter(instructions(recorded("transpose")))
    for block in range(BLOCKS):
        left, top = block % tiles * 32, block // tiles * 32
        for column in range(left, left + 32):
            kind, lines = next(found)
            rows = top + np.arange(32)
            assert (kind, lines.tolist()) == (LOAD, ((rows * side + column) * 4 // 128).tolist())
            kind, lines = next(found)
            assert (kind, lines.tolist()) == (
                STORE,
                [side * side * 4 // 128 + (column * side + top) * 4 // 128],
            )
    assert not list(found)


def test_gemm_touches_what_its_source_says() -> None:
    side, tiles = 384, 12
    found = iter(instructions(recorded("gemm")))
    more, out = side * side * 4 // 128, 2 * side * side * 4 // 128
    of_row = side * 4 // 128
    for block in range(BLOCKS):
        for row in range(32):
            expected = []
            for tile in range(tiles):
                expected += [
                    (LOAD, (block // tiles * 32 + row) * of_row + tile),
                    (LOAD, more + (tile * 32 + row) * of_row + block % tiles),
                    (BARRIER, 0),
                    (BARRIER, 0),
                ]
            expected.append((STORE, out + (block // tiles * 32 + row) * of_row + block % tiles))
            warp = [next(found) for _ in expected]
            assert [(kind, int(lines[0])) for kind, lines in warp] == expected
            assert all(len(lines) == 1 for _, lines in warp)


def test_sweep_is_what_its_source_says() -> None:
    one, literal = recorded("sweep20"), swept(20)
    for name in ("rows", "access", "address", "sectors"):
        assert np.array_equal(getattr(one, name), getattr(literal, name))


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row.kernel in ("transpose", "bfs")], ids=name_of
)
def test_hit_rates_are_nearly_those_of_the_gpu(row: Measured) -> None:
    assert simulated(row) == pytest.approx(counted(row), abs=5)


def test_recordings_are_small() -> None:
    files = [*FOLDER.glob("*.npz"), *FOLDER.glob("*.csv")]
    assert len(files) == len(RECORDED) + 2
    assert sum(file.stat().st_size for file in files) < MOST_BYTES
