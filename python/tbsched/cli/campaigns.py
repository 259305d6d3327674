"""``tbsched fuzz`` and ``tbsched record``."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from tbsched import storage, views
from tbsched.campaigns.campaign import fuzz as campaign
from tbsched.campaigns.campaign import record as record_traces
from tbsched.campaigns.oracles import OracleLike, RecordedOracle
from tbsched.campaigns.results import SO_FAR, Report
from tbsched.campaigns.scale.workers import Workers
from tbsched.cli.at_once import INTERRUPTED
from tbsched.cli.console import AGREEMENT, DISAGREEMENT, NO_GPU, note, show, show_json
from tbsched.cli.interrupts import ending_at_once
from tbsched.cli.options import (
    AsJson,
    BeginOption,
    Draw,
    DrawOption,
    Evidence,
    GpusOption,
    Level,
    LevelOption,
    OptionalSeconds,
    OptionalSeed,
    PolicyName,
    PredictingDevice,
    SequencesOption,
    UntilFull,
    WithoutOption,
    WorkersOption,
    oracle_option,
    output_option,
)
from tbsched.errors import shown
from tbsched.launcher.observe import Gpu
from tbsched.traces.files import is_trace_file, load_traces
from tbsched.views.terminal import visible

_Oracle = Annotated[
    str, oracle_option("Also a trace file, or a device with a policy: rtx3090/algorithm1.")
]


def fuzz(
    oracle: _Oracle = "gpu",
    device: PredictingDevice = "h200",
    policy: PolicyName = None,
    level: LevelOption = Level.occupancy,
    sequences: SequencesOption = 10_000,
    seconds: OptionalSeconds = None,
    max_counterexamples: Annotated[
        int,
        typer.Option(
            "--max-counterexamples",
            help="Stop after this number of counterexamples.",
            metavar="COUNT",
        ),
    ] = 1,
    seed: OptionalSeed = None,
    evidence: Evidence = None,
    without: WithoutOption = None,
    until_full: UntilFull = False,
    draw: DrawOption = Draw.auto,
    begin: BeginOption = 0,
    gpus: GpusOption = None,
    workers: WorkersOption = None,
    as_json: AsJson = False,
) -> int:
    """Search for sequences on which prediction and oracle disagree, and shrink them.

    On a GPU, sequences are drawn, predicted and compared while others run. What disagrees is run
    again with patience, and if it still does, it is shrunk.

    On all GPUs of this host for an hour, keeping what is found:

    tbsched fuzz --gpus all --seconds 3600 --sequences 1000000000 --evidence found.jsonl
    """
    _import_campaigns()
    with _printing_notes(as_json), executor_of(oracle, gpus, workers) as executor:
        report = campaign(
            oracle=_oracle(oracle),
            predictor=device,
            policy=policy,
            level=level.value,
            max_examples=sequences,
            max_seconds=seconds,
            max_counterexamples=max_counterexamples,
            seed=seed,
            begin=begin,
            corpus=evidence,
            without=without or (),
            until_full=until_full,
            draw=draw.value,
            executor=executor,
        )
    _show(report, as_json)
    return status_of(report, DISAGREEMENT if report.counterexamples else AGREEMENT)


def _oracle(name: str) -> OracleLike:
    if is_trace_file(Path(name)):
        return RecordedOracle(load_traces(name))
    return name


def record(
    output: Annotated[Path, output_option("A trace file (.jsonl), to which traces are appended.")],
    oracle: _Oracle = "gpu",
    device: PredictingDevice = "h200",
    sequences: SequencesOption = 2000,
    seed: OptionalSeed = None,
    without: WithoutOption = None,
    until_full: UntilFull = False,
    draw: DrawOption = Draw.auto,
    begin: BeginOption = 0,
    gpus: GpusOption = None,
    workers: WorkersOption = None,
    as_json: AsJson = False,
) -> int:
    """Record random sequences as traces, and report how far the prediction agrees with them."""
    _import_campaigns()
    before = storage.check_writable(output) and output.stat().st_size > 0
    place = visible(str(output))
    note(f"{place}: traces are appended to {'what is there' if before else 'a new file'}")
    with _printing_notes(as_json), executor_of(oracle, gpus, workers) as executor:
        report = record_traces(
            _oracle(oracle),
            output,
            sequences,
            predictor=device,
            seed=seed,
            begin=begin,
            without=without or (),
            until_full=until_full,
            draw=draw.value,
            executor=executor,
        )
    _show(report, as_json)
    note(f"{place}: `tbsched verify {place}` scores predictors on it, `tbsched show` draws it")
    return status_of(report, AGREEMENT)


@contextlib.contextmanager
def executor_of(oracle: str, gpus: str | None, workers: int | None) -> Iterator[Workers | None]:
    """Yields the worker processes of a campaign; None: this process runs it.

    Raises:
        ValueError: processes that do not go with the oracle.
    """
    if gpus is None and workers is None:
        yield None
        return
    if (oracle == "gpu") != (gpus is not None) or (gpus is not None and workers is not None):
        raise ValueError(
            "--gpus goes with --oracle gpu, and has a process for each GPU; --workers goes with "
            "any other oracle"
        )
    with Workers(workers) if workers is not None else _on_gpus(gpus or "") as made:
        yield made


def _on_gpus(gpu_list: str) -> Workers:
    return Workers.on_gpus("all" if gpu_list == "all" else _gpu_numbers(gpu_list))


def _gpu_numbers(gpu_list: str) -> list[int]:
    """Returns the numbers in the value of ``--gpus``, such as ``0,1``."""
    try:
        return [int(item) for item in gpu_list.split(",")]
    except ValueError:
        raise ValueError(
            f"--gpus: {shown(gpu_list)} is neither all nor numbers such as 0,1"
        ) from None


@contextlib.contextmanager
def first_of(oracle: str, gpus: str | None) -> Iterator[OracleLike]:
    """Yields the oracle; if ``--gpus`` names another GPU than 0, that GPU, opened.

    Raises:
        NoGpuError: there is no such GPU.
    """
    index = 0 if gpus is None or gpus == "all" else _gpu_numbers(gpus)[0]
    if index == 0:
        yield oracle
        return
    with Gpu(index) as gpu:
        yield gpu


@contextlib.contextmanager
def _printing_notes(as_json: bool) -> Iterator[None]:
    """Prints what a campaign has found before an error, such as a full disk, ends it."""
    try:
        yield
    except Exception as error:
        for words in getattr(error, "__notes__", []):
            if words.startswith(SO_FAR) and not as_json:
                print(words)
        raise


def _show(report: Report, as_json: bool) -> None:
    """Prints a report, as JSON or as text."""
    if as_json:
        show_json(views.data(report))
    else:
        show(report)


def status_of(report: Report, usual: int) -> int:
    """The exit status: a campaign that another process ended has said nothing."""
    return {"interrupted": INTERRUPTED, "another process": NO_GPU}.get(report.ended, usual)


def _import_campaigns() -> None:
    """Loads what takes long, or explains later that it is missing, while Ctrl-C may do no harm."""
    with ending_at_once(), contextlib.suppress(ImportError):
        import tbsched.campaigns.scale.coordinator  # noqa: F401
