"""``tbsched calibrate``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from tbsched import storage, views
from tbsched.calibration.calibrate import calibrate as calibration_of
from tbsched.calibration.results import Calibration
from tbsched.cli.campaigns import executor_of, first_of, status_of
from tbsched.cli.console import AGREEMENT, DISAGREEMENT, show, show_json
from tbsched.cli.files import check_device_output, note_written
from tbsched.cli.options import (
    AsJson,
    Evidence,
    GpusOption,
    Seconds,
    Seed,
    SequencesOption,
    WorkersOption,
    oracle_option,
    output_option,
)
from tbsched.views.cards import to_html


def calibrate(
    output: Annotated[Path, output_option("A device file (.toml).")],
    oracle: Annotated[str, oracle_option()] = "gpu",
    seconds: Seconds = 300.0,
    sequences: SequencesOption = 1_000_000,
    seed: Seed = 0,
    evidence: Evidence = None,
    gpus: GpusOption = None,
    workers: WorkersOption = None,
    report: Annotated[
        Path | None,
        typer.Option(help="Write the report there, too: a page (.html), .json, or text."),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Measure a GPU, write its device file, and report how sure each value is.

    Probes find the sizes of an SM, the map of the SMs, the rules and the policy. A campaign then
    compares the whole with the GPU. The exit status is 1 if it found a disagreement, or if the GPU
    refused one of its sequences. With --gpus or --workers, several processes run the campaign; the
    probes ask the first of the GPUs.

    So that nothing is lost if it is killed; the same command goes on where it was:

    tbsched calibrate -o mine.toml --evidence mine.jsonl --report mine.html
    """
    name = check_device_output(output)
    is_there = storage.check_writable(output)
    report_is_there = report is not None and storage.check_writable(report)
    with executor_of(oracle, gpus, workers) as executor, first_of(oracle, gpus) as probed:
        calibration = calibration_of(
            probed,
            seconds,
            sequences=sequences,
            seed=seed,
            name=name,
            evidence=evidence,
            executor=executor,
        )
    if as_json:
        show_json(views.data(calibration))
    else:
        show(calibration)
    calibration.save(output)
    note_written(output, is_there, "a device file")
    if report is not None:
        _write_report(calibration, report)
        note_written(report, report_is_there, "a report")
    certificate = calibration.certificate
    if certificate.disagreements or certificate.refusal is not None or certificate.boards_differ:
        return DISAGREEMENT
    return AGREEMENT if calibration.campaign is None else status_of(calibration.campaign, AGREEMENT)


def _write_report(calibration: Calibration, path: Path) -> None:
    """Writes a report of a calibration as HTML, JSON or text, by the file's ending."""
    if path.suffix == ".html":
        to_html(calibration, path)
        return
    text = json.dumps(views.data(calibration)) if path.suffix == ".json" else str(calibration)
    with storage.replacing(path) as file:
        file.write(f"{text}\n".encode())
