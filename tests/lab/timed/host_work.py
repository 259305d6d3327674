"""Host functions, host calls and values in memory, on a GPU.

    python tests/lab/timed/host_work.py --out DIR

Runs 25 small programs five times each, and 200 random ones twice each, some seconds in all. Writes
``DIR/events-directed.jsonl.xz`` and ``DIR/events.jsonl.xz``: those of an H200 and an H100 are in
``tests/traces/hosts/``.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from lab.script import parse
from tbsched.launcher.observe import Gpu
from tbsched.prediction.predict import predict
from tbsched.program.sequence import (
    LEGACY_STREAM,
    Copy,
    Event,
    Graph,
    HostCall,
    HostFunction,
    Launch,
    RecordEvent,
    Sequence,
    WaitEvent,
    WaitValue,
    WriteValue,
)
from tbsched.traces.files import save_traces

US = 1e-6
RUNS = 5
SECONDS = tuple(us * US for us in (0, 5, 20, 50, 100))


def main() -> int:
    """Runs, and writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="random programs")
    arguments = parse(parser)
    with Gpu() as gpu:
        small = [gpu.observe(program) for program in directed() for _ in range(RUNS)]
        save_traces(arguments.out / "events-directed.jsonl.xz", small)
        drawn = [gpu.observe(program) for program in islice(programs(), arguments.count)
                 for _ in range(2)]  # fmt: skip
        save_traces(arguments.out / "events.jsonl.xz", drawn)
    return 0


def kernel(us: float, stream: int, *, non_blocking: bool = False) -> Launch:
    return Launch(8, 128, 32, stream=stream, duration=us * US, non_blocking=non_blocking)


def node(us: float) -> Launch:
    return Launch(8, 128, 32, duration=us * US)


def function(us: float, stream: int) -> HostFunction:
    return HostFunction(us * US, stream=stream)


def directed() -> list[Sequence]:
    """Returns the smallest programs for each rule."""
    long = HostFunction(50 * US)
    two, four = range(2), range(4)
    legacy = HostFunction(50 * US, stream=LEGACY_STREAM)
    write, wait = WriteValue("x", stream=0), WaitValue("x", stream=1)
    over = WaitValue("x", 0, stream=0)
    graphs = [
        Graph([node(50), long, node(10)], edges=[(0, 1), (1, 2)]),
        Graph([node(50), long, node(10)], edges=[(0, 1), (0, 2)]),
        Graph([node(50), long, long, node(10)], edges=[(0, 1), (0, 2), (1, 3), (2, 3)]),
        Graph([long, node(10), node(20)], edges=[(0, 1)]),
    ]
    functions: list[list[Event]] = [
        [kernel(100, 0), function(0, 0), kernel(10, 0)],
        [kernel(100, 0), function(50, 0), kernel(10, 0)],
        [kernel(200, 0), *[function(0, 0)] * 4, kernel(10, 0)],
        [*(kernel(200, k) for k in two),
         *(event for k in two for event in (function(100, k), kernel(10, k)))],
        [*(kernel(300, k) for k in four),
         *(event for k in four for event in (function(100, k), kernel(10, k)))],
        [function(50, 0), kernel(10, 0), kernel(10, 1)],
        [kernel(100, 0), function(50, 0), RecordEvent(0, 0), WaitEvent(0, 1), kernel(10, 1)],
        [graphs[0].launch(0), kernel(10, 0)],
        [graphs[1].launch(0), kernel(10, 0)],
        [graphs[2].launch(0)],
        [graphs[3].launch(0), kernel(10, 0)],
        [kernel(50, 0), legacy, kernel(10, 1), kernel(10, 2, non_blocking=True)],
    ]  # fmt: skip
    calls: list[list[Event]] = [
        [kernel(100, 0), HostCall("cudaFree", 50 * US, waits="device"), kernel(10, 1)],
        [kernel(200, 0), HostCall("cudaMalloc", 50 * US), kernel(10, 1)],
        [kernel(50, 0), function(100, 0), HostCall("cudaFree", waits="device"), kernel(10, 1)],
    ]
    values: list[list[Event]] = [
        [kernel(100, 0), write, kernel(10, 0)],
        [kernel(200, 0), *(WriteValue("x", k, stream=0) for k in range(1, 9)), kernel(10, 0)],
        [kernel(100, 0), over, kernel(10, 0)],
        [kernel(200, 0), *[over] * 8, kernel(10, 0)],
        [wait, kernel(10, 1), kernel(100, 0), write, kernel(10, 0)],
        [wait, kernel(10, 1), kernel(2000, 0), write],
        [kernel(100, 0), write, wait, kernel(10, 1)],
        [WaitValue("x", 2, stream=1), kernel(10, 1), kernel(50, 0), write, kernel(50, 0),
         WriteValue("x", 3, stream=0)],
        [kernel(50, 0), function(50, 0), write, wait, function(50, 1), kernel(10, 1)],
        [wait, kernel(10, 1), kernel(10, 2), kernel(100, 0), write],
    ]  # fmt: skip
    return [Sequence(events) for events in (*functions, *calls, *values)]


def programs() -> Iterator[Sequence]:
    """Random programs that end."""
    for seed in count(1):
        program = Sequence(drawn_events(random.Random(seed)))
        if program.launches and predict(program, "h200").hang is None:
            yield program


def drawn_events(rng: random.Random) -> list[Event]:
    streams, hosts = rng.randint(1, 4), rng.choice([1, 1, 1, 2])
    free = [rng.random() < 0.3 for _ in range(streams)]
    home = [rng.randrange(hosts) for _ in range(streams)]
    legacy = rng.random() < 0.2
    events: list[Event] = []
    for _ in range(rng.randint(5, 16)):
        stream = rng.randrange(streams)
        events.append(drawn_event(rng, stream, non_blocking=free[stream], host=home[stream]))
        if legacy and rng.random() < 0.1:
            events.append(
                Launch(8, 128, 32, stream=LEGACY_STREAM, duration=10 * US, host=home[stream])
            )
    return events


def drawn_event(rng: random.Random, stream: int, *, non_blocking: bool, host: int) -> Event:
    what = rng.random()
    if what < 0.42:
        blocks = rng.choice([1, 8, 33, 66, 132, 200, 264, 400])
        return Launch(
            blocks, rng.choice([32, 128, 256, 512, 1024]), 32, stream=stream, host=host,
            duration=rng.choice([5, 10, 20, 50, 100, 200]) * US, non_blocking=non_blocking,
        )  # fmt: skip
    if what < 0.60:
        seconds = rng.choice(SECONDS)
        return HostFunction(seconds, stream=stream, non_blocking=non_blocking, host=host)
    if what < 0.70:
        waits = rng.choice([None, None, "stream", "device"])
        of = stream if waits == "stream" else None
        return HostCall("call", rng.choice(SECONDS), waits=waits, stream=of, host=host)
    if what < 0.86:
        kind = rng.choice([WriteValue, WaitValue])
        name, value = f"v{rng.randrange(3)}", rng.choice([1, 1, 2])
        return kind(name, value, stream=stream, host=host)
    if what < 0.92:
        of_event = rng.choice([RecordEvent, WaitEvent])
        return of_event(rng.randrange(2), stream, host=host)
    if what < 0.96:
        size, way = rng.choice([4096, 65536, 1 << 20]), rng.choice(["h2d", "d2h"])
        return Copy(size, way, stream=stream, non_blocking=non_blocking, host=host)
    nodes = [node(20), HostFunction(rng.choice([0, 20]) * US), node(20)]
    graph = Graph(nodes, edges=[(0, 1), (1, 2)] if rng.random() < 0.5 else [(0, 1)])
    return graph.launch(stream, non_blocking=non_blocking, host=host)


if __name__ == "__main__":
    sys.exit(main())
