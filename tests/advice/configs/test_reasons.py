"""Reasons and estimates that a kernel's machine code gives for launch configurations."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from typer.testing import CliRunner

import tbsched as tb
from tbsched import views
from tbsched.advice.launch_configs import LaunchConfig
from tbsched.advice.reasons.case import Case
from tbsched.advice.reasons.rules import RULES, Reason
from tbsched.cli.app import app

CUBIN = Path(__file__).parent / "cubins" / "walsh_shared_f32.cubin"
ITEMS = tb.Kernel(threads=4_000_000, registers=32)
WORKING = tb.sm.Mix({"fp32.fma": 400, "memory": 2}, {"fp32.fma": 4})
WAITING = tb.sm.Mix({"fp32.fma": 40}, {"fp32.fma": 1})


def row(configs: tb.LaunchConfigs, threads: int) -> LaunchConfig:
    (found,) = (each for each in configs if each.launch.threads == threads)
    return found


def holds(found: LaunchConfig, rule: str) -> bool | None:
    (reason,) = (each for each in found.reasons if each.rule == rule)
    return reason.holds


def test_without_machine_code_there_are_no_reasons() -> None:
    configs = tb.launch_configs("h200", ITEMS)
    assert configs.advised is None
    assert {(each.reasons, each.estimate) for each in configs} == {((), None)}


def test_every_rule_judges_every_configuration_that_can_run() -> None:
    configs = tb.launch_configs("h200", ITEMS, code=WORKING)
    assert {len(each.reasons) for each in configs} == {9}
    assert all(each.estimate is not None for each in configs)
    assert holds(row(configs, 256), "balance") is True
    assert holds(row(configs, 96), "balance") is False
    assert holds(row(configs, 256), "one wave") is False
    assert holds(row(configs, 256), "transfers") is None


def test_few_warps_do_not_hide_dependences() -> None:
    """A block of 32 threads on each SM; a chain of FMAs needs four warps a processing block."""
    few = tb.Kernel(threads=132 * 1024, registers=32, shared_memory=120_000)
    configs = tb.launch_configs("h200", few, code=WAITING)
    assert holds(row(configs, 32), "warps for dependences") is False
    assert holds(row(configs, 1024), "warps for dependences") is True
    assert holds(row(configs, 32), "least warps") is False


def test_many_small_blocks_take_as_long_as_their_launches() -> None:
    light = tb.sm.Mix({"fp32.add": 1, "memory": 2})
    configs = tb.launch_configs("h200", ITEMS, code=light)
    small, large = row(configs, 32).estimate, row(configs, 256).estimate
    assert small is not None
    assert large is not None
    assert small == pytest.approx(1.25 * 125_000)
    assert small > 2 * large


def test_the_advised_one_is_the_usual_one_among_those_that_take_as_long() -> None:
    configs = tb.launch_configs("h200", ITEMS, code=WORKING)
    advised = configs.advised
    assert advised is not None
    least = min(each.estimate for each in configs if each.estimate is not None)
    assert advised.estimate is not None
    assert advised.estimate <= 1.1 * least


def test_where_threads_loop_any_grid_is_tried_and_a_full_gpu_is_advised() -> None:
    kernel = dataclasses.replace(ITEMS, loops=True)
    configs = tb.launch_configs("h200", kernel, code=WORKING)
    grids = [each.launch.blocks for each in configs if each.launch.threads == 256]
    assert grids == [132 * each for each in (1, 2, 3, 4, 6, 8)] + [15_625]
    assert configs.advised is not None
    assert configs.advised.launch.blocks == 132 * 8


def test_where_blocks_share_parts_of_the_work_more_threads_turn_less() -> None:
    few = tb.Kernel(threads=132 * 32_000, registers=32, blocks=132)
    configs = tb.launch_configs("h200", few, code=(CUBIN, "walsh_shared_f32"))
    assert {each.launch.blocks for each in configs} == {132}
    small, large = row(configs, 64).estimate, row(configs, 512).estimate
    assert small is not None
    assert large is not None
    assert small > 2 * large


def test_a_kernel_that_loops_has_no_grid_of_its_own() -> None:
    with pytest.raises(ValueError, match=r"Kernel\.blocks: threads that loop work with any grid"):
        tb.Kernel(threads=100, registers=32, loops=True, blocks=3)


def transfers(widest: int, bytes_: int, first: int, least: int) -> Reason:
    """The rule on 64 warps of an SM of the H200, 16 on each processing block."""
    spec, launch = tb.device("h200"), tb.Launch(132 * 8, 256, 32)
    tables = tb.sm.measured("h200")
    code = dataclasses.replace(
        tb.sm.read_code(WORKING, tables, 4),
        uses=(first, 10**6), transfers=(10**6, least), widest=widest, bytes=bytes_, memory=2,
    )  # fmt: skip
    case = Case(spec, launch, tb.forced_even(spec, launch), code, tables)
    assert case.warps == 64
    (rule,) = (each for each in RULES if each.name == "transfers")
    return rule(case)


@pytest.mark.parametrize(("widest", "lines"), [(4, 1), (8, 2), (16, 4), (5, 2)])
def test_each_transfer_counts_as_many_whole_lines_as_the_widest(widest: int, lines: int) -> None:
    sent = -(-64 * lines * 128 * 2 // 29)  # 14.5 bytes a clock
    first, least = -(-(600 + sent) // 16), -(-sent // 16)
    assert transfers(widest, 8, first, least).holds is True
    words = f"moves {lines} line{'s' if lines > 1 else ''} of 128 bytes"
    assert words in transfers(widest, 8, first, least).words
    assert transfers(widest, 8, first - 1, least).holds is False
    assert transfers(widest, 8, first, least - 1).holds is False


def test_transfers_of_unknown_size_hide_behind_nothing_for_certain() -> None:
    """The mean of 10 bytes needs three lines of a warp; what the widest needs is not known."""
    assert transfers(0, 20, 10**5, 10**5).holds is None
    assert transfers(0, 20, (600 + 1695) // 16, 10**5).holds is False


def test_it_is_shown_and_kept_as_data() -> None:
    configs = tb.launch_configs("h200", ITEMS, code=WORKING)
    text = str(configs)
    assert "advised: " in text
    assert "+ balance: 64 warps on 4 processing blocks" in text
    assert "balance" in configs._repr_html_()
    data = views.data(configs)
    assert data["configs"][data["advised"]]["estimate"] == configs.advised.estimate  # type: ignore[union-attr]
    assert data["code"]["busiest"] == "FP32"


def test_the_command_line_reads_a_cubin() -> None:
    result = CliRunner().invoke(app, ["configs", "4000000", "--cubin", str(CUBIN), "-r", "32"])
    assert result.exit_code == 0, result.output
    assert "advised" in result.output
