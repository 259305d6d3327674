"""Workloads: their arrays, and presets that are like the tables of the paper."""

from __future__ import annotations

import pickle
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers import ROOT
from sm.machines import LINE, OWL, small, workload
from tbsched.sm.generator import Knobs, preset, presets, synthetic
from tbsched.sm.running import simulate, simulate_many
from tbsched.sm.workloads import (
    ALSO,
    BARRIER,
    LOAD,
    NONE,
    Rows,
    Workload,
    fitted,
    load_workload,
    save_workload,
)

TABLES = tomllib.loads((ROOT / "python/tbsched/sm/presets.toml").read_text("utf-8"))
ONE: dict[str, Any] = {
    "name": "one", "warps_per_block": 1, "blocks_per_core": 1, "rows": [0, 1], "compute": [0],
    "access": [LOAD], "address": [0],
}  # fmt: skip


def test_workload_is_written_and_read(tmp_path: Path) -> None:
    kernel = preset("KMN", blocks=8)
    save_workload(kernel, tmp_path / "kmn.npz")
    again = load_workload(tmp_path / "kmn.npz")
    assert (again.name, again.warps_per_block, again.blocks_per_core) == ("KMN", 4, 8)
    found = [simulate(x, "owl").counts for x in (kernel, again, str(tmp_path / "kmn.npz"))]
    assert found[0] == found[1] == found[2]
    assert repr(kernel).startswith("<Workload: KMN, 8 blocks of 4 warps, ")


def test_files_of_something_else_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.npz"
    save_workload(preset("KMN", blocks=1), path)
    whole = path.read_bytes()
    broken = bytearray(whole)
    broken[len(whole) // 3 : len(whole) // 2] = bytes(len(whole) // 2 - len(whole) // 3)
    for content in (b"", b"nothing", whole[:-40], bytes(broken)):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"other\.npz: no workload: "):
            load_workload(path)
    np.savez(path, rows=[1])
    with pytest.raises(ValueError, match=r"other\.npz: no workload: .*name"):
        load_workload(path)
    np.save(tmp_path / "one.npy", [1])
    with pytest.raises(ValueError, match=r"one\.npy: no workload: "):
        load_workload(tmp_path / "one.npy")
    with pytest.raises(ValueError, match="is a folder"):
        load_workload(tmp_path)


def touched(rows: Rows, line_bytes: int, line_sectors: int) -> list[set[int]]:
    """Returns the bytes that each instruction touches, by their sectors of 32."""
    found: list[set[int]] = []
    size = line_bytes // line_sectors
    for access, address, mask in zip(rows.access, rows.address, rows.sectors, strict=True):
        if access != ALSO:
            found.append(set())
        places = [int(address) + bit * size for bit in range(4) if int(mask) >> bit & 1]
        found[-1].update(at // 32 + k for at in places for k in range(max(size // 32, 1)))
    return found


@pytest.mark.parametrize(
    "shape", [(128, 4), (64, 2), (32, 1), (64, 4), (128, 2), (64, 1), (256, 1)]
)
def test_sectors_are_those_of_the_lines_of_a_gpu(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(1)
    kinds = rng.choice([LOAD, ALSO, NONE, BARRIER], 200)
    kinds[0] = LOAD
    kinds[1:][(kinds[1:] == ALSO) & (kinds[:-1] >= NONE)] = LOAD
    masks = np.where(kinds < NONE, rng.integers(1, 16, 200), 0)
    kernel = Workload(
        "x", 1, 1, np.array([0, 120, 200]), np.where(kinds == ALSO, 0, 1), kinds,
        rng.integers(0, 99, 200) * 128, masks,
    )  # fmt: skip
    literal = touched(Rows(*(getattr(kernel, name) for name in Rows._fields)), 128, 4)
    found = fitted(kernel, *shape)
    ours = touched(found, *shape)
    assert [kind for kind in found.access if kind != ALSO] == [k for k in kinds if k != ALSO]
    assert len(found.access) == found.rows[-1]
    if shape[0] // shape[1] <= 32:
        assert ours == literal
    else:  # sectors are larger, so more is touched
        assert all(a >= b for a, b in zip(ours, literal, strict=True))
    gpu = OWL.changed(line_bytes=shape[0], line_sectors=shape[1], l1_bytes=32768)
    loads = sum(row["l1_loads"] for row in [simulate(kernel, "round_robin", gpu).counts])
    assert loads == sum(int(mask).bit_count() for mask in found.sectors)


def test_workload_with_sectors_is_written_and_read(tmp_path: Path) -> None:
    kernel = Workload("x", 1, 1, [0, 2], [1, 0], [LOAD, ALSO], [1 << 40, 128], [3, 15])
    save_workload(kernel, tmp_path / "x.npz")
    again = load_workload(tmp_path / "x.npz")
    for name in Rows._fields:
        assert np.array_equal(getattr(again, name), getattr(kernel, name))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"rows": [0, 2]}, "rows: they do not begin with 0 and end with the number of rows"),
        ({"rows": [0, 0, 1]}, "rows: warp 0 has none"),
        ({"warps_per_block": 2}, "rows: the number of warps is no multiple of warps_per_block"),
        ({"address": np.array([], int)}, "rows: compute, access and address differ in length"),
        (
            {"compute": np.array([], int), "address": [128], "sectors": [1]},
            "rows: compute, access and address differ in length",
        ),
        ({"compute": [-1]}, "compute: row 0 is negative"),
        ({"access": [9]}, r"access: row 0 has 9, outside 0\.\.4"),
        ({"access": [ALSO]}, "access: row 0 goes with an access before it; there is none"),
        ({"access": [NONE]}, "compute: row 0 has neither an access nor instructions"),
        ({"address": [1 << 60]}, r"address: row 0 is 2\^60 or more"),
        ({"sectors": [0]}, "sectors: row 0 has none"),
        ({"sectors": [16]}, r"sectors: a value is outside 0\.\.15"),
        ({"sectors": [1, 1]}, "sectors: access, address and sectors differ in length"),
        ({"sectors": [1], "address": [64]}, "address: with sectors, each is a multiple of 128"),
        ({"address": [-1]}, r"address: a value is outside 0\.\.18446744073709551615"),
    ],
)
def test_arrays_that_mean_nothing_are_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=rf"workload\.{words}"):
        simulate(Workload(**{**ONE, **changes}))


def test_values_of_other_types_are_refused() -> None:
    with pytest.raises(TypeError, match=r"workload\.compute: one row of integers is needed"):
        Workload(**{**ONE, "compute": [0.5]})
    with pytest.raises(ValueError, match=r"KMM.* is unknown; .*did you mean 'MUM'"):
        preset("KMM")
    with pytest.raises(ValueError, match=r"warps.* is no knob"):
        preset("KMN", warps=3)
    with pytest.raises(ValueError, match=r"knobs\.reuse: 101 is outside 0\.\.100"):
        preset("KMN", reuse=101)
    with pytest.raises(TypeError, match=r"simulate\.workload: a name, a path or a Workload, got 3"):
        simulate(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="warps_per_block: 9 is more than the 8 warps of a core"):
        simulate(workload([[(1, NONE, 0)]] * 9, 9), config=small())


@pytest.mark.parametrize("name", presets())
def test_preset_is_like_its_row_of_the_tables(name: str) -> None:
    kernel, row = preset(name, loads=16, reuse=0), TABLES[name]
    assert kernel.warps_per_block * kernel.blocks_per_core <= 32
    block, line = kernel.lines_of_blocks(LINE)
    if row["blocks_per_row"] <= 32:
        assert len(np.unique(line)) == len(line)  # nobody reads what another block has
    # The blocks that read 2,048 bytes in a row of the matrix, as far as it is full.
    pairs = np.unique(line // 32 * kernel.blocks + block)
    of_row = np.unique(pairs // kernel.blocks, return_counts=True)[1]
    assert np.median(of_row) == row["blocks_per_row"]


def test_knobs_do_what_they_say() -> None:
    plain = synthetic(Knobs("x", blocks=4, loads=10, compute=3, lines=1))
    assert plain.instructions == 4 * 4 * 10 * 4
    with_stores = synthetic(Knobs("x", blocks=4, loads=10, compute=3, lines=1, stores=50))
    assert with_stores.instructions == plain.instructions + 4 * 4 * 5
    # Each block reads the same 2,048 bytes again and again, its own.
    reused = synthetic(Knobs("x", blocks=4, loads=40, lines=1, reuse=100, reuse_bytes=2048))
    _, line = reused.lines_of_blocks(LINE)
    assert len(np.unique(line)) == len(line) == 4 * 32
    shuffled = synthetic(Knobs("x", blocks=64, consecutive=0)).address
    assert sorted(shuffled) == sorted(synthetic(Knobs("x", blocks=64)).address)
    # 12 loads of a warp have 18 near ones behind them, and half of the 30 one more to compute.
    near = synthetic(Knobs("x", blocks=1, loads=12, near=150, compute=1, more_compute=50, lines=1))
    assert near.instructions == 4 * (30 + 30 + 15)
    warp = near.address[:30].tolist()
    assert [warp.count(line) for line in dict.fromkeys(warp)] == [2, 3] * 6
    # Half of the loads are of what the next warp has read two loads before.
    again = synthetic(
        Knobs("x", blocks=1, loads=8, lines=1, reuse=50, reuse_bytes=2 * 4 * LINE)
    ).address.reshape(4, 8)
    assert len(np.unique(again)) == 4 * 4
    for warp in range(4):
        back = again[(warp + 1) % 4, :-2].tolist()
        found = [line in back[: at + 1] for at, line in enumerate(again[warp, 2:].tolist())]
        assert sum(found) == 4


def test_many_run_in_parallel_as_they_do_alone() -> None:
    kernels = [preset("SCP", blocks=8), preset("IIX", blocks=8)]
    found = simulate_many(kernels, ["owl", "locality"], ["owl-table1", small()], threads=3)
    assert [(row.workload, row.scheduler) for row in found.rows[:2]] == [
        ("SCP", "owl"), ("SCP", "locality"),
    ]  # fmt: skip
    assert len(found) == 8
    for row in found:
        alone = simulate(preset(row.workload, blocks=8), row.scheduler, row.config)
        assert row.counts == alone.counts
    assert found.speedup(0) == found.speedup(2) == 1
    assert pickle.loads(pickle.dumps(found[1])).counts == found[1].counts
    with pytest.raises(ValueError, match="scheduler: 'x' is unknown"):
        simulate_many(kernels, ["x"])
    assert [row.scheduler for row in simulate_many(kernels[0], "owl")] == ["owl"]
