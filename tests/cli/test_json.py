"""With ``--json`` a verb prints one document, with the keys that the page of documents has."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import tbsched as tb
from cli.verbs import FUNCTIONS
from helpers import ROOT
from sm.characterization.model_sm import ModelSm
from tbsched import views
from tbsched.campaigns.results import Counterexample, Report, Unstable
from tbsched.campaigns.space.coverage import Coverage
from tbsched.cli.app import app
from tbsched.sm.characterization.toolkit import ToolMissing, tool
from tbsched.traces.cases import Case

PAGE = (ROOT / "docs" / "reference" / "json.md").read_text("utf-8")
EXAMPLES = {
    title: json.loads(text)
    for title, text in re.findall(r"<!-- (.+?) -->\n```json\n(.*?)```", PAGE, re.DOTALL)
}
# Objects that hold what a trace file holds, or a key per name.
LAUNCH = {"blocks", "threads", "registers"}
OPEN = {"ways", "a", "b", "changes", "decided", "device", "events", "idle", "refused", "values"}
TIMED = tb.Sequence(
    [
        tb.Launch(2, 256, 32, stream=0, duration=1e-3, name="gemm"),
        tb.Launch(2, 64, 32, stream=0, duration=1e-4),
    ]
)
HELD = tb.Sequence([tb.Launch(264, 256, 32, name="gemm")])
CLUSTERS = tb.Sequence([tb.Launch(4, 32, 16, cluster=2)])


def check_alike(example: Any, found: Any, where: str = "") -> None:
    """Whether an object has the keys of the example, and so have those in it; null is any."""
    if isinstance(example, dict) and isinstance(found, dict):
        key = where.rpartition(".")[2]
        if key not in OPEN and not example.keys() >= LAUNCH:
            assert found.keys() == example.keys(), where
            for name, value in example.items():
                check_alike(value, found[name], f"{where}.{name}")
    elif isinstance(example, list) and isinstance(found, list):
        for item in found[:1] if example else ():
            check_alike(example[0], item, where)
    else:
        assert None in (example, found) or isinstance(found, type(example)), where


def document(*arguments: str | Path, status: int = 0) -> Any:
    result = CliRunner().invoke(app, [*map(str, arguments), "--json"], standalone_mode=False)
    assert result.exception is None
    assert (result.return_value or 0) == status
    assert result.stdout.count("\n") == 1
    return json.loads(result.stdout)


@pytest.fixture
def traces(tmp_path: Path) -> dict[str, Path]:
    """Files of a program, of a prediction, and of another policy's."""
    given = {
        "timed": [tb.predict(TIMED, "h200")],
        "held": [tb.predict(HELD, "h200"), tb.predict(CLUSTERS, "h200")],
        "other": [tb.predict(HELD, "h200", "first_fit"), tb.predict(CLUSTERS, "h200")],
    }
    for name, each in given.items():
        tb.save_traces(tmp_path / f"{name}.jsonl", each)
    return {name: tmp_path / f"{name}.jsonl" for name in given}


def test_page_has_every_verb() -> None:
    headings = re.findall(r"^## (.+)$", PAGE, re.MULTILINE)
    assert set(headings) - {"Roots"} == {
        name for name, verb in FUNCTIONS.items() if "as_json" in inspect.signature(verb).parameters
    }


ROOTS = {
    verb: re.findall(r"`(.+?)`", keys)
    for verb, keys in re.findall(r"^\| `(.+?)` \| (.+?) \| ", PAGE, re.MULTILINE)
}
# The document of another verb, or a part of one.
LIKE = {
    "observe": EXAMPLES["predict"],
    "observe --cases": EXAMPLES["observe"],
    "show": EXAMPLES["predict"]["traces"][0],
    "show --against": EXAMPLES["compare"]["sequences"][0],
    "record": EXAMPLES["fuzz"],
    "describe": EXAMPLES["devices NAME"],
}


@pytest.mark.parametrize("verb", sorted({*ROOTS} - {"show PROFILE"}))
def test_roots_are_those_of_the_examples(verb: str) -> None:
    assert ROOTS[verb] == [*LIKE.get(verb, EXAMPLES.get(verb, ()))]


def test_every_verb_has_a_root() -> None:
    verbs = {re.sub(r" (--\S+|[A-Z]+)$", "", verb) for verb in ROOTS}
    headings = re.findall(r"^## (.+)$", PAGE, re.MULTILINE)
    assert verbs == set(headings) - {"Roots"}


def test_root_of_a_profile_that_is_shown() -> None:
    profile = ROOT / "tests" / "real" / "recordings" / "h200" / "sync_in_loop-a.json.gz"
    assert [*document("show", profile)] == ROOTS["show PROFILE"]


def test_sm_simulate(tmp_path: Path) -> None:
    tb.sm.save_workload(tb.sm.preset("SCP", blocks=2), tmp_path / "scp.npz")
    check_alike(EXAMPLES["sm simulate"], document("sm", "simulate", tmp_path / "scp.npz"))


def test_sm_characterize(tmp_path: Path) -> None:
    raw = tmp_path / "runs.jsonl"
    bench = ModelSm()
    bench.about = lambda: {"name": "NVIDIA H200", "sms": 132}  # type: ignore[method-assign]
    tb.sm.characterize(bench, ["fp32.fma"], raw=raw, repeats=1, warps=(1, 4, 5), progress=False)
    found = document("sm", "characterize", "--evidence", raw, "--replay")
    check_alike(EXAMPLES["sm characterize"], found)


def test_sm_variants(tmp_path: Path) -> None:
    cubin = ROOT / "tests" / "advice" / "configs" / "cubins" / "walsh_shared_f32.cubin"
    try:
        tool("nvdisasm")
    except ToolMissing as error:
        pytest.skip(str(error))
    found = document("sm", "variants", cubin, "-t", 256, "--draws", 1, "-o", tmp_path)
    check_alike(EXAMPLES["sm variants"], found)
    assert json.loads((tmp_path / "variants.json").read_text("utf-8")) == found
    files = {path.name for path in tmp_path.glob("*.cubin")}
    assert files == {row["file"] for row in found["variants"]}


def test_predict(traces: dict[str, Path], tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    found = document("predict", traces["timed"], "--output", output)
    check_alike(EXAMPLES["predict"], found)
    first, second = found["traces"][0]["launches"]
    assert (first["name"], second["limiter"]) == ("gemm", "stream")
    assert found["traces"][0]["waits"][0]["behind"] == 0
    assert len(tb.load_traces(output)) == 1
    check_alike(EXAMPLES["predict"], document("predict", traces["held"]))


def test_show(traces: dict[str, Path]) -> None:
    found = document("show", traces["timed"])
    check_alike(EXAMPLES["predict"]["traces"][0], found)
    predicted = document("show", traces["timed"], "--device", "h200")
    assert predicted["waits"][0]["behind"] == 0
    found = document("show", traces["held"], "--against", traces["other"])
    check_alike(EXAMPLES["compare"]["sequences"][0], found)


def test_explain(traces: dict[str, Path], tmp_path: Path) -> None:
    page, trace = tmp_path / "page.html", tmp_path / "out.pftrace"
    outputs = ("--html", page, "--perfetto", trace)
    found = document("explain", traces["timed"], "--device", "h200", *outputs)
    check_alike(EXAMPLES["explain"], found)
    assert found["gaps"][0]["causes"][0]["cause"] == "stream"
    assert "launch 1" in page.read_text("utf-8")
    assert b"waits" in trace.read_bytes() or trace.stat().st_size > 1000


@contextmanager
def model_as_gpu(_: int) -> Iterator[Any]:
    class Gpu:
        def observe(self, sequence: tb.Sequence) -> tb.Trace:
            return tb.predict(sequence, "h200", "first_fit" if sequence == HELD else None)

    yield Gpu()


def test_observe(monkeypatch: pytest.MonkeyPatch, traces: dict[str, Path]) -> None:
    monkeypatch.setattr("tbsched.cli.run.Gpu", model_as_gpu)
    check_alike(EXAMPLES["predict"], document("observe", traces["timed"]))
    case = tb.predict(HELD, "h200")
    monkeypatch.setattr("tbsched.cli.run.case_set", lambda _: (Case("one", "it", None, case),))
    found = document("observe", "--cases", "hopper", status=1)
    check_alike(EXAMPLES["observe"], found)
    check_alike(EXAMPLES["predict"]["traces"], found["traces"])


def test_compare_and_verify(traces: dict[str, Path]) -> None:
    found = document("compare", traces["held"], traces["other"], status=1)
    check_alike(EXAMPLES["compare"], found)
    assert (found["agree"], len(found["sequences"])) == (1, 2)
    found = document(
        "verify",
        traces["other"],
        "--policy",
        "first_fit",
        "--policy",
        "hopper",
        "--misses",
        "1",
        status=1,
    )
    check_alike(EXAMPLES["verify"], found)
    assert [row["agrees"] for row in found["scores"]] == [True, False]
    assert found["scores"][0]["skipped"]
    check_alike(EXAMPLES["compare"]["sequences"], found["explained"])
    assert len(found["explained"]) == 1


def test_hang() -> None:
    capture = ROOT / "tests" / "hangs" / "recorded" / "room.jsonl"
    check_alike(EXAMPLES["hang"], document("hang", capture, status=1))


def test_configs() -> None:
    found = document("configs", "8448", "--registers", "200", "--device", "rtx3090")
    check_alike(EXAMPLES["configs"], found)
    assert {row["evenness"] is None for row in found["configs"]} == {True, False}


def test_devices(tmp_path: Path) -> None:
    check_alike(EXAMPLES["devices"], document("devices"))
    found = document("devices", "h200")
    check_alike(EXAMPLES["devices NAME"], found)
    described = tmp_path / "mine.toml"
    found = document("describe", "-o", described, "--compute-capability", "12.0", "--sms", "170")
    check_alike(EXAMPLES["devices NAME"], found)
    assert tb.device(described).sms == 170
    diff = document("devices", "--diff", "h200", "h100", status=1)
    check_alike(EXAMPLES["devices --diff"], diff)
    assert len(diff["sources"]) > 100
    (row,) = EXAMPLES["devices NAME"]["values"].values()
    assert all(value.keys() == row.keys() for value in found["values"].values())


@pytest.fixture
def report() -> Report:
    """The report of a campaign that found something."""
    diff = tb.compare(tb.predict(HELD, "h200"), tb.predict(HELD, "h200", "first_fit"))
    example = Counterexample(HELD, diff.a, diff.b, diff, "def test(): ...", True, False)
    coverage = Coverage(decided={"no-warp-skip": 1})
    coverage.refused["warps"] += 1
    return Report(
        seed=1, predictor="h200", policy="hopper", level="exact", examples=1, disagreements=1,
        launches=1, blocks=264, occupancy=0, exact=0, counterexamples=(example,),
        unstable=(Unstable(CLUSTERS, "unstable"),), replayed=0, unpredicted=0, shrinking=0,
        seconds=0.5, coverage=coverage, ended="counterexamples",
    )  # fmt: skip


def test_fuzz_and_record(monkeypatch: pytest.MonkeyPatch, report: Report, tmp_path: Path) -> None:
    for name in ("campaign", "record_traces", "_import_campaigns"):
        monkeypatch.setattr(f"tbsched.cli.campaigns.{name}", lambda *_, **__: report)
    check_alike(EXAMPLES["fuzz"], document("fuzz", status=1))
    check_alike(EXAMPLES["fuzz"], document("record", "-o", tmp_path / "r.jsonl"))


def test_calibrate(tmp_path: Path) -> None:
    found = document(
        "calibrate", "--oracle", "tx2", "--sequences", "20", "--seconds", "3600",
        "-o", tmp_path / "mine.toml",
    )  # fmt: skip
    check_alike(EXAMPLES["calibrate"], found)
    assert tb.device(tmp_path / "mine.toml").sms == tb.device("tx2").sms


def test_data_of_other_values_is_json() -> None:
    trace = tb.predict(TIMED, "h200")
    values = [
        tb.best_order(TIMED.launches, "h200"), tb.what_if(TIMED, "h200", block_sizes=()),
        tb.compare_times(trace, trace), TIMED, trace.residents(), tb.forced_even("h200", HELD[0]),
    ]  # fmt: skip
    for value in values:
        assert json.loads(json.dumps(views.data(value), allow_nan=False))


def test_header_and_document_of_a_device_are_not_both() -> None:
    result = CliRunner().invoke(app, ["devices", "h200", "--cpp", "--json"])
    assert isinstance(result.exception, ValueError)
    assert not result.stdout
