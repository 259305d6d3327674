"""Timed programs on a GPU against the model: when blocks run, and what an advised order brings.

    python tests/lab/timed/timed.py --out DIR --connections 8
    python tests/lab/timed/timed.py --replay DIR/timed.jsonl.xz --variants
    python tests/lab/timed/timed.py --plan orders.jsonl.xz --sets 200

The first writes every trace to ``DIR/timed.jsonl.xz`` and the text that it prints to
``DIR/timed.txt``; the second scores such a file, without a GPU. ``--connections`` is
CUDA_DEVICE_MAX_CONNECTIONS, and the model's ``hardware_queues``. The third searches the orders of
the kernel sets, which takes longer than running them, for ``--orders orders.jsonl.xz`` later.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from timed_programs import directed, kernel_set, random_program

import tbsched as tb
from tbsched.comparison.times import TimeDiff, compare_times
from tbsched.launcher.observe import Gpu
from tbsched.prediction.predict import predict_as_recorded
from tbsched.traces.placement import DeviceInfo
from tbsched.views.tables import render, table_of

DIRECTED_RUNS = 3
PROGRAM_RUNS = 2
ORDER_RUNS = 2
RANDOM_ORDERS = 3
ORDERS_SEARCHED = 300
# How alike two runs of a program are that counts as one that repeats.
REPEATS = 0.97
# How long a launch call takes where nothing was measured yet.
LAUNCH_INTERVAL = 3e-6
WORST_SHOWN = 10
GROUP_GAP_NS = 100_000
WIDTH = 160


class Observer(Protocol):
    """A GPU, or what plays one."""

    info: DeviceInfo

    def observe(self, seq: tb.Sequence) -> tb.Trace: ...


class ModelAsGpu:
    """The model in the GPU's place, to rehearse."""

    def __init__(self, device: str, connections: int) -> None:
        self._spec = replace(tb.device(device), hardware_queues=connections)
        details = {"max_connections": connections, "model": device}
        self.info = DeviceInfo(self._spec.title, self._spec.sms, details)

    def observe(self, seq: tb.Sequence) -> tb.Trace:
        trace = tb.predict(seq, self._spec, launch_interval=LAUNCH_INTERVAL)
        issued = [round(k * LAUNCH_INTERVAL * 1e9) for k in range(len(trace))]
        return replace(trace, device=self.info, extra={"issued_ns": issued}, waits=None)


def main() -> int:
    """Records and scores, or scores what was recorded."""
    parser = argparse.ArgumentParser(description=__doc__)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--out", type=Path, help="folder for the traces and the text")
    where.add_argument("--replay", type=Path, nargs="+", help="recorded files to score")
    where.add_argument("--plan", type=Path, help="file for the orders of the kernel sets")
    parser.add_argument("--device", default="h200", help="the model")
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--programs", type=int, default=300, help="random programs")
    parser.add_argument("--sets", type=int, default=40, help="kernel sets to order")
    parser.add_argument("--orders", type=Path, help="what --plan wrote, instead of --sets")
    parser.add_argument("--seconds", type=float, default=300, help="records no longer than this")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rehearse", action="store_true", help="the model plays the GPU")
    parser.add_argument("--variants", action="store_true", help="also score variants of the model")
    arguments = parser.parse_args()
    if arguments.replay:
        traces = [trace for path in arguments.replay for trace in tb.load_traces(path)]
        print("\n\n".join(scores(traces, arguments.device, arguments.variants)))
        return 0
    if arguments.plan:
        spec = replace(tb.device(arguments.device), hardware_queues=arguments.connections)
        tb.save_traces(arguments.plan, planned(arguments.sets, arguments.seed, spec))
        return 0
    os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] = str(arguments.connections)
    out: Path = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        observer: Observer = (
            ModelAsGpu(arguments.device, arguments.connections)
            if arguments.rehearse
            else stack.enter_context(Gpu(0))
        )
        traces = []
        try:
            for trace in recorded(observer, arguments):
                traces.append(trace)
        finally:
            tb.save_traces(out / "timed.jsonl.xz", traces)
    text = "\n\n".join(scores(traces, arguments.device, arguments.variants))
    (out / "timed.txt").write_text(text + "\n", "utf-8")
    print(text)
    return 0


def recorded(observer: Observer, arguments: argparse.Namespace) -> Iterator[tb.Trace]:
    """Directed programs, kernel sets in several orders, random programs, while there is time."""
    end = time.monotonic() + arguments.seconds
    spec = replace(tb.device(arguments.device), hardware_queues=arguments.connections)
    for question, seq in directed(spec).items():
        for run in range(DIRECTED_RUNS):
            yield from _observed(observer, seq, f"directed-{run}", question=question)
    for number in range(arguments.programs):
        if time.monotonic() > end - arguments.seconds / 2:
            break
        seed = arguments.seed * 100_000 + number
        for run in range(PROGRAM_RUNS):
            name = f"program-{seed}-{run}"
            yield from _observed(observer, random_program(seed), name, program=seed)
    plans = (
        tb.load_traces(arguments.orders)
        if arguments.orders
        else planned(arguments.sets, arguments.seed, spec)
    )
    for plan in plans:
        if time.monotonic() > end:
            break
        for run in range(ORDER_RUNS):
            yield from _observed(observer, plan.sequence, f"{plan.id}-{run}", **plan.extra)


def planned(sets: int, seed: int, spec: tb.DeviceSpec) -> Iterator[tb.Trace]:
    """The orders of each kernel set, as the model predicts them."""
    for number in range(sets):
        for role, seq in orders(seed * 10_000 + number, spec).items():
            trace = tb.predict(seq, spec, launch_interval=LAUNCH_INTERVAL)
            extra = {"set": number, "role": role}
            yield replace(trace, id=f"order-{number}-{role}", waits=None, extra=extra)


def _observed(observer: Observer, seq: tb.Sequence, name: str, **extra: Any) -> Iterator[tb.Trace]:
    try:
        trace = observer.observe(seq)
    except (tb.UnstableMeasurement, tb.DeadlineExceeded, ValueError) as error:
        print(f"{name}: {error}", file=sys.stderr)
        return
    yield replace(trace, id=name, extra={**trace.extra, **extra})


def orders(seed: int, spec: tb.DeviceSpec) -> dict[str, tb.Sequence]:
    """A kernel set in the given, the advised, the predicted-worst and a few random orders."""
    kernels = kernel_set(seed)
    rng = random.Random(seed)
    given = tb.Sequence(kernels)
    shuffled = [tb.Sequence(rng.sample(kernels, len(kernels))) for _ in range(ORDERS_SEARCHED)]

    def makespan(seq: tb.Sequence) -> float:
        return tb.predict(seq, spec, launch_interval=LAUNCH_INTERVAL).makespan

    return {
        "given": given,
        "advised": tb.best_order(kernels, spec, launch_interval=LAUNCH_INTERVAL).sequence,
        "worst": max((given, *shuffled), key=makespan),
        **{f"random{k}": order for k, order in enumerate(shuffled[:RANDOM_ORDERS])},
    }


def scores(traces: list[tb.Trace], device: str, variants: bool) -> Iterator[str]:
    """The report, part by part."""
    by_part: dict[str, list[tb.Trace]] = defaultdict(list)
    for trace in traces:
        by_part[trace.id.split("-")[0]].append(trace)
    yield f"{Counter(str(trace.device) for trace in traces)}"
    yield lateness_text(traces)
    if by_part["directed"]:
        yield directed_text(by_part["directed"], device)
    if by_part["program"]:
        yield programs_text(by_part["program"], device)
        if variants:
            yield variants_text(by_part["program"], device)
    if by_part["order"]:
        yield orders_text(by_part["order"], device)


def predicted(trace: tb.Trace, device: str, **changes: Any) -> tb.Trace:
    """The model's word on a trace, with the queues and the times of issue of its recording."""
    queues = int(trace.device.details["max_connections"])
    spec = replace(tb.device(device), **{"hardware_queues": queues, **changes})
    return predict_as_recorded(trace, spec)


def lateness_text(traces: list[tb.Trace]) -> str:
    """How much longer than their durations blocks stayed, and how fast the host issued."""
    late, gaps = [], []
    for trace in traces:
        for launch, placement in zip(trace.sequence.launches, trace, strict=True):
            assert placement.start_ns is not None
            assert placement.end_ns is not None
            late.append(placement.end_ns - placement.start_ns - launch.duration_ns())
        gaps.append(np.diff(trace.extra["issued_ns"]))
    percents = (0, 50, 95, 99, 100)
    rows = [
        (what, *(f"{value / 1e3:.2f}" for value in np.percentile(np.concatenate(values), percents)))
        for what, values in (("blocks leave late, us", late), ("between launch calls, us", gaps))
    ]
    return _table(("percentile", *map(str, percents)), rows)


@dataclass(frozen=True, slots=True)
class Agreement:
    """Time diffs of several programs, in all."""

    diffs: tuple[TimeDiff, ...]

    def row(self) -> tuple[str, ...]:
        """Columns under :data:`HEADINGS`."""
        errors = [abs(diff.makespan_error) for diff in self.diffs]
        median, high = np.percentile(errors, (50, 95)) * 100
        return (
            str(len(self.diffs)),
            _percent(sum(d.pairs_agreeing for d in self.diffs), sum(d.pairs for d in self.diffs)),
            _percent(sum(d.starts_agreeing for d in self.diffs), sum(d.blocks for d in self.diffs)),
            f"{median:.2f}",
            f"{high:.2f}",
        )


REPEATABLE = f"two runs alike in {100 * REPEATS:g} % of starts"
HEADINGS = ("programs", "pairs alike %", "starts within 5 % %", "makespan error % median", "95th")


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.2f}" if whole else "-"


def programs_text(traces: list[tb.Trace], device: str) -> str:
    """Agreement over random programs, of the GPU with itself and of the model with it.

    One run of each program is compared, by what is in it and whether another run was like it.
    """
    runs: dict[int, list[tb.Trace]] = defaultdict(list)
    for trace in traces:
        runs[trace.extra["program"]].append(trace)
    groups: dict[str, list[TimeDiff]] = {"the GPU with itself": [], "all": [], REPEATABLE: []}
    found = []
    for same in runs.values():
        diff = compare_times(predicted(same[0], device), same[0])
        found.append((same[0], diff))
        groups["all"].append(diff)
        for other in same[1:]:
            again = compare_times(other, same[0])
            groups["the GPU with itself"].append(again)
            if again.starts_agreeing >= REPEATS * again.blocks:
                groups[REPEATABLE].append(diff)
        for feature in features(same[0]):
            groups.setdefault(feature, []).append(diff)
    table = _table(
        ("random programs", *HEADINGS),
        [(name, *Agreement(tuple(diffs)).row()) for name, diffs in groups.items() if diffs],
    )
    worst = sorted(found, key=lambda row: row[1].pairs_agreeing / max(row[1].pairs, 1))
    lines = [f"{trace.id}: {diff}" for trace, diff in worst[:WORST_SHOWN]]
    return "\n".join([table, "", "the worst:", *lines])


def features(trace: tb.Trace) -> list[str]:
    """What is in a program that the model could be wrong about."""
    seq = trace.sequence
    streams = {launch.stream for launch in seq.launches}
    has = {
        "priorities": len({launch.priority for launch in seq.launches}) > 1,
        "events": len(seq) > len(seq.launches),
        "legacy stream": "legacy" in streams,
    }
    plain = [] if any(has.values()) else ["none of these"]
    many = len(streams) > trace.device.details["max_connections"]
    queues = "more streams than queues" if many else "a queue per stream"
    return [*(name for name, there in has.items() if there), *plain, queues]


VARIANTS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "1 queue": {"hardware_queues": 1},
    "8 queues": {"hardware_queues": 8},
    "16 queues": {"hardware_queues": 16},
    "32 queues": {"hardware_queues": 32},
    "128 queues": {"hardware_queues": 128},
    "launch order fifo": {"launch_order": "fifo"},
    "launch order pass_by": {"launch_order": "pass_by"},
}


def variants_text(traces: list[tb.Trace], device: str) -> str:
    """Agreement of variants of the model with one run of each program."""
    rows = []
    traces = list({trace.extra["program"]: trace for trace in reversed(traces)}.values())
    for name, changes in VARIANTS.items():
        diffs = tuple(compare_times(predicted(x, device, **changes), x) for x in traces)
        rows.append((name, *Agreement(diffs).row()))
    return _table(("variants of the model", *HEADINGS), rows)


def directed_text(traces: list[tb.Trace], device: str) -> str:
    """For each question when its launches started, as predicted and in each run."""
    by_question: dict[str, list[tb.Trace]] = defaultdict(list)
    for trace in traces:
        by_question[trace.extra["question"]].append(trace)
    parts = []
    for question, runs in by_question.items():
        prediction = predicted(runs[0], device)
        diffs = [compare_times(prediction, run) for run in runs]
        alike = ", ".join(f"{diff.pairs_agreeing}/{diff.pairs}" for diff in diffs)
        # Runs are alike if the same launches start together, some microseconds sooner or later.
        seen: dict[tuple[str, ...], list[tb.Trace]] = defaultdict(list)
        for run in runs:
            seen[tuple(start_groups(run).values())].append(run)
        lines = [question, _starts_text("model", prediction)]
        lines += [_starts_text(f"{len(x)} of {len(runs)} runs", x[0]) for x in seen.values()]
        parts.append("\n".join([*lines, f"  pairs of launches alike: {alike}"]))
    return "when launches start, in ms\n\n" + "\n\n".join(parts)


def _starts_text(who: str, trace: tb.Trace) -> str:
    groups = "; ".join(f"{when:.1f}: {names}" for when, names in start_groups(trace).items())
    return f"  {who}, {most_at_once(trace)} at once: {groups}"


def start_groups(trace: tb.Trace) -> dict[float, str]:
    """By milliseconds, the launches that start then; those that start close together are one."""
    starts = np.array([p.start_ns.min() for p in trace if p.start_ns is not None])
    starts -= starts.min()
    order = np.argsort(starts, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(starts[order]) > GROUP_GAP_NS) + 1)
    launches = trace.sequence.launches
    names = ([launches[k].name or str(k) for k in part.tolist()] for part in parts)
    return {
        float(starts[part[0]]) / 1e6: " ".join(sorted(who, key=_natural))
        for part, who in zip(parts, names, strict=True)
    }


def _natural(name: str) -> tuple[str, int]:
    return name[:1], int(name[1:] or 0)


def most_at_once(trace: tb.Trace) -> int:
    """Launches that run at the same time, at most."""
    starts = [int(p.start_ns.min()) for p in trace if p.start_ns is not None]
    ends = [int(p.end_ns.max()) for p in trace if p.end_ns is not None]
    return max(
        sum(begin <= at < end for begin, end in zip(starts, ends, strict=True)) for at in starts
    )


def orders_text(traces: list[tb.Trace], device: str) -> str:
    """What the advised order brings, and whether the model ranks orders as the GPU does."""
    sets: dict[tuple[str, int], dict[str, list[tb.Trace]]] = defaultdict(lambda: defaultdict(list))
    for trace in traces:
        key = (str(trace.device), trace.extra["set"])
        sets[key][trace.extra["role"]].append(trace)
    over_given, over_worst, correlations, errors = [], [], [], []
    for roles in sets.values():
        measured = {
            role: float(np.median([run.makespan for run in runs])) for role, runs in roles.items()
        }
        model = {role: predicted(runs[0], device).makespan for role, runs in roles.items()}
        errors += [abs(model[role] / measured[role] - 1) for role in roles]
        if {"given", "advised", "worst"} <= set(roles):
            over_given.append(measured["given"] / measured["advised"] - 1)
            over_worst.append(measured["worst"] / measured["advised"] - 1)
        ranks = rank_correlation([model[r] for r in roles], [measured[r] for r in roles])
        if ranks is not None:
            correlations.append(ranks)
    percents = (0, 10, 25, 50, 75, 90, 100)
    rows = [
        (what, *(f"{value:.3f}" for value in np.percentile(values, percents)))
        for what, values in (
            ("gain over the given order, %", 100 * np.array(over_given)),
            ("gain over the predicted-worst order, %", 100 * np.array(over_worst)),
            ("rank correlation within a set", correlations),
            ("makespan error, %", 100 * np.array(errors)),
        )
        if len(values)
    ]
    title = f"advised orders, {len(sets)} sets: percentile"
    won = sum(gain > 0.01 for gain in over_given), sum(gain < -0.01 for gain in over_given)
    return (
        _table((title, *map(str, percents)), rows)
        + f"\nmean rank correlation {np.mean(correlations) if correlations else np.nan:.3f}; the "
        + f"advised order is more than 1 % faster than the given one in {won[0]} of "
        + f"{len(over_given)} sets and more than 1 % slower in {won[1]}"
    )


def rank_correlation(a: list[float], b: list[float]) -> float | None:
    """Spearman's, with equal ranks for what differs by less than a thousandth; None if all do."""
    first, second = (_ranks(np.array(values)) for values in (a, b))
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return None
    return float(np.corrcoef(first, second)[0, 1])


def _ranks(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    equal = np.abs(np.subtract.outer(values, values)) <= 1e-3 * values
    less = np.less.outer(values, values) & ~equal
    return np.asarray(less.sum(axis=0) + (equal.sum(axis=0) - 1) / 2)


def _table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    return render(table_of(headings, rows))


if __name__ == "__main__":
    sys.exit(main())
