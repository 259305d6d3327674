"""Kernels as two GPUs recorded them: which lines their warps touch, and what ncu counted.

    python tests/sm/recordings/kernels.py h200=REPORT h100=REPORT

makes the files in this folder of what ``tests/lab/inside/addresses.py`` wrote on each GPU.
"""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).parents[2]))

import tbsched as tb
from lab.inside.addresses import GROUPS, KERNELS, SMALL_GROUPS
from tbsched.sm.workloads import ALSO, BARRIER, LOAD, STORE

FOLDER = Path(__file__).parent
# One file for both: they touch the same lines. Where each ran its blocks is in sms.npz.
GPUS = ("h200", "h100")
RECORDED = (*KERNELS, "sweep20")
UNITS = {"byte": 1, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9}


@dataclass(frozen=True)
class Measured:
    """What ncu counted for one run of a plain kernel, with cold caches; in sectors."""

    gpu: str
    kernel: str
    shared_bytes: int  # of an SM's 256 KiB, what is not L1
    instructions: int
    loads: int
    load_hits: int
    stores: int
    store_hits: int
    l2_reads: int  # of SMs
    l2_read_hits: int
    received: int  # by SMs, of L2; some of it L2 was not asked for
    l2_writes: int
    l2_write_hits: int
    dram_read_bytes: int
    dram_write_bytes: int
    cycles: int


METRICS = {
    "shared_bytes": "launch__shared_mem_config_size",
    "instructions": "smsp__inst_executed.sum",
    "loads": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "load_hits": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit.sum",
    "stores": "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "store_hits": "l1tex__t_sectors_pipe_lsu_mem_global_op_st_lookup_hit.sum",
    "l2_reads": "lts__t_sectors_srcunit_tex_op_read.sum",
    "l2_read_hits": "lts__t_sectors_srcunit_tex_op_read_lookup_hit.sum",
    "received": "l1tex__m_xbar2l1tex_read_sectors.sum",
    "l2_writes": "lts__t_sectors_srcunit_tex_op_write.sum",
    "l2_write_hits": "lts__t_sectors_srcunit_tex_op_write_lookup_hit.sum",
    "dram_read_bytes": "dram__bytes_read.sum",
    "dram_write_bytes": "dram__bytes_write.sum",
    "cycles": "sm__cycles_elapsed.max",
}


def profiled(report: Path, group: str) -> Iterator[tuple[str, dict[str, float]]]:
    """The kernels of a group, and every number that ncu has of each."""
    text = (report / f"ncu-{group}.csv").read_text("utf-8")
    table = text[text.index('"ID"') :]
    names, units, *rows = csv.reader(io.StringIO(table))
    for kernel, row in zip((GROUPS | SMALL_GROUPS)[group][0], rows, strict=True):
        found = {}
        for name, unit, value in zip(names, units, row, strict=True):
            try:
                found[name] = float(value.replace(",", "")) * UNITS.get(unit.split("/")[0], 1)
            except ValueError:
                continue
        yield kernel, found


def measured_of(report: Path, gpu: str) -> list[Measured]:
    """What a GPU's report says of all its kernels."""
    return [
        Measured(gpu, kernel, **{field: round(found[name]) for field, name in METRICS.items()})
        for group in GROUPS
        for kernel, found in profiled(report, group)
    ]


def recorded_of(
    report: Path, kernel: str, instructions: int
) -> tuple[tb.sm.Workload, npt.NDArray[np.int32]]:
    """A recorded kernel, and the SM of each block.

    Args:
        report: of a GPU.
        kernel: its name.
        instructions: of all its warps, as ncu counted them. Those that are no access are dealt out
            evenly among the accesses.
    """
    records = map(json.loads, (report / "records.jsonl").read_text("utf-8").splitlines())
    record = next(record for record in records if record["name"] == kernel)
    assert record["same"], record
    held = np.load(report / f"{kernel}.npz")
    kind = held["kind"]
    first = kind != ALSO
    accesses = int(np.count_nonzero(first))
    compute = np.zeros(len(first), np.int32)
    dealt = (instructions - accesses) * np.arange(1, accesses + 1) // accesses
    compute[first] = np.diff(dealt, prepend=0)
    workload = tb.sm.Workload(
        kernel,
        record["threads"] // 32,
        record["blocks_per_sm"],
        held["ends"].astype(np.int64),
        compute,
        np.where(kind == 3, BARRIER, kind),
        np.where(kind == 3, 0, held["step"].cumsum(dtype=np.int64) * 128),
        held["sectors"],
    )
    return workload, held["sms"]


@cache
def measured() -> tuple[Measured, ...]:
    """All that ncu counted."""
    with (FOLDER / "measured.csv").open(encoding="utf-8", newline="") as rows:
        return tuple(
            Measured(
                *(row[f.name] if f.type == "str" else int(row[f.name]) for f in fields(Measured))
            )
            for row in csv.DictReader(rows)
        )


@cache
def recorded(kernel: str) -> tb.sm.Workload:
    """A recorded kernel."""
    return tb.sm.load_workload(FOLDER / f"{kernel}.npz")


@cache
def sms(gpu: str, kernel: str) -> npt.NDArray[np.int32]:
    """Where a GPU ran each block."""
    with np.load(FOLDER / "sms.npz") as held:
        return np.asarray(held[f"{gpu}-{kernel}"], np.int32)


@cache
def swept(megabytes: int) -> tb.sm.Workload:
    """What the kernel ``sweep`` does with so much memory: it reads all of it twice.

    Recordings of it would be large and say nothing new: a test compares this with one.
    """
    warps, lines = 132 * 32, megabytes * 2**13
    access, address, ends = [], [], [0]
    for warp in range(warps):
        # Each step of a warp reads 512 bytes, and those of all warps follow one another.
        first = np.arange(warp, lines // 4, warps) * 4
        touched = (first[:, None] + np.arange(4)).ravel()
        kinds = np.tile(np.array([LOAD, ALSO, ALSO, ALSO], np.uint8), len(first))
        access += [kinds, [BARRIER], kinds, [BARRIER, STORE]]
        address += [touched, [0], touched, [0, lines + warp]]
        ends.append(ends[-1] + 2 * len(touched) + 3)
    kind = np.concatenate(access)
    return tb.sm.Workload(
        f"sweep{megabytes}",
        32,
        2,
        np.array(ends),
        np.where(kind == ALSO, 0, 7),
        kind,
        np.concatenate(address) * 128,
        np.where(kind == BARRIER, 0, 15),
    )


def main(reports: list[str]) -> None:
    """Makes the files."""
    rows: list[Measured] = []
    places: dict[str, npt.NDArray[np.int32]] = {}
    first: dict[str, tb.sm.Workload] = {}
    for gpu, report in (given.split("=") for given in reports):
        found = measured_of(Path(report), gpu)
        rows += found
        instructions = {row.kernel: row.instructions for row in found}
        for kernel in RECORDED:
            workload, placed = recorded_of(Path(report), kernel, instructions[kernel])
            places[f"{gpu}-{kernel}"] = placed
            same = first.setdefault(kernel, workload)
            for name in ("rows", "access", "address", "sectors"):
                if not np.array_equal(getattr(same, name), getattr(workload, name)):
                    raise SystemExit(f"{kernel}: the GPUs differ in {name}")
    for kernel, workload in first.items():
        tb.sm.save_workload(workload, FOLDER / f"{kernel}.npz")
    np.savez_compressed(FOLDER / "sms.npz", **places)
    with (FOLDER / "measured.csv").open("w", encoding="utf-8", newline="") as out:
        table = csv.DictWriter(out, [field.name for field in fields(Measured)], lineterminator="\n")
        table.writeheader()
        table.writerows(map(asdict, rows))


if __name__ == "__main__":
    main(sys.argv[1:])
