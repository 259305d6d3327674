"""Does what tb.coresident says of random groups hold on the GPU? With real barriers.

    fixes.py --out DIR [--seed N] [--count N] [--seconds S] [--device h200] [--processes N]
             [--outsiders {1,2}] [--larger] [--leaving N] [--numbers FILE] [--no-fixes] [--orders N]

The witness of an unsafe group must hang, from its latent state. A safe group, and any other one
after each fix, must meet in every order of arrival, or in some random ones. Where it is safe, or
was not known to be, some sets of blocks of an outsider leave, too. With ``--outsiders`` all groups
have so many; safe ones run first, then those that are not known. Writes ``fixes.json``: how many of
each kind ran, and all that was otherwise. Exit status 1 if something was.
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

sys.path.insert(0, str(Path(__file__).parents[2]))

import tbsched as tb
from gpu.together.groups import FOREVER, STEP, Group, larger_group, random_group, random_groups
from lab.script import parse_draw
from tbsched.cli.together.on_gpu import meet_on_time, numbered, orders_of
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
    parser.add_argument("--outsiders", type=int, choices=(1, 2), help="only groups with so many")
    parser.add_argument("--larger", action="store_true", help="four to six launches, not 2 or 3")
    parser.add_argument("--leaving", type=int, default=1, help="of each kind of set that leaves")
    parser.add_argument("--orders", type=int, default=sys.maxsize, help="of each group at most")
    parser.add_argument("--numbers", type=Path, help="JSON: only these groups of the draw")
    parser.add_argument("--no-fixes", action="store_true", help="only verdicts and witnesses")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="that ask")
    arguments = parse_draw(parser, "groups", 300)
    if arguments.larger and not arguments.outsiders:
        parser.error("--larger needs --outsiders: these groups have one or two")
    spec = tb.device(arguments.device)
    score = Score()
    begin = time.monotonic()
    groups = list(drawn(arguments, spec))
    asked = [(group, spec, not arguments.no_fixes) for group in groups]
    with multiprocessing.get_context("spawn").Pool(arguments.processes) as pool:
        answers = pool.starmap(answer, asked, chunksize=4)
    answered = time.monotonic()
    pairs = list(zip(groups, answers, strict=True))
    if arguments.outsiders:
        pairs.sort(key=lambda pair: VERDICTS.index(pair[1].safe))
    with Gpu(0) as gpu:
        for group, found in pairs:
            count(score, found)
            for run in runs_of(group, found, arguments.leaving, arguments.orders):
                play(gpu, spec, run, score)
            if time.monotonic() > answered + arguments.seconds:
                break
    score.seconds = (answered - begin, time.monotonic() - answered)
    shown = {each.name: getattr(score, each.name) for each in fields(score)}
    (arguments.out / "fixes.json").write_text(json.dumps(shown, indent=1), "utf-8")
    print(f"seed {arguments.seed}, seconds {score.seconds}\n{score}")
    return int(bool(score.wrong))


def drawn(arguments: argparse.Namespace, spec: DeviceSpec) -> Iterator[Group]:
    """So many random groups, or some of a draw; only those with so many outsiders."""
    two = arguments.outsiders == 2
    if arguments.numbers is not None or arguments.larger:
        for number in numbers_of(arguments):
            if arguments.larger:
                yield larger_group(arguments.seed, number, spec, arguments.outsiders)
            else:
                yield random_group(arguments.seed, number, spec, two_outside=two)
        return
    many = arguments.count if arguments.outsiders is None else sys.maxsize
    groups = random_groups(arguments.seed, many, spec, two_outside=two)
    wanted = (group for group in groups if arguments.outsiders in {None, len(group.gone)})
    yield from itertools.islice(wanted, arguments.count)


def numbers_of(arguments: argparse.Namespace) -> list[int]:
    """Returns the numbers of the groups that are drawn."""
    if arguments.numbers is None:
        return list(range(arguments.count))
    return list(json.loads(arguments.numbers.read_text("utf-8")))


def answer(group: Group, spec: DeviceSpec, fixes: bool) -> tb.Coresidency:
    """Returns the answer for the launches that meet."""
    members = [k for k in range(len(group.launches)) if k not in group.gone]
    return tb.coresident(group.launches, spec, groups=[members], fixes=fixes)


def count(score: Score, found: tb.Coresidency) -> None:
    score.answers[{True: "safe", False: "not safe", None: "not known"}[found.safe]] += 1
    if not found.safe:
        score.answers["without a fix"] += not found.fixes
    if found.safe is False:
        score.answers["witness with durations"] += found.issue_times is not None
        score.answers["from another state than the first"] += found.state != tb.InitialState()


def runs_of(group: Group, found: tb.Coresidency, leaving: int, orders: int) -> Iterator[Run]:
    """The witness and each fix in all orders; or all orders of a safe group; or so many."""
    name = f"g{group.number}"
    if found.safe:
        unchanged = tb.Fix("safe", "", found.launches, found.after, found.groups)
        yield from runs_that_meet(name, unchanged, group, leaving, orders)
    if found.witness is not None:
        yield Run(
            f"{name}-witness", "witness", found.witness, numbered(found.groups, found.order), True,
            found.state, found.issue_times,
        )  # fmt: skip
    for fix in found.fixes:
        unknown = group if found.safe is None else None
        yield from runs_that_meet(name, fix, unknown, leaving, orders)


def runs_that_meet(
    name: str, fix: tb.Fix, group: Group | None, leaving: int, most: int
) -> Iterator[Run]:
    """All orders; and if it is said whose blocks may leave, with some that leave in between."""
    rng = random.Random(name)
    orders = list(orders_of(len(fix.launches), fix.after))
    if len(orders) > most:
        orders = rng.sample(orders, most)
    for order in orders:
        sequence = tb.Sequence([fix.launches[k] for k in order])
        yield Run(
            f"{name}-{order} {fix.text}", fix.kind, sequence, numbered(fix.groups, order), False
        )
    if group is not None and group.gone:
        changed = replace(group, launches=fix.launches)
        for order in orders * leaving:
            yield from runs_with_leaving(name, fix.kind, changed, order, rng)


def runs_with_leaving(
    name: str, what: str, group: Group, order: tuple[int, ...], rng: random.Random
) -> Iterator[Run]:
    """Some blocks of each outsider leave before a launch after it."""
    last = len(order) - 1
    outside = [place for place in range(last) if order[place] in group.gone]
    if not outside:
        return
    for kind in ("some leave", "neighbours leave", "every n-th leaves"):
        launches = [replace(group.launches[number], duration=FOREVER) for number in order]
        for place in outside:
            stay = (rng.randrange(last - place) + 0.5) * STEP
            gone = leaving_blocks(kind, launches[place].blocks, rng)
            durations = tuple(stay if leaves else FOREVER for leaves in gone)
            launches[place] = replace(launches[place], duration=durations)
        times = tuple(STEP * k for k in range(len(order)))
        yield Run(
            f"{name}-{order} {kind}", f"{what}, {kind}", tb.Sequence(launches),
            group.meeting(order), False, None, times,
        )  # fmt: skip


def leaving_blocks(kind: str, count: int, rng: random.Random) -> list[bool]:
    """Returns whether each block leaves."""
    share, every, first = rng.random(), rng.randint(2, 150), rng.randrange(count)
    if kind == "some leave":
        return [rng.random() < share for _ in range(count)]
    if kind == "neighbours leave":
        return [first <= block <= 2 * first for block in range(count)]
    return [block % every == first % every for block in range(count)]


def play(gpu: Gpu, spec: DeviceSpec, run: Run, score: Score) -> None:
    """Runs it; what the driver refuses, or what is unstable, is counted apart."""
    try:
        if run.state is None:
            met = bool(tb.meet(run.sequence, run.groups, gpu=gpu, issue_times=run.times))
        else:
            met = bool(meet_on_time(gpu, spec, run.sequence, run.groups, run.state, run.times))
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
