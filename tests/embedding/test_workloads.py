"""The workloads with which simulators are compared, and what is written for the simulators."""

from __future__ import annotations

import dataclasses
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
        row = modules.compare.row(right, right)
        assert row.same == row.blocks == sum(k.blocks for k in sequence.launches)
        assert row.overlap == row.order == row.pairs
        assert row.neighbours[0] == row.neighbours[1] > 0
        assert row.makespan[0] == row.makespan[1] <= 1
        same, blocks = modules.compare.same_sms(other, right)
        assert same < blocks


def test_prediction_with_a_trace_s_own_times_is_that_trace(modules: Modules) -> None:
    """A simulator that takes other times, so that other blocks leave first."""
    sequence = modules.workloads.sequence("leave_shuffled")
    quick = dataclasses.replace(sequence.launches[0], duration=sequence.launches[0].duration[::-1])
    other = tb.predict(tb.Sequence([quick, sequence.launches[1]]), "h200")
    times = modules.compare.with_times_of(other, "h200")
    assert modules.compare.same_sms(other, times) == (324, 324)
    assert modules.compare.same_sms(other, tb.predict(sequence, "h200")) != (324, 324)


def recorded(name: str) -> list[tb.Trace]:
    return list(tb.load_traces(ROOT / "tests" / "traces" / "simulators" / f"{name}.jsonl.xz"))


@pytest.mark.parametrize("simulator", ["accel-sim", "gpgpu-sim"])
def test_recorded_simulators_have_blocks_where_they_are_predicted(
    modules: Modules, simulator: str
) -> None:
    """With the times of their own blocks. Theirs alone have nearly none there."""
    compare, counts = modules.compare, {}
    for policy in ("off", "device"):
        traces = recorded(f"{simulator}-{policy}")
        assert all(t.sequence == modules.workloads.sequence(t.id) for t in traces)
        pairs = [compare.same_sms(t, compare.with_times_of(t, "h200")) for t in traces]
        counts[policy] = [sum(column) for column in zip(*pairs, strict=True)]
    assert counts["device"][1] == 7633
    assert counts["device"][0] >= 0.999 * counts["device"][1]
    assert counts["off"][0] < 0.1 * counts["off"][1]


@pytest.mark.parametrize("device", ["h200", "h100"])
def test_recorded_gpu_has_blocks_where_they_are_predicted(modules: Modules, device: str) -> None:
    traces = recorded(device)
    assert len(traces) == 100
    for trace in traces[:40]:  # the third round and later ones are as the second
        same, blocks = modules.compare.same_sms(
            trace, modules.compare.from_its_state(trace, device)
        )
        assert same == blocks, trace.id


def test_table_of_gpus_on_the_page_is_that_of_the_recordings(modules: Modules) -> None:
    page = (ROOT / "docs" / "how-to" / "simulators.md").read_text("utf-8")
    rows = {}
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 11 and cells[0] in modules.workloads.WORKLOADS:
            rows[cells[0]] = cells
    assert len(rows) == 20
    for column, name in enumerate(("accel-sim-off", "accel-sim-device", "h200", "h100")):
        device = "h100" if name == "h100" else "h200"
        for trace in recorded(name)[:20]:
            cells = rows[trace.id.split()[0]]
            share = trace.makespan / modules.compare.alone(trace.sequence, device)
            expected = [str(modules.compare.neighbours(trace)), f"{share:.2f}"]
            assert [cells[2 + column], cells[7 + column]] == expected, (trace.id, name)


def test_tables_of_the_page_are_what_compare_prints(
    modules: Modules, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (ROOT / "docs" / "how-to" / "simulators.md").read_text("utf-8")
    names = ["accel-sim-off", "accel-sim-device", "gpgpu-sim-off", "gpgpu-sim-device"]
    files = [str(ROOT / "tests" / "traces" / "simulators" / f"{name}.jsonl.xz") for name in names]
    for arguments, table in ((files[:2], 0), (files, 1)):
        monkeypatch.setattr(sys, "argv", ["compare.py", *arguments])
        modules.compare.main()
        assert capsys.readouterr().out.strip().split("\n\n")[table] in page


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
    with pytest.raises(SystemExit, match="1 blocks of mine: launch 0 ran, not 2"):
        modules.simulators.as_trace(sequence, "mine", blocks, {})


def test_blocks_of_an_unchanged_simulator_come_from_what_it_prints(modules: Modules) -> None:
    """A slot that is taken again is another block's; kernels count their own blocks."""
    events = [
        ("5", "7", "cta: 0, start_tid:   0, end_tid:  32, initialized @(5,0), kernel_uid:1, x"),
        ("5", "9", "cta: 0, start_tid:   0, end_tid:  32, initialized @(5,0), kernel_uid:1, x"),
        ("6", "7", "cta: 1, start_tid:  32, end_tid:  64, initialized @(6,0), kernel_uid:2, y"),
        ("8", "7", "Finished CTA #0 (8,0), 1 CTAs running"),
        ("9", "7", "cta: 0, start_tid:   0, end_tid:  32, initialized @(9,0), kernel_uid:2, y"),
        ("11", "7", "Finished CTA #0 (11,0), 1 CTAs running"),
        ("12", "7", "Finished CTA #1 (12,0), 0 CTAs running"),
        ("12", "9", "Finished CTA #0 (12,0), 0 CTAs running"),
    ]
    lines = [
        f"GPGPU-Sim Cycle {cycle}: LIVENESS - Core {core} - GPGPU-Sim uArch: {text}"
        for cycle, core, text in events
    ]
    options = modules.simulators.options([], "stock", "none", FOLDER)
    assert "tbsched" not in options
    assert "-trace_sampling_core -1" in options  # all cores
    output = "gpu_sim_cycle = 5\n" + "\n".join(lines) + "\nGPGPU-Sim: *** exit detected ***\n"
    assert modules.simulators.blocks_of_stock(output).splitlines() == [
        "1 0 7 5 8",
        "2 1 7 9 11",
        "2 0 7 6 12",
        "1 1 9 5 12",
    ]
