"""The notebooks run from top to bottom, give what is stored, and import public names only."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from helpers import ROOT

nbformat = pytest.importorskip("nbformat")
notebooks = pytest.importorskip("docs.notebooks")

NOTEBOOKS = sorted(notebooks.FOLDER.glob("*.ipynb"))
LARGEST = 400_000  # bytes of a notebook
TOOK = re.compile(r"in [\d.]+ s \([\d,]+/s\)")  # differs from run to run
PINNED = re.search(r"(?m)^hypothesis==(\S+)$", (ROOT / "tests/constraints.txt").read_text("utf-8"))


@pytest.fixture(scope="module")
def manager() -> Iterator[Any]:
    with notebooks.kernel() as running:
        yield running


def printed(cell: Any) -> str:
    """What a cell prints, without the time that it took."""
    texts = [output.text for output in cell.outputs if output.output_type == "stream"]
    return TOOK.sub("in some time", "".join(texts))


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs_and_gives_what_is_stored(path: Path, manager: Any) -> None:
    """``make notebooks`` stores anew what they give."""
    stored = nbformat.read(path, as_version=4)
    cells = [cell for cell in notebooks.executed(path, manager).cells if cell.cell_type == "code"]
    # What Hypothesis draws from a seed depends on its version.
    same = PINNED is not None and metadata.version("hypothesis") == PINNED[1]
    for cell, old in zip(cells, (x for x in stored.cells if x.cell_type == "code"), strict=True):
        assert not [out for out in cell.outputs if out.get("name") == "stderr"]
        if cell.source.rpartition("\n")[2].startswith("tb.show."):
            assert "image/png" in cell.outputs[-1].data
        assert [set(out.get("data", ())) for out in cell.outputs] == [
            set(out.get("data", ())) for out in old.outputs
        ]
        assert not same or printed(cell) == printed(old)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_imports_public_names_only(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    source = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    for node in ast.walk(ast.parse(source)):
        names = [alias.name for alias in getattr(node, "names", []) if hasattr(alias, "name")]
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        assert not [name for name in names if any(p.startswith("_") for p in name.split("."))]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_small_and_ends_in_something_to_try_with_its_answers(path: Path) -> None:
    assert path.stat().st_size < LARGEST
    notebook = nbformat.read(path, as_version=4)
    asked, answered, verified = notebook.cells[-3:]
    assert re.search("(?m)^## (Try it|Exercises)$", asked.source)
    assert answered.source.startswith("## Answers\n")
    numbers = [re.findall(r"(?m)^(\d)\. ", cell.source) for cell in (asked, answered)]
    assert numbers[0] == numbers[1] != []
    assert verified.cell_type == "code"
    assert printed(verified)
