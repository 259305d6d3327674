"""What the scripts that run on a GPU share: where they write, and how they compile C++."""

from __future__ import annotations

import argparse
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[2]
# The emulated driver, which plays the GPU where there is none.
FAKE_DRIVER = sorted((ROOT / "tests" / "launcher" / "fake_driver").glob("*.cc"))


def parse(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """The command line, with ``--out``: the folder for whatever is written, which is made."""
    parser.add_argument("--out", type=Path, required=True, help="folder for whatever is written")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    return arguments


def parse_draw(
    parser: argparse.ArgumentParser, what: str, count: int, seconds: float = 60
) -> argparse.Namespace:
    """:func:`parse` of a script that draws at random, runs, and compares with a model.

    Args:
        parser: has the options that only this script has.
        what: is drawn.
        count, seconds: unless the command line says otherwise.
    """
    parser.add_argument("--seed", type=int, default=1, help="of the draw")
    parser.add_argument("--count", type=int, default=count, help=what)
    parser.add_argument(
        "--seconds", type=float, default=seconds, help="after which no more are run"
    )
    parser.add_argument("--device", default="h200", help="whose model predicts")
    return parse(parser)


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
