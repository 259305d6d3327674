"""A campaign of programs with host functions, host calls, values and child graphs, on a GPU.

    python tests/lab/timed/event_campaign.py --out DIR --seconds 40 --seed 1

Each program is run once, and its order of launches compared (``order_differs``); worker processes
predict meanwhile. What differs runs three times more, and counts if a pair of launches differs in
all runs. Every tenth program runs twice, to say how often two runs agree. Writes
``DIR/campaign-SEED.json`` with the numbers and ``DIR/campaign-SEED.jsonl.xz`` with the runs of each
program that differs.
"""

from __future__ import annotations

import argparse
import collections
import json
import multiprocessing
import os
import random
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import tbsched as tb
from tbsched.campaigns.order import Pair, order_differs
from tbsched.traces.trace import Trace

US = 1e-6
RUNS = 3  # further ones of what differs
TWICE_EVERY = 10
MOST_KEPT = 400  # traces
AHEAD = 200  # programs whose predictions have not come back
BLOCKS = (1, 4, 8, 16, 33, 66, 132)
KERNELS = (20, 30, 50, 80, 120)  # us
OTHERS = (0, 5, 20, 40)
KINDS = ("host_function", "host_call", "value", "child_graph", "graph", "copy", "event", "threads")


class Drawn:
    """A program: events in streams, each of one host thread."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.streams = self.rng.randint(2, 5)
        self.hosts = self.rng.choice((1, 1, 1, 2))
        self.home = [stream % self.hosts for stream in range(self.streams)]
        self.non_blocking = [self.rng.random() < 0.5 for _ in range(self.streams)]
        self.events: list[Any] = []
        self.kinds: set[str] = {"threads"} if self.hosts > 1 else set()
        self.written = 0

    def program(self) -> tb.Sequence:
        """Returns a program of each kind of event, and of kernels between them."""
        each = [self.function, self.function, self.call, self.values, self.values, self.child]
        each += self.rng.choices([self.function, self.call, self.graph, self.copy, self.event], k=3)
        each += [self.kernel] * 10
        self.rng.shuffle(each)
        self.kernel()
        for draw in each:
            draw()
        return tb.Sequence(self.events)

    def at(self) -> dict[str, Any]:
        """Returns stream, thread and kind of a stream."""
        stream = self.rng.randrange(self.streams)
        return {
            "stream": stream,
            "host": self.home[stream],
            "non_blocking": self.non_blocking[stream],
        }

    def launch(self, **where: Any) -> tb.Launch:
        blocks, threads = self.rng.choice(BLOCKS), self.rng.choice((32, 128, 256))
        return tb.Launch(blocks, threads, 32, duration=self.rng.choice(KERNELS) * US, **where)

    def kernel(self) -> None:
        self.events.append(self.launch(**self.at()))

    def function(self) -> None:
        self.kinds.add("host_function")
        self.events.append(tb.HostFunction(self.rng.choice(OTHERS) * US, **self.at()))

    def call(self) -> None:
        self.kinds.add("host_call")
        waits = self.rng.choice((None, None, "stream", "device"))
        where = self.at()
        of = {"stream": where["stream"]} if waits == "stream" else {}
        seconds = self.rng.choice(OTHERS) * US
        self.events.append(tb.HostCall("call", seconds, waits=waits, host=where["host"], **of))

    def values(self) -> None:
        """A write, and a wait that the same thread issues later: it always ends."""
        self.kinds.add("value")
        host = self.rng.randrange(self.hosts)
        own = [stream for stream in range(self.streams) if self.home[stream] == host]
        self.written += 1
        name = f"v{self.written}"
        writer, waiter = self.rng.choice(own), self.rng.choice(own)
        self.events.append(tb.WriteValue(name, stream=writer, host=host))
        self.events.append(tb.WaitValue(name, stream=waiter, host=host))

    def child(self) -> None:
        self.kinds.add("child_graph")
        inner = tb.Graph(
            [self.launch(), tb.HostFunction(self.rng.choice(OTHERS) * US), self.launch()],
            edges=[(0, 1), (1, 2)] if self.rng.random() < 0.5 else [(0, 1)],
        )
        outer = tb.Graph([self.launch(), inner, self.launch()], edges=[(0, 1), (1, 2)])
        self.events.append(outer.launch(**self.at()))

    def graph(self) -> None:
        self.kinds.add("graph")
        nodes = [self.launch() for _ in range(self.rng.randint(2, 4))]
        edges = [(k, k + 1) for k in range(len(nodes) - 1) if self.rng.random() < 0.7]
        self.events.append(tb.Graph(nodes, edges).launch(**self.at()))

    def copy(self) -> None:
        self.kinds.add("copy")
        size, way = self.rng.choice((4096, 1 << 16, 1 << 19)), self.rng.choice(("h2d", "d2h"))
        self.events.append(tb.Copy(size, way, **self.at()))

    def event(self) -> None:
        """A record, and a wait that the same thread issues later."""
        self.kinds.add("event")
        host = self.rng.randrange(self.hosts)
        own = [stream for stream in range(self.streams) if self.home[stream] == host]
        number = self.rng.randrange(2)
        self.events.append(tb.RecordEvent(number, self.rng.choice(own), host=host))
        self.events.append(tb.WaitEvent(number, self.rng.choice(own), host=host))


@dataclass
class Found:
    """The numbers of a campaign."""

    programs: int = 0
    launches: int = 0
    blocks: int = 0
    with_kind: collections.Counter[str] = field(default_factory=collections.Counter)
    once: int = 0  # programs whose first run differs
    twice: int = 0  # programs that ran twice
    agreeing: int = 0  # of these, both runs in the same order
    unstable: int = 0
    not_run_again: int = 0  # programs whose first run differs, for want of time
    differing: list[int] = field(default_factory=list)
    seconds: float = 0.0


def main() -> int:
    """Runs until the time is over, and writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=40)
    parser.add_argument("--confirm-seconds", type=float, default=15, help="for further runs")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="h200")
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 2) - 2))
    parser.add_argument("--rehearse", action="store_true", help="the model plays the GPU")
    asked = parser.parse_args()
    os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] = str(asked.connections)
    asked.out.mkdir(parents=True, exist_ok=True)
    spec = replace(tb.device(asked.device), hardware_queues=asked.connections)
    found, kept = Found(), []
    if asked.rehearse:
        kept = campaign(AsGpu(spec), spec, asked, found)
    else:
        from tbsched.launcher.observe import Gpu

        with Gpu(0) as gpu:
            kept = campaign(gpu, spec, asked, found)
    name = f"campaign-{asked.connections}-{asked.seed}"
    tb.save_traces(asked.out / f"{name}.jsonl.xz", kept)
    text = json.dumps(found.__dict__)
    (asked.out / f"{name}.json").write_text(text + "\n", "utf-8")
    print(text)
    return 0


def campaign(gpu: Any, spec: Any, asked: Any, found: Found) -> list[Trace]:
    """Runs programs, and returns the runs of those that differ."""
    begin = time.monotonic()
    kept: list[Trace] = []
    doubtful: list[tuple[int, tb.Sequence, set[Pair], Trace]] = []
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(asked.workers, context) as pool:
        waiting: collections.deque[tuple[int, Future[Any], Trace]] = collections.deque()

        def take(most: int) -> None:
            while len(waiting) > most:
                number, judged, trace = waiting.popleft()
                if pairs := judged.result():
                    found.once += 1
                    doubtful.append((number, trace.sequence, set(pairs), trace))

        for number, drawn in enumerate(programs(asked.seed)):
            if time.monotonic() - begin > asked.seconds:
                break
            program = drawn.program()
            trace = observed(gpu, program, found)
            if trace is None:
                continue
            count_in(found, drawn, program)
            waiting.append((number, pool.submit(order_differs, trace, spec), trace))
            if number % TWICE_EVERY == 0:
                again = observed(gpu, program, found)
                if again is not None:
                    found.twice += 1
                    found.agreeing += same_order(trace, again)
            take(AHEAD)
        take(0)
        until = time.monotonic() + asked.confirm_seconds
        again: list[tuple[int, list[Trace], list[Future[Any]]]] = []
        for number, program, _, first in doubtful:
            if time.monotonic() > until:
                found.not_run_again += 1
                continue
            runs = [first, *filter(None, (observed(gpu, program, found) for _ in range(RUNS)))]
            again.append((number, runs, [pool.submit(order_differs, t, spec) for t in runs[1:]]))
        for (number, runs, judged), (_, _, pairs, _) in zip(again, doubtful, strict=False):
            pairs.intersection_update(*(each.result() for each in judged))
            if pairs and len(runs) == RUNS + 1:
                found.differing.append(number)
                if len(kept) < MOST_KEPT:
                    kept += runs
    found.seconds = round(time.monotonic() - begin, 1)
    return kept


def programs(seed: int) -> Iterator[Drawn]:
    number = 0
    while True:
        yield Drawn(1_000_000 * seed + number)
        number += 1


def observed(gpu: Any, program: tb.Sequence, found: Found) -> Trace | None:
    try:
        trace: Trace = gpu.observe(program)
    except (tb.UnstableMeasurement, tb.DeadlineExceeded) as error:
        found.unstable += 1
        print(f"{type(error).__name__}: {str(error)[:200]}", file=sys.stderr)
        return None
    return trace


def count_in(found: Found, drawn: Drawn, program: tb.Sequence) -> None:
    launches = program.launches
    found.programs += 1
    found.launches += len(launches)
    found.blocks += sum(launch.blocks for launch in launches)
    for kind in drawn.kinds:
        found.with_kind[kind] += len(launches)


def same_order(first: Trace, again: Trace) -> bool:
    """Returns whether no pair of launches is more than 20 us in another order."""
    from tbsched.campaigns.order import TOLERANCE_NS, gaps_between

    a, b = gaps_between(first), gaps_between(again)
    return not (((a >= 0) != (b >= 0)) & (abs(a - b) > TOLERANCE_NS)).any()


class AsGpu:
    """The model in the GPU's place, to rehearse: it says when the host called."""

    def __init__(self, spec: Any) -> None:
        self._spec = spec

    def observe(self, program: tb.Sequence) -> Trace:
        # No two threads call at the same time.
        host = tuple(1e-6 + 13e-9 * number for number in range(len(program)))
        played = tb.predict(program, self._spec, host=host)
        assert played.issue_times is not None
        assert played.call_times is not None
        issued = [round(at * 1e9) for at in played.issue_times]
        called = [[round(at * 1e9) for at in times] for times in played.call_times]
        return replace(played, extra={"issued_ns": issued, "called_ns": called})


if __name__ == "__main__":
    sys.exit(main())
