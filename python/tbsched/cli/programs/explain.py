"""``tbsched explain``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import tbsched.show as shows
from tbsched import storage, views
from tbsched.advice.explain.explain import explain as explained
from tbsched.cli.console import note, show, show_json
from tbsched.cli.files import check_output, note_written
from tbsched.cli.options import AsJson, FromTime, Match, OnlyStream, ToTime, complete_device
from tbsched.hardware.catalogue import device as find_device
from tbsched.hardware.catalogue import devices
from tbsched.hardware.spec import DeviceSpec
from tbsched.importers.assembly.durations import known_device
from tbsched.importers.programs import load_program
from tbsched.program.program import Program


def explain(
    file: Annotated[Path, typer.Argument(help="The profile of a program.", metavar="FILE")],
    device: Annotated[
        str | None,
        typer.Option(
            "--device",
            "-d",
            help="What it ran on: a device, or the path of a .toml. By default what the profile "
            "names.",
            autocompletion=complete_device,
        ),
    ] = None,
    start: FromTime = None,
    end: ToTime = None,
    stream: OnlyStream = None,
    match: Match = None,
    html: Annotated[Path | None, typer.Option(help="Write a page, too.")] = None,
    perfetto: Annotated[
        Path | None, typer.Option(help="Write a trace for ui.perfetto.dev, too.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Explain why the kernels of a profile did not run sooner, and what would let them.

    The profile is a file that torch.profiler wrote, or another one that load_program reads. Each
    gap has a cause. Each change has the makespan that is predicted with it.

    Examples:

      tbsched explain trace.json.gz

      tbsched explain trace.json.gz --device h100 --from 0.5 --to 0.6 --html page.html
    """
    check_output(html, file, option="--html")
    check_output(perfetto, file, option="--perfetto")
    program = load_program(file, device, start=start, end=end, streams=stream, match=match)
    spec = _ran_on(program, device, file)
    count = len(program.sequence.launches)
    note(f"read {file}: {count:,} launches; explaining them on {spec.name}")
    found = explained(program, spec)
    for output, write, what in (
        (html, shows.to_html, "a page"),
        (perfetto, shows.to_perfetto, "a trace for ui.perfetto.dev"),
    ):
        if output is not None:
            is_there = storage.check_writable(output)
            write(found, output)
            note_written(output, is_there, what)
    if as_json:
        show_json(views.data(found))
    else:
        show(found)


def _ran_on(program: Program, device: str | None, file: Path) -> DeviceSpec:
    known = known_device(program.device, program.sms)
    if device is not None:
        if known is not None and device in devices() and device != known.name:
            raise ValueError(
                f"--device: {device}, but {file} was recorded on {program.device}; leave it out, "
                f"or name {known.name}, or a .toml file of yours"
            )
        return find_device(device)
    if known is None:
        gpu = "no GPU" if program.device is None else f"{program.device}, which no device here is"
        raise ValueError(f"{file}: names {gpu}; name one with --device")
    return known
