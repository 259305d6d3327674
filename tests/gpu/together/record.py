"""Do random groups of launches meet on the GPU exactly where the model says so? In all orders.

    record.py --out DIR [--seed N] [--count N] [--seconds S] [--device h200]

Writes ``meetings.jsonl.xz``, a trace for each order of each group with the keys ``groups`` and
``met``, and ``meetings.json``, the score. Exit status 1 if a run disagrees with the model.
"""

from __future__ import annotations

import argparse
import json
import lzma
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from script import parse
from together.groups import Group, random_groups

import tbsched as tb
from tbsched.launcher.observe import Gpu
from tbsched.traces.growing_file import TraceFile

SHOWN = 20  # disagreements in the report


@dataclass(slots=True)
class Score:
    """What was predicted and what was seen.

    Attributes:
        counts: runs, those that hang on the GPU, wrong ones, and others by name.
        wrong: the first runs that disagree, by id.
        refused: why the driver would not run some.
    """

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    def add(self, name: str, predicted: tb.Trace, found: tb.Meeting) -> None:
        """A run; it hangs exactly where some block was not placed."""
        hangs = any((placement.smid < 0).any() for placement in predicted)
        self.counts["runs"] += 1
        self.counts["hang"] += not found
        self.counts["predicted to hang"] += hangs
        pairs = list(zip(predicted, found.trace, strict=True))
        self.counts["as many blocks"] += all(one.placed == other.placed for one, other in pairs)
        self.counts["same SMs"] += all(np.array_equal(one.smid, o.smid) for one, o in pairs)
        if hangs == bool(found):
            self.counts["wrong"] += 1
            self.wrong.append(name)


@dataclass(frozen=True, slots=True)
class Asked:
    """One order of one group."""

    group: Group
    order: tuple[int, ...]

    @property
    def name(self) -> str:
        return f"g{self.group.number}-{''.join(map(str, self.order))}"

    @property
    def sequence(self) -> tb.Sequence:
        return self.group.arriving(self.order)


def main() -> int:
    """Records, and compares as it goes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="of the draw")
    parser.add_argument("--count", type=int, default=300, help="groups")
    parser.add_argument("--seconds", type=float, default=90, help="after which no more are run")
    parser.add_argument("--device", default="h200", help="whose model predicts")
    arguments = parse(parser)
    spec = tb.device(arguments.device)
    begin = time.monotonic()
    asked = [
        Asked(group, order)
        for group in random_groups(arguments.seed, arguments.count, spec)
        for order in group.orders()
    ]
    predictions = tb.predict_many([one.sequence for one in asked], spec)
    drawn = time.monotonic()
    score = Score()
    recorded = arguments.out / "meetings.jsonl"
    with Gpu(0) as gpu, TraceFile(recorded, sync_every=1000) as file:
        for number, found in run_all(gpu, asked, drawn + arguments.seconds, score):
            name = asked[number].name
            if not isinstance(found, tb.Meeting):
                score.counts[type(found).__name__] += 1
                print(f"{name}: {found}", flush=True)
                continue
            file.append(replace(found.trace, id=name, check=False))
            score.add(name, predictions[number], found)
        spent = gpu.time_spent()
    end = time.monotonic()
    packed = recorded.with_suffix(".jsonl.xz")
    packed.write_bytes(lzma.compress(recorded.read_bytes()))
    recorded.unlink()
    report = {
        "device": spec.name, "seed": arguments.seed, "groups": arguments.count,
        "asked": len(asked), **score.counts, "wrong_runs": score.wrong, "refused": score.refused,
        "seconds_drawing": drawn - begin, "seconds_running": end - drawn, "spent": spent,
    }  # fmt: skip
    (arguments.out / "meetings.json").write_text(json.dumps(report, indent=1), "utf-8")
    for key, value in report.items():
        print(f"{key}: {value[:SHOWN] if isinstance(value, list) else value}")
    return int(score.counts["wrong"] != 0)


def run_all(
    gpu: Gpu, asked: list[Asked], until: float, score: Score
) -> Iterator[tuple[int, tb.Meeting | tb.UnstableMeasurement | tb.DeadlineExceeded]]:
    """Each of them with its number; what the driver refuses is left out."""
    number = 0
    while number < len(asked):
        try:
            for found in tb.meet_many((one.sequence for one in asked[number:]), gpu=gpu):
                yield number, found
                number += 1
                if time.monotonic() > until:
                    return
        except ValueError as error:
            score.counts["refused"] += 1
            score.refused.append(f"{asked[number].name}: {error}")
            number += 1


if __name__ == "__main__":
    sys.exit(main())
