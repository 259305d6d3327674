"""Runs the notebooks in place, with their outputs (``make notebooks``)."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbformat
from jupyter_client import KernelManager
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[2] / "notebooks"


@contextmanager
def kernel() -> Iterator[KernelManager]:
    """A kernel for several notebooks: to start one takes longer than most of them run.

    It sees no GPU: what is stored is the same everywhere.
    """
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel(cwd=str(FOLDER), env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})
    try:
        yield manager
    finally:
        manager.shutdown_kernel(now=True)


def executed(path: Path, manager: KernelManager) -> Any:
    """A notebook with the outputs that it gives now. Nothing is left of the ones before it."""
    notebook = nbformat.read(path, as_version=4)
    reset = nbformat.v4.new_code_cell("%reset -f")
    notebook.cells.insert(0, reset)
    client = NotebookClient(notebook, km=manager, timeout=120, record_timing=False)
    client.execute(cleanup_kc=False)
    client.kc.stop_channels()
    del notebook.cells[0]
    for number, cell in enumerate((x for x in notebook.cells if x.cell_type == "code"), 1):
        cell.execution_count = number
        cell.outputs = _joined(cell.outputs)
        for output in cell.outputs:
            if "execution_count" in output:
                output.execution_count = number
    notebook.metadata.language_info = {"name": "python"}
    return notebook


def _joined(outputs: list[Any]) -> list[Any]:
    """What is printed in one piece: on a busy machine it comes in several."""
    found: list[Any] = []
    for output in outputs:
        before = found[-1] if found else {}
        if output.output_type == "stream" and before.get("name") == output.name:
            before.text += output.text
        else:
            found.append(output)
    return found


def main() -> None:
    with kernel() as manager:
        for path in map(Path, sys.argv[1:]) if sys.argv[1:] else sorted(FOLDER.glob("*.ipynb")):
            began = time.monotonic()
            nbformat.write(executed(path, manager), path)
            took = time.monotonic() - began
            print(f"{path.stat().st_size / 1000:6.0f} KB{took:6.1f} s  {path}", flush=True)


if __name__ == "__main__":
    main()
