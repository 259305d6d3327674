"""Builds the extensions with AddressSanitizer and UndefinedBehaviorSanitizer and runs the tests.

Run by ``make sanitize``. The venv's tbsched is not touched: the sanitized copy lies in
``build/sanitize`` and goes first on the path.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "sanitize"
ROOMS = (
    *("program", "hardware", "policy", "engine", "prediction", "traces", "launcher"),
    *("comparison", "advice", "campaigns", "show", "importers", "cli", "contract"),
)
SCRIPTS = ("bench_script", "campaign_speed_script", "lazy_import", "timed_script")
TESTS = [
    *(f"tests/{room}" for room in ROOMS),
    *(f"tests/repo/test_{script}.py" for script in SCRIPTS),
    "tests/conformance/papers/test_table2.py",
]
PARALLEL = ("--numprocesses", "logical", "--maxprocesses", "8", "--dist", "worksteal")


def build() -> Path:
    """Builds, and returns the folder that holds the sanitized package."""
    from pybind11 import get_cmake_dir

    configure = [
        "cmake",
        "-S",
        str(ROOT),
        "-B",
        str(BUILD),
        "-G",
        "Ninja",
        "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
        "-DTBSCHED_SANITIZE=ON",
        f"-DPython_EXECUTABLE={sys.executable}",
        f"-Dpybind11_DIR={get_cmake_dir()}",
        f"-DCMAKE_INSTALL_PREFIX={BUILD / 'stage'}",
    ]
    stage = BUILD / "stage" / "tbsched"
    shutil.rmtree(stage, ignore_errors=True)
    shutil.copytree(
        ROOT / "python" / "tbsched", stage, ignore=shutil.ignore_patterns("*.so", "__pycache__")
    )
    subprocess.run(configure, check=True)
    subprocess.run(["cmake", "--build", str(BUILD)], check=True)
    subprocess.run(["cmake", "--install", str(BUILD), "--component", "python"], check=True)
    return stage.parent


def runtime(library: str) -> str:
    """The path of a sanitizer's runtime, which must be loaded before Python's own libraries."""
    compiler = os.environ.get("CXX", "g++")
    found = subprocess.run(
        [compiler, f"-print-file-name={library}"], check=True, capture_output=True, text=True
    )
    return found.stdout.strip()


def main() -> int:
    """Builds, runs the tests with the arguments given, and returns their status."""
    stage = build()
    environment = {
        **os.environ,
        "PYTHONPATH": str(stage),
        "LD_PRELOAD": " ".join(map(runtime, ("libasan.so", "libubsan.so"))),
        # Python itself leaks at exit; what the extensions do wrong aborts.
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1",
        "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
        "PYTHONMALLOC": "malloc",
    }
    command = [
        *(sys.executable, "-m", "pytest", "-q", "-m", "not tbsched_gpu"),
        *("-p", "no:cacheprovider", *PARALLEL, *(sys.argv[1:] or TESTS)),
    ]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
