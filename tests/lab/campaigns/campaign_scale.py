"""How much faster a campaign is on several GPUs of one host, and whether it finds the same.

    python tests/lab/campaigns/campaign_scale.py --out DIR --count 12000
    python tests/lab/campaigns/campaign_scale.py --out DIR --count 20 --rehearse

``Workers`` on the first GPU alone, on all GPUs, and on each other GPU alone, and then this process
without any. Each runs the same sequences, and workers also a campaign against a predictor that is
wrong on purpose: with all GPUs once more, while one of the workers is killed. Prints a table and
writes ``DIR/campaign_scale.txt`` and ``.json``. The exit status is 1 if two of them have found
something else.

``--rehearse`` takes the driver of tests/launcher/fake_driver for two GPUs: its numbers mean
nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import wait
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from rich.console import Console

import tbsched as tb
from lab.campaigns.campaign_speed import rehearsal
from lab.script import parse
from tbsched.campaigns import Report, SequenceOptions, Workers
from tbsched.launcher.query import gpus
from tbsched.views.tables import render, table_of

SEED = 20
WARM_UP = 10**9  # the number of its first sequence, which no other campaign draws
START = 3.0  # seconds in which a process starts
START_REHEARSED = 0.5
WRONG = "contiguous-shared-memory"  # an ablation that 4 of 1,000 sequences show on an H200
WIDTH = 140


def numbers(report: Report) -> dict[str, object]:
    """What must not depend on who ran the campaign."""
    names = ("examples", "disagreements", "launches", "blocks", "occupancy", "ended")
    return {
        **{name: getattr(report, name) for name in names},
        "unstable": len(report.unstable),
        "lost": len(report.lost),
        "counterexamples": [(found.id, found.shrunk) for found in report.counterexamples],
    }


class Scale:
    """Campaigns of the same sequences, by several kinds of workers.

    Attributes:
        spec: the device that predicts.
        rows: what was measured, as it was: one a campaign.
    """

    def __init__(
        self, spec: tb.DeviceSpec, wrong: tb.DeviceSpec, count: int, out: Path, start: float = START
    ) -> None:
        self.spec, self.wrong, self.count, self.out, self.start = spec, wrong, count, out, start
        self.rows: list[dict[str, Any]] = []

    def all_of(self, who: str, workers: Workers | None) -> None:
        """Every campaign, after a short one in which processes start and kernels are loaded."""
        if workers is not None:  # while one sleeps, the others start
            wait([workers.submit(time.sleep, self.start) for _ in range(len(workers))])
        self._campaign(workers, self.spec, self.count // 4, begin=WARM_UP)
        narrow = SequenceOptions()
        self.row(who, "default", self._campaign(workers, self.spec, self.count))
        found = self._campaign(workers, self.spec, 2 * self.count, options=narrow)
        self.row(who, "threads, registers, shared memory", found)
        if workers is not None:
            self.caught(who, workers)

    def caught(self, who: str, workers: Workers) -> None:
        """What a predictor does wrong that is wrong on purpose."""
        found = self._campaign(workers, self.wrong, self.count // 8, most=None)
        self.row(who, "wrong predictor", found)

    def row(self, who: str, what: str, report: Report) -> None:
        """Said and written at once: it survives whatever comes after it."""
        row: dict[str, Any] = {
            "who": who,
            "what": what,
            "seconds": report.seconds,
            **numbers(report),
        }
        row["per_second"] = report.examples / report.seconds
        self.rows.append(row)
        print(f"{who}, {what}: {row['per_second']:,.0f} sequences/s", file=sys.stderr)
        (self.out / "campaign_scale.json").write_text(json.dumps(self.rows, indent=1), "utf-8")

    def differing(self) -> list[str]:
        """Which rows found something else than the first of workers with the same sequences."""
        first: dict[object, dict[str, Any]] = {}
        wrong = []
        for row in self.rows:
            kept = {k: v for k, v in row.items() if k not in ("who", "seconds", "per_second")}
            if first.setdefault(row["what"], kept) != kept:
                wrong.append(f"{row['who']}, {row['what']}")
        return wrong

    def _campaign(
        self,
        workers: Workers | None,
        spec: tb.DeviceSpec,
        count: int,
        *,
        begin: int = 0,
        most: int | None = 0,
        options: SequenceOptions | None = None,
    ) -> Report:
        return tb.fuzz(
            "gpu", spec, seed=SEED, begin=begin, max_examples=count, max_counterexamples=most,
            options=options, shrink_seconds=60.0, executor=workers, progress=False,
        )  # fmt: skip


@contextmanager
def killed(workers: Workers, after: float) -> Iterator[None]:
    """One of the workers is killed after so many seconds."""
    victim = workers.submit(os.getpid).result()

    def kill() -> None:
        time.sleep(after)
        os.kill(victim, signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    yield
    thread.join()


def measure(scale: Scale, count: int, kill_after: float) -> None:
    """Everything, on so many GPUs."""
    for number in range(count):
        with Workers.on_gpus([number]) as workers:
            scale.all_of(f"GPU {number}", workers)
        if number == 0 and count > 1:
            with Workers.on_gpus(range(count)) as workers:
                scale.all_of(f"{count} GPUs", workers)
                with killed(workers, kill_after):
                    scale.caught(f"{count} GPUs, a worker killed", workers)
    scale.all_of("one process", None)


def table(rows: list[dict[str, Any]]) -> str:
    """What was measured, beside the first GPU alone."""
    alone = {row["what"]: row["per_second"] for row in rows if row["who"] == "GPU 0"}
    cells = []
    for row in rows:
        rate = row["per_second"]
        counts = (row["disagreements"], len(row["counterexamples"]), row["unstable"], row["lost"])
        cells.append(
            (
                row["who"], row["what"], f"{row['examples']:,}", f"{row['seconds']:.1f}",
                f"{rate:,.0f}", f"{rate / alone[row['what']]:.2f}", *map(str, counts),
            )
        )  # fmt: skip
    headings = (
        "who", "what", "sequences", "s", "sequences/s", "of GPU 0", "disagree", "counterexamples",
        "unstable", "lost",
    )  # fmt: skip
    return render(table_of(headings, cells))


def main() -> int:
    """Measures, prints and writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=12_000, help="sequences of a campaign")
    parser.add_argument("--device", default="h200", help="the device that predicts")
    parser.add_argument("--rehearse", action="store_true", help="without a GPU")
    arguments = parse(parser)
    with tempfile.TemporaryDirectory() as folder:
        if arguments.rehearse:
            os.environ["CUDA_VISIBLE_DEVICES"] = "0,1"
            spec = wrong = rehearsal(Path(folder))
        else:
            spec = tb.device(arguments.device)
            wrong = tb.device(f"{arguments.device}-{WRONG}")
        start = START_REHEARSED if arguments.rehearse else START
        scale = Scale(spec, wrong, arguments.count, arguments.out, start)
        measure(scale, 2 if arguments.rehearse else gpus(), 0.2 if arguments.rehearse else 0.5)
    differing = scale.differing()
    text = table(scale.rows) + "\n\n"
    text += "".join(f"found something else: {name}\n" for name in differing)
    Console(highlight=False, soft_wrap=True, width=WIDTH).print(text, markup=False)
    (arguments.out / "campaign_scale.txt").write_text(text, "utf-8")
    # An emulated GPU on a busy machine is late, and does not always repeat itself.
    return int(bool(differing) and not arguments.rehearse)


if __name__ == "__main__":
    sys.exit(main())
