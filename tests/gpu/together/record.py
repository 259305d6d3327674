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
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
import numpy.typing as npt
from script import parse
from together.groups import Group, random_groups

import tbsched as tb
from tbsched.hardware.spec import DeviceSpec
from tbsched.launcher.observe import Gpu
from tbsched.traces.growing_file import TraceFile

SHOWN = 20  # runs in the report
# What disagrees runs again so often, and a group hangs only after so many seconds.
AGAIN, PATIENT = 3, 0.05


@dataclass(slots=True)
class Score:
    """What was predicted and what was seen.

    Attributes:
        asked: orders of groups.
        counts: how many ran, hang on the GPU, are wrong, and others by name.
        wrong: the numbers of the runs that hang and should not, or the other way round.
        again: by the names of these, whether they meet when they run again.
        others: what was refused, or says nothing, with the reason.
        seconds: for all runs.
        spent: of these, what the launcher's went into.
    """

    asked: int
    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[int] = field(default_factory=list)
    again: dict[str, list[bool]] = field(default_factory=dict)
    others: list[str] = field(default_factory=list)
    seconds: float = 0.0
    spent: dict[str, float] = field(default_factory=dict)

    def add(self, number: int, predicted: tb.Trace, found: tb.Meeting) -> None:
        """A run; it hangs exactly where some block of the group was not placed.

        In a race nobody knows which SMs blocks find, and so not whether the next launch fits.
        """
        if is_race(predicted):
            self.counts["races"] += 1
            return
        hangs = hang(predicted, found.groups[0])
        pairs = list(zip(predicted, found.trace, strict=True))
        self.counts["runs"] += 1
        self.counts["hang"] += not found
        self.counts["predicted to hang"] += hangs
        self.counts["as many blocks of each launch"] += all(a.placed == b.placed for a, b in pairs)
        self.counts["same SMs"] += all(np.array_equal(a.smid, b.smid) for a, b in pairs)
        self.counts["wrong"] += hangs == bool(found)
        if hangs == bool(found):
            self.wrong.append(number)

    def __str__(self) -> str:
        counts = "\n".join(f"{name}: {count}" for name, count in self.counts.items())
        spent = ", ".join(f"{name} {value:.3f}" for name, value in self.spent.items())
        again = "\n".join(f"{name} met again: {met}" for name, met in self.again.items())
        others = "\n".join(self.others[:SHOWN])
        return f"{self.asked} asked in {self.seconds:.1f} s ({spent})\n{counts}\n{again}\n{others}"


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

    @property
    def groups(self) -> list[list[int]]:
        return self.group.meeting(self.order)


def main() -> int:
    """Records, and compares as it goes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="of the draw")
    parser.add_argument("--count", type=int, default=300, help="groups")
    parser.add_argument("--seconds", type=float, default=90, help="after which no more are run")
    parser.add_argument("--device", default="h200", help="whose model predicts")
    arguments = parse(parser)
    spec = tb.device(arguments.device)
    asked = draw(spec, arguments.seed, arguments.count)
    with Gpu(0) as gpu:
        score = record(gpu, spec, asked, arguments.out, arguments.seconds)
    print(f"seed {arguments.seed}\n{score}")
    return int(score.counts["wrong"] != 0)


def hang(predicted: tb.Trace, group: Iterable[int]) -> bool:
    """Whether some block of these launches is never placed."""
    return any((final_smid(predicted[number]) < 0).any() for number in group)


def is_race(predicted: tb.Trace) -> bool:
    """Whether blocks that wait find room while others leave."""
    return any(((p.smid < 0) & (final_smid(p) >= 0)).any() for p in predicted)


def final_smid(placement: tb.Placement) -> npt.NDArray[np.int32]:
    assert placement.final_smid is not None  # a held sequence has it
    return placement.final_smid


def draw(spec: DeviceSpec, seed: int, count: int) -> list[Asked]:
    """All orders of so many random groups."""
    groups = random_groups(seed, count, spec)
    return [Asked(group, order) for group in groups for order in group.orders()]


def record(gpu: Gpu, spec: DeviceSpec, asked: list[Asked], out: Path, seconds: float) -> Score:
    """Runs them, for so many seconds, and writes what came of it and the score."""
    predictions = tb.predict_many([one.sequence for one in asked], spec)
    begin = time.monotonic()
    score = Score(len(asked))
    recorded = out / "meetings.jsonl"
    before = gpu.time_spent()
    with TraceFile(recorded, sync_every=1000) as file:
        for number, found in run_all(gpu, asked, begin + seconds, score):
            name = asked[number].name
            if not isinstance(found, tb.Meeting):
                score.counts[type(found).__name__] += 1
                score.others.append(f"{name}: {found}")
                continue
            file.append(bare(found.trace, name))
            score.add(number, predictions[number], found)
    score.seconds = time.monotonic() - begin
    score.spent = {key: value - before[key] for key, value in gpu.time_spent().items()}
    for number in score.wrong[:SHOWN]:
        sequences, groups = [asked[number].sequence] * AGAIN, [asked[number].groups] * AGAIN
        again = tb.meet_many(sequences, groups, gpu=gpu, limit=PATIENT)
        score.again[asked[number].name] = [isinstance(f, tb.Meeting) and bool(f) for f in again]
    packed = recorded.with_suffix(".jsonl.xz")
    packed.write_bytes(lzma.compress(recorded.read_bytes(), preset=2))
    recorded.unlink()
    (out / "meetings.json").write_text(
        json.dumps({each.name: getattr(score, each.name) for each in fields(score)}, indent=1),
        "utf-8",
    )
    return score


def bare(trace: tb.Trace, name: str) -> tb.Trace:
    """Without times, which take most of a file."""
    placements = tuple(tb.Placement(p.smid, final_smid=p.final_smid) for p in trace)
    return replace(trace, id=name, placements=placements, check=False)


def run_all(
    gpu: Gpu, asked: list[Asked], until: float, score: Score
) -> Iterator[tuple[int, tb.Meeting | tb.UnstableMeasurement | tb.DeadlineExceeded]]:
    """Each of them with its number; what the driver refuses is left out."""
    number = 0
    while number < len(asked):
        try:
            rest = asked[number:]
            sequences, groups = (one.sequence for one in rest), (one.groups for one in rest)
            for found in tb.meet_many(sequences, groups, gpu=gpu):
                yield number, found
                number += 1
                if time.monotonic() > until:
                    return
        except ValueError as error:
            score.counts["refused"] += 1
            score.others.append(f"{asked[number].name}: {error}")
            number += 1


if __name__ == "__main__":
    sys.exit(main())
