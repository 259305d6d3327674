"""``tbsched predict`` and ``tbsched observe``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from tbsched import views
from tbsched.cli.console import AGREEMENT, DISAGREEMENT, show, show_json
from tbsched.cli.files import (
    check_writable,
    predict_program,
    profiled,
    sequences_of,
    write_traces,
)
from tbsched.cli.options import (
    DEFAULT_DEVICE,
    AsJson,
    Connections,
    FromTime,
    GpuIndex,
    Match,
    OnlyStream,
    OptionalSequenceFile,
    OwnDeviceName,
    Part,
    PolicyName,
    SequenceFile,
    ToTime,
    TracesOutput,
    device_option,
)
from tbsched.comparison.compare import compare
from tbsched.comparison.verify import best_diff
from tbsched.hardware.catalogue import device as find_device
from tbsched.hardware.spec import DeviceSpec
from tbsched.importers.captured_files import is_capture
from tbsched.launcher.observe import Gpu
from tbsched.prediction.predict import predict as predict_sequence
from tbsched.program.sequence import Sequence
from tbsched.traces.cases import Case
from tbsched.traces.cases import cases as case_set
from tbsched.traces.trace import Trace
from tbsched.views.tables import table_of


def _hangs(path: Path) -> str:
    return f"; `tbsched hang {path}` says what has not ended" if is_capture(path) else ""


def predict(
    sequences: SequenceFile,
    device: OwnDeviceName = None,
    policy: PolicyName = None,
    connections: Connections = None,
    output: TracesOutput = None,
    launch_interval: Annotated[
        float,
        typer.Option(help="Seconds between the host's launch calls, if launches have durations."),
    ] = 0.0,
    start: FromTime = None,
    end: ToTime = None,
    stream: OnlyStream = None,
    match: Match = None,
    as_json: AsJson = False,
) -> int:
    """Predict where the blocks of sequences go, and when, if launches have durations.

    Of a profile, launches are issued in the gaps that its host threads left. For several GPUs,
    --device names the device of each: h200,h200. The exit status is 1 if a sequence hangs.
    """
    check_writable(output)
    program = profiled(sequences, Part(start, end, stream, match))
    names = (device or DEFAULT_DEVICE).split(",")
    if program is not None:
        if len(names) > 1:
            raise ValueError(f"--device: {len(names)} devices, but a profile is of one GPU")
        if launch_interval:
            raise ValueError("--launch-interval: a profile says when its host called")
        if not program.sequence.launches:
            raise ValueError(
                f"{sequences}: no launch has ended, so no duration is known{_hangs(sequences)}"
            )
        _show_all([predict_program(program, device, policy, connections)], output, as_json)
        return AGREEMENT
    specs = [find_device(name) for name in names]

    def run(seq: Sequence) -> Trace:
        return predict_sequence(
            seq, specs, policy, launch_interval=launch_interval, connections=connections
        )

    return _run_all(sequences, output, run, as_json)


def observe(
    sequences: OptionalSequenceFile = None,
    gpu: GpuIndex = 0,
    output: TracesOutput = None,
    cases: Annotated[
        str | None,
        typer.Option(help="Run this set of cases, one per mechanism, instead: hopper."),
    ] = None,
    device: Annotated[
        str, device_option("With --cases: it predicts what they are compared with.")
    ] = "h200",
    as_json: AsJson = False,
) -> int:
    """Run sequences on the GPU and record where their blocks go.

    With --cases, compare each case with its recording and with --device's prediction.
    """
    if (sequences is None) == (cases is None):
        raise ValueError("observe: SEQUENCES or --cases is needed, and not both")
    check_writable(output)
    if cases is not None:
        known, spec = case_set(cases), find_device(device)
        with Gpu(gpu) as open_gpu:
            return _observe_cases(known, spec, open_gpu.observe, output, as_json)
    assert sequences is not None
    with Gpu(gpu) as open_gpu:
        _run_all(sequences, output, open_gpu.observe, as_json)
    return AGREEMENT


def _observe_cases(
    known: tuple[Case, ...],
    spec: DeviceSpec,
    run: Callable[[Sequence], Trace],
    output: Path | None,
    as_json: bool,
) -> int:
    """Runs cases of mechanisms on a GPU and compares them; returns the exit status."""
    observed_cases: list[tuple[Case, dict[str, bool | None]]] = []
    traces, differing = [], 0
    for case in known:
        trace = replace(run(case.trace.sequence), id=case.name, extra=case.trace.extra)
        traces.append(trace)
        same_gpu = trace.device.sms == case.trace.device.sms
        recorded = compare(case.trace, trace).occupancy if same_gpu else None
        predicted = best_diff(trace, spec) if trace.device.sms == spec.sms else None
        differing += recorded is False or (predicted is not None and not predicted.occupancy)
        answers = {
            "as_recorded": recorded,
            "as_predicted": None if predicted is None else predicted.occupancy,
            "every_block": None if predicted is None else predicted.exact,
        }
        observed_cases.append((case, answers))
    if as_json:
        cases = [
            {"case": x.name, "mechanism": x.mechanism, **answers} for x, answers in observed_cases
        ]
        show_json({"cases": cases, "traces": list(map(views.data, traces))})
    else:
        headings = ("case", "mechanism", "as recorded", "as predicted", "every block")
        words = {True: "yes", False: "NO", None: "other GPU"}
        rows = (
            (x.name, x.mechanism, *(words[answer] for answer in answers.values()))
            for x, answers in observed_cases
        )
        show(table_of(headings, rows))
    write_traces(output, traces)
    return DISAGREEMENT if differing else AGREEMENT


def _run_all(
    path: Path, output: Path | None, run: Callable[[Sequence], Trace], as_json: bool
) -> int:
    """Predicts or observes each sequence of a file; returns the exit status."""
    sequences = sequences_of(path)
    if not sequences:
        raise ValueError(f"{path}: holds no sequences")
    traces = [run(sequence) for sequence in sequences]
    _show_all(traces, output, as_json)
    return DISAGREEMENT if any(trace.hang is not None for trace in traces) else AGREEMENT


def _show_all(traces: list[Trace], output: Path | None, as_json: bool) -> None:
    """Shows traces as text or JSON, and writes them to the output file."""
    if as_json:
        show_json({"traces": list(map(views.data, traces))})
    else:
        for trace in traces:
            show(trace)
            show("")
    write_traces(output, traces)
