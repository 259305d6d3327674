"""``tbsched calibrate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tbsched import storage, views
from tbsched.calibration.calibrate import calibrate as calibration_of
from tbsched.cli.console import AGREEMENT, DISAGREEMENT, show, show_json
from tbsched.cli.files import check_output, note_written
from tbsched.cli.options import AsJson, complete_oracle


def calibrate(
    output: Annotated[Path, typer.Option("--output", "-o", help="The device file to write.")],
    oracle: Annotated[
        str, typer.Option(help="'gpu', or a model to play it.", autocompletion=complete_oracle)
    ] = "gpu",
    seconds: Annotated[float, typer.Option(help="For how long.")] = 300.0,
    sequences: Annotated[
        int, typer.Option(help="How many the campaign compares at most.")
    ] = 1_000_000,
    seed: Annotated[int, typer.Option(help="Of the campaign.")] = 0,
    as_json: AsJson = False,
) -> int:
    """Measure a GPU, write its device file, and report how sure each value is.

    Probes find the sizes of an SM, the map of the SMs, the rules and the policy. A campaign then
    compares the whole with the GPU. The exit status is 1 if it found a disagreement.
    """
    check_output(output, option="--output")
    is_there = storage.check_writable(output)
    name = output.name.removesuffix(".toml")
    found = calibration_of(oracle, seconds, sequences=sequences, seed=seed, name=name)
    found.save(output)
    note_written(output, is_there, "a device file")
    if as_json:
        show_json(views.data(found))
    else:
        show(found)
    return DISAGREEMENT if found.certificate.disagreements else AGREEMENT
