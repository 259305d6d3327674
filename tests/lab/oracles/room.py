"""Random kernels: the room and the configuration of the model, and what the driver and CUPTI say.

python tests/lab/oracles/room.py --out FOLDER [--kernels 10000] [--device h100]
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

import tbsched as tb
from lab.oracles.driver import Driver
from lab.script import parse

FULL = 64  # blocks per SM, more than any SM takes
MOST_SHARED = 227 * 1024
SHOWN = 12  # disagreements


def kernels(random: Random, spec: tb.DeviceSpec, count: int, fewest: int) -> Iterator[tb.Launch]:
    """Random ones that the device can launch."""
    while count > 0:
        threads = random.choice(
            [32, 64, 96, 128, 192, 256, 384, 512, 768, 1024, random.randint(1, 1024)]
        )
        shared = random.choice([0, 0, random.randint(0, 4096), random.randint(0, MOST_SHARED)])
        cluster = random.choice([1, 1, 1, 2, 4, 8, 16, random.randint(2, 16)])
        launch = tb.Launch(
            FULL * spec.sms // cluster * cluster,
            threads,
            random.choice([fewest, 32, 40, 64, 128, random.randint(fewest, 255)]),
            shared,
            carveout=random.choice([None, None, random.randint(0, 100)]),
            cluster=cluster,
        )
        try:
            spec.check(tb.Sequence([launch]))
        except ValueError:
            continue
        count -= 1
        yield launch


def room(spec: tb.DeviceSpec, launch: tb.Launch) -> tuple[int, int, int]:
    """Returns an idle GPU's most blocks on an SM, blocks on all SMs, and configuration in bytes."""
    held = tb.predict(tb.Sequence([launch]), spec).residents()
    of_sm = np.bincount(held.rows["sm"], held.rows["blocks"])
    return int(of_sm.max(initial=0)), int(of_sm.sum()), int(held.configured.max())


class Scores:
    """How often the model and the others agree, by question, and where they do not."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.wrong: list[dict[str, object]] = []

    def add(self, name: str, launch: tb.Launch, model: int, answer: int) -> None:
        self.counts[f"{name}: asked"] += 1
        self.counts[f"{name}: agree"] += model == answer
        if model != answer:
            self.wrong.append(
                {"oracle": name, "launch": str(launch), "model": model, "answer": answer}
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernels", type=int, default=10_000)
    parser.add_argument("--device", default="h100")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parse(parser)
    spec = tb.device(arguments.device)
    scores = Scores()
    with tempfile.TemporaryDirectory() as folder:
        driver = Driver(Path(folder))
        random = Random(arguments.seed)
        drawn = list(kernels(random, spec, arguments.kernels, driver.fewest_registers))
        rooms = [room(spec, launch) for launch in drawn]
        for launch, (blocks, total, _) in zip(drawn, rooms, strict=True):
            ask_driver(driver, launch, blocks, total // launch.cluster, scores)
        few = [replace(each, blocks=random.randint(1, 2) * each.cluster) for each in drawn]
        expected = [
            (launch, configured) for launch, (_, _, configured) in zip(few, rooms, strict=True)
        ]
        for idle in (True, False):
            ask_cupti(driver, expected, idle, arguments.out, scores)
    report(scores, arguments.out / "room.json")


def carveout_words(launch: tb.Launch) -> str:
    return "no carveout" if launch.carveout is None else "carveout"


def ask_driver(
    driver: Driver, launch: tb.Launch, blocks: int, clusters: int, scores: Scores
) -> None:
    """How many blocks of a launch fit an SM, or how many of its clusters the GPU."""
    kind = carveout_words(launch)
    if launch.cluster == 1:
        scores.add(f"driver's blocks per SM, {kind}", launch, blocks, driver.blocks(launch).value)
        header = driver.header_blocks(launch)
        scores.add(f"header's blocks per SM, {kind}", launch, blocks, header.value)
    else:
        said = driver.clusters(replace(launch, blocks=launch.cluster * 64))
        scores.add(f"driver's clusters, {kind}", launch, clusters, said.value)


def ask_cupti(
    driver: Driver, expected: list[tuple[tb.Launch, int]], idle: bool, out: Path, scores: Scores
) -> None:
    """For which shared memory SMs are configured: each launch on an idle GPU, or behind others."""
    place = out / f"room-{'idle' if idle else 'busy'}.jsonl"
    asked = []
    with tb.capture(place):
        for launch, configured in expected:
            if driver.launch(launch, None, 2e-6) == 0:
                asked.append((launch, configured))
            if idle:
                driver.synchronize()
    measured = tb.load_program(place, fit=False).measured
    if len(measured) != len(asked):
        raise RuntimeError(f"{len(asked)} launches, {len(measured)} captured")
    what = "idle GPU" if idle else "one after the other"
    scores.counts[f"launched, {what}: asked"] = len(expected)
    scores.counts[f"launched, {what}: agree"] = len(asked)
    executed = measured["shared_memory_executed"].tolist()
    for (launch, configured), found in zip(asked, executed, strict=True):
        clustered = ", cluster" if launch.cluster > 1 else ""
        name = f"executed, {what}, {carveout_words(launch)}{clustered}"
        scores.add(name, launch, configured, found)


def report(scores: Scores, place: Path) -> None:
    counts, wrong = scores.counts, scores.wrong
    for name in sorted({key.rsplit(": ", 1)[0] for key in counts}):
        agree, asked = counts[f"{name}: agree"], counts[f"{name}: asked"]
        print(f"{name}: {agree} of {asked} agree, {100 * agree / asked:.2f} %")
        for each in [x for x in wrong if x["oracle"] == name][:SHOWN]:
            print("   ", each["launch"], "model", each["model"], "answer", each["answer"])
    rest = Counter(str(each["oracle"]) for each in wrong)
    kept = [each for k, each in enumerate(wrong) if k % max(1, len(wrong) // 3000) == 0]
    place.write_text(json.dumps({"scores": counts, "wrong": kept, "counts": rest}), "utf-8")


if __name__ == "__main__":
    main()
