"""``tbsched plot``."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Annotated

import typer

from tbsched import storage
from tbsched.cli.files import check_output, note_written, read_traces
from tbsched.cli.interrupts import ending_at_once
from tbsched.cli.options import TraceFile
from tbsched.comparison.compare import Diff, compare
from tbsched.show import plot as draw
from tbsched.traces.trace import Trace


def plot(
    traces: TraceFile,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="An image (.png, .svg, .pdf); PNG where it has no ending."
        ),
    ],
    against: Annotated[
        Path | None, typer.Option("--against", "-a", help="Draw the difference to this file.")
    ] = None,
    number: Annotated[int, typer.Option("--number", "-n", help="Which sequence, from 0.")] = 0,
) -> None:
    """Draw blocks per SM and launch of a recorded sequence, or of two compared.

    A sequence whose launches have durations is drawn over time.
    """
    check_output(output, traces, *([] if against is None else [against]))
    is_there = storage.check_writable(output)
    kind = output.suffix.removeprefix(".").lower() or "png"

    def pick(place: Path) -> Trace:
        found = read_traces(place)
        if not 0 <= number < len(found):
            raise ValueError(f"--number: {number} is outside 0..{len(found) - 1} of {place}")
        return found[number]

    drawn = pick(traces)
    what: Trace | Diff = drawn if against is None else compare(drawn, pick(against))
    with ending_at_once():  # imports matplotlib
        picture = draw(what)
    image = io.BytesIO()
    picture.savefig(image, format=kind)
    with storage.replacing(output) as file:
        file.write(image.getvalue())
    note_written(output, is_there, f"a picture ({kind})")
