"""What tests and scripts compile for the CPU: the emulated driver, and what includes cuda.h."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
# The emulated driver, which plays the GPU where there is none.
FAKE_DRIVER = sorted((ROOT / "tests" / "launcher" / "fake_driver").glob("*.cc"))


def cuda_include() -> Path | None:
    """Where cuda.h is; None without a CUDA toolkit."""
    nvcc = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    return None if nvcc is None else Path(nvcc).resolve().parents[1] / "include"


def shared_library(library: Path, sources: Iterable[Path], *flags: str) -> None:
    """Compiles sources that include cuda.h and the launcher's headers.

    Raises:
        SystemExit: there is no CUDA toolkit.
        subprocess.CalledProcessError: the compiler refuses them.
    """
    include = cuda_include()
    if include is None:
        raise SystemExit("no nvcc, so no cuda.h to compile with")
    always = ["-std=c++20", "-shared", "-fPIC", "-pthread", f"-I{ROOT / 'cpp'}", f"-I{include}"]
    # Most of the time goes into the standard library's headers: they are read once.
    whole = "".join(f'#include "{source}"\n' for source in sources)
    command = ["c++", *always, *flags, "-o", library, "-x", "c++", "-", "-ldl"]
    subprocess.run(command, input=whole, text=True, check=True)
