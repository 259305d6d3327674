"""The command line: the verbs of the library, with exit statuses that scripts can use.

0 agreement (or nothing to disagree with), 1 disagreement found, 2 bad input, 3 no usable GPU.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer
from rich.console import Console
from rich.progress import track

from tbsched import errors
from tbsched.advice.launch_configs import Kernel, launch_configs
from tbsched.comparison.compare import Diff
from tbsched.comparison.compare import compare as compare_traces
from tbsched.comparison.verify import Score, best_diff
from tbsched.comparison.verify import verify as score_traces
from tbsched.hardware.spec import DeviceSpec, ablations
from tbsched.hardware.spec import device as find_device
from tbsched.hardware.spec import devices as device_names
from tbsched.prediction.predict import launch_orders, policies
from tbsched.prediction.predict import predict as predict_sequence
from tbsched.program.sequence import Sequence
from tbsched.show import text as report
from tbsched.traces.cases import Case
from tbsched.traces.cases import cases as case_set
from tbsched.traces.trace import Trace, is_trace_file, load_traces, save_traces

if TYPE_CHECKING:
    from tbsched.campaigns.oracles import OracleLike
    from tbsched.campaigns.results import Report

AGREEMENT, DISAGREEMENT, BAD_INPUT, NO_GPU = 0, 1, 2, 3

app = typer.Typer(
    name="tbsched",
    help="Predicts which SM every thread block of concurrent CUDA kernels lands on, runs the same "
    "on the GPU and compares.\n\nExit status: 0 agreement, 1 disagreement found, 2 bad input, "
    "3 no usable GPU.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
# Tables that go to a file or a pipe need not fit a window.
console = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else 160)

SequenceFile = Annotated[
    Path,
    typer.Argument(
        help="A trace file (.jsonl, .xz, .gz), or JSON with a list of events such as "
        '[{"launch":{"blocks":132,"threads":256,"registers":32}},{"release":0}]; - reads it from '
        "standard input.",
        metavar="SEQUENCES",
    ),
]
OptionalSequenceFile = Annotated[
    Path | None, typer.Argument(help="As for predict.", metavar="SEQUENCES")
]
TraceFile = Annotated[
    Path, typer.Argument(help="A trace file, or a folder of them.", metavar="TRACES")
]
DeviceName = Annotated[
    str,
    typer.Option(
        "--device",
        "-d",
        help="A device, a device with an ablation (h200-no-warp-skip), or the path of a .toml.",
    ),
]
PolicyName = Annotated[
    str | None, typer.Option("--policy", "-p", help="A policy; the device's own by default.")
]
GpuIndex = Annotated[int, typer.Option("--gpu", "-g", help="Which GPU, as CUDA counts them.")]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="Write the traces to this file, too.")
]


class Level(StrEnum):
    """How closely blocks are compared."""

    occupancy = "occupancy"
    exact = "exact"


LevelOption = Annotated[
    Level, typer.Option("--level", "-l", help="Blocks per SM, or the SM of each block.")
]


class Draw(StrEnum):
    """Who draws a campaign's sequences."""

    auto = "auto"
    native = "native"
    hypothesis = "hypothesis"


DrawOption = Annotated[
    Draw,
    typer.Option(
        help="native: NumPy draws, while the GPU runs what was drawn before. hypothesis: one by "
        "one, slower, with variations of earlier draws. auto: native on a GPU. Both draw from the "
        "same sequences, and Hypothesis shrinks what either finds."
    ),
]


def main() -> NoReturn:
    """Runs the command line; the installed script ``tbsched``."""
    try:
        status = app(standalone_mode=False)
    except (ValueError, TypeError, FileNotFoundError, ImportError) as error:
        _fail(BAD_INPUT, error)
    except errors.TbschedError as error:
        _fail(NO_GPU, error)
    except KeyboardInterrupt:
        _fail(130, "interrupted")
    except Exception as error:
        # typer's own errors print themselves and know their status
        show = getattr(error, "show", None)
        if show is None:
            raise
        show()
        sys.exit(getattr(error, "exit_code", BAD_INPUT))
    sys.exit(status if isinstance(status, int) else AGREEMENT)


def _fail(status: int, why: object) -> NoReturn:
    Console(stderr=True, highlight=False, soft_wrap=True).print(f"tbsched: {why}", markup=False)
    sys.exit(status)


def _show(text: object) -> None:
    console.print(str(text), markup=False)


@app.command()
def devices(
    name: Annotated[str | None, typer.Argument(help="Show this device's values.")] = None,
    cpp: Annotated[bool, typer.Option("--cpp", help="Print it as a C++ header.")] = False,
) -> None:
    """List the devices, their ablations and the policies; or show one device."""
    if name is None:
        rows = [(s.name, s.title, str(s.sms), s.policy) for s in map(find_device, device_names())]
        console.print(report.table_of(("device", "GPU", "SMs", "policy"), rows))
        console.print("\n[bold]ablations[/], to append to a device's name:")
        _rows(list(ablations().items()))
        console.print("\n[bold]policies[/]:")
        _rows([(row.name, f"{row.summary} ({row.source})") for row in policies()])
        console.print("\n[bold]orders of launches[/]:")
        _rows([(row.name, f"{row.summary} ({row.source})") for row in launch_orders()])
        return
    spec = find_device(name)
    if cpp:
        from tbsched.hardware.export import cpp_header

        _show(cpp_header(spec))
        return
    _show(f"{spec.name}: {spec.title}")
    for key, origin in spec.provenance.items():
        field = key.rsplit(".", 1)[1]
        holder = spec.mechanisms if key.startswith("mechanisms.") else spec
        _show(f"  {key} = {getattr(holder, field)}  [{origin.kind}: {origin.source}]")


def _rows(rows: list[tuple[str, str]]) -> None:
    width = max(len(name) for name, _ in rows)
    for name, words in rows:
        _show(f"  {name:<{width}}  {words}")


@app.command()
def predict(
    sequences: SequenceFile,
    device: DeviceName = "h200",
    policy: PolicyName = None,
    output: Output = None,
    launch_interval: Annotated[
        float,
        typer.Option(help="Seconds from one launch of the host to the next, where they end."),
    ] = 0.0,
) -> None:
    """Predict where the blocks of sequences go, and when, if launches have durations."""
    spec = find_device(device)

    def run(seq: Sequence) -> Trace:
        return predict_sequence(seq, spec, policy, launch_interval=launch_interval)

    _run_all(sequences, output, run)


@app.command()
def observe(
    sequences: OptionalSequenceFile = None,
    gpu: GpuIndex = 0,
    output: Output = None,
    cases: Annotated[
        str | None,
        typer.Option(help="Run this set of cases, one per mechanism, instead: hopper."),
    ] = None,
    device: DeviceName = "h200",
) -> int:
    """Run sequences on the GPU and record where their blocks go.

    With --cases, compare each case with its recording and with --device's prediction.
    """
    from tbsched.launcher.observe import Gpu

    if (sequences is None) == (cases is None):
        raise ValueError("observe: SEQUENCES or --cases is needed, and not both")
    if cases is not None:
        known, spec = case_set(cases), find_device(device)
        with Gpu(gpu) as open_gpu:
            return _observe_cases(known, spec, open_gpu.observe, output)
    assert sequences is not None
    with Gpu(gpu) as open_gpu:
        _run_all(sequences, output, open_gpu.observe)
    return AGREEMENT


def _observe_cases(
    known: tuple[Case, ...],
    spec: DeviceSpec,
    run: Callable[[Sequence], Trace],
    output: Path | None,
) -> int:
    rows, traces, differing = [], [], 0
    for case in known:
        trace = replace(run(case.trace.sequence), id=case.name, extra=case.trace.extra)
        traces.append(trace)
        same_gpu = trace.device.sms == case.trace.device.sms
        recorded = compare_traces(case.trace, trace).occupancy if same_gpu else None
        predicted = best_diff(trace, spec) if trace.device.sms == spec.sms else None
        differing += recorded is False or (predicted is not None and not predicted.occupancy)
        words = {True: "yes", False: "NO", None: "other GPU"}
        exact = None if predicted is None else predicted.exact
        shares = (recorded, None if predicted is None else predicted.occupancy, exact)
        rows.append((case.name, case.mechanism, *(words[share] for share in shares)))
    headings = ("case", "mechanism", "as recorded", "as predicted", "every block")
    console.print(report.table_of(headings, rows))
    if output is not None:
        save_traces(output, traces)
    return DISAGREEMENT if differing else AGREEMENT


def _run_all(place: Path, output: Path | None, run: Callable[[Sequence], Trace]) -> None:
    traces = [run(sequence) for sequence in _sequences(place)]
    for trace in traces:
        _show(trace)
        _show("")
    if output is not None:
        save_traces(output, traces)


def _sequences(place: Path) -> list[Sequence]:
    if place.is_dir() or is_trace_file(place):
        return [trace.sequence for trace in load_traces(place)]
    text = sys.stdin.read() if str(place) == "-" else place.read_text("utf-8")
    return [Sequence.from_json(text)]


@app.command()
def configs(
    threads: Annotated[int, typer.Argument(help="Threads in all.")],
    registers: Annotated[int, typer.Option("--registers", "-r", help="Per thread.")] = 32,
    shared_memory: Annotated[
        int, typer.Option("--shared-memory", "-s", help="Bytes per block, whatever its size.")
    ] = 0,
    shared_memory_per_thread: Annotated[
        int, typer.Option(help="Bytes per thread of a block, on top.")
    ] = 0,
    carveout: Annotated[
        int | None, typer.Option(help="Shared memory, in per cent; the driver's choice by default.")
    ] = None,
    trust_policy: Annotated[
        bool, typer.Option(help="Accept what is even by the device's policy only.")
    ] = False,
    device: DeviceName = "h200",
) -> None:
    """List block sizes for a kernel, and what speaks against each.

    Accepted: on an idle GPU, certain to spread evenly over the SMs, in one wave, and with as many
    warps on each processing block of an SM.
    """
    kernel = Kernel(
        threads,
        registers,
        shared_memory=shared_memory,
        shared_memory_per_thread=shared_memory_per_thread,
        carveout=carveout,
    )
    _show(launch_configs(device, kernel, trust_policy))


@app.command()
def compare(a: TraceFile, b: TraceFile, level: LevelOption = Level.exact) -> int:
    """Compare two trace files, sequence by sequence in their order."""
    first, second = load_traces(a), load_traces(b)
    if len(first) != len(second):
        raise ValueError(f"{a} has {len(first)} sequences, {b} has {len(second)}")
    diffs = [compare_traces(x, y) for x, y in zip(first, second, strict=True)]
    differing = [diff for diff in diffs if not diff.agrees(level.value)]
    for diff in differing:
        _show(f"{diff.b.id or 'sequence'}: {diff}\n")
    _show(f"{len(diffs) - len(differing)} of {len(diffs)} sequences agree ({level.value})")
    return DISAGREEMENT if differing else AGREEMENT


@app.command()
def verify(
    traces: Annotated[
        list[Path],
        typer.Argument(help="Trace files, or folders of them.", metavar="TRACES..."),
    ],
    device: Annotated[
        list[str] | None,
        typer.Option("--device", "-d", help="A device or ablation; may be repeated."),
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option("--policy", "-p", help="A policy; may be repeated. 'all' is the ladder."),
    ] = None,
    misses: Annotated[
        int, typer.Option("--misses", "-m", help="Explain so many of the differences.")
    ] = 0,
) -> int:
    """Score predictors against recorded traces, as a table.

    Exit status 1 if the predictor of the last row differs in the occupancy of any launch.
    """
    specs = [find_device(name) for name in device or ["h200"]]
    wanted: list[str | None] = [None] if policy is None else [*policy]
    if policy == ["all"]:
        wanted = [row.name for row in policies()]
    recorded = [trace for place in traces for trace in load_traces(place)]
    scores = [_score(recorded, spec, name) for spec in specs for name in wanted]
    headings = ("predictor", "sequences", "launches", "occupancy %", "exact %", "sequences %")
    console.print(report.table_of(headings, map(_score_row, scores)))
    last = scores[-1]
    if last.skipped:
        _show(f"\nnot predicted: {len(last.skipped)} sequences, the first: {last.skipped[0][1]}")
    for diff in last.misses[:misses]:
        _show(f"\n{diff.b.id}: {diff}")
    if last.misses and not misses:
        _show(f"\n{len(last.misses)} sequences differ in occupancy; --misses 3 explains three")
    return AGREEMENT if last.agrees else DISAGREEMENT


def _score(traces: list[Trace], spec: DeviceSpec, policy: str | None) -> Score:
    name = f"{spec.name}/{policy or spec.policy}"
    bar = track(traces, f"{name:<24}", console=Console(stderr=True), transient=True)
    return score_traces(bar, spec, policy)


def _score_row(score: Score) -> tuple[str, ...]:
    def percent(part: int, whole: int) -> str:
        # A miss must show: what rounds to 100 without being so is cut, not rounded.
        return "-" if not whole else f"{int(10_000 * part / whole) / 100:.2f}"

    return (
        f"{score.device}/{score.policy}",
        str(score.sequences),
        str(score.launches),
        percent(score.occupancy, score.launches),
        percent(score.exact, score.launches),
        percent(score.whole, score.sequences),
    )


@app.command()
def plot(
    traces: TraceFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="An image (.png, .svg, .pdf).")],
    against: Annotated[
        Path | None, typer.Option("--against", "-a", help="Draw the difference to this file.")
    ] = None,
    number: Annotated[int, typer.Option("--number", "-n", help="Which sequence, from 0.")] = 0,
) -> None:
    """Draw blocks per SM and launch of a recorded sequence, or of two compared.

    A sequence whose launches have durations is drawn over time.
    """
    from tbsched.show.plot import plot as draw

    def pick(place: Path) -> Trace:
        found = load_traces(place)
        if not 0 <= number < len(found):
            raise ValueError(f"--number: {number} is outside 0..{len(found) - 1} of {place}")
        return found[number]

    what: Trace | Diff = pick(traces)
    if against is not None:
        what = compare_traces(pick(traces), pick(against))
    draw(what).savefig(output)
    _show(f"wrote {output}")


@app.command()
def fuzz(
    oracle: Annotated[
        str,
        typer.Option(
            help="'gpu', a trace file, or a model to play the GPU: rtx3090, rtx3090/algorithm1."
        ),
    ] = "gpu",
    predictor: Annotated[str, typer.Option(help="The device that predicts.")] = "h200",
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
    draw: DrawOption = Draw.auto,
) -> int:
    """Search sequences on which prediction and oracle disagree, and shrink them.

    On a GPU, sequences are drawn, predicted and compared while others run. What disagrees is run
    again with patience, and if it still does, Hypothesis shrinks it.
    """
    from tbsched.campaigns.campaign import fuzz as campaign

    found: Report = campaign(
        oracle=_oracle(oracle),
        predictor=predictor,
        policy=policy,
        level=level.value,
        max_examples=max_examples,
        max_seconds=max_seconds,
        max_counterexamples=max_counterexamples,
        seed=seed,
        corpus=corpus,
        draw=draw.value,
    )
    _show(found)
    return DISAGREEMENT if found.counterexamples else AGREEMENT


def _oracle(name: str) -> OracleLike:
    from tbsched.campaigns.oracles import RecordedOracle

    if is_trace_file(Path(name)):
        return RecordedOracle(load_traces(name))
    device, slash, policy = name.rpartition("/")
    is_policy = policy in {row.name for row in policies()}
    return (device, policy) if slash and is_policy else name


@app.command()
def record(
    output: Annotated[Path, typer.Argument(help="The trace file to write (.jsonl).")],
    oracle: Annotated[str, typer.Option(help="'gpu', or a model to play it.")] = "gpu",
    predictor: Annotated[
        str, typer.Option(help="The device within whose limits sequences are drawn.")
    ] = "h200",
    count: Annotated[int, typer.Option("--count", "-n", help="How many sequences.")] = 2000,
    seed: Annotated[int | None, typer.Option(help="Repeat an earlier recording.")] = None,
    draw: DrawOption = Draw.auto,
) -> int:
    """Record random sequences as traces, and report how far the prediction agrees with them."""
    from tbsched.campaigns.campaign import record as record_traces

    _show(
        record_traces(
            _oracle(oracle), output, count, predictor=predictor, seed=seed, draw=draw.value
        )
    )
    return AGREEMENT
