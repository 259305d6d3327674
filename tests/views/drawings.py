"""Draws each picture, light and dark, and says how long it took (``make screenshots``)."""

from __future__ import annotations

import argparse
import functools
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import matplotlib.style

import tbsched as tb
from helpers import recorded
from views.gallery import GALLERY, held, large, thousand, timed

STYLES = {"light": "default", "dark": "dark_background"}
CASE_2_2 = tb.Sequence([tb.Launch(82, 32 * n, 255, name=f"{n} warps") for n in (1, 4, 3)])


def _times() -> Any:
    programs = tb.load_traces("tests/traces/h200-timed/programs.jsonl.xz")
    return tb.show.compared(tb.predict_as_recorded(programs[292], "h200"), programs[292])


def _ladder() -> Any:
    traces = recorded("rall")[:100]
    return tb.show.ladder(tb.verify(traces, "h200", row.name) for row in tb.policies())


def _of(draw: Callable[..., Any], name: str, **options: Any) -> Callable[[], Any]:
    """Draws a value of the gallery."""
    return lambda: draw(GALLERY[name](), **options)


@functools.cache
def _large() -> tb.Trace:
    return large()


# A picture by a name for files; ``large`` is 100,000 launches of a million blocks on 1,000 SMs.
PICTURES: dict[str, Callable[[], Any]] = {
    "gantt": _of(tb.show.gantt, "timed"),
    "gantt-few": lambda: tb.show.gantt(tb.predict(timed(1), "xavier")),
    "gantt-stream": _of(tb.show.gantt, "timed", by="stream"),
    "gantt-1000": _of(tb.show.gantt, "timed-1000"),
    "gantt-large": lambda: tb.show.gantt(_large()),
    "gantt-stream-large": lambda: tb.show.gantt(_large(), by="stream"),
    "sm_map": _of(tb.show.sm_map, "held"),
    "sm_map-timed": _of(tb.show.sm_map, "timed"),
    "sm_map-1000": _of(tb.show.sm_map, "held-1000"),
    "sm_map-large": lambda: tb.show.sm_map(_large()),
    "partitions": lambda: tb.show.sm_map(tb.device("h200"), partitions=tb.split_sms("h200", 16)[0]),
    "device": _of(tb.show.sm_map, "device"),
    "device-1000": lambda: tb.show.sm_map(thousand()),
    "blocks": _of(tb.show.blocks, "held"),
    "blocks-1000": _of(tb.show.blocks, "held-1000"),
    "blocks-large": lambda: tb.show.blocks(_large()),
    "compared": _of(tb.show.compared, "diff"),
    "compared-1000": _of(tb.show.compared, "diff-1000"),
    "compared-times": _times,
    "compared-times-large": lambda: tb.show.compared(_large(), _large()),
    "ladder": _ladder,
    "resources": lambda: tb.show.resources(tb.predict(held(), "h200"), 5),
    "resources-case-2.2": lambda: tb.show.resources(tb.predict(CASE_2_2, "rtx3090"), 0),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("screenshots"))
    parser.add_argument("--only", nargs="*", choices=PICTURES, default=list(PICTURES))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.only:
        for style, sheet in STYLES.items():
            with matplotlib.style.context(sheet):
                began = time.process_time()
                image, _ = PICTURES[name]()._repr_png_()
                took = time.process_time() - began
            (options.out / f"picture-{name}-{style}.png").write_bytes(image)
        print(f"{name:<22}{len(image) / 1000:>8,.0f} KB{took:>8.2f} s", flush=True)


if __name__ == "__main__":
    main()
