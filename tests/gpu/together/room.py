"""Is tb.capacity right? Random launches beside up to three others on the GPU, and the driver.

    room.py --out DIR [--seed N] [--count N] [--kernels N] [--device h200]

A launch of more blocks than fit runs beside others: as many are placed as tb.capacity says. The
driver's occupancy queries are asked about random kernels on an empty GPU. Writes ``room.json``.
Exit status 1 if the GPU disagrees.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from oracles.driver import Driver
from oracles.room import Scores, carveout_words, kernels
from script import parse
from together.groups import random_groups

import tbsched as tb
from tbsched.launcher.observe import Gpu

SHOWN = 12


@dataclass(frozen=True, slots=True)
class Asked:
    """A launch beside others, and the blocks that fit: all, and on each SM, the most first."""

    beside: tuple[tb.Launch, ...]
    launch: tb.Launch
    blocks: int
    by_sm: list[int]

    @property
    def sequence(self) -> tb.Sequence:
        return tb.Sequence([*self.beside, self.launch])


def main() -> int:
    """Runs, asks, writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="of the draw")
    parser.add_argument("--count", type=int, default=5000, help="launches beside others")
    parser.add_argument("--kernels", type=int, default=100_000, help="for the driver")
    parser.add_argument("--device", default="h200", help="whose model answers")
    arguments = parse(parser)
    spec = tb.device(arguments.device)
    counts, wrong = on_gpu(spec, arguments.seed, arguments.count)
    scores = by_driver(spec, arguments.seed, arguments.kernels)
    report = {"seed": arguments.seed, "gpu": counts, "wrong": wrong, "driver": scores.counts}
    report["driver_wrong"] = scores.wrong[:3000]
    (arguments.out / "room.json").write_text(json.dumps(report, indent=1), "utf-8")
    for name, count in sorted({**counts, **scores.counts}.items()):
        print(f"{name}: {count}")
    print("\n".join([*wrong[:SHOWN], *map(str, scores.wrong[:SHOWN])]))
    return int(bool(wrong))


def drawn(spec: tb.DeviceSpec, seed: int, count: int) -> Iterator[Asked]:
    """Launches of random groups: the last one has more blocks than fit; 0 to 3 are beside it."""
    rng = random.Random(seed)
    many = 33 * spec.sms
    for group in random_groups(seed, 1_000_000_000, spec):
        if count == 0:
            return
        launches = [replace(launch, cooperative=False) for launch in group.launches]
        few = replace(launches[0], blocks=launches[0].cluster * rng.randint(1, 8))
        beside = rng.choice(([], [few], launches[:-1], launches[:-1], [few, *launches[:-1]]))
        asked = launches[-1]
        try:
            found = tb.capacity(asked, spec, beside=beside)
        except ValueError:
            continue
        count -= 1
        blocks = many // asked.cluster * asked.cluster
        by_sm = sorted(found.per_sm.tolist(), reverse=True)
        yield Asked(tuple(beside), replace(asked, blocks=blocks), found.blocks, by_sm)


def on_gpu(spec: tb.DeviceSpec, seed: int, count: int) -> tuple[Counter[str], list[str]]:
    """How many blocks the GPU placed, and how many tb.capacity says."""
    begin = time.monotonic()
    asked = list(drawn(spec, seed, count))
    print(f"{count} launches drawn in {time.monotonic() - begin:.1f} s", flush=True)
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    with Gpu(0) as gpu:
        outcomes = tb.observe_many([each.sequence for each in asked], gpu)
        for each, trace in zip(asked, outcomes, strict=True):
            counts[f"GPU, beside {len(each.beside)}: asked"] += 1
            if not isinstance(trace, tb.Trace):
                counts[f"GPU: {type(trace).__name__}"] += 1
                continue
            smid = trace[-1].smid
            by_sm = np.bincount(smid[smid >= 0], minlength=spec.sms)
            same = trace[-1].placed == each.blocks
            counts[f"GPU, beside {len(each.beside)}: as many blocks"] += same
            counts["GPU: as many on as many SMs"] += sorted(by_sm, reverse=True) == each.by_sm
            if not same:
                wrong.append(f"{each.sequence}: {each.blocks}, on the GPU {trace[-1].placed}")
    return counts, wrong


def by_driver(spec: tb.DeviceSpec, seed: int, count: int) -> Scores:
    """What the driver's occupancy queries say of kernels on an empty GPU."""
    scores = Scores()
    with tempfile.TemporaryDirectory() as folder:
        driver = Driver(Path(folder))
        for launch in kernels(random.Random(seed), spec, count, driver.fewest_registers):
            found = tb.capacity(launch, spec)
            kind = carveout_words(launch)
            if launch.cluster == 1:
                said, blocks = driver.blocks(launch), int(found.per_sm.max())
                scores.add(f"driver's blocks per SM, {kind}", launch, blocks, said.value)
            else:
                said = driver.clusters(replace(launch, blocks=launch.cluster * 64))
                scores.add(f"driver's clusters, {kind}", launch, found.clusters, said.value)
    return scores


if __name__ == "__main__":
    sys.exit(main())
