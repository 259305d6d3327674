"""``tbsched capacity`` and ``tbsched coresident``."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import tbsched as tb
from advice.together.puzzles import SCHEDULERS, WORKERS
from cli.test_json import EXAMPLES, check_alike, document
from helpers import ROOT
from tbsched.cli.app import app
from tbsched.cli.together.on_gpu import meet_on_time
from tbsched.launcher.meet import Meeting
from tbsched.traces.placement import DeviceInfo

SAFE = replace(SCHEDULERS, carveout=100)


def written(place: Path, *launches: tb.Launch) -> Path:
    place.write_text(tb.Sequence(launches).to_json(), "utf-8")
    return place


@pytest.fixture
def unsafe(tmp_path: Path) -> Path:
    return written(tmp_path / "unsafe.json", SCHEDULERS, WORKERS)


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [*map(str, arguments)], standalone_mode=False)


def test_capacity(unsafe: Path) -> None:
    words = run("capacity", unsafe).stdout
    assert words.startswith("116 blocks of workers fit, beside schedulers; no SM of 132 idle\n")
    assert "the SM's shared-memory configuration does not suit the launch" in words
    first = run("capacity", unsafe, "--launch", "0", "--device", "h100").stdout
    assert "of schedulers fit, beside workers" in first
    result = run("capacity", unsafe, "--launch", "2")
    assert isinstance(result.exception, ValueError)
    assert "--launch: 2 is outside -2..1" in str(result.exception)


def test_choices_and_budget(unsafe: Path) -> None:
    words = run("capacity", unsafe, "--threads", "128", "--threads", "256", "--budget").stdout
    assert "2 choices; at most 232 blocks fit" in words
    assert "116 blocks of workers are sure to be resident" in words


def test_budget_that_is_not_known(tmp_path: Path) -> None:
    gemm = tb.Launch(108, 384, 168, 160 * 1024, name="gemm")
    kernels = written(tmp_path / "k.json", tb.Launch(24, 544, 96, 104 * 1024), gemm)
    asked = ("capacity", kernels, "--device", "a100", "--budget")
    result = run(*asked)
    assert result.return_value == 1
    assert "not known whether any block of gemm is sure to be resident" in result.stdout
    (row,) = json.loads(run(*asked, "--json").stdout)["sequences"]
    assert row["budget"] is None
    assert run(*asked[:-1]).return_value == 0


def test_capacity_as_json(unsafe: Path) -> None:
    found = document("capacity", unsafe, "--carveout", "0", "--cluster", "2", "--budget")
    check_alike(EXAMPLES["capacity"], found)
    (row,) = found["sequences"]
    assert (row["capacity"]["blocks"], row["budget"], len(row["choices"])) == (116, 116, 1)
    (row,) = document("capacity", unsafe)["sequences"]
    assert (row["choices"], row["budget"]) == (None, None)


def test_coresident(unsafe: Path, tmp_path: Path) -> None:
    result = run("coresident", unsafe)
    assert result.return_value == 1
    assert result.stdout.startswith("NOT safe: 12 of 128 blocks of workers never start")
    assert "a carveout of 44 % for schedulers" in result.stdout
    result = run("coresident", written(tmp_path / "safe.json", SAFE, WORKERS))
    assert result.return_value == 0
    assert result.stdout.startswith("safe: before a block of workers finds no room, 132 SMs must")
    assert run("coresident", unsafe, "--after", "1,0").return_value == 0
    assert run("coresident", unsafe, "--groups", "0").return_value == 0
    assert "Each of these" not in run("coresident", unsafe, "--no-fixes").stdout


def test_seconds_are_of_all_sequences_together(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given: list[float] = []

    def decided(*arguments: Any, seconds: float, **rest: Any) -> tb.Coresidency:
        given.append(seconds)
        time.sleep(0.01)
        return tb.coresident(*arguments, **rest)

    monkeypatch.setattr("tbsched.cli.together.coresident.asked_together", decided)
    tb.save_traces(tmp_path / "x.jsonl", [tb.predict(tb.Sequence([SAFE]), "h200")] * 3)
    assert run("coresident", tmp_path / "x.jsonl", "--seconds", "9").exit_code == 0
    assert given[0] == 9 > given[1] > given[2] > 0


def test_coresident_as_json(unsafe: Path) -> None:
    found = document("coresident", unsafe, status=1)
    check_alike(EXAMPLES["coresident"], found)
    (row,) = found["sequences"]
    assert (row["safe"], row["stranded"], row["waiting"], row["gpu"]) == (False, 1, 12, None)
    assert [fix["kind"] for fix in row["fixes"]][:2] == ["order", "carveout"]
    assert tb.Sequence.from_json(json.dumps(row["witness"])).launches == (SCHEDULERS, WORKERS)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--groups", "0,x"), "--groups: numbers such as 0,1;2 are needed, got '0,x'"),
        (("--groups", "0,2"), r"groups[0]: 2 is outside 0..1"),
        (("--after", "0,1,2"), "--after: pairs such as 0,1;0,2 are needed"),
        (("--after", "0"), "--after: pairs such as"),
    ],
)
def test_what_is_wrong_is_named(unsafe: Path, options: tuple[str, ...], message: str) -> None:
    result = run("coresident", unsafe, *options)
    assert isinstance(result.exception, ValueError)
    assert message in str(result.exception)


def test_file_without_launches(tmp_path: Path) -> None:
    (tmp_path / "none.json").write_text("[]", "utf-8")
    for verb in ("capacity", "coresident"):
        result = run(verb, tmp_path / "none.json")
        assert "holds no launches" in str(result.exception)


class ModelAsGpu:
    """Meets as the model says; or, if it is ``wrong``, never hangs."""

    info = DeviceInfo("NVIDIA H200", 132, {"max_connections": 32})
    wrong = False
    runs = 0

    def __enter__(self) -> ModelAsGpu:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def meet(
        self,
        sequence: tb.Sequence,
        groups: Sequence[Sequence[int]],
        gpu: object,
        issue_times: Iterable[float] | None,
    ) -> Meeting:
        self.runs += 1
        if any(launch.first_use for launch in sequence.launches):
            raise ValueError("no kernel is loaded late")
        trace = tb.predict(sequence, "h200", issue_times=issue_times)
        met = tuple(
            self.wrong or not any(map(self.late, map(trace.__getitem__, g))) for g in groups
        )
        return Meeting(trace, tuple(map(tuple, groups)), met)

    def late(self, placement: tb.Placement) -> bool:
        late = placement.smid < 0
        if placement.start_ns is not None:
            late |= placement.start_ns >= 1e9
        return bool(late.any())


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> ModelAsGpu:
    model = ModelAsGpu()
    module = "tbsched.cli.together.on_gpu"
    monkeypatch.setattr(f"{module}.Gpu", lambda _: model)
    monkeypatch.setattr(f"{module}.meet", model.meet)
    monkeypatch.setattr(f"{module}.steer", lambda *_, **__: None)
    return model


@pytest.mark.parametrize("wrong", [False, True])
def test_on_the_gpu(gpu: ModelAsGpu, unsafe: Path, wrong: bool) -> None:
    gpu.wrong = wrong
    found = document("coresident", unsafe, "--on-gpu", status=1)
    check_alike(EXAMPLES["coresident --on-gpu"], found["sequences"][0]["gpu"])
    witness, *fixes = found["sequences"][0]["gpu"]
    assert (witness["hung"], witness["runs"], witness["agrees"]) == (not wrong, 1, not wrong)
    assert len(fixes) == 5
    assert all(fix["agrees"] and not fix["hung"] for fix in fixes)
    orders = {fix["what"].partition(":")[0]: fix["runs"] for fix in fixes}
    assert orders == {"order": 1, "carveout": 2, "partition": 2, "grid": 2, "registers": 2}
    words = run("coresident", unsafe, "--on-gpu").stdout
    assert ("NOT as predicted" in words) == wrong


def test_hang_above_the_scheduler_on_the_gpu(gpu: ModelAsGpu, tmp_path: Path) -> None:
    kernel = tb.Launch(8, 128, 32, duration=1e-3, name="a")
    legacy = replace(kernel, stream=tb.LEGACY_STREAM, name="b")
    place = written(tmp_path / "legacy.json", replace(kernel, stream=1), legacy)
    found = document("coresident", place, "--on-gpu", status=1)
    witness, *fixes = found["sequences"][0]["gpu"]
    assert (witness["hung"], witness["agrees"]) == (1, True)
    assert {fix["what"].partition(":")[0]: fix["agrees"] for fix in fixes} == {"streams": True}
    lazy = written(tmp_path / "lazy.json", kernel, replace(kernel, first_use=True))
    found = document("coresident", lazy, "--on-gpu", status=1)
    witness, order, loading = found["sequences"][0]["gpu"]
    assert (witness["why"], order["why"]) == ("no kernel is loaded late",) * 2
    assert (loading["runs"], loading["agrees"]) == (2, True)


def test_other_hardware_queues_than_asked(gpu: ModelAsGpu, tmp_path: Path) -> None:
    kernel = tb.Launch(8, 128, 32, duration=1e-3)
    place = written(tmp_path / "queues.json", *(replace(kernel, stream=s) for s in (0, 0, 1)))
    options = ("--groups", "0,2", "--after", "0,1", "--connections", "1", "--on-gpu")
    found = document("coresident", place, *options, status=1)
    witness, *_ = found["sequences"][0]["gpu"]
    assert witness["why"] == "CUDA_DEVICE_MAX_CONNECTIONS is 32 here"


PLANNED = (0.0, 1e-3)


@pytest.mark.parametrize(
    ("called", "came", "late"),
    [
        (PLANNED, PLANNED, False),
        ((0.0, 2e-3), (0.0, 2e-3), True),
        (PLANNED, (0.5e-3, 1e-3), True),  # the first one took long to come
    ],
)
def test_witness_with_a_late_host_runs_again(
    monkeypatch: pytest.MonkeyPatch,
    called: tuple[float, float],
    came: tuple[float, float],
    late: bool,
) -> None:
    sequence = tb.Sequence([tb.Launch(1, 32, 16, duration=1.0)] * 2)
    runs = []

    def meet(*_: Any, **__: Any) -> Meeting:
        call, come = (PLANNED, PLANNED) if runs else (called, came)
        runs.append(call)
        trace = tb.predict(sequence, "h200", issue_times=come)
        extra = {"issued_ns": [round(time * 1e9) for time in call]}
        return Meeting(replace(trace, extra=extra), ((0, 1),), (True,))

    monkeypatch.setattr("tbsched.cli.together.on_gpu.meet", meet)
    monkeypatch.setattr("tbsched.cli.together.on_gpu.steer", lambda *_, **__: None)
    gpu: Any = None
    assert meet_on_time(gpu, tb.device("h200"), sequence, [[0, 1]], None, PLANNED)
    assert len(runs) == (2 if late else 1)


def test_nothing_to_run_on_the_gpu(gpu: ModelAsGpu, tmp_path: Path) -> None:
    place = written(tmp_path / "safe.json", SAFE, WORKERS)
    found = document("coresident", place, "--on-gpu")
    assert [run["agrees"] for run in found["sequences"][0]["gpu"]] == [None]
    assert gpu.runs == 0


def test_profile() -> None:
    profile = ROOT / "tests" / "profiles" / "h100" / "copies.json.gz"
    assert "find no room" in str(run("capacity", profile).exception)
    assert "no kernel" in str(run("coresident", profile, "--match", "no such").exception)
