"""Which warp of a processing block issues next, as two GPUs show."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest

import tbsched as tb
from sm.issue_order.model import SCHEDULERS, Pick, clocks, code_of, straight_line, with_waits
from tbsched.sm.workloads import NONE

RECORDED = sorted(Path(__file__).parent.glob("*.npz"))
INTERVAL = {"fp32": 1, "int32": 2}  # cycles between two warp instructions of a processing block


@functools.cache
def error(path: Path, pick: Pick) -> dict[str, float]:
    """By kernel: how far reads of the clock are off on average, as a part of the longest run.

    The warps are compared in the order in which they finish: which of equals comes first is not
    known.
    """
    recorded = np.load(path)
    found: dict[str, list[float]] = {}
    for key in recorded.files:
        kind, *rest = key.split("_")
        if len(rest) != 2 or rest[1] not in ("3", "6"):
            continue
        kernel = f"{kind}_{rest[0]}"
        alone = np.median(recorded[f"{kernel}_1"], axis=0)[0].astype(np.int64)
        line = with_waits(straight_line(code_of(recorded[kernel].tobytes())), alone)
        seen = np.median(recorded[key], axis=0).astype(np.int64)
        played = clocks(line, seen[:, 0], INTERVAL[kind], pick)
        one, other = (rows[np.argsort(rows[:, -1], kind="stable")] for rows in (seen, played))
        found.setdefault(kernel, []).append(float(np.abs(one - other).mean() / np.ptp(seen)))
    return {kernel: float(np.mean(errors)) for kernel, errors in found.items()}


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_a_warp_goes_on_while_it_issues_in_every_cycle_and_then_the_next_one_does(
    path: Path,
) -> None:
    errors = {name: np.mean(list(error(path, pick).values())) for name, pick in SCHEDULERS.items()}
    best = errors.pop("unbroken_round_robin")
    assert best < 0.05
    assert all(2 * best < other for other in errors.values()), errors


def simulated_ends(name: str, instructions: int, warps: int, stall: int) -> list[int]:
    """When the warps of one issuer of the simulator end, if each waits so long after each one."""
    gpu = tb.sm.config("h200-like").changed(
        cores=1, issue_width=1, pipeline_stages=stall, hit_stages=stall
    )
    kernel = tb.sm.Workload(
        "line", 1, warps,
        rows=np.arange(warps + 1),
        compute=np.full(warps, instructions),
        access=np.full(warps, NONE),
        address=np.zeros(warps, int),
    )  # fmt: skip
    return sorted(tb.sm.simulate(kernel, name, gpu).end.tolist())


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
@pytest.mark.parametrize(("kernel", "stall"), [("fp32_8", 1), ("fp32_1", 4)])
def test_simulator_ends_the_warps_of_a_line_when_the_gpu_did(
    path: Path, kernel: str, stall: int
) -> None:
    """Lines whose instructions stall alike: one cycle each, and four in a chain."""
    recorded = np.load(path)
    length = len(straight_line(code_of(recorded[kernel].tobytes())))
    errors: dict[str, list[float]] = {}
    for warps in range(2, 9):
        seen = np.median(recorded[f"{kernel}_{warps}"], axis=0)
        ends = np.sort(seen[:, -1] - seen.min())
        for name in ("unbroken_round_robin", "round_robin", "greedy_oldest", "cycling"):
            off = np.abs(simulated_ends(name, length, warps, stall) - ends).mean() / ends.max()
            errors.setdefault(name, []).append(float(off))
    means = {name: float(np.mean(each)) for name, each in errors.items()}
    assert means["unbroken_round_robin"] < 0.1
    in_turn, greedy = (means["round_robin"], means["cycling"]), means["greedy_oldest"]
    if stall == 1:
        assert min(in_turn) > 0.3
    else:
        assert in_turn == (means["unbroken_round_robin"],) * 2
        assert greedy > 2 * means["unbroken_round_robin"]


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_what_never_waits_runs_warp_after_warp(path: Path) -> None:
    """Eight independent chains: round robin would end all warps together."""
    recorded = np.load(path)["fp32_8_8"][:, :, -1].astype(int)
    alone = np.load(path)["fp32_8_1"][:, :, -1].max()
    ends = np.sort(recorded, axis=1)
    assert (ends[:, 0] < 1.2 * alone).all()
    assert (np.diff(ends, axis=1) > 0.8 * (ends[:, -1:] / 8)).all()


def test_a_cubin_without_the_kernel_is_refused() -> None:
    cubin = np.load(RECORDED[0])["fp32_1"].tobytes().replace(b".text.order", b".text.other")
    with pytest.raises(ValueError, match=r"no section \.text\.order"):
        code_of(cubin)
