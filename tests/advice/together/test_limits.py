"""What ends a search early, what is refused, and what counts as sure."""

from __future__ import annotations

import itertools
import os
import re
import signal
import sys
import threading
import time
import types
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import tbsched as tb
from tbsched.cli.app import app

SMALL = tb.Launch(1, 32, 32)


@pytest.mark.parametrize(("device", "launches"), [("a100", 9), ("v100", 9), ("h100", 16)])
def test_stream_of_its_own_costs_nothing(device: str, launches: int) -> None:
    alone = [replace(SMALL, stream=k) for k in range(launches)]
    found = tb.coresident(alone, device, fixes=False)
    assert (found.safe, found.plays) == (True, tb.coresident([SMALL] * launches, device).plays)


@pytest.mark.parametrize("event", [tb.Copy(64, "h2d", stream=1), tb.Memset(64, stream=1)])
def test_work_that_waits_for_the_legacy_stream_is_not_dropped(event: tb.Event) -> None:
    kernel = tb.Launch(1, 256, 32, stream=tb.LEGACY_STREAM, duration=1.0)
    found = tb.coresident(tb.Sequence([kernel, event]), "h100")
    assert (found.safe, found.cause) == (False, "legacy_stream")
    other = replace(kernel, stream=2)
    beside = tb.Sequence([other, event])
    assert tb.budget(SMALL, "h100", beside=beside) == tb.budget(SMALL, "h100", beside=[other])


def test_first_use_says_that_any_duration_will_do() -> None:
    with pytest.raises(ValueError, match=r"needs a Launch.duration.*coresident, any duration"):
        tb.Launch(1, 32, 32, first_use=True)


def test_budget_lets_the_others_start_too() -> None:
    """With 960 blocks none of the others start."""
    others, kernel = tb.Launch(16, 512, 96, 100 * 1024), tb.Launch(1, 256, 32)
    blocks = tb.budget(kernel, "h200", beside=[others])
    launches = [others, replace(kernel, blocks=blocks)]
    assert blocks == 116
    for group in ([0], [1]):
        assert tb.coresident(launches, "h200", groups=[group], fixes=False).safe is True
    for order in itertools.permutations(launches):
        trace = tb.predict(tb.Sequence(order), "h200")
        assert [one.placed for one in trace] == [one.blocks for one in order]


def test_budget_that_is_not_known_is_not_0() -> None:
    """As background kernels neither is proved; together they are, with 60 blocks."""
    gemm = tb.Launch(108, 384, 168, 160 * 1024, name="gemm")
    allreduce = tb.Launch(24, 544, 96, 104 * 1024)
    assert tb.coresident([replace(gemm, blocks=60), allreduce], "a100", fixes=False).safe is True
    for blocks in (1, 60):
        asked = [replace(gemm, blocks=blocks), allreduce]
        found = tb.coresident(asked, "a100", groups=[[0], [1]], fixes=False)
        assert found.safe is None
        assert re.search(r"; (pip install|neither more seconds nor more plays)", found.argument)
    assert tb.budget(gemm, "a100", beside=[allreduce]) is None
    assert tb.budget(gemm, "a100", beside=[tb.Launch(10_000, 1024, 32)]) == 0


def test_partition_takes_little_from_background_kernels() -> None:
    gemm = tb.Launch(132, 384, 168, name="gemm")
    waiting = tb.Launch(20, 512, 96, name="communication")
    found = tb.coresident([gemm, waiting], "h200", groups=[[1]])
    (fix,) = (fix for fix in found.fixes if fix.kind == "partition")
    part = fix.launches[0].partition
    assert part is not None
    assert len(part) >= 64


# Two background kernels, and a search that takes a minute and more.
LONG = [
    tb.Launch(84, 384, 80, 37_328, carveout=100, cluster=4),
    tb.Launch(1554, 64, 48, carveout=100),
    tb.Launch(288, 64, 40, cluster=4, cooperative=True),
]


def test_seconds_end_a_search() -> None:
    started = time.monotonic()
    found = tb.coresident(LONG, "h200", groups=[[2]], seconds=1)
    assert time.monotonic() - started < 5
    assert found.safe is None
    assert found.argument.endswith("; more seconds may decide it")
    with pytest.raises(ValueError, match=r"coresident.seconds: a number from 0 is needed, got -1"):
        tb.coresident([SMALL], "h200", seconds=-1)


@pytest.mark.parametrize("seconds", [0.3, 2.5])
def test_ctrl_c_ends_a_search(seconds: float) -> None:
    late = threading.Timer(seconds, os.kill, [os.getpid(), signal.SIGINT])
    late.start()
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        tb.coresident(LONG, "h200", groups=[[2]], plays=2**31 - 1)
    assert time.monotonic() - started < seconds + 1.5


def test_ctrl_c_while_the_solver_is_loaded_stays_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """pybind11 makes an ImportError of it."""

    class Interrupted(types.ModuleType):
        def __getattr__(self, name: str) -> None:
            raise ImportError(name) from KeyboardInterrupt()

    name = "ortools.sat.python"
    monkeypatch.setitem(sys.modules, name, Interrupted(name))
    with pytest.raises(KeyboardInterrupt):
        tb.coresident(LONG, "h200", groups=[[2]])


def test_seconds_on_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    path.write_text(tb.Sequence([SMALL]).to_json(), "utf-8")
    result = CliRunner().invoke(
        app, ["coresident", str(path), "--seconds", "10"], standalone_mode=False
    )
    assert result.return_value == 0


def test_launches_that_no_program_has_are_refused() -> None:
    part = tb.split_sms("h200", min_sms=16)[0][0]
    whole = tb.Launch(8, 128, 32, stream=1, duration=1e-3)
    within = replace(whole, partition=part)
    other_kind = replace(whole, non_blocking=True)
    with pytest.raises(ValueError, match=r"coresident\.launches\[1\]: Launch\.partition: "):
        tb.coresident([whole, within], "h200", groups=[[0]])
    with pytest.raises(ValueError, match=r"coresident\.launches\[1\]: Launch\.non_blocking: True"):
        tb.coresident([whole, other_kind], "h200")
    held = tb.Sequence([replace(each, duration=None) for each in (whole, within)])
    with pytest.raises(ValueError, match=r"coresident\.launches\[1\]: Launch\.partition: "):
        tb.coresident(held, "h200")
    with pytest.raises(ValueError, match=r"budget\.launch: Launch\.partition: "):
        tb.budget(within, "h200", beside=[whole])
    with pytest.raises(ValueError, match=r"budget\.beside\[1\]: Launch\.non_blocking: True"):
        tb.budget(whole, "h200", beside=[whole, other_kind])
    apart = [whole, replace(within, stream=2), replace(other_kind, stream=None)]
    assert tb.coresident(apart, "h200").safe is True
