"""Everything that needs a GPU: tests, recordings, predictors that are wrong on purpose, a campaign.

Run by ``make gpu OUT=dir``. Writes ``report.md``, the logs and the traces to the folder; exit
status 1 if a test failed or a predictor was not judged as expected.
"""

from __future__ import annotations

import argparse
import lzma
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from rich.console import Console

import tbsched as tb
from gpu.together.record import Score, draw
from gpu.together.record import record as record_meetings
from lab.script import parse
from tbsched.campaigns.campaign import record
from tbsched.campaigns.results import Report
from tbsched.comparison.verify import verify
from tbsched.launcher.observe import Gpu
from tbsched.views.tables import render, table_of

HERE = Path(__file__).parent
LADDER = ("first_fit", "algorithm1_printed", "round_robin", "most_room", "algorithm1", "hopper")
# Predictors that are wrong on purpose: device, policy, and what is wrong.
WRONG = (
    ("h200-no-warp-skip", None, "no warp skip"),
    ("h200-paper-order", None, "SM order of Ampere"),
    ("h200", "round_robin", "round robin"),
)
MOST_LAUNCHES = 3
MEETING_GROUPS = 300
MOST_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Caught:
    """A campaign against a wrong predictor."""

    what: str
    report: Report

    @property
    def as_expected(self) -> bool:
        found = self.report.counterexamples
        return bool(found) and (
            len(found[0].sequence.launches) <= MOST_LAUNCHES and self.report.seconds <= MOST_SECONDS
        )


def main() -> int:
    """Runs all parts and writes the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120, help="length of the last campaign")
    parser.add_argument("--count", type=int, default=2500, help="random sequences to record")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of all parts")
    arguments = parse(parser)
    out: Path = arguments.out
    console = Console()

    console.rule("hardware tests")
    tests = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-m",
            "tbsched_gpu",
            "-q",
            str(HERE),
            "-p",
            "no:cacheprovider",
        ],
        check=False,
    ).returncode

    with Gpu(0) as gpu:
        console.rule("random sequences")
        recorded = out / "random.jsonl"
        recording = record(gpu, recorded, arguments.count, predictor="h200", seed=arguments.seed)
        console.print(str(recording), markup=False)
        ladder = ladder_text(recorded)
        console.print(ladder, markup=False)
        compress(recorded)

        console.rule("predictors that are wrong on purpose")
        caught = [
            Caught(
                what,
                tb.fuzz(
                    gpu,
                    device,
                    policy,
                    limits="h200",
                    seed=arguments.seed,
                    shrink_seconds=30,
                    max_seconds=MOST_SECONDS / 2,
                    corpus=out / f"wrong-{what.replace(' ', '-')}.jsonl",
                ),
            )
            for device, policy, what in WRONG
        ]
        for row in caught:
            console.print(f"{row.what}: {row.report}", markup=False)

        console.rule("campaign")
        campaign = tb.fuzz(
            gpu,
            "h200",
            max_examples=10**9,
            max_seconds=arguments.seconds,
            max_counterexamples=3,
            level="exact",
            seed=arguments.seed + 1,
            corpus=out / "campaign.jsonl",
        )
        console.print(str(campaign), markup=False)

        console.rule("groups of launches that meet")
        spec = tb.device("h200")
        meetings = record_meetings(
            gpu, spec, draw(spec, arguments.seed, MEETING_GROUPS), out, MOST_SECONDS
        )
        console.print(str(meetings), markup=False)
        info = gpu.info

    text = report_text(info, arguments.seed, tests, recording, ladder, caught, campaign, meetings)
    (out / "report.md").write_text(text, "utf-8")
    as_expected = all(row.as_expected for row in caught) and meetings.counts["wrong"] == 0
    return int(tests != 0 or not as_expected)


def ladder_text(recorded: Path) -> str:
    """How far each policy agrees with what was recorded."""
    traces = tb.load_traces(recorded)
    rows = []
    for policy in LADDER:
        score = verify(traces, "h200", policy)
        shares = (
            score.occupancy / score.launches,
            score.exact / score.launches,
            score.whole / score.sequences,
        )
        counts = (str(score.sequences), str(score.launches))
        rows.append((policy, *counts, *(f"{100 * share:.3f}" for share in shares)))
    headings = ("policy", "sequences", "launches", "occupancy %", "exact %", "sequences %")
    return render(table_of(headings, rows))


def compress(path: Path) -> None:
    """Replaces a trace file by its ``.xz``."""
    packed = path.with_suffix(path.suffix + ".xz")
    packed.write_bytes(lzma.compress(path.read_bytes()))
    path.unlink()


def report_text(
    info: object,
    seed: int,
    tests: int,
    recording: Report,
    ladder: str,
    caught: list[Caught],
    campaign: Report,
    meetings: Score,
) -> str:
    """The report, in Markdown."""
    wrong = "\n\n".join(f"{row.what}:\n\n```\n{row.report}\n```" for row in caught)
    return f"""# tbsched on a GPU

{info}; seed {seed}; hardware tests: {"passed" if tests == 0 else f"FAILED, status {tests}"}

## Random sequences of launches and releases

```
{recording}

{ladder}
```

## Predictors that are wrong on purpose

{wrong}

## Campaign, every block

```
{campaign}
```

## Groups of launches that meet, all orders

```
{meetings}
```
"""


if __name__ == "__main__":
    sys.exit(main())
