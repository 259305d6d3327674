"""The notebooks run from top to bottom, show their pictures and import public names only."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    for cell in notebook.cells:
        outputs = cell.get("outputs", [])
        assert not [out for out in outputs if out.get("name") == "stderr"]
        if cell.source.rpartition("\n")[2].startswith("tb.show."):
            assert "image/png" in outputs[0].data
        # What is printed is written, not displayed.
        kinds = {out.output_type for out in outputs}
        assert "print(" not in cell.source or kinds == {"stream"}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_imports_public_names_only(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    source = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    for node in ast.walk(ast.parse(source)):
        names = [alias.name for alias in getattr(node, "names", []) if hasattr(alias, "name")]
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        assert not [name for name in names if any(p.startswith("_") for p in name.split("."))]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_stored_without_output(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    assert not [cell for cell in notebook.cells if cell.get("outputs")]
