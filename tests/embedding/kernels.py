"""Random kernels, as the example programs read them and as Python predicts them."""

from __future__ import annotations

import dataclasses
import random

from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import predict
from tbsched.program.sequence import Event, Launch, Release, Sequence


def random_sequence(rng: random.Random, spec: DeviceSpec) -> Sequence:
    events: list[Event] = []
    held: list[int] = []
    for number in range(12):
        threads = rng.randint(1, 1024)
        registers = rng.randint(1, 64)
        shared_memory = rng.choice([0, 0, rng.randint(0, spec.shared_memory_per_block // 2)])
        events.append(Launch(rng.randint(1, 300), threads, registers, shared_memory))
        held.append(number)
        if rng.random() < 0.5:
            events.append(Release(held.pop(rng.randrange(len(held)))))
    return Sequence(events)


@dataclasses.dataclass(frozen=True)
class Kernel:
    """What comes to a simulator with a clock, in nanoseconds."""

    comes: int
    launch: Launch
    cycles: int

    def line(self) -> str:
        asked = dataclasses.astuple(self.launch)[:4]  # blocks, threads, registers, shared memory
        return " ".join(map(str, [self.comes, *asked, self.cycles])) + "\n"

    def timed(self) -> Launch:
        blocks = range(self.launch.blocks)
        duration = tuple((self.cycles + 7 * block % 13) / 1e9 for block in blocks)
        return dataclasses.replace(self.launch, duration=duration)


def random_kernels(rng: random.Random, spec: DeviceSpec) -> list[Kernel]:
    launches = random_sequence(rng, spec).launches
    comes = sorted(rng.randint(0, 100) for _ in launches)
    return [Kernel(at, x, rng.randint(1, 60)) for at, x in zip(comes, launches, strict=True)]


def predicted(kernels: list[Kernel], spec: DeviceSpec) -> list[tuple[int, ...]]:
    """Launch, block, SM and start of each block, where nothing but its blocks takes time."""
    latencies = {field.name: 0 for field in dataclasses.fields(spec) if field.name.endswith("_ns")}
    sequence = Sequence([kernel.timed() for kernel in kernels])
    times = [kernel.comes / 1e9 for kernel in kernels]
    instant = dataclasses.replace(spec, **latencies)  # type: ignore[arg-type]
    rows = predict(sequence, instant, issue_times=times).timeline
    return [tuple(row[["launch", "block", "sm", "start_ns"]].tolist()) for row in rows]
