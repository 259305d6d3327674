"""How many blocks of random cooperative launches the driver allows, mostly in partitions.

    cooperative.py --out DIR [--seed N] [--count N] [--seconds S] [--device h200] [--every]

Each launch has more blocks than can ever fit, so that the driver says how many do. With ``--every``
not random ones: in each group of each split, clusters of each size. Writes
``cooperative.jsonl.xz``, a row for each, and ``cooperative.json``, the score. Exit status 1 if the
model allows more or fewer.
"""

from __future__ import annotations

import argparse
import itertools
import json
import lzma
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import tbsched as tb
from gpu.together.groups import CARVEOUTS, random_kernel
from lab.script import parse_draw
from tbsched.hardware.spec import DeviceSpec
from tbsched.launcher.observe import Gpu

ALLOWED = re.compile(r"holds at most (\d+) of them")
NONE_FITS = "ever fits"
FLAGS: tuple[dict[str, bool], ...] = ({}, {"max_cluster": True}, {"ignore_coscheduling": True})
GROUPS = (None, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16)
# An SM holds one block of the first, and of the second as many as it may hold clusters.
KERNELS = (tb.Launch(1, 1024, 64), tb.Launch(1, 32, 32))


def main() -> int:
    """Asks, and compares."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", action="store_true", help="all groups, not random launches")
    arguments = parse_draw(parser, "random launches", 2000)
    spec = tb.device(arguments.device)
    drawn = (
        random_launch(random.Random(f"{arguments.seed} {number}"), spec)
        for number in range(arguments.count)
    )
    counts: Counter[str] = Counter()
    wrong, others = [], []
    path = arguments.out / "cooperative.jsonl.xz"
    with Gpu(0) as gpu, lzma.open(path, "wt", encoding="utf-8") as file:
        until = time.monotonic() + arguments.seconds
        for launch in every_launch(spec) if arguments.every else drawn:
            if time.monotonic() > until:
                others.append("no time left")
                break
            said = answer(gpu, too_many(launch, spec))
            if isinstance(said, str):
                others.append(f"{launch}: {said}")
                continue
            row = row_of(launch, said)
            file.write(f"{json.dumps(row)}\n")
            agrees = model_allows(launch, said, spec)
            counts["the same" if agrees else "others"] += 1
            if not agrees:
                wrong.append(row)
    report = {"counts": counts, "wrong": wrong, "no answer": others}
    (arguments.out / "cooperative.json").write_text(json.dumps(report, indent=1), "utf-8")
    print(dict(counts), *wrong[:12], *others[:12], sep="\n")
    return bool(wrong)


def every_launch(spec: DeviceSpec) -> Iterator[tb.Launch]:
    """Each size of clusters, in all groups that the driver makes."""
    seen = set()
    for flags, sms, groups in itertools.product(FLAGS, range(2, spec.sms + 1, 2), GROUPS):
        found, rest = tb.split_sms(spec, sms, groups=groups, **flags)
        for part in (*found, *([rest] if rest.sms else [])):
            key = (part.sms, tuple(flags), part.group is None)
            if key in seen:
                continue
            seen.add(key)
            for kernel, cluster in itertools.product(KERNELS, range(2, spec.max_cluster + 1)):
                yield replace(
                    kernel, blocks=cluster, cluster=cluster, partition=part, cooperative=True
                )


def random_launch(rng: random.Random, spec: DeviceSpec) -> tb.Launch:
    """One cluster, mostly in a partition."""
    partition = None
    if rng.random() < 0.95:
        groups, rest = tb.split_sms(spec, rng.randrange(1, spec.sms), **rng.choice(FLAGS))  # type: ignore[arg-type]
        partition = rng.choice([part for part in (*groups, rest) if part.sms])
    kernel = random_kernel(rng, partition, rng.choice(CARVEOUTS))
    cluster = rng.choice((1, 2, 3, 4, 4, 5, 6, 7, 8, 8, 9, 10, 12, 14, 16, 16))
    return replace(kernel, blocks=cluster, cluster=cluster, cooperative=True)


def answer(gpu: Gpu, launch: tb.Launch) -> int | str:
    """How many blocks the driver says it allows, or what else happened."""
    try:
        gpu.observe(tb.Sequence([launch]))
    except ValueError as error:
        found = ALLOWED.search(str(error))
        if found:
            return int(found[1])
        return 0 if NONE_FITS in str(error) else str(error)
    return "it ran"


def too_many(launch: tb.Launch, spec: DeviceSpec) -> tb.Launch:
    """More blocks than the device has room for."""
    clusters = spec.sms * spec.blocks_per_sm // launch.cluster + 1
    return replace(launch, blocks=clusters * launch.cluster)


def row_of(launch: tb.Launch, allowed: int) -> dict[str, Any]:
    """What is written of a launch, and of how many blocks of it the driver allows."""
    names = ("threads", "registers", "shared_memory", "carveout", "cluster")
    row: dict[str, Any] = {name: getattr(launch, name) for name in names}
    if launch.partition is not None:
        assert launch.partition.split is not None
        row |= {"split": asdict(launch.partition.split), "group": launch.partition.group}
    return row | {"allowed": allowed}


def model_allows(launch: tb.Launch, allowed: int, spec: DeviceSpec) -> bool:
    """Whether the model allows as many blocks of such a launch, and no more."""

    def takes(blocks: int) -> bool:
        many = replace(launch, blocks=blocks)
        try:
            return tb.predict(tb.Sequence([many]), spec)[0].placed == blocks
        except ValueError:
            return False

    return (allowed == 0 or takes(allowed)) and not takes(allowed + launch.cluster)


if __name__ == "__main__":
    sys.exit(main())
