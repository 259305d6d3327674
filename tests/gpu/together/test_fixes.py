"""Witnesses hang on the hardware, and fixes do not."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import pytest

import tbsched as tb
from advice.together.puzzles import COMMUNICATION, GEMM, LARGE, SCHEDULERS, SMALL, WORKERS
from tbsched.cli.together.on_gpu import check_on_gpu
from tbsched.launcher.observe import Gpu

pytestmark = pytest.mark.tbsched_gpu

KERNEL = tb.Launch(8, 128, 32, stream=1, duration=1e-3, name="kernel")
LEGACY = replace(KERNEL, stream=tb.LEGACY_STREAM, name="legacy")
ASKED = {
    "workers": (WORKERS, SCHEDULERS),
    "disjoint": (SMALL, LARGE),
    "gemm": (GEMM, COMMUNICATION),
    "legacy": (KERNEL, LEGACY),
    "stream": (replace(SCHEDULERS, stream=0), replace(SCHEDULERS, stream=0)),
    "memory": (SCHEDULERS, replace(SCHEDULERS, local_memory=64 * 1024)),
}


@pytest.mark.parametrize("name", ASKED)
def test_witness_hangs_and_fixes_do_not(
    hopper: Gpu, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr("tbsched.cli.together.on_gpu.Gpu", lambda _: nullcontext(hopper))
    witness, *fixes = check_on_gpu(tb.coresident(ASKED[name], "h200"), tb.device("h200"))
    print(witness, *fixes, sep="\n")
    assert (witness.hung, witness.agrees) == (1, True)
    assert all(run.agrees is not False for run in fixes)
    assert any(run.agrees for run in fixes)
