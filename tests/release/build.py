"""Builds the sdist, and from it a manylinux wheel with the launcher (``make wheel``).

nvcc comes from PyPI, so no CUDA toolkit is needed. The wheel's tag says the oldest glibc that it
runs on: that depends on the machine that builds it. The images of ``cibuildwheel`` are older than
most machines.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOOLKIT = ROOT / "build" / "cuda"
NEEDED = ("tbsched/_core.", "tbsched/_launcher.", "tbsched/libtbsched_capture.so")
UV = Path(sys.executable).parent / "uv"


def install_nvcc() -> Path:
    """Installs nvcc into a folder of its own, and returns what ``CUDA_HOME`` names."""
    requirements = ROOT / "tests" / "release" / "cuda.txt"
    target = ("--python", sys.executable, "--target", TOOLKIT)
    subprocess.run([UV, "pip", "install", "--quiet", *target, "-r", requirements], check=True)
    (compiler,) = TOOLKIT.glob("nvidia/cu*/bin/nvcc")
    return compiler.parents[1]


def build(out: Path, pythons: list[str]) -> list[Path]:
    """Writes the sdist and a wheel for each Python into ``out``; returns the wheels.

    Raises:
        RuntimeError: a wheel has no launcher.
    """
    out.mkdir(parents=True, exist_ok=True)
    raw = ROOT / "build" / "wheels"
    environment = {**os.environ, "CUDA_HOME": str(install_nvcc())}
    subprocess.run([UV, "build", "--quiet", "--sdist", "--out-dir", out, ROOT], check=True)
    (sdist,) = out.glob("*.tar.gz")
    report(sdist, 0)
    wheels = []
    for python in pythons:
        began = time.monotonic()
        for old in raw.glob("*.whl"):
            old.unlink()
        command = [UV, "build", "--quiet", "--wheel", "--python", python, "--out-dir", raw, sdist]
        subprocess.run(command, check=True, env=environment)
        (unrepaired,) = raw.glob("*.whl")
        wheels.append(repair(unrepaired, out))
        report(wheels[-1], time.monotonic() - began)
    return wheels


def repair(wheel: Path, out: Path) -> Path:
    """Gives a wheel the tag of the oldest systems that it runs on.

    Raises:
        RuntimeError: it has no launcher.
    """
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    for needed in NEEDED:
        if not any(name.startswith(needed) for name in names):
            raise RuntimeError(f"{wheel.name} has no {needed.rstrip('.')}; see the build's output")
    before = set(out.glob("*.whl"))
    for old in before:
        if old.name.rpartition("-")[0] == wheel.name.rpartition("-")[0]:
            old.unlink()
    tools = {**os.environ, "PATH": f"{UV.parent}{os.pathsep}{os.environ['PATH']}"}
    subprocess.run(
        [sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", out, wheel],
        check=True, capture_output=True, env=tools,
    )  # fmt: skip
    (made,) = out.glob(f"{wheel.name.rpartition('-')[0]}-*.whl")
    return made


def report(path: Path, seconds: float) -> None:
    print(f"{path.stat().st_size / 1e6:6.2f} MB{seconds:5.0f} s  {path}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("dist"))
    parser.add_argument("pythons", nargs="*", default=[sys.executable], help="their paths")
    options = parser.parse_args()
    build(options.out, options.pythons)


if __name__ == "__main__":
    main()
