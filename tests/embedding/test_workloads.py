"""The workloads with which simulators are compared, and what is written for the simulators."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import numpy as np
import pytest

import tbsched as tb
from helpers import ROOT

FOLDER = ROOT / "examples" / "simulator" / "workloads"


class Modules(NamedTuple):
    workloads: ModuleType
    simulators: ModuleType
    compare: ModuleType


@pytest.fixture(scope="module")
def modules() -> Iterator[Modules]:
    sys.path.insert(0, str(FOLDER))
    yield Modules(*(importlib.import_module(name) for name in Modules._fields))
    sys.path.remove(str(FOLDER))


def test_there_are_twenty_of_two_to_eight_launches(modules: Modules) -> None:
    sizes = [len(modules.workloads.sequence(name).launches) for name in modules.workloads.WORKLOADS]
    assert len(sizes) == 20
    assert min(sizes) == 2
    assert max(sizes) == 8


@pytest.mark.parametrize("device", ["h200", "h100"])
def test_nobody_leaves_at_the_same_time_while_blocks_wait(modules: Modules, device: str) -> None:
    """Then a GPU and a simulator, whose clocks differ, agree on who leaves first."""
    waiting = 0
    for name in modules.workloads.WORKLOADS:
        trace = tb.predict(modules.workloads.sequence(name), device)
        ends = np.sort(np.concatenate([p.end_ns for p in trace.placements]))
        for placement in trace.placements:
            first, last = placement.start_ns.min(), placement.start_ns.max()
            if first == last:
                continue
            waiting += 1
            leaves = np.unique(ends[(ends >= first) & (ends <= last)])
            # Blocks that started together end together: they are on one SM.
            assert np.diff(leaves).min() > 0.9 * modules.workloads.STEP * 1e9, name
    assert waiting >= 5


def test_files_for_the_simulators_say_what_the_launches_need(
    modules: Modules, tmp_path: Path
) -> None:
    simulators, sequence = modules.simulators, modules.workloads.sequence("priorities")
    launches = list(sequence.launches)
    text = simulators.ptx(launches)
    used = re.findall(r"Used (\d+) registers, (\d+) bytes smem", text)
    assert used == [(str(k.registers), str(k.shared_memory)) for k in launches]
    simulators.write_traces(launches, tmp_path)
    names = (tmp_path / "kernelslist.g").read_text("utf-8").split()
    for launch, name in zip(launches, names, strict=True):
        trace = (tmp_path / name).read_text("utf-8")
        assert f"-grid dim = ({launch.blocks},1,1)\n-block dim = ({launch.threads},1,1)" in trace
        assert trace.count("thread block =") == launch.blocks
        assert trace.count(" TEX ") == sum(simulators.steps(launch))
    simulators.options(launches, "device", "none", tmp_path)
    rows = (tmp_path / "launches").read_text("utf-8").splitlines()
    assert rows == [f"1 {k.priority} -1" for k in launches]


def test_prediction_agrees_with_itself_and_not_with_another_policy(modules: Modules) -> None:
    for name in ("four_kernels", "leave_shuffled"):
        sequence = modules.workloads.sequence(name)
        right = tb.predict(sequence, "h200")
        other = tb.predict(sequence, "h200", policy="round_robin")
        cells, counts = modules.compare.row(name, right, right)
        assert counts[0] == counts[1] == sum(k.blocks for k in sequence.launches)
        assert counts[2] == counts[3] == counts[4]
        assert cells[0] == name
        same, blocks = modules.compare.same_sms(other, right)
        assert same < blocks


def test_blocks_of_a_simulator_become_a_trace(modules: Modules, tmp_path: Path) -> None:
    sequence = tb.Sequence(
        [tb.Launch(2, 32, 16, duration=8e-6), tb.Launch(1, 32, 16, duration=8e-6)]
    )
    blocks = tmp_path / "blocks"
    blocks.write_text("2 0 7 110 190\n1 1 3 100 180\n1 0 5 100 180\n", "utf-8")
    trace = modules.simulators.as_trace(sequence, "mine", blocks, {})
    assert trace[0].final_smid.tolist() == [5, 3]
    cycle = round(modules.workloads.STEP * 1e9 / modules.simulators.STEP_CYCLES)
    assert trace[1].start_ns.tolist() == [10 * cycle]
    assert trace[1].end_ns.tolist() == [90 * cycle]
    blocks.write_text("1 1 3 100 180\n", "utf-8")
    with pytest.raises(SystemExit, match="1 blocks of launch 0 ran, not 2"):
        modules.simulators.as_trace(sequence, "mine", blocks, {})
