"""Which warp of a processing block issues next, as two GPUs show."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest

from sm.issue_order.model import SCHEDULERS, Pick, clocks, code_of, straight_line, with_waits

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
