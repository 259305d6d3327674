"""A campaign of programs with all that hosts, streams and graphs do, on a GPU.

    python tests/lab/timed/event_campaign.py --out DIR --seconds 40 --seed 1 --kinds all

Each program is run once, and its order of launches compared (``order_differs``); worker processes
predict meanwhile. What differs runs three times more, and counts if a pair of launches differs in
all runs. Every tenth program runs twice, to say how often two runs agree. ``--kinds functions``
draws host functions, host calls, values and child graphs into each program; ``--kinds all`` draws
some of all kinds. Writes ``DIR/campaign-QUEUES-SEED.json`` with the numbers, for each kind too, and
``DIR/campaign-QUEUES-SEED.jsonl.xz`` with the runs of each program that differs.
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
CLUSTERS = (2, 4, 8)
PRIORITIES = (-1, -2, -5)
DEADLINE = 5.0  # seconds of a run


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

    def on(self) -> dict[str, Any]:
        """Returns what launches of a stream have in common."""
        return self.at()

    def own(self, host: int) -> list[int]:
        """Returns the streams of a thread."""
        return [stream for stream in range(self.streams) if self.home[stream] == host]

    def launch(self, **where: Any) -> tb.Launch:
        blocks, threads = self.rng.choice(BLOCKS), self.rng.choice((32, 128, 256))
        return tb.Launch(blocks, threads, 32, duration=self.rng.choice(KERNELS) * US, **where)

    def kernel(self) -> None:
        self.events.append(self.launch(**self.on()))

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
        own = self.own(host)
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
        self.record_and_wait(self.rng.randrange(self.hosts), self.rng.randrange(2))

    def timed_event(self) -> None:
        """A record with timing, and a wait that the same thread issues later."""
        self.kinds.add("timed_event")
        self.record_and_wait(self.rng.randrange(self.hosts), 3, timing=True)

    def record_and_wait(self, host: int, event: int, timing: bool = False) -> None:
        own = self.own(host)
        record = tb.RecordEvent(event, self.rng.choice(own), host=host, timing=timing)
        self.events.append(record)
        self.events.append(tb.WaitEvent(event, self.rng.choice(own), host=host))


class OfAllKinds(Drawn):
    """A program of some kinds of events: each is in it or not."""

    def __init__(self, seed: int, spec: tb.DeviceSpec) -> None:
        super().__init__(seed)
        rng = self.rng
        self.hosts = rng.choice((1, 1, 1, 2, 2, 3))
        self.streams = rng.randint(max(2, self.hosts), 5)
        self.home = [stream % self.hosts for stream in range(self.streams)]
        self.kinds = {"threads"} if self.hosts > 1 else set()
        groups, _ = tb.split_sms(spec, min_sms=rng.choice((16, 32, 64)))
        partitioned, urgent = rng.random() < 0.4, rng.random() < 0.5
        self.partitions = [
            rng.choice(groups) if stream and partitioned and rng.random() < 0.6 else None
            for stream in range(self.streams)
        ]
        # The driver makes only non-blocking streams in a partition.
        self.non_blocking = [
            partition is not None or rng.random() < 0.5 for partition in self.partitions
        ]
        self.priorities = [
            rng.choice((0, *PRIORITIES)) if urgent else 0 for _ in range(self.streams)
        ]
        self.urgent_nodes = urgent and rng.random() < 0.5

    def program(self) -> tb.Sequence:
        """Returns a program of about half of the kinds, and of kernels between them."""
        kinds = (
            (0.35, 2, self.function), (0.4, 2, self.call), (0.5, 2, self.values),
            (0.4, 1, self.child), (0.5, 2, self.graph), (0.5, 2, self.copy),
            (0.5, 3, self.event), (0.5, 3, self.timed_event), (0.5, 2, self.memset),
            (0.5, 2, self.mixed_graph),
            (0.5, 2, self.cluster), (0.5, 2, self.cooperative), (0.5, 2, self.dependent),
            (0.5, 1, self.completion_event), (0.5, 2, self.synchronize),
            (0.4, 1, self.host_copy), (0.4, 1, self.legacy), (0.4, 1, self.graph_again),
            (0.4, 2, self.conditional),
        )  # fmt: skip
        each = [self.kernel] * 10
        for share, count, draw in kinds:
            if self.rng.random() < share:
                each += [draw] * count
        self.rng.shuffle(each)
        for draw in each:
            draw()
        return tb.Sequence(self.events)

    def on(self) -> dict[str, Any]:
        where = self.at()
        stream = where["stream"]
        if self.partitions[stream] is not None:
            self.kinds.add("partition")
            where["partition"] = self.partitions[stream]
        if self.priorities[stream]:
            self.kinds.add("priority")
            where["priority"] = self.priorities[stream]
        return where

    def of_whole_gpu(self, host: int | None = None) -> dict[str, Any]:
        """Returns a stream for a graph: no graph is in a partition."""
        while True:
            where = self.at()
            whole = self.partitions[where["stream"]] is None
            if whole and host in (None, where["host"]):
                return where

    def node(self) -> tb.Launch:
        if not self.urgent_nodes:
            return self.launch()
        self.kinds.add("priority")
        return self.launch(priority=self.rng.choice((0, *PRIORITIES)))

    def memset(self) -> None:
        self.kinds.add("memset")
        self.events.append(tb.Memset(self.rng.choice((64, 4096, 1 << 20)), **self.at()))

    def cluster(self) -> None:
        where, size = self.on(), self.rng.choice(CLUSTERS)
        if where.get("partition") is not None:
            size = 2  # the partition may hold no larger one
        self.kinds.add("cluster")
        seconds, blocks = self.rng.choice(KERNELS) * US, size * self.rng.choice((1, 4, 12))
        self.events.append(tb.Launch(blocks, 128, 32, cluster=size, duration=seconds, **where))

    def cooperative(self) -> None:
        self.kinds.add("cooperative")
        blocks, seconds = self.rng.choice((1, 8, 33, 66)), self.rng.choice(KERNELS) * US
        self.events.append(
            tb.Launch(blocks, 128, 32, cooperative=True, duration=seconds, **self.on())
        )

    def dependent(self) -> None:
        """A launch that triggers, and a programmatic one behind it."""
        self.kinds.add("dependent")
        where = self.on()
        self.events.append(self.launch(trigger=self.rng.choice((5, 10, 20)) * US, **where))
        waits = self.rng.choice((None, 5 * US, 10 * US))
        self.events.append(self.launch(programmatic=True, memory_wait=waits, **where))

    def completion_event(self) -> None:
        self.kinds.add("completion_event")
        where = self.on()
        self.events.append(self.launch(completion_event=2, **where))
        self.events.append(
            tb.WaitEvent(2, self.rng.choice(self.own(where["host"])), host=where["host"])
        )

    def synchronize(self) -> None:
        self.kinds.add("synchronize")
        where = self.at()
        of = self.rng.choice(({}, {"stream": where["stream"]}, {"event": 0}))
        self.events.append(tb.Synchronize(host=where["host"], **of))

    def host_copy(self) -> None:
        """A copy that its host waits for, or one of pageable memory."""
        self.kinds.add("host_copy")
        size, way = self.rng.choice((4096, 1 << 16)), self.rng.choice(("h2d", "d2h"))
        how = self.rng.choice(({"blocking": True}, {"pinned": False}))
        self.events.append(tb.Copy(size, way, **how, **self.at()))

    def legacy(self) -> None:
        self.kinds.add("legacy")
        host = self.rng.randrange(self.hosts)
        self.events.append(self.launch(stream=tb.LEGACY_STREAM, host=host))

    def child(self) -> None:
        self.kinds.add("child_graph")
        function = tb.HostFunction(self.rng.choice(OTHERS) * US)
        middle = self.rng.choice((function, self.node(), self.node()))
        if middle is function:
            self.kinds.add("function_node")
        edges = [(0, 1), (1, 2)] if self.rng.random() < 0.5 else [(0, 1)]
        inner = tb.Graph([self.node(), middle, self.node()], edges)
        outer = tb.Graph([self.node(), inner, self.node()], edges=[(0, 1), (1, 2)])
        self.events.append(outer.launch(**self.of_whole_gpu()))

    def graph(self) -> None:
        self.kinds.add("graph")
        nodes = [self.node() for _ in range(self.rng.randint(2, 5))]
        edges = [
            (k, later) for later in range(len(nodes)) for k in range(later)
            if self.rng.random() < 0.4
        ]  # fmt: skip
        self.events.append(tb.Graph(nodes, edges).launch(**self.of_whole_gpu()))

    def graph_again(self) -> None:
        """A graph that is launched twice, maybe in different streams."""
        self.kinds.add("graph_again")
        graph = tb.Graph([self.node(), self.node(), self.node()], edges=[(0, 1)])
        where = self.of_whole_gpu()
        self.events.append(graph.launch(**where))
        self.events.append(graph.launch(**self.of_whole_gpu(where["host"])))

    def mixed_graph(self) -> None:
        """A graph with copies, memsets, and maybe a host function."""
        others: list[Any] = [
            tb.Copy(self.rng.choice((4096, 1 << 18)), self.rng.choice(("h2d", "d2h", "d2d"))),
            tb.Memset(self.rng.choice((64, 1 << 18))),
        ]
        self.kinds.add("transfer_node")
        if self.rng.random() < 0.3:
            self.kinds.add("function_node")
            others.append(tb.HostFunction(self.rng.choice(OTHERS) * US))
        nodes: list[Any] = [self.node(), self.node(), self.node(), *others]
        self.rng.shuffle(nodes)
        edges = [(k, k + 1) for k in range(len(nodes) - 1) if self.rng.random() < 0.6]
        self.events.append(tb.Graph(nodes, edges).launch(**self.of_whole_gpu()))

    def conditional(self) -> None:
        """A graph with a conditional node or two, which is maybe launched twice."""
        self.kinds.add("conditional")
        parts: list[Any] = [self.node(), self.node()]
        for _ in range(self.rng.choice((1, 1, 2))):
            nodes: list[Any] = [self.node() for _ in range(self.rng.choice((1, 1, 2, 3)))]
            times = self.rng.choice((0, 1, 1, 2, 3, 6))
            if times and self.rng.random() < 0.2:
                self.kinds.add("transfer_node")
                nodes.append(tb.Memset(self.rng.choice((64, 1 << 18))))
            edges = [(k, k + 1) for k in range(len(nodes) - 1) if self.rng.random() < 0.7]
            parts.append(tb.Conditional(tb.Graph(nodes, edges), times))
        self.rng.shuffle(parts)
        edges = [(k, k + 1) for k in range(len(parts) - 1) if self.rng.random() < 0.7]
        graph = tb.Graph(parts, edges)
        where = self.of_whole_gpu()
        self.events.append(graph.launch(**where))
        if self.rng.random() < 0.3:
            self.events.append(graph.launch(**self.of_whole_gpu(where["host"])))


@dataclass
class Found:
    """The numbers of a campaign."""

    programs: int = 0
    launches: int = 0
    blocks: int = 0
    programs_with: collections.Counter[str] = field(default_factory=collections.Counter)
    launches_with: collections.Counter[str] = field(default_factory=collections.Counter)
    once: int = 0  # programs whose first run differs
    once_with: collections.Counter[str] = field(default_factory=collections.Counter)
    twice: int = 0  # programs that ran twice
    agreeing: int = 0  # of these, both runs in the same order
    unstable: int = 0
    refused: int = 0
    differing: list[int] = field(default_factory=list)  # in all runs; numbers of programs
    differing_with: collections.Counter[str] = field(default_factory=collections.Counter)
    seconds: float = 0.0


@dataclass
class Doubt:
    """A program whose first run differs, and its further runs."""

    number: int
    drawn: Drawn
    pairs: set[Pair]
    runs: list[Trace]
    judged: list[Future[Any]]


def main() -> int:
    """Runs until the time is over, and writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", choices=("functions", "all"), default="functions")
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
    waiting: collections.deque[tuple[int, Drawn, Future[Any], Trace]] = collections.deque()
    doubts: collections.deque[Doubt] = collections.deque()
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(asked.workers, context) as pool:

        def judge(most: int) -> None:
            """Runs what differs again, until so many programs are not predicted yet."""
            while len(waiting) > most or (waiting and waiting[0][2].done()):
                number, drawn, judged, trace = waiting.popleft()
                if not (pairs := judged.result()):
                    continue
                found.once += 1
                found.once_with.update(drawn.kinds)
                runs = [observed(gpu, trace.sequence, found) for _ in range(RUNS)]
                again = [run for run in runs if run is not None]
                futures = [pool.submit(order_differs, run, spec) for run in again]
                doubts.append(Doubt(number, drawn, set(pairs), [trace, *again], futures))
            while doubts and (most == 0 or all(each.done() for each in doubts[0].judged)):
                settle(doubts.popleft(), found, kept)

        for number, drawn in enumerate(programs(asked.seed, asked.kinds, spec)):
            if time.monotonic() - begin > asked.seconds:
                break
            program = drawn.program()
            trace = observed(gpu, program, found)
            if trace is None:
                continue
            count_in(found, drawn, program)
            waiting.append((number, drawn, pool.submit(order_differs, trace, spec), trace))
            if number % TWICE_EVERY == 0:
                second = observed(gpu, program, found)
                if second is not None:
                    found.twice += 1
                    found.agreeing += same_order(trace, second)
            judge(AHEAD)
        judge(0)
    found.seconds = round(time.monotonic() - begin, 1)
    return kept


def settle(doubt: Doubt, found: Found, kept: list[Trace]) -> None:
    """Counts a program if a pair of its launches differs in all runs, and keeps its runs."""
    doubt.pairs.intersection_update(*(each.result() for each in doubt.judged))
    if not doubt.pairs or len(doubt.runs) < RUNS + 1:
        return
    found.differing.append(doubt.number)
    found.differing_with.update(doubt.drawn.kinds)
    if len(kept) < MOST_KEPT:
        kept += doubt.runs


def programs(seed: int, kinds: str, spec: Any) -> Iterator[Drawn]:
    number = 0
    while True:
        drawn = 1_000_000 * seed + number
        yield OfAllKinds(drawn, spec) if kinds == "all" else Drawn(drawn)
        number += 1


def observed(gpu: Any, program: tb.Sequence, found: Found) -> Trace | None:
    try:
        trace: Trace = gpu.observe(program, deadline=DEADLINE)
    except (tb.UnstableMeasurement, tb.DeadlineExceeded) as error:
        found.unstable += 1
        print(f"{type(error).__name__}: {str(error)[:200]}", file=sys.stderr)
        return None
    except ValueError as error:
        found.refused += 1
        print(f"refused: {str(error)[:200]}", file=sys.stderr)
        return None
    return trace


def count_in(found: Found, drawn: Drawn, program: tb.Sequence) -> None:
    launches = program.launches
    found.programs += 1
    found.launches += len(launches)
    found.blocks += sum(launch.blocks for launch in launches)
    for kind in drawn.kinds:
        found.programs_with[kind] += 1
        found.launches_with[kind] += len(launches)


def same_order(first: Trace, again: Trace) -> bool:
    """Returns whether no pair of launches is more than 20 us in another order."""
    from tbsched.campaigns.order import TOLERANCE_NS, gaps_between

    a, b = gaps_between(first), gaps_between(again)
    return not (((a >= 0) != (b >= 0)) & (abs(a - b) > TOLERANCE_NS)).any()


class AsGpu:
    """The model in the GPU's place, to rehearse: it says when the host called."""

    def __init__(self, spec: Any) -> None:
        self._spec = spec

    def observe(self, program: tb.Sequence, *, deadline: float | None = None) -> Trace:
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
