"""The adapter for C, the script that puts it into MGPUSim, and what MGPUSim did with it."""

from __future__ import annotations

import random
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from cpp_library import CXX, built, run
from embedding.kernels import predicted, random_kernels
from helpers import ROOT
from tbsched.hardware.catalogue import device

EXAMPLE = ROOT / "examples" / "simulator"
TOY = Path(__file__).parent / "toy.c"
H200 = device("h200")


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A simulator in C."""
    folder = built(tmp_path_factory, EXAMPLE)
    program = tmp_path_factory.mktemp("toy") / "toy"
    compiler = CXX.replace("clang++", "clang").replace("g++", "gcc").replace("c++", "cc")
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{EXAMPLE}", f"-Wl,-rpath,{folder}"]
    run(compiler, *flags, TOY, folder / "libadapter.so", "-o", program)
    return program


def test_simulator_in_c_places_blocks_as_predict_does(toy: Path) -> None:
    rng = random.Random(9)
    for _ in range(10):
        kernels = random_kernels(rng, H200)
        text = "".join(kernel.line() for kernel in kernels)
        done = subprocess.run([toy], input=text, capture_output=True, text=True, check=True)
        rows = (map(int, line.split()) for line in done.stdout.splitlines())
        found = sorted((kernel, block, sm, cycle) for cycle, kernel, block, sm in rows)
        assert found == predicted(kernels, H200)


@pytest.mark.parametrize(
    ("text", "policy", "message"),
    [
        ("0 1 2000 32 0 5\n", "", "threads"),
        ("0 1 32 32 0 5\n", "never_heard_of", "never_heard_of"),
        ("0 1 32 32 0 5\n-1 0 0 0 0 0\n", "", "leave: no block runs in that slot"),
    ],
)
def test_refusals_reach_c(toy: Path, text: str, policy: str, message: str) -> None:
    done = subprocess.run([toy, policy], input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert message in done.stderr


@pytest.fixture(scope="module")
def script() -> ModuleType:
    sys.path.insert(0, str(EXAMPLE))
    try:
        return import_module("into_mgpusim")
    finally:
        sys.path.remove(str(EXAMPLE))


@pytest.fixture
def checkout(script: ModuleType, tmp_path: Path) -> Path:
    """Has the lines that the script changes, and no more."""
    texts = {
        script.BUILDER: 'case "round-robin", "greedy", "partition":\n'
        '\tcase "greedy":\n\t\td.alg = &greedyAlgorithm{}\n',
        script.DISPATCHER: "\t\td.currWG.valid = false\n\t\t\t\td.alg.FreeResources(location)\n",
        script.PROCESSOR: '\t\tWithAlg("round-robin").\n',
        script.PLATFORM: "\t\tnumCUPerSA:         4,\n\t\tnumSAPerGPU:        16,\n"
        "\t\treturn r9nano.MakeBuilder().\n\t\t\tWithMMU(mmu)\n",
    }
    for name in script.LOOKED_AT:
        path = tmp_path / "checkout" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(texts.get(name, "package p\n"), "utf-8")
    (tmp_path / "checkout" / script.SAMPLE).parent.mkdir(exist_ok=True)
    return tmp_path / "checkout"


@pytest.fixture
def adapter(tmp_path: Path) -> Path:
    library = tmp_path / "libadapter.so"
    library.touch()
    return library


def files(checkout: Path) -> dict[Path, str]:
    return {path: path.read_text("utf-8") for path in checkout.rglob("*") if path.is_file()}


def test_calls_are_put_into_a_known_version(
    script: ModuleType, checkout: Path, adapter: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script, "VERSIONS", {"stand-in": script.digest(checkout)})
    assert script.put_into(checkout, adapter) == "stand-in"
    builder = (checkout / script.BUILDER).read_text("utf-8")
    assert builder.index("&tbschedAlgorithm{") < builder.index("&greedyAlgorithm{")
    dispatcher = (checkout / script.DISPATCHER).read_text("utf-8")
    assert dispatcher.index("tbschedStarts(") < dispatcher.index("valid = false")
    assert dispatcher.index("tbschedEnds(") < dispatcher.index("FreeResources(")
    assert "WithAlg(dispatching.Algorithm())" in (checkout / script.PROCESSOR).read_text("utf-8")
    link = (checkout / script.DISPATCHING / "tbsched_link.go").read_text("utf-8")
    assert str(adapter.resolve().parent) in link
    for name, folder in script.OURS:
        assert (checkout / folder / Path(name).name).is_file()
    with pytest.raises(script.Refused, match="or changed already"):
        script.put_into(checkout, adapter)


def test_unknown_version_stays_as_it_is(script: ModuleType, checkout: Path, adapter: Path) -> None:
    before = files(checkout)
    assert script.main([str(checkout), str(adapter)]) == 2
    with pytest.raises(script.Refused, match="unknown version"):
        script.put_into(checkout, adapter)
    with pytest.raises(script.Refused, match="build the adapter first"):
        script.put_into(checkout, checkout / "none.so")
    assert files(checkout) == before


def test_missing_place_is_refused_before_anything_is_written(
    script: ModuleType, checkout: Path, adapter: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = checkout / script.PLATFORM
    path.write_text(path.read_text("utf-8").replace("16", "17"), "utf-8")
    monkeypatch.setattr(script, "VERSIONS", {"stand-in": script.digest(checkout)})
    before = files(checkout)
    with pytest.raises(script.Refused, match="is there 0 times"):
        script.put_into(checkout, adapter)
    assert files(checkout) == before


@pytest.fixture(scope="module")
def check() -> ModuleType:
    folders = [str(EXAMPLE / "mgpusim"), str(EXAMPLE / "workloads")]
    sys.path[:0] = folders
    try:
        return import_module("check")
    finally:
        for folder in folders:
            sys.path.remove(folder)


RECORDED = ROOT / "tests" / "traces" / "simulators"


@pytest.mark.parametrize("name", ["h200", "xavier"])
def test_recorded_runs_have_work_groups_where_they_are_predicted(
    check: ModuleType, name: str
) -> None:
    """With tbsched all; with MGPUSim's own distribution few. On eight CUs work-groups wait."""
    page = (ROOT / "docs" / "how-to" / "simulators.md").read_text("utf-8")
    for run_of in ("off", "device"):
        trace, arrivals = check.read(RECORDED / f"mgpusim-{name}-{run_of}.txt", name)
        prediction = check.predicted(trace, arrivals, name)
        same, blocks = check.compare.same_sms(trace, prediction)
        assert (same == blocks) if run_of == "device" else (same < 0.2 * blocks)
        shared = check.compare.neighbours(trace)
        predicted_shared = check.compare.neighbours(prediction)
        cells = f"{same} of {blocks} | {shared} (predicted {predicted_shared})"
        assert f"| {name} | `{run_of}` | {cells} |" in page


def test_run_that_is_not_complete_is_refused(check: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "blocks"
    path.write_text("kernel 1 2 64 8 0 100\nblock 1 0 5 100 200\n", "utf-8")
    with pytest.raises(SystemExit, match=r"1 blocks of .*: kernel 1 ran, not 2"):
        check.read(path, "h200")
