"""Draws the pictures of the site anew: ``make pictures``.

Those of the gallery come from the code above each of them on its page. A result is shown as a page
in headless Chromium, with all its parts unfolded if the picture is called so; a plot is drawn by
matplotlib. It fails if the gallery lacks a kind of result.
"""

from __future__ import annotations

import argparse
import ast
import io
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import matplotlib
from PIL import Image

import tbsched as tb
from helpers import ROOT
from tbsched.cli.app import app
from tbsched.views import SHOWN
from views.screenshots import SCHEMES, browser_of, shoot

GALLERY = ROOT / "docs" / "reference" / "gallery.md"
FIGURES = ROOT / "docs" / "figures"
THREE_KERNELS = FIGURES / "three-kernels.json"
_PART = re.compile(r"(?ms)^```\{code-cell\}\n(?::tags:.*?\n\n)?(.*?)^```$|^!\[[^\n]*\]\((\S+)\)$")
_HIGHEST = 1600  # pixels; what is below is cut off
_COLOURS = 128  # so that a picture takes a third


def pictures() -> Iterator[tuple[Path, Any]]:
    """The place of each picture of the gallery, and the value that the code above it gives."""
    names: dict[str, Any] = {}
    value: Any = None
    os.chdir(GALLERY.parent)
    for code, picture in _PART.findall(GALLERY.read_text("utf-8")):
        if picture:
            yield (GALLERY.parent / picture).resolve(), value
            continue
        *statements, last = ast.parse(code).body
        exec(compile(ast.Module(statements, []), str(GALLERY), "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), str(GALLERY), "eval"), names)


def draw(value: Any, place: Path, browser: str, scheme: str) -> None:
    """Writes a picture of a value."""
    if hasattr(value, "_repr_png_"):
        drawn, _ = value._repr_png_()
        picture = Image.open(io.BytesIO(drawn)).convert("RGB")
    else:
        with tempfile.TemporaryDirectory() as folder:
            page, shot = Path(folder, "page.html"), Path(folder, "shot.png")
            text = tb.show.to_html(value)
            if place.stem.endswith("-unfolded"):
                text = re.sub("<details(?! open)", "<details open", text)
            page.write_text(text, "utf-8")
            shoot(browser, page, shot, SCHEMES[scheme], _HIGHEST)
            picture = Image.open(shot).convert("RGB")
    place.parent.mkdir(parents=True, exist_ok=True)
    picture.quantize(_COLOURS, dither=Image.Dither.NONE).save(place, optimize=True)
    print(f"{place.stat().st_size / 1000:6.0f} KB  {place.relative_to(ROOT)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scheme", choices=SCHEMES, default="light")
    options = parser.parse_args()
    browser = browser_of(parser)
    kinds = set()
    for place, value in pictures():
        draw(value, place, browser, options.scheme)
        kinds.add(type(value).__name__)
    if missing := SHOWN.keys() - kinds:
        raise SystemExit(f"{GALLERY.relative_to(ROOT)} shows no {', '.join(sorted(missing))}")
    matplotlib.rcParams["svg.hashsalt"] = "tbsched"  # else the names in it differ every time
    show = ["show", str(THREE_KERNELS), "--device", "h200", "--view", "sm_map"]
    app([*show, "-o", str(THREE_KERNELS.with_suffix(".svg"))], standalone_mode=False)
    drawn = tb.show.sm_map(tb.device("h200"))
    drawn.get_figure(root=True).savefig(FIGURES / "h200-map.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
