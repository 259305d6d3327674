"""Scores predictions of real programs: run a again, run b, and the changed run c.

    python tests/real/score.py FOLDER --device h100

FOLDER has NAME-a, NAME-b and NAME-c, each a Kineto trace (``.json.gz``) or a capture
(``.jsonl``, ``.jsonl.xz``), as examples/real/record.py makes them. Durations are fitted on run a:

- *again*: run a is predicted from its own durations and gaps. A check, no evidence.
- *b*: the same prediction, compared with run b, which was not used.
- *c*: the calls of run c with the durations and gaps of run a. Of run c no time is used.

There may be more runs of the same, NAME-b2, NAME-b3, …: pairs of kernels that overlap are then
counted for each of them. What the GPU gets right that way is in the last column: each of these runs
in the place of the prediction.
"""

from __future__ import annotations

import argparse
import statistics
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import tbsched as tb
from tbsched.prediction.program_device import device_of
from tbsched.program.sequence import with_launches

SILENCE_NS = 30_000_000  # before the measured part of a recording of a whole process
TOLERANCE = 0.05  # of the shorter launch: so much must overlap, as in tb.compare_times
ENDINGS = (".json.gz", ".jsonl.xz", ".jsonl")
WORK = tb.Launch | tb.GraphLaunch | tb.Copy | tb.Memset


@dataclass(frozen=True, slots=True)
class Times:
    """When each launch started and ended, float64 ns, from the first start on."""

    start: np.ndarray
    end: np.ndarray

    @property
    def makespan(self) -> float:
        return float(self.end.max())

    def overlapping(self) -> np.ndarray:
        """Whether launches ran at the same time, bool (launches, launches)."""
        both = np.minimum.outer(self.end, self.end) - np.maximum.outer(self.start, self.start)
        length = self.end - self.start
        return np.asarray(both > TOLERANCE * np.minimum.outer(length, length))

    def ordered(self, order: list[int]) -> Times:
        return Times(self.start[order], self.end[order])


class Pairs(NamedTuple):
    """How many pairs overlap in a run or in its prediction, and how many of them in both."""

    either: int = 0
    both: int = 0

    def __str__(self) -> str:
        return f"{self.both} of {self.either}"

    @classmethod
    def of_all(cls, several: Iterable[Pairs]) -> Pairs:
        return cls(*map(sum, zip(*several, strict=True)))


@dataclass(frozen=True, slots=True)
class Row:
    """The errors of a program: predicted less measured, as shares of the measured makespan."""

    name: str
    launches: int
    again: float
    repeats: float  # run a's makespan less run b's: what no prediction can know
    b: float
    c: float
    c_own_gaps: float  # with the gaps of run c
    gain: float  # share of run a's makespan that the change saves, measured
    predicted_gain: float
    pairs_b: Pairs  # of run b
    all_b: Pairs  # of all runs of the same
    of_runs: Pairs  # of all of them, where the prediction is one of the others


def times(starts: Iterable[float], ends: Iterable[float]) -> Times:
    start, end = np.array(list(starts), np.float64), np.array(list(ends), np.float64)
    return Times(start - start.min(), end - start.min())


def measured(program: tb.Program) -> Times:
    return times(program.measured["start_ns"], program.measured["end_ns"])


def predicted(
    sequence: tb.Sequence, spec: tb.DeviceSpec, host: Iterable[float], overhead: float
) -> Times:
    """When kernels run by the model, which a profile shows so many seconds longer."""
    trace = tb.predict(sequence, spec, host=tuple(host))
    over_ns = overhead * 1e9
    return times((x.start_ns.min() for x in trace), (x.end_ns.max() + over_ns for x in trace))


def loaded(file: Path) -> tb.Program:
    """The measured part of a recording: what comes after the last long silence."""
    program = without_earlier_calls(tb.load_program(file, fit=False))
    work = [program.measured, program.transfers]
    start = np.concatenate([rows["start_ns"] for rows in work])
    end = np.concatenate([rows["end_ns"] for rows in work])
    order = np.argsort(start)
    start, end = start[order], np.maximum.accumulate(end[order])
    silent = np.flatnonzero(start[1:] - end[:-1] > SILENCE_NS)
    if not len(silent):
        return program
    middle = (start[silent[-1] + 1] + end[silent[-1]]) / 2
    begin = float(middle - start[0]) / 1e9
    return without_earlier_calls(tb.load_program(file, start=begin, fit=False))


def without_earlier_calls(program: tb.Program) -> tb.Program:
    """Without what the host called before the first work, and after the last."""
    events = program.sequence.events
    work = [k for k, event in enumerate(events) if isinstance(event, WORK)]
    kept = slice(work[0], min(work[-1] + 2, len(events)))
    host = (0.0, *program.host[kept][1:])
    return replace(program, sequence=tb.Sequence(events[kept]), host=host)


def kernel(launch: tb.Launch) -> Hashable:
    """What launches of one kernel have in common, whatever stream they are in."""
    return launch.name, launch.blocks, launch.threads, launch.shared_memory


def call(event: Any) -> Hashable:
    """What calls have in common that take the host the same time to prepare."""
    if isinstance(event, tb.Launch):
        return kernel(event)
    if isinstance(event, tb.Copy | tb.Memset):
        return type(event), event.bytes, getattr(event, "kind", None)
    return type(event)


class ByOccurrence:
    """Values by keys: the first, second, … of a key, and beyond that the middle one of them.

    Keys are given from the most to the least exact; the first that is known counts.
    """

    def __init__(self) -> None:
        self._known: dict[Hashable, list[Any]] = defaultdict(list)
        self._used: dict[Hashable, int] = defaultdict(int)

    def add(self, keys: Iterable[Hashable], value: float | tb.Drawn) -> None:
        for key in keys:
            self._known[key].append(value)

    def take(self, exact: Hashable, *others: Hashable) -> Any:
        number = self._used[exact]
        self._used[exact] += 1
        if number < len(self._known.get(exact, ())):
            return self._known[exact][number]
        for key in (exact, *others):
            if key in self._known:
                known = sorted(self._known[key], key=lambda one: getattr(one, "mean", one))
                return known[(len(known) - 1) // 2]
        return None


def _calls(program: tb.Program) -> Iterable[tuple[Hashable, Hashable, Hashable]]:
    """Returns the keys of each event's gap: after which call, which call, which type of call."""
    before: dict[int, Hashable] = {}
    for event in program.sequence:
        host, own = event.host, call(event)
        yield (before.get(host), own), own, type(event)
        before[host] = own


def transferred(
    a: tb.Program, fitted: tb.Program, c: tb.Program
) -> tuple[tb.Sequence, tuple[float, ...]]:
    """The calls of run c, with the durations and the gaps between calls of run a.

    Args:
        fitted: run a with fitted durations; launches of very many blocks have fewer there.

    Raises:
        ValueError: run c has a kernel that run a has not.
    """
    durations, gaps, copies = ByOccurrence(), ByOccurrence(), ByOccurrence()
    blocks = {}
    for launch, own in zip(a.sequence.launches, fitted.sequence.launches, strict=True):
        durations.add((kernel(launch), launch.name), own.duration)
        blocks[kernel(launch)] = own.blocks
    for keys, event, gap in zip(_calls(a), fitted.sequence, fitted.host, strict=True):
        if not getattr(event, "first_use", False):  # loading the kernel is part of that gap
            gaps.add(keys, gap)
        if isinstance(event, tb.Copy | tb.Memset) and event.duration is not None:
            copies.add((keys[1],), event.duration)
    launches = []
    for launch in c.sequence.launches:
        key, duration = kernel(launch), durations.take(kernel(launch), launch.name)
        if duration is None:
            raise ValueError(f"run c has a kernel that run a has not: {launch.name}")
        count = blocks.get(key, launch.blocks)
        launches.append(replace(launch, blocks=count, duration=duration))
    host = tuple(gaps.take(*keys) or 0.0 for keys in _calls(c))
    events = [
        replace(event, duration=copies.take(call(event)))
        if isinstance(event, tb.Copy | tb.Memset)
        else event
        for event in with_launches(c.sequence, launches)
    ]
    return tb.Sequence(events), host


def matched(a: tb.Program, b: tb.Program) -> list[int]:
    """For each launch of run a the same one of run b: threads may call in another order.

    Raises:
        ValueError: run b launched something else.
    """
    places: dict[Hashable, list[int]] = defaultdict(list)
    for number, launch in enumerate(b.sequence.launches):
        places[kernel(launch), int(b.measured["stream"][number])].append(number)
    found = []
    for number, launch in enumerate(a.sequence.launches):
        key = kernel(launch), int(a.measured["stream"][number])
        if not places[key]:
            raise ValueError(f"run b has no launch {number} of run a, {launch.name}")
        found.append(places[key].pop(0))
    return found


def overlaps(a: Times, b: Times, guess: Times) -> Pairs:
    """Pairs that overlap in run b or in the prediction.

    Only pairs count of which run a and run b say the same.
    """
    upper = np.triu(np.ones((len(a.start),) * 2, bool), 1)
    in_a, in_b, in_guess = (x.overlapping() for x in (a, b, guess))
    either = upper & (in_a == in_b) & (in_b | in_guess)
    return Pairs(int(either.sum()), int((either & in_b & in_guess).sum()))


def score(name: str, a: tb.Program, same: list[tb.Program], c: tb.Program, spec: tb.DeviceSpec,
          changed: tb.DeviceSpec | None = None) -> Row:  # fmt: skip
    """One program.

    Args:
        same: run b, and more runs of the same.
        spec: the device of runs a and b.
        changed: of run c, if the change is one of the device, such as its hardware queues.
    """
    changed = changed or spec
    fitted = tb.fit_durations(a, spec)
    run_a, run_c = measured(a), measured(c)
    runs = [measured(b).ordered(matched(a, b)) for b in same]
    run_b = runs[0]
    overhead = fitted.kernel_overhead
    again = predicted(fitted.sequence, spec, fitted.host, overhead)
    sequence, host = transferred(a, fitted, c)
    guess = predicted(sequence, changed, host, overhead)
    own_gaps = predicted(sequence, changed, c.host, overhead)
    pairs = [overlaps(run_a, run, again) for run in runs]
    pairs_of_runs = [
        overlaps(run_a, run, other) for run in runs for other in runs if other is not run
    ]
    return Row(
        name=name,
        launches=len(a.sequence.launches),
        again=again.makespan / run_a.makespan - 1,
        repeats=run_a.makespan / run_b.makespan - 1,
        b=again.makespan / run_b.makespan - 1,
        c=guess.makespan / run_c.makespan - 1,
        c_own_gaps=own_gaps.makespan / run_c.makespan - 1,
        gain=1 - run_c.makespan / run_a.makespan,
        predicted_gain=1 - guess.makespan / again.makespan,
        pairs_b=pairs[0],
        all_b=Pairs.of_all(pairs),
        of_runs=Pairs.of_all([Pairs(), *pairs_of_runs]),
    )


def _with(program: tb.Program, which: Callable[[tb.Launch], bool], **given: Any) -> tb.Program:
    """A program of which some launches are known better."""
    launches = [replace(x, **given) if which(x) else x for x in program.sequence.launches]
    return replace(program, sequence=with_launches(program.sequence, launches))


def told(name: str, run: str, program: tb.Program, spec: tb.DeviceSpec) -> tuple[Any, Any]:
    """What a user knows of their program, and a profile may not say."""
    changed = run == "c"
    spec = device_of(program, spec)
    match name:
        case "cupy_connections" if not changed:
            spec = replace(spec, hardware_queues=1)
        case "cupy_carveout" if changed:
            program = _with(program, lambda x: x.name == "logistic", carveout=100)
        case "cupy_legacy_stream":
            program = _with(program, lambda x: x.stream != tb.LEGACY_STREAM, non_blocking=changed)
        case "first_use" if not changed:
            program = _with(program, lambda x: "log1p" in (x.name or ""), first_use=True)
        case "priorities" if not changed:
            low = max(program.sequence.launches, key=lambda x: x.blocks).stream
            program = _with(program, lambda x: x.stream != low, priority=-1)
    return program, spec


def recording(folder: Path, name: str, run: str) -> Path:
    """The file of a run."""
    files = [folder / f"{name}-{run}{ending}" for ending in ENDINGS]
    return next((file for file in files if file.exists()), files[0])


def scored(folder: Path, name: str, device: str) -> Row:
    """A program of a folder."""
    spec = tb.device(device)
    runs = ["a", "b", "c", *[file.name.partition(".")[0].rpartition("-")[2]
                             for file in sorted(folder.glob(f"{name}-b[0-9]*"))]]  # fmt: skip
    a, b, c, *more = [told(name, x, loaded(recording(folder, name, x)), spec) for x in runs]
    return score(name, a[0], [x[0] for x in (b, *more)], c[0], a[1], c[1])


def names(folder: Path) -> list[str]:
    """The programs of a folder."""
    return sorted({file.name.rpartition("-a.")[0] for file in folder.glob("*-a.*")})


COLUMNS = {
    "again": "again", "repeats": "a, b", "b": "b", "c": "c", "c_own_gaps": "c, own gaps",
    "gain": "gain", "predicted_gain": "predicted",
}  # fmt: skip


PAIRS = ("pairs of b", "of all runs", "another run")


def pairs_of(rows: list[Row]) -> str:
    """The columns ``PAIRS`` of some rows together."""
    b = Pairs.of_all(row.pairs_b for row in rows)
    of_all = Pairs.of_all(row.all_b for row in rows)
    of_runs = Pairs.of_all(row.of_runs for row in rows)
    return f"{b} | {of_all} | {of_runs}"


def table(rows: list[Row]) -> str:
    """The rows as Markdown, in percent, with the median and the worst size of each column."""
    lines = ["| | launches | " + " | ".join(COLUMNS.values()) + f" | {' | '.join(PAIRS)} |"]
    lines.append("| --- |" + " ---: |" * (len(COLUMNS) + 1 + len(PAIRS)))
    for row in rows:
        values = " | ".join(f"{100 * getattr(row, x):.1f}" for x in COLUMNS)
        lines.append(f"| {row.name} | {row.launches} | {values} | {pairs_of([row])} |")
    empty = " | ".join([""] * len(PAIRS))
    for name, of, last in (("median", statistics.median, empty), ("worst", max, pairs_of(rows))):
        values = " | ".join(
            f"{100 * of(abs(getattr(row, x)) for row in rows):.1f}" for x in COLUMNS
        )
        lines.append(f"| {name} | | {values} | {last} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--device", required=True)
    parser.add_argument("--only", action="append", help="the name of a program")
    wanted = parser.parse_args()
    rows = []
    for name in wanted.only or names(wanted.folder):
        try:
            rows.append(scored(wanted.folder, name, wanted.device))
        except (OSError, TypeError, ValueError) as error:
            print(f"{name}: {error}")
    if rows:
        print(table(rows))


if __name__ == "__main__":
    main()
