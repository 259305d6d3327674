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

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np
import numpy.typing as npt

import tbsched as tb
from gpu.together.groups import FOREVER, STEP, Group, random_groups
from lab.script import parse_draw
from tbsched.hardware.spec import DeviceSpec
from tbsched.launcher.meet import LIMIT
from tbsched.launcher.observe import Gpu
from tbsched.traces.growing_file import TraceFile

SHOWN = 20  # runs in the report
# What disagrees runs again so often, and a group hangs only after so many seconds.
AGAIN, PATIENT = 3, 0.05
LATE_NS = 0.9e9 * FOREVER


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

    def add(
        self, number: int, asked: Asked, spec: DeviceSpec, predicted: tb.Trace, found: tb.Meeting
    ) -> None:
        """A run; it hangs exactly where some block of the group was not placed.

        Which blocks leave, where only some of a launch do, depends on the latent state. So what
        disagrees is predicted from all states. In a race nobody knows which SMs blocks find, and so
        not whether the next launch fits.
        """
        if is_race(predicted):
            self.counts["races"] += 1
            return
        hangs = hang(predicted, found.groups[0])
        smids = shown(found.trace)
        pairs = list(zip(shown(predicted), smids, strict=True))
        self.counts["runs"] += 1
        self.counts["some blocks leave"] += asked.group.timed
        self.counts["hang"] += not found
        self.counts["predicted to hang"] += hangs
        self.counts["as many blocks of each launch"] += all(
            (a >= 0).sum() == (b >= 0).sum() for a, b in pairs
        )
        self.counts["same SMs"] += all(np.array_equal(a, b) for a, b in pairs)
        if hangs != bool(found):
            return
        if any(_alike(predict(asked, spec, state), found) for state in spec.initial_states()):
            self.counts["every block as from another state"] += 1
            return
        self.counts["wrong"] += 1
        self.wrong.append(number)

    def __str__(self) -> str:
        counts = "\n".join(f"{name}: {count}" for name, count in self.counts.items())
        spent = ", ".join(f"{name} {value:.3f}" for name, value in self.spent.items())
        again = "\n".join(f"{name} met again: {met}" for name, met in self.again.items())
        others = "\n".join(self.others[:SHOWN])
        return f"{self.asked} asked in {self.seconds:.1f} s ({spent})\n{counts}\n{again}\n{others}"


def main() -> int:
    """Records, and compares as it goes."""
    parser = argparse.ArgumentParser(description=__doc__)
    arguments = parse_draw(parser, "groups", 300, 90)
    spec = tb.device(arguments.device)
    asked = draw(spec, arguments.seed, arguments.count)
    with Gpu(0) as gpu:
        score = record(gpu, spec, asked, arguments.out, arguments.seconds)
    print(f"seed {arguments.seed}\n{score}")
    return int(score.counts["wrong"] != 0)


def hang(predicted: tb.Trace, group: Iterable[int]) -> bool:
    """Whether some block of these launches never comes."""
    smids = shown(predicted)
    return any((smids[number] < 0).any() for number in group)


def shown(trace: tb.Trace) -> list[npt.NDArray[np.int32]]:
    """The SM of each block; -1 of one that never comes, or only when another leaves that stays."""
    found = []
    for placement in trace:
        smid, start_ns = placement.final_smid, placement.start_ns
        if trace.sequence.timed and start_ns is not None:
            smid = np.where(start_ns < LATE_NS, placement.smid, -1).astype(np.int32)
        assert smid is not None
        found.append(smid)
    return found


def is_race(predicted: tb.Trace) -> bool:
    """Whether blocks that wait find room while others leave."""
    for number, (placement, smid) in enumerate(zip(predicted, shown(predicted), strict=True)):
        waits = placement.smid < 0
        if predicted.sequence.timed and placement.start_ns is not None:
            waits = placement.start_ns > (number + 0.25) * STEP * 1e9
        if (waits & (smid >= 0)).any():
            return True
    return False


def _alike(predicted: tb.Trace, found: tb.Meeting) -> bool:
    pairs = zip(shown(predicted), shown(found.trace), strict=True)
    return hang(predicted, found.groups[0]) != bool(found) and all(
        np.array_equal(a, b) for a, b in pairs
    )


def predict(asked: Asked, spec: DeviceSpec, state: tb.InitialState | None = None) -> tb.Trace:
    times = asked.group.issue_times
    return tb.predict(asked.sequence, spec, initial_state=state, issue_times=times)


def draw(spec: DeviceSpec, seed: int, count: int) -> list[Asked]:
    """All orders of so many random groups."""
    groups = random_groups(seed, count, spec)
    return [Asked(group, order) for group in groups for order in group.orders()]


def record(gpu: Gpu, spec: DeviceSpec, asked: list[Asked], out: Path, seconds: float) -> Score:
    """Runs them, for so many seconds, and writes what came of it and the score."""
    predictions = [predict(one, spec) for one in asked]
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
            score.add(number, asked[number], spec, predictions[number], found)
    score.seconds = time.monotonic() - begin
    score.spent = {key: value - before[key] for key, value in gpu.time_spent().items()}
    for number in score.wrong[:SHOWN]:
        again = meetings(gpu, [asked[number]] * AGAIN, PATIENT)
        score.again[asked[number].name] = [isinstance(f, tb.Meeting) and bool(f) for f in again]
    packed = recorded.with_suffix(".jsonl.xz")
    packed.write_bytes(lzma.compress(recorded.read_bytes(), preset=2))
    recorded.unlink()
    (out / "meetings.json").write_text(
        json.dumps({each.name: getattr(score, each.name) for each in fields(score)}, indent=1),
        "utf-8",
    )
    return score


def meetings(
    gpu: Gpu, asked: list[Asked], limit: float = LIMIT
) -> Iterator[tb.Meeting | tb.UnstableMeasurement | tb.DeadlineExceeded]:
    return tb.meet_many(
        (one.sequence for one in asked),
        (one.groups for one in asked),
        gpu=gpu,
        limit=limit,
        issue_times=(one.group.issue_times for one in asked),
    )


def bare(trace: tb.Trace, name: str) -> tb.Trace:
    """Without times, which take most of a file."""
    placements = tuple(tb.Placement(p.smid, final_smid=p.final_smid) for p in trace)
    extra = {key: trace.extra[key] for key in ("groups", "met")}
    return replace(trace, id=name, placements=placements, extra=extra, check=False)


def run_all(
    gpu: Gpu, asked: list[Asked], until: float, score: Score
) -> Iterator[tuple[int, tb.Meeting | tb.UnstableMeasurement | tb.DeadlineExceeded]]:
    """Each of them with its number; what the driver refuses is left out."""
    number = 0
    while number < len(asked):
        try:
            rest = asked[number:]
            for found in meetings(gpu, rest):
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
