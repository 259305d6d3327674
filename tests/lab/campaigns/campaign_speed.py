"""How fast a campaign is on a GPU, beside its floor, and where its time goes.

    python tests/lab/campaigns/campaign_speed.py --out DIR --seconds 20
    python tests/lab/campaigns/campaign_speed.py --out DIR --launches 1000000
    python tests/lab/campaigns/campaign_speed.py --out DIR --rehearse

Prints tables and writes them to ``DIR/campaign_speed.txt``; with ``--launches``, also a native
campaign at level exact of so many launches, whose false mismatches are to be none: exit status 1 if
there are any. ``--rehearse`` takes the driver of tests/launcher/fake_driver: its numbers mean
nothing.

The floor is the same launches with nothing recorded (campaign_speed.cc): once with blocks that
leave at once, once held and released, without ever waiting for what happens on the GPU within a
sequence.
"""

from __future__ import annotations

import argparse
import ctypes
import itertools
import os
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from rich.console import Console

import tbsched as tb
from compiled import FAKE_DRIVER, ROOT, shared_library
from lab.script import parse
from tbsched.campaigns import Report, SequenceOptions
from tbsched.campaigns.judge import HASTY_SETTLE
from tbsched.campaigns.oracles import THREADS
from tbsched.campaigns.space.draws import Draws
from tbsched.launcher.observe import Gpu, Smids
from tbsched.prediction.tables import predict_until_refused
from tbsched.program.event_table import RELEASE, EventTable
from tbsched.views.tables import render, table_of

PHASES = ("plan", "launch", "release", "clean_up", "synchronise", "judge", "settle")
SLEEP = 1.0  # seconds that a block of the paper's framework stays
PAPERS_SEQUENCES = 3
SEED = 20
WIDTH = 160


@dataclass(frozen=True, slots=True)
class Speed:
    """One row of the table."""

    what: str
    sequences: int
    launches: int
    seconds: float

    def row(self, floor: Speed | None) -> tuple[str, ...]:
        rate = self.launches / self.seconds
        share = "" if floor is None else f"{rate / (floor.launches / floor.seconds):.3f}"
        counts = f"{self.sequences:,}", f"{self.launches:,}"
        return (self.what, *counts, f"{self.sequences / self.seconds:,.1f}", f"{rate:,.0f}", share)


class FloorEvent(ctypes.Structure):
    """As in campaign_speed.cc."""

    _fields_ = tuple(
        (name, ctypes.c_int32)
        for name in ("kind", "launch", "function", "blocks", "threads", "shared_memory")
    )


class Floor:
    """The launches alone, from campaign_speed.cc."""

    def __init__(self, folder: Path, architecture: str) -> None:
        driver = [ROOT / "cpp" / "launcher" / "driver" / f"{name}.cc" for name in
                  ("driver", "context", "device_properties", "surroundings")]  # fmt: skip
        library = folder / "libfloor.so"
        shared_library(library, [Path(__file__).with_name("campaign_speed.cc"), *driver], "-O2")
        self._library = ctypes.CDLL(str(library))
        self._library.floor_run.restype = ctypes.c_double
        self._architecture = architecture
        self._functions: dict[int, int] = {}

    def run(self, tables: list[EventTable], *, held: bool) -> float:
        """Seconds, of the launches alone."""
        events = [event for table in tables for event in self._events(table)]
        array = (FloorEvent * len(events))(*events)
        self._library.floor_run(array, len(events), int(held))  # warms up
        return float(self._library.floor_run(array, len(events), int(held)))

    def _events(self, table: EventTable) -> Iterator[FloorEvent]:
        for begin, end in itertools.pairwise(table.bounds.tolist()):
            number = 0
            for kind, first, threads, registers, shared, *_ in table.cells[begin:end].tolist():
                if kind == RELEASE:
                    yield FloorEvent(1, first)
                    continue
                yield FloorEvent(0, number, self._function(registers), first, threads, shared)
                number += 1
            yield FloorEvent(2)

    def _function(self, registers: int) -> int:
        if registers not in self._functions:
            from tbsched import _launcher

            image = _launcher.patch(_launcher.images()[self._architecture], registers, 0)
            self._library.floor_load(image, ctypes.c_size_t(len(image)))
            self._functions[registers] = len(self._functions)
        return self._functions[registers]


def rehearsal(folder: Path) -> tb.DeviceSpec:
    """Makes the emulated driver the one that is used, and says what it emulates.

    It is compiled unless TBSCHED_LIBCUDA names it.
    """
    if "TBSCHED_LIBCUDA" not in os.environ:
        library = folder / "libfake.so"
        shared_library(library, FAKE_DRIVER, "-O1")
        os.environ["TBSCHED_LIBCUDA"] = os.environ["TBSCHED_LIBNVML"] = str(library)
    return emulated()


def emulated() -> tb.DeviceSpec:
    """What the emulated driver emulates, more or less."""
    rows = {"sms": 4, "sm_preference": (0, 1, 2, 3), "gpcs": (), "policy": "most_room"}
    return replace(tb.device("h200"), max_cluster=1, **rows)  # type: ignore[arg-type]


def drawn(spec: tb.DeviceSpec, count: int) -> list[EventTable]:
    """What a campaign observes first."""
    state = spec.initial_states()[0]
    tables: list[EventTable] = []
    for table in Draws(spec, SequenceOptions(), SEED).tables():
        events = table.part(0, count).event_table()
        tables.append(predict_until_refused(events, spec, spec.policy, state, THREADS)[0])
        count -= len(events)
        if count == 0:
            return tables
    raise AssertionError


def launches_of(tables: list[EventTable]) -> int:
    return sum(int(table.launches.sum()) for table in tables)


def campaign(gpu: Gpu, spec: tb.DeviceSpec, draw: str, seconds: float, level: str) -> Report:
    return tb.fuzz(
        gpu,
        spec,
        draw=draw,
        level=level,
        options=SequenceOptions(),
        past_refusal=False,
        max_examples=10**9,
        max_seconds=seconds,
        max_counterexamples=0,
        seed=SEED,
        progress=False,
    )


def launcher_alone(gpu: Gpu, tables: list[EventTable]) -> Speed:
    """Everything that the launcher does, of sequences drawn before, and nothing is compared."""
    begin = time.monotonic()
    sequences = sum(map(len, gpu.observe_tables(tables, settle=HASTY_SETTLE, any_state=True)))
    seconds = time.monotonic() - begin
    return Speed("launcher alone", sequences, launches_of(tables), seconds)


def papers_way(gpu: Gpu, spec: tb.DeviceSpec, sleep: float) -> Speed:
    """Blocks that sleep; nothing is released before."""
    draws = itertools.islice(Draws(spec, SequenceOptions(), SEED), PAPERS_SEQUENCES)
    few = [draw.sequence.launches for draw in draws]
    begin = time.monotonic()
    for launches in few:
        gpu.observe(tb.Sequence([replace(launch, duration=sleep) for launch in launches]))
    seconds = time.monotonic() - begin
    return Speed(f"blocks that sleep {sleep:g} s", len(few), sum(map(len, few)), seconds)


class Known:
    """An oracle that knows what it will be asked, and answers at once."""

    def __init__(self, spec: tb.DeviceSpec, count: int) -> None:
        self._spec = spec
        state = spec.initial_states()[-1]
        self._smids = iter(
            [
                smid
                for table in drawn(spec, count)
                for smid in predict_until_refused(table, spec, spec.policy, state, THREADS)[1]
            ]
        )

    def observe(self, seq: tb.Sequence, /) -> tb.Trace:
        return tb.predict(seq, self._spec)

    def observe_tables(
        self, tables: Iterable[EventTable], /, *, settle: float = 0, any_state: bool = False
    ) -> Generator[list[Smids], None, None]:
        for table in tables:
            yield [*itertools.islice(self._smids, len(table))]


def host_rows(spec: tb.DeviceSpec, count: int) -> list[tuple[str, str]]:
    """Microseconds per sequence of what else is done while the GPU runs, of so many sequences."""
    rows = []
    for level in ("occupancy", "exact"):
        known = Known(spec, count)
        report = tb.fuzz(
            known, spec, draw="native", level=level, options=SequenceOptions(), past_refusal=False,
            max_examples=count, seed=SEED, max_counterexamples=0, progress=False,
        )  # fmt: skip
        rows.append((f"campaign, {level}", f"{1e6 * report.seconds / count:,.0f}"))
    return rows


def measure(gpu: Gpu, spec: tb.DeviceSpec, floor: Floor, seconds: float, sleep: float) -> str:
    """The tables."""
    gpu_phases: list[tuple[str, ...]] = []

    def with_phases(what: str, work: Callable[[], Speed]) -> Speed:
        before = gpu.time_spent()
        speed = work()
        spent = {key: value - before[key] for key, value in gpu.time_spent().items()}
        count = max(1, speed.sequences)  # a busy machine may come to none in the time
        per = [f"{1e6 * spent[phase] / count:,.0f}" for phase in PHASES]
        whole = f"{1e6 * speed.seconds / count:,.0f}"
        gpu_phases.append((what, whole, f"{spent['runs'] / count:.2f}", *per))
        return speed

    def fuzzed(draw: str, level: str) -> Speed:
        report = campaign(gpu, spec, draw, seconds, level)
        what = f"{draw} campaign, {level}"
        if report.disagreements or report.unstable:
            what += f" ({report.disagreements} disagree, {len(report.unstable)} unstable)"
        return Speed(what, report.examples, report.launches, report.seconds)

    rows: list[Speed] = []

    def add(speed: Speed) -> Speed:
        """Said at once: what was measured survives whatever comes after it."""
        print(f"{speed.what}: {speed.sequences} in {speed.seconds:.1f} s", file=sys.stderr)
        rows.append(speed)
        return speed

    tables = drawn(spec, max(200, int(200 * seconds)))
    launcher_alone(gpu, tables[:3])  # loads kernels
    sequences, count = sum(map(len, tables)), launches_of(tables)
    add(Speed("floor: leave at once", sequences, count, floor.run(tables, held=False)))
    held = add(Speed("floor: held", sequences, count, floor.run(tables, held=True)))
    add(with_phases("launcher alone", lambda: launcher_alone(gpu, tables)))
    for draw, level in itertools.product(("native", "hypothesis"), ("occupancy", "exact")):
        add(with_phases(f"{draw}, {level}", lambda d=draw, v=level: fuzzed(d, v)))
    add(papers_way(gpu, spec, sleep))
    headings = ("", "sequences", "launches", "sequences/s", "launches/s", "of floor: held")
    phase_headings = ("us per sequence", "whole", "runs", *PHASES)
    parts = (
        table_of(headings, [speed.row(held) for speed in rows]),
        table_of(phase_headings, gpu_phases),
        table_of(
            ("beside the GPU, us per sequence", ""), host_rows(spec, min(5000, 5 * sequences))
        ),
    )
    return "\n\n".join(render(part) for part in parts)


def false_mismatches(gpu: Gpu, spec: tb.DeviceSpec, launches: int) -> tuple[str, bool]:
    """Campaigns of so many launches in all; True if one disagreed."""
    done = sequences = blocks = disagreements = unstable = 0
    begin = time.monotonic()
    for seed in itertools.count(SEED + 1):
        report = tb.fuzz(
            gpu, spec, level="exact", draw="native", max_counterexamples=0,
            max_examples=max(1, min(20_000, (launches - done) // 4)), seed=seed, progress=False,
        )  # fmt: skip
        done += report.launches
        sequences += report.examples
        blocks += report.blocks
        disagreements += report.disagreements
        unstable += len(report.unstable)
        if done >= launches:
            break
    seconds = time.monotonic() - begin
    text = (
        f"{done:,} launches, {blocks:,} blocks in {sequences:,} sequences and {seconds:,.0f} s: "
        f"{disagreements} sequences disagree on some block, {unstable} unstable"
    )
    return text, disagreements > 0


def main() -> int:
    """Measures, prints and writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20, help="of each campaign")
    parser.add_argument("--launches", type=int, default=0, help="of the long campaign")
    parser.add_argument("--rehearse", action="store_true", help="without a GPU")
    arguments = parse(parser)
    console = Console(highlight=False, soft_wrap=True, width=WIDTH)
    mismatch = False
    with tempfile.TemporaryDirectory() as folder:
        spec = rehearsal(Path(folder)) if arguments.rehearse else tb.device("h200")
        with Gpu(0) as gpu:
            capability = str(gpu.info.details["compute_capability"])
            floor = Floor(Path(folder), "sm_" + capability.replace(".", ""))
            text = f"{gpu.info.name}\n\n" + measure(
                gpu, spec, floor, arguments.seconds, SLEEP / 50 if arguments.rehearse else SLEEP
            )
            if arguments.launches:
                long, mismatch = false_mismatches(gpu, spec, arguments.launches)
                text += f"\n\n{long}"
    console.print(text, markup=False)
    (arguments.out / "campaign_speed.txt").write_text(text + "\n", "utf-8")
    return int(mismatch)


if __name__ == "__main__":
    sys.exit(main())
