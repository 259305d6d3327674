"""``tbsched compare`` and ``tbsched verify``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import track

from tbsched import views
from tbsched.cli.console import AGREEMENT, DISAGREEMENT, show, show_json
from tbsched.cli.files import read_traces
from tbsched.cli.options import (
    AsJson,
    Level,
    LevelOption,
    TraceFile,
    device_option,
    policy_option,
)
from tbsched.comparison.compare import compare as compare_traces
from tbsched.comparison.verify import Score
from tbsched.comparison.verify import verify as score_traces
from tbsched.counting import counted
from tbsched.hardware.catalogue import device as find_device
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import policies
from tbsched.traces.trace import Trace
from tbsched.views.scores import score_data, scores_table


def compare(
    a: TraceFile, b: TraceFile, level: LevelOption = Level.exact, as_json: AsJson = False
) -> int:
    """Compare two trace files, sequence by sequence in their order."""
    first, second = read_traces(a), read_traces(b)
    if len(first) != len(second):
        raise ValueError(f"{a} has {counted(len(first), 'sequence')}, {b} has {len(second)}")
    diffs = [compare_traces(x, y) for x, y in zip(first, second, strict=True)]
    differing = [diff for diff in diffs if not diff.agrees(level.value)]
    if as_json:
        sequences = [views.data(diff) for diff in diffs]
        agree = len(diffs) - len(differing)
        show_json({"level": level.value, "agree": agree, "sequences": sequences})
    else:
        for diff in differing:
            show(f"{diff.b.id or 'sequence'}: {diff}\n")
        all_of_them = counted(len(diffs), "sequence agrees", "sequences agree")
        show(f"{len(diffs) - len(differing)} of {all_of_them} ({level.value})")
    return DISAGREEMENT if differing else AGREEMENT


def verify(
    traces: Annotated[
        list[Path],
        typer.Argument(help="A trace file, or a folder of them.", metavar="TRACES..."),
    ],
    device: Annotated[
        list[str] | None,
        device_option("May be repeated."),
    ] = None,
    policy: Annotated[
        list[str] | None,
        policy_option("May be repeated. 'all' is the ladder."),
    ] = None,
    misses: Annotated[
        int, typer.Option("--misses", "-m", help="Explain this number of differences.")
    ] = 0,
    as_json: AsJson = False,
) -> int:
    """Score predictors against recorded traces, as a table.

    Exit status 1 if the predictor of the last row differs in the occupancy of any launch, 2 if it
    predicts none of the sequences.
    """
    if misses < 0:
        raise ValueError(f"--misses: {misses} is less than 0")
    specs = [find_device(name) for name in device or ["h200"]]
    wanted: list[str | None] = [None] if policy is None else [*policy]
    if policy == ["all"]:
        wanted = [row.name for row in policies()]
    recorded = [trace for place in traces for trace in read_traces(place)]
    scores = [_score(recorded, spec, name) for spec in specs for name in wanted]
    if as_json:
        explained = [views.data(diff) for diff in scores[-1].misses[:misses]]
        show_json({"scores": list(map(score_data, scores)), "explained": explained})
    else:
        _show_scores(scores, misses)
    last = scores[-1]
    if last.skipped and not last.sequences:
        raise ValueError(f"nothing is scored: {last.device}/{last.policy} predicts no sequence")
    return AGREEMENT if last.agrees else DISAGREEMENT


def _show_scores(scores: list[Score], misses: int) -> None:
    """Shows a table of scores, what was not predicted, and the first misses."""
    show(scores_table(scores))
    last = scores[-1]
    if last.skipped:
        skipped = counted(len(last.skipped), "sequence")
        show(f"\nnot predicted: {skipped}, the first: {last.skipped[0][1]}")
    for diff in last.misses[:misses]:
        show(f"\n{diff.b.id}: {diff}")
    if last.misses and not misses:
        misses_ = counted(len(last.misses), "sequence differs", "sequences differ")
        show(f"\n{misses_} in occupancy; --misses 3 explains three")


def _score(traces: list[Trace], spec: DeviceSpec, policy: str | None) -> Score:
    name = f"{spec.name}/{policy or spec.policy}"
    bar = track(traces, f"{name:<24}", console=Console(stderr=True), transient=True)
    return score_traces(bar, spec, policy)
