"""Disassembles the code of a kernel with nvdisasm, which comes with CUDA and with Triton."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import tempfile
from importlib import util
from pathlib import Path

_SECONDS = 60.0
_ROW = re.compile(r"^\s*/\*([0-9a-f]+)\*/\s+(\S.*?)\s*;", re.MULTILINE)
_WHEELS = (("triton", "backends/nvidia/bin"), ("nvidia", "cu13/bin"))
Instructions = tuple[tuple[int, str], ...]


def disassembler() -> str | None:
    """Returns the path of nvdisasm: of ``TBSCHED_NVDISASM``, CUDA or a wheel; None: not found."""
    given = os.environ.get("TBSCHED_NVDISASM")
    if given is not None:
        return shutil.which(given)
    places = ["nvdisasm", f"{os.environ.get('CUDA_HOME', '/usr/local/cuda')}/bin/nvdisasm"]
    for package, folder in _WHEELS:
        spec = util.find_spec(package)
        for place in (spec.submodule_search_locations or ()) if spec is not None else ():
            places.append(os.fspath(Path(place) / folder / "nvdisasm"))
    return next((path for name in places if (path := shutil.which(name)) is not None), None)


@functools.lru_cache(maxsize=256)
def instructions_of(code: bytes, capability: str) -> Instructions | None:
    """Returns address and text of each instruction of a kernel; None: nvdisasm fails or is missing.

    Args:
        code: as it is in the cubin.
        capability: of the GPU, such as ``9.0``.
    """
    path = disassembler()
    if path is None or not re.fullmatch(r"\d+\.\d+", capability):
        return None
    name = f"SM{capability.replace('.', '')}"
    with tempfile.NamedTemporaryFile(prefix="tbsched-", suffix=".bin") as file:
        file.write(code)
        file.flush()
        for architecture in (f"{name}a", name):  # the first knows more instructions
            words = [path, "--no-dataflow", "--binary", architecture, file.name]
            try:
                done = subprocess.run(
                    words, capture_output=True, stdin=subprocess.DEVNULL, timeout=_SECONDS
                )
            except (OSError, subprocess.TimeoutExpired):
                return None
            if done.returncode == 0:
                text = done.stdout.decode("utf-8", "replace")
                return tuple([(int(row[1], 16), row[2]) for row in _ROW.finditer(text)])
    return None
