"""The pytest plugin: gpu tests run with a GPU, and are skipped or fail without one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from helpers import run_python

TESTS = """
import pytest
import tbsched as tb

@pytest.mark.tbsched_gpu
def test_marked():
    pass

@pytest.mark.gpu
def test_of_another_project_with_a_mark_of_its_own(request):
    assert "tbsched_gpu" not in request.fixturenames

def test_with_the_fixture(tbsched_gpu):
    assert tbsched_gpu.observe

def test_that_needs_none(assert_agrees):
    from tbsched.campaigns import ModelGpu
    seq = tb.Sequence([tb.Launch(2, 32, 32)])
    assert_agrees(seq, "rtx3090", oracle=ModelGpu("rtx3090"))
    with pytest.raises(pytest.fail.Exception, match="SM"):
        assert_agrees(seq, "rtx3090", oracle=ModelGpu("rtx3090", "first_fit"))
    for oracle in ("rtx3090", tb.device("rtx3090"), ("rtx3090", "algorithm1")):
        assert_agrees(seq, "rtx3090", oracle=oracle)
    state = tb.InitialState(first_gpc=3)
    gpu = ModelGpu("h200", initial_state=state)
    wave = tb.Sequence([tb.Launch(132, 32, 32)])
    assert_agrees(wave, level="exact", initial_state=state, oracle=gpu)
    with pytest.raises(pytest.fail.Exception, match="SM"):
        assert_agrees(wave, level="exact", initial_state=tb.InitialState(), oracle=gpu)
"""
UNDER_GIVEN = """
from hypothesis import Phase, given, settings
import tbsched as tb
from tbsched.strategies import launches, programs, sequences

ONCE = settings(derandomize=True, max_examples=50, database=None, deadline=None,
                report_multiple_bugs=False)

@ONCE
@given(seq=sequences("rtx3090"))
def test_that_agrees(assert_agrees, seq):
    assert_agrees(seq, "rtx3090", oracle="rtx3090")

@ONCE
@given(seq=sequences("rtx3090"))
def test_that_differs(assert_agrees, seq):
    assert_agrees(seq, "rtx3090", oracle=("rtx3090", "first_fit"))

@settings(ONCE, phases=[Phase.generate])
@given(launches("h200"), sequences("h200"), programs("h200"))
def test_of_anything(launch, seq, program):
    assert not launch
"""
GPU = """
import importlib
import pytest

class Gpu:
    def __init__(self, index):
        assert index == 3
    def observe(self, seq): ...
    def __enter__(self):
        return self
    def __exit__(self, *_): ...

importlib.import_module("tbsched.launcher.observe").Gpu = Gpu
"""
OWN_NAMES = """
def pytest_addoption(parser):
    parser.addoption("--gpu-index")

def pytest_configure(config):
    config.addinivalue_line("markers", "gpu: of the project that has this file")
"""
NO_GPU = """
import importlib
from tbsched.errors import NoGpuError

def Gpu(index):
    raise NoGpuError("looked for libcuda.so.1")

importlib.import_module("tbsched.launcher.observe").Gpu = Gpu
"""


def outcome(folder: Path, conftest: str, *arguments: str, tests: str = TESTS) -> str:
    (folder / "conftest.py").write_text(conftest + OWN_NAMES)
    (folder / "test_it.py").write_text(tests)
    command = [sys.executable, "-m", "pytest", "-ra", "-p", "no:cacheprovider", str(folder)]
    plugin = ["-p", "tbsched.pytest_plugin"]
    found = subprocess.run(
        [*command, *plugin, "-W", "error", "--strict-markers", *arguments],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        },
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return found.stdout + found.stderr


def test_with_a_gpu_everything_runs(tmp_path: Path) -> None:
    assert "4 passed" in outcome(tmp_path, GPU, "--tbsched-gpu=3")


def test_without_a_gpu_tests_are_skipped_and_say_why(tmp_path: Path) -> None:
    words = outcome(tmp_path, NO_GPU)
    assert "2 passed, 2 skipped" in words
    assert "looked for libcuda.so.1" in words


def test_a_required_gpu_that_is_missing_is_an_error(tmp_path: Path) -> None:
    words = outcome(tmp_path, NO_GPU, "--tbsched-gpu-required")
    assert "2 passed, 2 errors" in words
    assert "--tbsched-gpu-required: looked for libcuda.so.1" in words


def test_under_given_it_works_and_what_fails_is_printed_as_code(tmp_path: Path) -> None:
    words = outcome(tmp_path, NO_GPU, tests=UNDER_GIVEN)
    assert "2 failed, 1 passed" in words
    pasted = words[words.index("def test_rtx3090_") : words.index("_ test_of_anything _")]
    names: dict[str, Any] = {}
    exec(pasted[: pasted.index("\n____")], names)
    (test,) = (value for name, value in names.items() if name.startswith("test_"))
    with pytest.raises(AssertionError):
        test()
    for printed in ("launch=Launch(blocks=", "seq=Sequence([", "program=Sequence(["):
        assert printed in words


@pytest.mark.parametrize("module", ["hypothesis", "numpy", "tbsched.prediction.predict", "rich"])
def test_the_plugin_alone_imports_little(module: str) -> None:
    code = f"import sys, runpy; runpy.run_path({plugin_path()!r}); print({module!r} in sys.modules)"
    found = run_python(code)
    assert found.stdout.strip() == "False"


def plugin_path() -> str:
    import tbsched.pytest_plugin

    return str(tbsched.pytest_plugin.__file__)
