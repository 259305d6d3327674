"""Profiles of kernels, from what Nsight Compute measured of each alone."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Mapping

from tbsched import storage
from tbsched.errors import shown
from tbsched.hardware.catalogue import device as find_device
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.neighbours.profiles import KernelProfile

_PERCENT = ".avg.pct_of_peak_sustained_elapsed"
_TIME = "gpu__time_duration.sum"
_CLOCKS = "gpc__cycles_elapsed.max"
_REQUESTS = "l1tex__m_l1tex2xbar_req_cycles_active" + _PERCENT
_FILLED = "lts__d_sectors_fill_device" + _PERCENT
_SECTORS = "lts__t_sectors" + _PERCENT
# For each resource: metrics of which the largest counts, and the reachable share of its peak.
_OF_RESOURCE: Mapping[str, tuple[tuple[str, ...], float]] = {
    "issue": (("sm__inst_issued",), 1.0),
    "logic": (("sm__pipe_alu_cycles_active",), 1.0),
    "multiply": (("sm__pipe_fmaheavy_cycles_active", "sm__pipe_fma_cycles_active"), 1.0),
    "fp64": (("sm__pipe_fp64_cycles_active",), 1.0),
    "special": (("sm__inst_executed_pipe_xu",), 1.0),
    "tensor": (("sm__pipe_tensor_cycles_active",), 1.0),
    "shared": (("l1tex__data_pipe_lsu_wavefronts", "l1tex__lsuin_requests"), 1.0),
    "l2": (("lts__throughput",), 0.93),
    "dram": (("dram__cycles_active",), 0.93),
}
NCU_METRICS: tuple[str, ...] = (
    _TIME, _CLOCKS, _REQUESTS, _FILLED, _SECTORS,
    *(name + _PERCENT for names, _ in _OF_RESOURCE.values() for name in names),
)  # fmt: skip

# Hopper: clocks of a request to L2, additional clocks to DRAM, and most requests in flight of an
# SM.
_L2_CLOCKS, _DRAM_CLOCKS = 270.0, 430.0
_ON_THEIR_WAY = 256.0
# What a warp waits for a request, and how many it has on their way then.
_WAIT_CLOCKS, _AT_A_TIME = 600.0, 2.0
_WARP = 32
_SECONDS = {
    "ns": 1e-9, "nsecond": 1e-9, "us": 1e-6, "usecond": 1e-6, "ms": 1e-3, "msecond": 1e-3,
    "s": 1.0, "second": 1.0,
}  # fmt: skip


def load_ncu(
    path: str | os.PathLike[str], device: str | os.PathLike[str] | DeviceSpec
) -> tuple[KernelProfile, ...]:
    """Reads profiles from a report of Nsight Compute.

    Args:
        path: what ``ncu --page raw --csv --metrics ...`` wrote, with all of
            :data:`tbsched.sm.NCU_METRICS`.
        device: the GPU on which it was measured: a name (:func:`tbsched.devices`), the path of a
            ``.toml`` file, or a spec.

    Returns:
        A profile for each launch, in the order of the report. Its ``name`` is that of the kernel.

    Raises:
        FileNotFoundError: no such file.
        TypeError, ValueError: a file of something else, a metric that is missing, or an unknown
            device.

    Example:
        >>> tb.sm.NCU_METRICS[0]  # ncu --metrics takes them all, joined by commas
        'gpu__time_duration.sum'
        >>> profiles = {p.name: p for p in tb.sm.load_ncu("ncu.csv", "h200")}  # doctest: +SKIP
    """
    report = storage.as_path(path)
    spec = find_device(device)
    content = storage.content(report)
    try:
        lines = [line for line in content.decode().splitlines() if line.startswith('"')]
        units, *rows = csv.DictReader(io.StringIO("\n".join(lines)), restval="")
    except (ValueError, csv.Error):
        raise ValueError(f"{storage.shown(report)}: no report of ncu --page raw --csv") from None
    columns = {str(name).split(" ")[0]: name for name in units if name is not None}
    for name in (*NCU_METRICS, "Kernel", "Grid", "Block"):
        if name not in columns:
            raise ValueError(
                f"{storage.shown(report)}: {name} is missing; give ncu --metrics all of "
                "tb.sm.NCU_METRICS"
            )
    if not rows:
        raise ValueError(f"{storage.shown(report)}: a report of no kernels")
    profiles = []
    for index, row in enumerate(rows):
        cells = {key: row[name] for key, name in columns.items()}
        try:
            profiles.append(_Row(cells, units[columns[_TIME]], spec).profile())
        except ValueError as error:
            kernel = f"launch {index}, {shown(cells['Kernel'])}"
            raise ValueError(f"{storage.shown(report)}: {kernel}: {error}") from None
    return tuple(profiles)


class _Row:
    """A launch in the report."""

    def __init__(self, cells: Mapping[str, str], unit: str, spec: DeviceSpec) -> None:
        self._cells, self._spec = cells, spec
        if unit not in _SECONDS:
            raise ValueError(f"{_TIME}: {shown(unit)} is none of {', '.join(_SECONDS)}")
        self._seconds = _SECONDS[unit] * self._number(_TIME)
        self._blocks = self._count("Grid")

    def profile(self) -> KernelProfile:
        """Returns what a block of the kernel needs of shared resources."""
        clocks = self._number(_CLOCKS)
        if clocks <= 0:
            raise ValueError(f"{_CLOCKS}: {clocks:g}; the kernel did not run")
        far = min(1.0, self._number(_FILLED) / max(self._number(_SECTORS), 1e-9))
        work = {
            resource: self._work(max(self._number(name + _PERCENT) for name in names) / 100 / most)
            for resource, (names, most) in _OF_RESOURCE.items()
        }
        requests = self._number(_REQUESTS) / 100  # a clock, of each SM
        work["requests"] = self._work(requests * (_L2_CLOCKS + _DRAM_CLOCKS * far) / _ON_THEIR_WAY)
        warps = -(-self._count("Block") // _WARP)
        of_warp = requests * clocks * self._spec.sms / self._blocks / warps
        wait = of_warp / _AT_A_TIME * _WAIT_CLOCKS * self._seconds / clocks
        return KernelProfile(
            self._cells["Kernel"],
            {name: seconds for name, seconds in work.items() if seconds},
            wait, far, self._blocks,
        )  # fmt: skip

    def _work(self, used: float) -> float:
        """Seconds of an SM for each block, where all SMs were used to that part."""
        return used * self._seconds * self._spec.sms / self._blocks

    def _number(self, name: str) -> float:
        """Returns the number in a cell of the report."""
        text = self._cells[name].replace(",", "")
        try:
            return float(text)
        except ValueError:
            raise ValueError(f"{name}: a number is needed, got {shown(text)}") from None

    def _count(self, name: str) -> int:
        """Returns how many blocks or threads there are, from a size such as ``(132, 1, 1)``."""
        text = self._cells[name]
        sides = text.strip("()").replace(" ", "").split(",")
        if not all(side.isdecimal() and int(side) for side in sides):
            raise ValueError(f"{name} Size: (x, y, z) is needed, got {shown(text)}")
        return math.prod(map(int, sides))
