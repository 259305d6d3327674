"""Are the answers of tb.coresident right on the GPU? Witnesses must hang, fixes and safe sets meet.

    answers.py --out DIR [--seed N] [--count N] [--seconds S] [--device h200]

Asks about random groups, and runs each witness from its latent state, each fix in all orders, and
each safe group in all orders. Writes ``answers.json``. Exit status 1 if one is wrong.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from script import parse
from together.groups import Group, random_groups

import tbsched as tb
from tbsched.cli.together.on_gpu import Ran, runs_of
from tbsched.launcher.observe import Gpu

CHUNK = 5  # groups that a process is asked about at once


def main() -> int:
    """Asks on all cores, then runs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="of the draw")
    parser.add_argument("--count", type=int, default=500, help="groups")
    parser.add_argument("--seconds", type=float, default=60, help="after which no more are run")
    parser.add_argument("--device", default="h200", help="whose model answers")
    arguments = parse(parser)
    spec = tb.device(arguments.device)
    groups = list(random_groups(arguments.seed, arguments.count, spec))
    begin = time.monotonic()
    with ProcessPoolExecutor() as pool:
        ask = partial(answer, device=arguments.device)
        answers = list(pool.map(ask, groups, chunksize=CHUNK))
    asked = time.monotonic() - begin
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    until = time.monotonic() + arguments.seconds
    with Gpu(0) as gpu:
        for group, found in zip(groups, answers, strict=True):
            if time.monotonic() > until:
                break
            if isinstance(found, str):
                counts[found] += 1
                continue
            counts[f"groups: safe {found.safe}, proof {found.proof}"] += 1
            for kind, run in checked(group, found, spec, gpu):
                counts[f"{kind}: {state(run)}"] += 1
                counts[f"{kind}: runs"] += run.runs
                if run.agrees is False:
                    wrong.append(f"group {group.number}: {kind}: {run}")
    report = {"seed": arguments.seed, "asked_s": asked, "counts": counts, "wrong": wrong}
    (arguments.out / "answers.json").write_text(json.dumps(report, indent=1), "utf-8")
    print(f"{len(groups)} groups asked about in {asked:.1f} s")
    for name in sorted(counts):
        print(f"{name}: {counts[name]}")
    print("\n".join(wrong[:20]))
    return int(bool(wrong))


def answer(group: Group, device: str) -> tb.Coresidency | str:
    """What tb.coresident says; in words where it refuses."""
    members = [k for k in range(len(group.launches)) if k != group.outside]
    try:
        return tb.coresident(group.launches, device, groups=[members])
    except ValueError as error:
        return f"refused: {str(error)[:60]}"


def checked(
    group: Group, found: tb.Coresidency, spec: tb.DeviceSpec, gpu: Gpu
) -> Iterator[tuple[str, Ran]]:
    """What was run, by kind: the witness and the fixes, or a safe group in all orders."""
    if found.safe is False:
        witness, *fixes = runs_of(found, spec, gpu)
        yield "witness", witness
        for fix, run in zip(found.fixes, fixes, strict=True):
            yield f"fix, {fix.kind}", run
    elif found.safe is True:
        stays = replace(group, gone=())
        orders = list(group.orders())
        outcomes = tb.meet_many(
            [stays.arriving(order) for order in orders],
            [stays.meeting(order) for order in orders],
            gpu=gpu,
        )
        hung = sum(not (isinstance(outcome, tb.Meeting) and outcome) for outcome in outcomes)
        yield "safe group", Ran("all orders", False, len(orders), hung)


def state(run: Ran) -> str:
    return {None: "not run", True: "right", False: "WRONG"}[run.agrees]


if __name__ == "__main__":
    sys.exit(main())
