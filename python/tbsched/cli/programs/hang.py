"""``tbsched hang``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

import tbsched.show as shows
from tbsched import views
from tbsched.cli.console import AGREEMENT, DISAGREEMENT, show, show_json
from tbsched.cli.files import check_writable, write
from tbsched.cli.options import AsJson, Seconds, device_option
from tbsched.hangs.debugger import SECONDS
from tbsched.hangs.find import hang as found_hang


def hang(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Captures (tbsched capture), one per process, or core dumps of a GPU.",
            metavar="FILE...",
        ),
    ] = None,
    pid: Annotated[
        list[int] | None,
        typer.Option(
            "--pid",
            help="A process, to stop with cuda-gdb for some seconds; if it is captured, its "
            "capture is read instead. May be repeated.",
            metavar="PID",
        ),
    ] = None,
    device: Annotated[
        str | None,
        device_option("What it runs on; by default what the capture or the debugger names."),
    ] = None,
    seconds: Seconds = SECONDS,
    html: Annotated[Path | None, typer.Option(help="Write a page, too.")] = None,
    as_json: AsJson = False,
) -> int:
    """Say why a program hangs: what can never start, why, and what to change.

    The exit status is 0 if it does not hang, and 1 if it does or if that is not known. A capture
    needs no GPU and no debugger; the answer says what these could have shown. The time limit is
    for each time that a process is stopped.

    Examples:

      tbsched hang run.jsonl

      tbsched hang --pid 4711

      tbsched hang rank0.jsonl rank1.jsonl --html page.html

      tbsched hang core.nvcudmp run.jsonl
    """
    check_writable(html)
    report = found_hang(*(files or ()), pid=pid or None, device=device, seconds=seconds)
    if as_json:
        show_json(views.data(report))
    else:
        show(report)
    write(html, partial(shows.to_html, report), "a page")
    return DISAGREEMENT if report.hangs else AGREEMENT
