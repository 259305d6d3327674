"""``tbsched explain``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

import tbsched.show as shows
from tbsched import views
from tbsched.advice.explain.explain import explain as explained
from tbsched.cli.console import show, show_json
from tbsched.cli.files import check_writable, write
from tbsched.cli.options import AsJson, FromTime, Match, OnlyStream, ToTime, device_option
from tbsched.importers.programs import load_program
from tbsched.prediction.program_device import check_ran_on


def explain(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="The profile of a program; for several ranks one of each, or a folder of them.",
            metavar="PROFILE...",
        ),
    ],
    device: Annotated[
        str | None,
        device_option("What it ran on; by default what the profile names."),
    ] = None,
    start: FromTime = None,
    end: ToTime = None,
    stream: OnlyStream = None,
    match: Match = None,
    account: Annotated[
        bool,
        typer.Option(
            "--account",
            help="Only where the time went, from the file alone: no prediction, and no changes.",
        ),
    ] = False,
    html: Annotated[Path | None, typer.Option(help="Write a page, too.")] = None,
    perfetto: Annotated[
        Path | None, typer.Option(help="Write a trace for ui.perfetto.dev, too.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Explain where the time of a profile went, and what would shorten the program.

    The profile is a file that torch.profiler wrote, or another one that load_program reads. Of the
    time from its first work to its last, every nanosecond has a cause. Each change has the makespan
    that is predicted with it.

    Several profiles are those of the ranks of one program. Of each collective the account then says
    which rank waited for which one, and what that one did; no change is predicted.

    Examples:

      tbsched explain trace.json.gz

      tbsched explain trace.json.gz --from 0.5 --to 0.6 --html page.html

      tbsched explain report.sqlite --account

      tbsched explain rank*.json.gz
    """
    check_writable(html, perfetto)
    program = load_program(
        files[0] if len(files) == 1 else files,
        device,
        start=start,
        end=end,
        streams=stream,
        match=match,
        fit=False,
    )
    check_ran_on(program, device)
    explanation = explained(program, device, predicted=not account)
    if as_json:
        show_json(views.data(explanation))
    else:
        show(explanation)
    write(html, partial(shows.to_html, explanation), "a page")
    write(perfetto, partial(shows.to_perfetto, explanation), "a trace for ui.perfetto.dev")
