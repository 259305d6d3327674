"""Random launches in many streams: CUPTI's channel of each against the model's hardware queue.

CUDA_DEVICE_MAX_CONNECTIONS=8 python tests/lab/oracles/channels.py --out FOLDER
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parents[2]))

import tbsched as tb
from lab.oracles.driver import Driver
from lab.oracles.scores import Issued, choices, same_partition
from lab.script import parse

STREAMS = 40
URGENT = -5  # the highest priority of Hopper
EPISODE = 200  # launches


class Program:
    """Random launches, in episodes of a kind each."""

    def __init__(self, driver: Driver, random: Random, streams: int) -> None:
        self._driver = driver
        self._random = random
        self._streams = [driver.stream(random.randint(URGENT, 0)) for _ in range(streams)]
        self._events = [driver.event() for _ in range(16)]

    def run(self, kind: str, launches: int) -> None:
        random, driver = self._random, self._driver
        active = random.sample(self._streams, random.randint(1, len(self._streams)))
        # A held episode is issued while the first launch of each stream runs.
        first = active if kind == "held" else []
        for stream in first:
            self._launch(stream, 4e-3)
        for _ in range(launches - len(first)):
            stream = random.choice(active)
            self._launch(stream, random.choice([2e-6, 10e-6, 50e-6]))
            if kind == "drained":
                driver.synchronize()
            elif kind == "free":
                self._something(active)
        driver.synchronize()

    def _launch(self, stream: ctypes.c_void_p, seconds: float) -> None:
        launch = tb.Launch(self._random.randint(1, 4), 32, 32)
        self._driver.check(self._driver.launch(launch, stream, seconds), "launch")

    def _something(self, active: list[ctypes.c_void_p]) -> None:
        random, draw = self._random, self._random.random()
        if draw < 0.01:
            self._driver.synchronize()
        elif draw < 0.03:
            self._driver.synchronize(random.choice(active))
        elif draw < 0.08:
            event = random.choice(self._events)
            self._driver.record(event, random.choice(active))
            self._driver.wait(random.choice(active), event)
        elif draw < 0.13:
            time.sleep(random.choice([2e-5, 2e-4]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--launches", type=int, default=10_000)
    parser.add_argument("--device", default="h100")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parse(parser)
    queues = int(os.environ.get("CUDA_DEVICE_MAX_CONNECTIONS", "8"))
    random = Random(arguments.seed)
    kinds: list[str] = []
    place = arguments.out / f"channels-{queues}.jsonl"
    with tempfile.TemporaryDirectory() as folder:
        driver = Driver(Path(folder))
        with tb.capture(place):
            program = Program(driver, random, STREAMS)
            while len(kinds) < arguments.launches:
                kind = random.choice(["held", "drained", "free"])
                program.run(kind, EPISODE)
                kinds += [kind] * EPISODE
    found = tb.load_program(place, fit=False)
    spec = replace(tb.device(arguments.device), hardware_queues=queues)
    measured = found.measured
    channels = measured["channel"].tolist()
    streams = [launch.stream for launch in found.sequence.launches]
    priorities = [launch.priority for launch in found.sequence.launches]
    print(f"{queues} connections: {len(measured)} launches, {len(set(channels))} channels")
    by_priority = {p: sorted({c for c, q in zip(channels, priorities, strict=True) if q == p})
                   for p in sorted(set(priorities))}  # fmt: skip
    print("channels by priority:", json.dumps(by_priority))
    issued = [
        Issued(int(stream), int(call), int(start), int(channel))
        for stream, call, start, channel in zip(
            streams, measured["call_ns"], measured["start_ns"], channels, strict=True
        )
    ]
    for lead in (-5000, 0, 5000):
        right = choices(issued, queues, lead)
        shares: dict[str, list[bool]] = {kind: [] for kind in sorted(set(kinds))}
        for kind, good in zip(kinds, right, strict=False):
            shares[kind].append(good)
        each = ", ".join(f"{kind} {_of(sum(x), len(x))}" for kind, x in shares.items())
        whole = _of(sum(right), len(right))
        print(f"given where all before went, lead {lead} ns: {whole}; {each}")
    prediction = tb.predict(found.sequence, spec, host=found.host)
    predicted = [-1 if row.hardware_queue is None else row.hardware_queue for row in prediction]
    agreed = same_partition(predicted, channels)
    print(f"the model's queue: {_of(agreed, len(channels))}")


def _of(count: int, total: int) -> str:
    return f"{count} of {total}, {100 * count / total:.2f} %"


if __name__ == "__main__":
    main()
