"""Installs wheels where no compiler is found, and runs tests from them (``make wheel``).

Each wheel gets a fresh environment of its Python. ``PATH`` then names that environment alone, so
that neither a compiler nor nvcc is found. With ``--floors`` the libraries are the oldest ones that
pyproject.toml allows. With ``--all`` every test runs that needs no GPU.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from floors import floors

ROOT = Path(__file__).resolve().parents[2]
UV = Path(sys.executable).parent / "uv"
PART = (
    *("program", "hardware", "policy", "engine", "cli", "show", "importers"),
    "docs/test_readme.py",
)
NO_GPU = 3  # an exit status of the command line
PYTEST = ("-m", "pytest", "-q", "-m", "not tbsched_gpu", "-p", "no:cacheprovider")
WORKERS = ("--numprocesses", "logical", "--maxprocesses", "8", "--dist", "worksteal")
# Old libraries warn of each other.
LENIENT = ("-W", "ignore::DeprecationWarning")


def wheel_for(python: str, folder: Path) -> Path:
    """The wheel that a Python installs."""
    code = "import sys; print('cp%d%d' % sys.version_info[:2])"
    found = subprocess.run([python, "-c", code], check=True, capture_output=True, text=True)
    (wheel,) = folder.glob(f"*-{found.stdout.strip()}-*.whl")
    return wheel


def install(wheel: Path, python: str, venv: Path, *, oldest: bool) -> None:
    """Makes a fresh environment with the wheel, the libraries of its tests, and nothing built."""
    subprocess.run([UV, "venv", "--quiet", "--python", python, venv], check=True)
    constraints = ROOT / "tests" / "constraints.txt"
    if oldest:
        constraints = venv / "floors.txt"
        rows = (f"{name}=={version}\n" for name, version in floors().items())
        constraints.write_text("".join(rows), "utf-8")
    subprocess.run(
        [UV, "pip", "install", "--quiet", "--python", venv / "bin" / "python", "--only-binary",
         ":all:", "-c", constraints, f"{wheel.resolve()}[test]"],
        check=True,
    )  # fmt: skip


def check(wheel: Path, python: str, tests: list[str], *, oldest: bool) -> None:
    """Installs a wheel in an environment of a Python, and runs the tests from it.

    Raises:
        subprocess.CalledProcessError: the wheel does not install, or a test fails.
        RuntimeError: without a GPU the launcher does not report that there is none.
    """
    with tempfile.TemporaryDirectory() as folder:
        venv = Path(folder)
        began = time.monotonic()
        install(wheel, python, venv, oldest=oldest)
        installed = time.monotonic()
        environment = {**os.environ, "PATH": str(venv / "bin")}
        environment.pop("PYTHONPATH", None)
        program = venv / "bin" / "tbsched"
        arguments = ("observe", ROOT / "docs" / "figures" / "three-kernels.json")
        observed = subprocess.run([program, *arguments], env=environment, capture_output=True)
        if observed.returncode != NO_GPU and not Path("/dev/nvidia0").exists():
            raise RuntimeError(f"tbsched observe: {observed.stderr.decode()}")
        options = (*WORKERS, *(LENIENT if oldest else ()))
        command = [venv / "bin" / "python", *PYTEST, *options, *tests]
        subprocess.run(command, check=True, cwd=ROOT, env=environment)
    libraries = "oldest" if oldest else "pinned"
    took = f"installed in {installed - began:.0f} s, tested in {time.monotonic() - installed:.0f} s"
    print(f"{wheel.name}, {libraries} libraries: {took}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="of the wheels")
    parser.add_argument("pythons", nargs="*", default=[sys.executable], help="their paths")
    parser.add_argument("--all", action="store_true", help="all tests, not a part of them")
    parser.add_argument("--floors", action="store_true", help="the oldest libraries allowed")
    options = parser.parse_args()
    tests = [] if options.all else [f"tests/{part}" for part in PART]
    for python in options.pythons:
        check(wheel_for(python, options.folder), python, tests, oldest=options.floors)


if __name__ == "__main__":
    main()
