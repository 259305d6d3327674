"""How many blocks of random kernels fit beside up to three others, on the GPU and in the model.

    capacities.py --out DIR [--seed N] [--count N] [--seconds S] [--device h200]

Each kernel comes last, with a few blocks more than the model has room for: what is placed is what
fits. Writes ``capacities.jsonl.xz``, a trace for each, and ``capacities.json``, the score. Exit
status 1 if one disagrees.
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import tbsched as tb
from gpu.together.groups import CARVEOUTS, fitting, random_kernel, random_places, with_blocks
from lab.script import parse_draw
from tbsched.hardware.spec import DeviceSpec
from tbsched.launcher.observe import Gpu, Outcome

MORE = 3  # clusters


def main() -> int:
    """Records, and compares."""
    parser = argparse.ArgumentParser(description=__doc__)
    arguments = parse_draw(parser, "kernels", 1000)
    spec = tb.device(arguments.device)
    drawn = list(random_rooms(arguments.seed, arguments.count, spec))
    expected = [trace[-1].placed for trace in tb.predict_many(drawn, spec)]
    counts: Counter[str] = Counter()
    wrong, refused, traces = [], [], []
    until = time.monotonic() + arguments.seconds
    with Gpu(0) as gpu:
        for number, found in run_all(gpu, drawn, until):
            if isinstance(found, ValueError):
                refused.append(f"{number}: {found}")
            elif not isinstance(found, tb.Trace):
                counts[type(found).__name__] += 1
            else:
                counts["runs"] += 1
                counts["others beside"] += len(found) > 1
                if found[-1].placed != expected[number]:
                    wrong.append(number)
                placements = tuple(tb.Placement(placement.smid) for placement in found)
                traces.append(replace(found, id=f"c{number}", placements=placements, check=False))
    plain = arguments.out / "capacities.jsonl"
    tb.save_traces(plain, traces)
    packed = plain.with_suffix(".jsonl.xz")
    packed.write_bytes(lzma.compress(plain.read_bytes(), preset=2))
    plain.unlink()
    report = {"seed": arguments.seed, **counts, "wrong": wrong, "refused": refused}
    (arguments.out / "capacities.json").write_text(json.dumps(report), "utf-8")
    print(report)
    return int(bool(wrong))


def run_all(
    gpu: Gpu, drawn: list[tb.Sequence], until: float
) -> Iterator[tuple[int, Outcome | ValueError]]:
    """What came of each, or why the driver refuses it."""
    number = 0
    while number < len(drawn):
        try:
            for found in gpu.observe_many(drawn[number:]):
                yield number, found
                number += 1
                if time.monotonic() > until:
                    return
        except ValueError as error:
            yield number, error
            number += 1


def random_rooms(seed: int, count: int, spec: DeviceSpec) -> Iterator[tb.Sequence]:
    """Up to three launches, and one that has a few blocks more than there is room for."""
    for number in range(count):
        rng = random.Random(f"{seed} room {number}")
        places = random_places(rng, spec)
        carveouts = rng.choice(((None,), (100,), CARVEOUTS, CARVEOUTS))
        launches: list[tb.Launch] = []
        others = rng.choice((0, 1, 1, 2, 2, 3, 3))
        while len(launches) <= others:
            kernel = random_kernel(rng, rng.choice(places), rng.choice(carveouts))
            alone = fitting(spec, kernel)
            if alone == 0:
                continue
            blocks = rng.uniform(0.05, 1.2 / max(1, others)) * alone
            if len(launches) == others:
                blocks = fitting(spec, kernel, *launches) + MORE * kernel.cluster
            launches.append(with_blocks(kernel, blocks))
        yield tb.Sequence(launches)


if __name__ == "__main__":
    sys.exit(main())
