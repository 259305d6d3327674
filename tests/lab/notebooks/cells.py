"""Runs the notebooks where there is a GPU, without Jupyter; writes what each cell did.

``notebooks.json`` has a row for each notebook: how many of its cells ran, what they printed, and
the traceback of the first that failed. It is written after each notebook.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import json
import os
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from helpers import ROOT
from lab.script import parse

FOLDER = ROOT / "notebooks"
_VIEWS = ("_repr_html_", "_repr_png_")


def main() -> int:
    """Each notebook in a process of its own; 1 if a cell of any failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=80, help="for all of them")
    parser.add_argument("--only", nargs="*", default=[], help="the beginnings of their names")
    parser.add_argument("--one", type=Path, help="runs this one here")
    options = parse(parser)
    if options.one is not None:
        row = run(options.one)
        (options.out / f"{options.one.stem}.json").write_text(json.dumps(row), "utf-8")
        return 0
    began = time.monotonic()
    rows: list[dict[str, Any]] = []
    for path in sorted(FOLDER.glob("*.ipynb"), key=gpu_first):
        if options.only and not path.name.startswith(tuple(options.only)):
            continue
        left = options.seconds - (time.monotonic() - began)
        rows.append(in_a_process(path, options.out, left))
        text = json.dumps({"gpu": gpu(), "notebooks": rows}, indent=1)
        (options.out / "notebooks.json").write_text(text, "utf-8")
        print(f"{path.stem}: {summary(rows[-1])}", flush=True)
    return int(any(row["ran"] < row["cells"] for row in rows))


def gpu_first(path: Path) -> tuple[bool, Path]:
    """So that time is left for those that use the GPU."""
    return not any('tb.device("gpu")' in source for source in code_of(path)), path


def in_a_process(path: Path, out: Path, left: float) -> dict[str, Any]:
    """What :func:`run` gives; a row that says why where it gives nothing."""
    command = [sys.executable, __file__, "--out", str(out), "--one", str(path)]
    began = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=max(left, 0.1))
        why = done.stderr[-3000:]
    except subprocess.TimeoutExpired:
        why = "no time was left"
    found = out / f"{path.stem}.json"
    row = {"name": path.stem, "cells": len(code_of(path)), "ran": 0, "error": why}
    if found.exists():
        row = json.loads(found.read_text("utf-8"))
        found.unlink()
    return {**row, "seconds": round(time.monotonic() - began, 2)}


def run(path: Path) -> dict[str, Any]:
    """Executes the code cells, and shows the last line of each as a notebook does."""
    os.environ["MPLBACKEND"] = "agg"
    os.chdir(FOLDER)
    cells = code_of(path)
    names: dict[str, Any] = {"__name__": "__main__"}
    printed: list[str] = []
    error = ""
    for number, source in enumerate(cells):
        text = io.StringIO()
        try:
            with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
                shown(execute(source, f"{path.stem}, cell {number}", names))
        except Exception:
            error = traceback.format_exc()
            break
        finally:
            printed.append(text.getvalue())
    ran = len(printed) - bool(error)
    return {"name": path.stem, "cells": len(cells), "ran": ran, "printed": printed, "error": error}


def code_of(path: Path) -> list[str]:
    """The sources of the code cells."""
    cells = json.loads(path.read_text("utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def execute(source: str, where: str, names: dict[str, Any]) -> object:
    """Runs a cell; the value of its last line, if that is an expression."""
    tree = ast.parse(source, where)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, where, "exec"), names)
    if not isinstance(last, ast.Expr):
        return None
    return eval(compile(ast.Expression(last.value), where, "eval"), names)


def shown(value: object) -> None:
    """Draws a value as a notebook would, and prints it in a line."""
    if value is None:
        return
    for view in _VIEWS:
        getattr(value, view, lambda: None)()
    print(repr(value)[:2000])


def gpu() -> str:
    """The name of the GPU; without one, why there is none."""
    import tbsched as tb

    try:
        return tb.device("gpu").title
    except tb.NoGpuError as error:
        return str(error)


def summary(row: dict[str, Any]) -> str:
    last = row["error"].strip().rpartition("\n")[2]
    return f"{row['ran']} of {row['cells']} cells in {row['seconds']} s {last}".rstrip()


if __name__ == "__main__":
    sys.exit(main())
