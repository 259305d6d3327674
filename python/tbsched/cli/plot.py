"""``tbsched plot``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tbsched.cli.console import show
from tbsched.cli.options import TraceFile
from tbsched.comparison.compare import Diff, compare
from tbsched.show import plot as draw
from tbsched.traces.files import load_traces
from tbsched.traces.trace import Trace


def plot(
    traces: TraceFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="An image (.png, .svg, .pdf).")],
    against: Annotated[
        Path | None, typer.Option("--against", "-a", help="Draw the difference to this file.")
    ] = None,
    number: Annotated[int, typer.Option("--number", "-n", help="Which sequence, from 0.")] = 0,
) -> None:
    """Draw blocks per SM and launch of a recorded sequence, or of two compared.

    A sequence whose launches have durations is drawn over time.
    """

    def pick(place: Path) -> Trace:
        found = load_traces(place)
        if not 0 <= number < len(found):
            raise ValueError(f"--number: {number} is outside 0..{len(found) - 1} of {place}")
        return found[number]

    what: Trace | Diff = pick(traces)
    if against is not None:
        what = compare(pick(traces), pick(against))
    draw(what).savefig(output)
    show(f"wrote {output}")
