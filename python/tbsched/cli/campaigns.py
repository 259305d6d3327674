"""``tbsched fuzz`` and ``tbsched record``."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Annotated

import typer

from tbsched import storage, views
from tbsched.campaigns.campaign import fuzz as campaign
from tbsched.campaigns.campaign import record as record_traces
from tbsched.campaigns.oracles import OracleLike, RecordedOracle
from tbsched.campaigns.results import Report
from tbsched.cli.console import AGREEMENT, DISAGREEMENT, NO_GPU, note, show, show_json
from tbsched.cli.interrupts import INTERRUPTED, ending_at_once
from tbsched.cli.options import (
    AsJson,
    Draw,
    DrawOption,
    Level,
    LevelOption,
    PolicyName,
    WithoutOption,
    complete_device,
    complete_oracle,
)
from tbsched.prediction.predict import policies
from tbsched.traces.files import is_trace_file, load_traces


def fuzz(
    oracle: Annotated[
        str,
        typer.Option(
            help="'gpu', a trace file, or a model to play the GPU: rtx3090, rtx3090/algorithm1.",
            autocompletion=complete_oracle,
        ),
    ] = "gpu",
    predictor: Annotated[
        str, typer.Option(help="The device that predicts.", autocompletion=complete_device)
    ] = "h200",
    policy: PolicyName = None,
    level: LevelOption = Level.occupancy,
    max_examples: Annotated[int, typer.Option(help="How many sequences at most.")] = 10_000,
    max_seconds: Annotated[float | None, typer.Option(help="For how long at most.")] = None,
    max_counterexamples: Annotated[int, typer.Option(help="Stop after so many.")] = 1,
    seed: Annotated[int | None, typer.Option(help="Repeat an earlier campaign.")] = None,
    corpus: Annotated[
        Path | None,
        typer.Option(help="Append counterexamples to this file (.jsonl); resume from it."),
    ] = None,
    without: WithoutOption = None,
    draw: DrawOption = Draw.auto,
    as_json: AsJson = False,
) -> int:
    """Search for sequences on which prediction and oracle disagree, and shrink them.

    On a GPU, sequences are drawn, predicted and compared while others run. What disagrees is run
    again with patience, and if it still does, Hypothesis shrinks it.
    """
    _import_campaigns()
    found = campaign(
        oracle=_oracle(oracle),
        predictor=predictor,
        policy=policy,
        level=level.value,
        max_examples=max_examples,
        max_seconds=max_seconds,
        max_counterexamples=max_counterexamples,
        seed=seed,
        corpus=corpus,
        without=without or (),
        draw=draw.value,
    )
    _show(found, as_json)
    return _status(found, DISAGREEMENT if found.counterexamples else AGREEMENT)


def _oracle(name: str) -> OracleLike:
    if is_trace_file(Path(name)):
        return RecordedOracle(load_traces(name))
    device, slash, policy = name.rpartition("/")
    is_policy = policy in {row.name for row in policies()}
    return (device, policy) if slash and is_policy else name


def record(
    output: Annotated[Path, typer.Argument(help="The trace file to write (.jsonl).")],
    oracle: Annotated[
        str, typer.Option(help="'gpu', or a model to play it.", autocompletion=complete_oracle)
    ] = "gpu",
    predictor: Annotated[
        str,
        typer.Option(
            help="The device that predicts. On a GPU, sequences are drawn within its limits.",
            autocompletion=complete_device,
        ),
    ] = "h200",
    count: Annotated[int, typer.Option("--count", "-n", help="How many sequences.")] = 2000,
    seed: Annotated[int | None, typer.Option(help="Repeat an earlier recording.")] = None,
    without: WithoutOption = None,
    draw: DrawOption = Draw.auto,
    as_json: AsJson = False,
) -> int:
    """Record random sequences as traces, and report how far the prediction agrees with them."""
    _import_campaigns()
    before = storage.check_writable(output) and output.stat().st_size > 0
    note(f"{output}: traces are appended to {'what is there' if before else 'a new file'}")
    found = record_traces(
        _oracle(oracle),
        output,
        count,
        predictor=predictor,
        seed=seed,
        without=without or (),
        draw=draw.value,
    )
    _show(found, as_json)
    return _status(found, AGREEMENT)


def _show(found: Report, as_json: bool) -> None:
    if as_json:
        show_json(views.data(found))
    else:
        show(found)


def _status(found: Report, usual: int) -> int:
    """The exit status: a campaign that another process ended has said nothing."""
    return {"interrupted": INTERRUPTED, "another process": NO_GPU}.get(found.ended, usual)


def _import_campaigns() -> None:
    """Loads what takes long, or explains later that it is missing, while Ctrl-C may do no harm."""
    with ending_at_once(), contextlib.suppress(ImportError):
        import tbsched.campaigns.loop  # noqa: F401
