"""Does tb.capacity agree with the driver's occupancy queries about kernels on an empty GPU?

    occupancy.py --out DIR [--seed N] [--count N] [--device h200]

Writes ``occupancy.json``. The queries answer for what was asked of them, not for what a launch
gets: docs/explanation/oracles.md has the one difference that is known.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import tbsched as tb
from lab.oracles.driver import Driver
from lab.oracles.room import Scores, carveout_words, kernels
from lab.script import parse

SHOWN = 12  # disagreements
KEPT = 3000


def main() -> None:
    """Asks and writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="of the draw")
    parser.add_argument("--count", type=int, default=100_000, help="kernels")
    parser.add_argument("--device", default="h200", help="whose model answers")
    arguments = parse(parser)
    scores = Scores()
    with tempfile.TemporaryDirectory() as folder:
        ask(Driver(Path(folder)), tb.device(arguments.device), arguments, scores)
    report = {"seed": arguments.seed, "counts": scores.counts, "wrong": scores.wrong[:KEPT]}
    (arguments.out / "occupancy.json").write_text(json.dumps(report, indent=1), "utf-8")
    for name, count in sorted(scores.counts.items()):
        print(f"{name}: {count}")
    for each in scores.wrong[:SHOWN]:
        print(each)


def ask(driver: Driver, spec: tb.DeviceSpec, arguments: argparse.Namespace, scores: Scores) -> None:
    """The driver and the model about random kernels."""
    drawn = kernels(random.Random(arguments.seed), spec, arguments.count, driver.fewest_registers)
    for launch in drawn:
        found = tb.capacity(launch, spec)
        kind = carveout_words(launch)
        if launch.cluster == 1:
            blocks = int(found.per_sm.max())
            scores.add(f"blocks per SM, {kind}", launch, blocks, driver.blocks(launch).value)
        else:
            said = driver.clusters(replace(launch, blocks=launch.cluster * 64))
            scores.add(f"clusters, {kind}", launch, found.clusters, said.value)


if __name__ == "__main__":
    main()
