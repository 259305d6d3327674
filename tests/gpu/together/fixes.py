"""Does what tb.coresident says of random groups hold on the GPU? With real barriers.

    fixes.py --out DIR [--seed N] [--count N] [--seconds S] [--device h200] [--processes N]
             [--outsiders]

The witness of an unsafe group must hang, from its latent state. A safe group, and any other one
after each fix, must meet in every order of arrival. Where it is safe, or was not known to be, some
sets of blocks of an outsider leave, too. With ``--outsiders`` all groups have one; safe ones run
first, then those that are not known. Writes ``fixes.json``: how many of each kind ran, and all that
was otherwise. Exit status 1 if something was.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from script import parse_draw
from together.groups import FOREVER, STEP, Group, random_groups

import tbsched as tb
from tbsched.campaigns.steer import steer
from tbsched.cli.together.on_gpu import numbered, orders_of
from tbsched.hardware.spec import DeviceSpec
from tbsched.launcher.observe import Gpu

SHOWN = 20  # runs in the report
VERDICTS = (True, None, False)


class Run(NamedTuple):
    """A sequence, and whether it should hang."""

    name: str
    kind: str
    sequence: tb.Sequence
    groups: list[list[int]]
    hangs: bool
    state: tb.InitialState | None = None
    times: tuple[float, ...] | None = None


@dataclass(slots=True)
class Score:
    """What was answered, and what was seen.

    Attributes:
        answers: how many groups are safe, not safe, or not known; how many have no fix.
        runs: by kind, how many ran, and how many the driver refused.
        wrong: those that hung and should not, or the other way round.
        others: what was refused, or says nothing, with the reason.
        seconds: for all answers, and for all runs.
    """

    answers: Counter[str] = field(default_factory=Counter)
    runs: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    seconds: tuple[float, float] = (0.0, 0.0)

    def __str__(self) -> str:
        shown = "\n".join([*self.wrong[:SHOWN], *self.others[:SHOWN]])
        return f"{dict(self.answers)}\n{dict(self.runs)}\n{len(self.wrong)} wrong\n{shown}"


def main() -> int:
    """Asks, runs and compares."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--outsiders", action="store_true", help="only groups with an outsider")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="that ask")
    arguments = parse_draw(parser, "groups", 300)
    spec = tb.device(arguments.device)
    score = Score()
    begin = time.monotonic()
    groups = list(drawn(arguments.seed, arguments.count, spec, arguments.outsiders))
    with multiprocessing.get_context("spawn").Pool(arguments.processes) as pool:
        answers = pool.starmap(answer, [(group, spec) for group in groups], chunksize=4)
    asked = time.monotonic()
    pairs = list(zip(groups, answers, strict=True))
    if arguments.outsiders:
        pairs.sort(key=lambda pair: VERDICTS.index(pair[1].safe))
    with Gpu(0) as gpu:
        for group, found in pairs:
            count(score, found)
            for run in runs_of(group, found):
                play(gpu, spec, run, score)
            if time.monotonic() > asked + arguments.seconds:
                break
    score.seconds = (asked - begin, time.monotonic() - asked)
    shown = {each.name: getattr(score, each.name) for each in fields(score)}
    (arguments.out / "fixes.json").write_text(json.dumps(shown, indent=1), "utf-8")
    print(f"seed {arguments.seed}, seconds {score.seconds}\n{score}")
    return int(bool(score.wrong))


def drawn(seed: int, count: int, spec: DeviceSpec, outsiders: bool) -> Iterator[Group]:
    """So many random groups; only those with an outsider."""
    many = sys.maxsize if outsiders else count
    some = (group for group in random_groups(seed, many, spec) if group.outside is not None)
    yield from itertools.islice(some, count) if outsiders else random_groups(seed, count, spec)


def answer(group: Group, spec: DeviceSpec) -> tb.Coresidency:
    """Of the launches that meet."""
    members = [k for k in range(len(group.launches)) if k != group.outside]
    return tb.coresident(group.launches, spec, groups=[members], plays=20_000)


def count(score: Score, found: tb.Coresidency) -> None:
    score.answers[{True: "safe", False: "not safe", None: "not known"}[found.safe]] += 1
    if not found.safe:
        score.answers["without a fix"] += not found.fixes
    if found.safe is False:
        score.answers["witness with durations"] += found.issue_times is not None
        score.answers["from another state than the first"] += found.state != tb.InitialState()


def runs_of(group: Group, found: tb.Coresidency) -> Iterator[Run]:
    """The witness and each fix in all orders; or all orders of a safe group."""
    name = f"g{group.number}"
    if found.safe:
        unchanged = tb.Fix("safe", "", found.launches, found.after, found.groups)
        yield from runs_that_meet(name, unchanged, group)
    if found.witness is not None:
        yield Run(
            f"{name}-witness", "witness", found.witness, numbered(found.groups, found.order), True,
            found.state, found.issue_times,
        )  # fmt: skip
    for fix in found.fixes:
        yield from runs_that_meet(name, fix, group if found.safe is None else None)


def runs_that_meet(name: str, fix: tb.Fix, group: Group | None) -> Iterator[Run]:
    """All orders; and if it is said whose blocks may leave, with some that leave in between."""
    orders = list(orders_of(len(fix.launches), fix.after))
    for order in orders:
        sequence = tb.Sequence([fix.launches[k] for k in order])
        yield Run(
            f"{name}-{order} {fix.text}", fix.kind, sequence, numbered(fix.groups, order), False
        )
    if group is not None and group.outside is not None:
        changed = replace(group, launches=fix.launches)
        yield from runs_with_leaving(name, fix.kind, changed, orders)


def runs_with_leaving(
    name: str, what: str, group: Group, orders: list[tuple[int, ...]]
) -> Iterator[Run]:
    """Some blocks of the outsider leave before a launch after it."""
    assert group.outside is not None
    rng = random.Random(name)
    blocks = range(group.launches[group.outside].blocks)
    for order in orders:
        place = order.index(group.outside)
        if place == len(order) - 1:
            continue
        share, every, first = rng.random(), rng.randint(2, 150), rng.choice(blocks)
        for kind, gone in {
            "some leave": [rng.random() < share for _ in blocks],
            "neighbours leave": [first <= block <= 2 * first for block in blocks],
            "every n-th leaves": [block % every == first % every for block in blocks],
        }.items():
            stay = (rng.randrange(len(order) - 1 - place) + 0.5) * STEP
            launches = [replace(group.launches[number], duration=FOREVER) for number in order]
            durations = tuple(stay if leaves else FOREVER for leaves in gone)
            launches[place] = replace(launches[place], duration=durations)
            times = tuple(STEP * k for k in range(len(order)))
            yield Run(
                f"{name}-{order} {kind}", f"{what}, {kind}", tb.Sequence(launches),
                group.meeting(order), False, None, times,
            )  # fmt: skip


def play(gpu: Gpu, spec: DeviceSpec, run: Run, score: Score) -> None:
    """Runs it; what the driver refuses, or what is unstable, is counted apart."""
    try:
        if run.state is not None:
            steer(gpu, spec, to=run.state)
        met = bool(tb.meet(run.sequence, run.groups, gpu=gpu, issue_times=run.times))
    except (ValueError, tb.TbschedError) as error:
        if isinstance(error, ValueError):
            score.runs[f"{run.kind}, refused"] += 1
        score.others.append(f"{run.name}: {type(error).__name__}: {error}")
        return
    score.runs[run.kind] += 1
    if met == run.hangs:
        score.wrong.append(f"{run.kind} {run.name}: {'met' if met else 'hung'}: {run.sequence!r}")


if __name__ == "__main__":
    sys.exit(main())
