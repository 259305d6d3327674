"""Builds the extensions with sanitizers and runs the tests, or random programs for some time.

``make sanitize`` runs the tests with AddressSanitizer and UndefinedBehaviorSanitizer, and

    python tests/sanitize.py --seconds 600

random programs on random devices instead: so long with those two, and so long with ThreadSanitizer.
The venv's tbsched is not touched: sanitized copies lie in ``build/sanitize`` and go first on the
path.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "sanitize"
FUZZ = ROOT / "tests" / "contract" / "random_devices" / "fuzz.py"
ROOMS = (
    *("program", "hardware", "policy", "engine", "prediction", "traces", "launcher"),
    *("comparison", "advice", "campaigns", "views", "importers", "cli", "contract"),
)
SCRIPTS = ("bench_script", "gpu_scripts", "lazy_import")
TESTS = [
    *(f"tests/{room}" for room in ROOMS),
    *(f"tests/repo/test_{script}.py" for script in SCRIPTS),
    "tests/conformance/papers/test_table2.py",
    "tests/lab",
]
PARALLEL = ("--numprocesses", "logical", "--maxprocesses", "8", "--dist", "worksteal")


@dataclass(frozen=True)
class Sanitizers:
    """Those that can be built in together.

    Attributes:
        names: what ``-fsanitize`` takes.
        runtimes: their libraries, which must be loaded before Python's own.
        settings: environment variables. What the extensions do wrong ends the process; Python
            itself leaks at exit.
        options: of CMake.
    """

    names: str
    runtimes: tuple[str, ...]
    settings: dict[str, str]
    options: tuple[str, ...] = ()


ADDRESS = Sanitizers(
    "address,undefined",
    ("libasan.so", "libubsan.so"),
    {
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1",
        "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
    },
)
# The launcher has no device here.
THREAD = Sanitizers(
    "thread",
    ("libtsan.so",),
    {"TSAN_OPTIONS": "halt_on_error=1:abort_on_error=1"},
    ("-DTBSCHED_NVCC=OFF",),
)


def build(sanitizers: Sanitizers) -> Path:
    """Builds, and returns the folder that holds the sanitized package."""
    from pybind11 import get_cmake_dir

    folder = BUILD / sanitizers.names.replace(",", "-")
    configure = [
        *("cmake", "-S", str(ROOT), "-B", str(folder), "-G", "Ninja"),
        "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
        f"-DTBSCHED_SANITIZE={sanitizers.names}",
        f"-DPython_EXECUTABLE={sys.executable}",
        f"-Dpybind11_DIR={get_cmake_dir()}",
        f"-DCMAKE_INSTALL_PREFIX={folder / 'stage'}",
        *sanitizers.options,
    ]
    stage = folder / "stage" / "tbsched"
    shutil.rmtree(stage, ignore_errors=True)
    shutil.copytree(
        ROOT / "python" / "tbsched", stage, ignore=shutil.ignore_patterns("*.so", "__pycache__")
    )
    subprocess.run(configure, check=True)
    subprocess.run(["cmake", "--build", str(folder)], check=True)
    subprocess.run(["cmake", "--install", str(folder), "--component", "python"], check=True)
    return stage.parent


def runtime(library: str) -> str:
    """The path of a sanitizer's runtime."""
    compiler = os.environ.get("CXX", "g++")
    found = subprocess.run(
        [compiler, f"-print-file-name={library}"], check=True, capture_output=True, text=True
    )
    return found.stdout.strip()


def run(sanitizers: Sanitizers, *command: str | Path) -> int:
    """Runs Python with the sanitized package, and returns its status."""
    environment = {
        **os.environ,
        **sanitizers.settings,
        "TBSCHED_THOROUGH": "1",  # more examples: tests/helpers.py
        "PYTHONPATH": str(build(sanitizers)),
        "LD_PRELOAD": " ".join(map(runtime, sanitizers.runtimes)),
        "PYTHONMALLOC": "malloc",
    }
    return subprocess.run([sys.executable, *command], cwd=ROOT, env=environment).returncode


def main() -> int:
    """What the command line asks for; returns 0 where nothing was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, help="random programs on random devices, so long")
    arguments, pytest = parser.parse_known_args()
    if arguments.seconds is not None:
        fuzz = (FUZZ, "--seconds", str(arguments.seconds))
        return run(ADDRESS, *fuzz) or run(THREAD, *fuzz)
    options = ("-q", "-m", "not tbsched_gpu", "-p", "no:cacheprovider", *PARALLEL)
    return run(ADDRESS, "-m", "pytest", *options, *(pytest or TESTS))


if __name__ == "__main__":
    sys.exit(main())
