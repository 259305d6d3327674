"""The analysis recovers what was put into a literal SM."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tbsched as tb
from helpers import examples
from sm.characterization.model_sm import Class, ModelSm
from tbsched.sm.characterization import Measured, Mode, Run, Scope, load_runs, placed
from tbsched.sm.characterization.figures import NEAR, least_stall

SIZES = (1, 2, 4, 6, 8, 12, 16, 24, 32)
NAME = "fp32.fma"


def measured(bench: ModelSm, **options: object) -> tb.sm.Characterization:
    options = {"repeats": 1, "warps": SIZES, "progress": False, **options}
    return tb.sm.characterize(bench, [NAME], **options)  # type: ignore[arg-type]


@settings(max_examples=examples(15), deadline=None)
@given(
    latency=st.integers(2, 30),
    interval=st.sampled_from([1, 2, 4, 8]),
    waits=st.booleans(),
    jitter=st.integers(0, 3),
)
def test_what_was_put_in_comes_out(latency: int, interval: int, waits: bool, jitter: int) -> None:
    latency = max(latency, interval)
    bench = ModelSm({NAME: Class(latency, interval, waits)}, jitter=jitter)
    found = measured(bench)[NAME]
    best = 4 * 32 / interval
    assert found.throughput is not None
    assert found.throughput.value == pytest.approx(best, rel=0.04)
    assert found.confirmed
    assert found.all_sms is not None
    assert found.all_sms.value == pytest.approx(best, rel=0.04)
    # Whole clocks, as a warp alone tells them; the end of its last instruction comes on top.
    assert found.dependence_wait is not None
    assert int(found.dependence_wait.value) == (max(latency, 2) if waits else latency)
    assert found.scheduling_wait is not None
    assert found.scheduling_wait.value == pytest.approx(interval, rel=0.15)
    assert found.least_stall == (None if waits else latency)
    assert found.even is not None
    assert found.even.starting <= jitter
    assert (found.failed, found.misplaced, found.unbalanced) == (0, 0, 0)
    assert found.least_warps is not None
    for (mode, distance), warps in found.least_warps.items():
        chained = latency / distance if mode is Mode.WRITE_READ else 0

        def share(size: int, chained: float = chained) -> float:
            """The share of the best throughput: the fullest processing block is the last to end."""
            return size / 4 / max(chained / interval, -(-size // 4))

        # The end takes up to a latency, which is near 4 % of the shortest runs.
        assert share(warps) > NEAR - 0.05
        assert all(share(size) < NEAR + 0.06 for size in SIZES if size < warps)


def test_warps_that_do_not_fill_the_processing_blocks_evenly_cost_time() -> None:
    found = measured(ModelSm(), warps=(1, 4, 5, 8, 9, 16))[NAME]
    assert found.even is not None
    assert found.uneven is not None
    assert found.uneven.ending > 10 * found.even.ending
    assert found.best_even is not None
    assert found.best_uneven is not None
    assert found.best_even > found.best_uneven


def test_a_stall_that_is_right_by_chance_is_not_the_least() -> None:
    bench = ModelSm({NAME: Class(latency=9)})
    runs = _sweep(bench)
    assert least_stall(runs) == 9
    lucky = [_with_result(run, 1) if run.key.spacing == 3 else run for run in runs]
    assert least_stall(lucky) == 9
    shaky = [*runs, *(_with_result(run, 5) for run in runs if run.key.spacing == 40)]
    assert least_stall(shaky) is None
    assert least_stall([]) is None


def _sweep(bench: ModelSm) -> list[Run]:
    from tbsched.sm.characterization import Wanted, opcode

    where = placed(bench.spec, Scope.ONE_SM, 1)
    assert where is not None
    wanted = [
        Wanted(NAME, Mode.WRITE_READ, 1, spacing, updates)
        for spacing in range(1, 41)
        for updates in (2, 3)
    ]
    made = bench.loops(opcode(NAME), wanted)
    return [Run.of(loop, where, 0, 5, bench.run(loop, where, 5)) for loop in made]


def _with_result(run: Run, result: int) -> Run:
    warps = run.warps.copy()
    warps["result"] = result
    return Run(run.key, run.instructions, run.as_predicted, warps)


def test_an_opcode_without_a_verified_loop_is_not_measured() -> None:
    bench = ModelSm(reasons={NAME: "the compiler writes FMUL"})
    found = measured(bench)
    assert found[NAME].throughput is None
    assert f"{NAME}: the compiler writes FMUL" in str(found)
    assert bench.launched == 0


def test_figures_of_an_opcode_are_shown_without_their_curves() -> None:
    found = measured(ModelSm({NAME: Class(4, 2, waits=False)}))[NAME]
    assert found.ends
    assert f"Figures(opcode='{NAME}', throughput=Measured(" in str(found)
    assert len(str(found)) < 1_000


def test_unknown_opcodes_and_too_few_repeats_are_refused() -> None:
    with pytest.raises(ValueError, match=r"'fp32.fmaa' is not known; did you mean 'fp32.fma'"):
        tb.sm.characterize(ModelSm(), ["fp32.fmaa"])
    with pytest.raises(ValueError, match="repeats: 0"):
        tb.sm.characterize(ModelSm(), [NAME], repeats=0)
    with pytest.raises(ValueError, match=r"characterize\.seconds: nan"):
        tb.sm.characterize(ModelSm(), [NAME], seconds=float("nan"))


def test_runs_are_kept_and_not_made_again(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    few = {"raw": path, "warps": (1, 4, 33)}
    first = measured(ModelSm(), seconds=0.0, **few)
    assert "the time was over" in str(first)
    bench = ModelSm()
    whole = measured(bench, **few)
    content = path.read_bytes()
    path.write_bytes(content[:-20])  # killed while it wrote
    again = ModelSm()
    with pytest.warns(UserWarning, match="its last line .* was cut"):
        assert measured(again, **few).figures == whole.figures
    assert again.launched == 1
    assert path.read_bytes().count(b"\n") == bench.launched + 1
    replayed = tb.sm.load_characterization(path, "h200")
    assert replayed.figures == whole.figures
    about, runs = load_runs(path)
    assert about["name"] == "model SM"
    assert sum(len(run.warps) for run in runs if run.key.warps == 33) % 33 == 0
    other = ModelSm()
    other.about = lambda: {"name": "another", "sms": 132}  # type: ignore[method-assign]
    with pytest.raises(ValueError, match="has runs of"):
        measured(other, **few)


def test_a_broken_file_of_runs_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    measured(ModelSm(), raw=path, warps=(1,))
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b"{}\n" + lines[1])
    with pytest.raises(ValueError, match=r"runs\.jsonl, line 2"):
        load_runs(path)
    path.write_bytes(b"something else\n")
    with pytest.raises(ValueError, match="not a file of runs"):
        load_runs(path)


def test_a_gpu_without_a_shipped_device_needs_its_file(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    measured(ModelSm(), raw=path, warps=(1,))
    with pytest.raises(ValueError, match="no shipped device is called model SM"):
        tb.sm.load_characterization(path)
    path.write_bytes(path.read_bytes().replace(b"model SM", b"model\\u001b[31m"))
    with pytest.raises(ValueError, match="no shipped device is called model\ufffd"):
        tb.sm.load_characterization(path)


@pytest.mark.parametrize("warps", [1, 31, 32, 33, 47, 64])
def test_the_predictor_says_where_warps_are(warps: int) -> None:
    spec = tb.device("h200")
    one = placed(spec, Scope.ONE_SM, warps)
    assert one is not None
    there = [k for k, sm in enumerate(one.smid) if sm == one.smid[0]]
    assert len(there) == one.measuring == (1 if warps <= 32 else 2)
    per_block = one.threads // 32
    left_out = per_block - one.short_warps if one.short_block < len(there) else 0
    assert len(there) * per_block - left_out == warps
    everywhere = placed(spec, Scope.ALL_SMS, warps)
    if warps > 32 and warps % 2:
        assert everywhere is None
    else:
        assert everywhere is not None
        assert sorted(set(everywhere.smid.tolist())) == list(range(spec.sms))


def test_no_launch_has_more_warps_than_an_sm_holds() -> None:
    assert placed(tb.device("h200"), Scope.ONE_SM, 65) is None
    assert placed(tb.device("h200"), Scope.ONE_SM, 0) is None


def test_spread_is_between_the_least_and_the_greatest() -> None:
    found = Measured.of([99.0, 100.0, 101.0])
    assert found.spread == pytest.approx(0.02)
    assert [b - a for a, b in pairwise((found.low, found.value, found.high))] == [1.0, 1.0]
