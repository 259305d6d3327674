"""Ends runs at random times, and lets two campaigns share a GPU: is anything left, or made up?

    python tests/lab/campaigns/interrupts.py --out DIR --interrupts 200 --kills 50
    python tests/lab/campaigns/interrupts.py --out DIR --interrupts 5 --kills 2 --rehearse

Interrupts are Ctrl-C in this process, soon after a run's beginning; kills are SIGKILL and SIGTERM
of another process, which holds or times blocks. Each is measured from the signal until a launch
that fills the GPU has run here. Then a campaign runs alone, and two run at once: none may report a
counterexample. Prints a summary and writes it to ``DIR/interrupts.json``; exit status 1 if
something took ``--worst`` seconds or longer, was left, or was made up. ``--rehearse`` takes the
driver of tests/launcher/fake_driver: its numbers mean nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import tbsched as tb
from lab.campaigns.campaign_speed import emulated, rehearsal
from lab.script import parse
from tbsched.campaigns import SequenceOptions
from tbsched.launcher.observe import Gpu

LONG = 20.0  # seconds that blocks stay if nobody tells them to leave
LATEST = 0.25  # seconds after its beginning, when a run is ended
THREADS = (32, 256, 1024)


@dataclass(slots=True)
class Ends:
    """How long it took until the GPU was free after a run was ended."""

    what: str
    seconds: list[float] = field(default_factory=list)
    kinds: dict[str, float] = field(default_factory=dict)  # the worst of each
    failures: list[str] = field(default_factory=list)

    def add(self, kind: str, seconds: float) -> None:
        self.seconds.append(seconds)
        self.kinds[kind] = max(seconds, self.kinds.get(kind, 0.0))

    def summary(self) -> dict[str, object]:
        return {
            "count": len(self.seconds),
            "median_s": statistics.median(self.seconds) if self.seconds else None,
            "worst_s": max(self.seconds, default=None),
            "worst_by_kind_s": self.kinds,
            "failures": self.failures,
        }


def program(kind: str, sms: int, rng: random.Random) -> tb.Sequence:
    """What does not end by itself within 20 seconds."""
    threads = rng.choice(THREADS)
    full = tb.Launch(sms * 2048 // max(threads, 64), threads, 32)
    if kind == "held":
        waiting = tb.Launch(rng.randint(1, 600), 1024, 32)
        return tb.Sequence([full, *[waiting] * rng.randint(1, 5)])
    if kind == "timed, one block":
        return tb.Sequence([tb.Launch(1, threads, 32, duration=LONG)])
    if kind == "timed, the last of many":
        durations = (*[0.0] * (8 * sms), LONG)
        return tb.Sequence([tb.Launch(len(durations), 32, 16, duration=durations)])
    streams = rng.choice((1, 3, 12))
    return tb.Sequence(
        [
            tb.Launch(full.blocks, threads, 32, duration=LONG, stream=number % streams)
            for number in range(rng.randint(1, 24))
        ]
    )


@contextlib.contextmanager
def ended(ends: Ends, kind: str) -> Iterator[None]:
    """Writes down what fails."""
    try:
        yield
    except (tb.TbschedError, AssertionError) as error:
        ends.failures.append(f"{kind}: {type(error).__name__}: {error}")


KINDS = ("held", "timed", "timed, one block", "timed, the last of many")


def fills(gpu: Gpu) -> None:
    """Observes a launch with a block on each SM, which only an idle GPU has room for."""
    whole = tb.Launch(2 * gpu.info.sms, 1024, 32)
    placed = gpu.observe(tb.Sequence([whole]))[0].placed
    if placed != whole.blocks:
        raise AssertionError(f"{placed} of {whole.blocks} blocks found room")


def interrupts(gpu: Gpu, count: int, rng: random.Random) -> Ends:
    """Ctrl-C in this process; a few of many sequences, too."""
    ends = Ends("interrupts")
    for number in range(count):
        kind = KINDS[number % len(KINDS)]
        seq = program(kind, gpu.info.sms, rng)
        many = kind == "held" and rng.random() < 0.5
        sent: list[float] = []

        def send(sent: list[float] = sent) -> None:
            sent.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)

        timer = threading.Timer(rng.uniform(0, LATEST), send)
        with ended(ends, kind):
            with contextlib.suppress(KeyboardInterrupt):
                timer.start()
                if many:
                    list(gpu.observe_many([seq] * 3, settle=9.0))
                else:
                    gpu.observe(seq, settle=9.0)
                ends.failures.append(f"{kind}: ended by itself")
            fills(gpu)
            ends.add("held, many" if many else kind, time.monotonic() - sent[0])
        timer.join()
    return ends


def kills(gpu: Gpu, count: int, rng: random.Random) -> Ends:
    """Another process at a time."""
    ends = Ends("kills")
    for number in range(count):
        kind = KINDS[number % len(KINDS)]
        how = (signal.SIGKILL, signal.SIGTERM)[number // len(KINDS) % 2]
        with child("--victim", kind, "--seed", str(rng.randrange(2**31))) as victim:
            assert victim.stdout is not None
            if victim.stdout.readline() != "ready\n":
                ends.failures.append(f"{kind}: did not begin")
                continue
            time.sleep(rng.uniform(0, LATEST))
            begin = time.monotonic()
            victim.send_signal(how)
            victim.wait()
            with ended(ends, kind):
                fills(gpu)
                ends.add(f"{kind}, {how.name}", time.monotonic() - begin)
            if victim.returncode != -how:
                ends.failures.append(f"{kind}: {how.name} ended it with {victim.returncode}")
    return ends


def child(*arguments: str) -> subprocess.Popen[str]:
    """This script in a part of its own."""
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", __file__, "--out", ".", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def be_victim(kind: str, seed: int) -> None:
    """Runs what will not end."""
    with Gpu(0) as gpu:
        fills(gpu)
        seq = program(kind, gpu.info.sms, random.Random(seed))
        print("ready", flush=True)
        gpu.observe(seq, settle=9.0)


def be_campaign(seconds: float, seed: int, rehearse: bool) -> None:
    """Waits until the others are ready, too."""
    with Gpu(0) as gpu:
        print("ready", flush=True)
        sys.stdin.readline()
        report = tb.fuzz(
            gpu,
            emulated() if rehearse else "h200",
            options=SequenceOptions(max_launches=1) if rehearse else None,
            level="occupancy" if rehearse else "exact",
            max_examples=10**9,
            max_seconds=seconds,
            seed=seed,
            progress=False,
        )
    found = {
        "sequences": report.examples,
        "launches": report.launches,
        "counterexamples": [str(row) for row in report.counterexamples],
        "unstable": len(report.unstable),
        "reasons": sorted({row.reason for row in report.unstable})[:5],
    }
    print(json.dumps(found), flush=True)


def campaigns(count: int, seconds: float, seed: int, *more: str) -> list[dict[str, Any]]:
    """What so many at once report."""
    running = [
        child("--campaign", str(seconds), "--seed", str(seed + number), *more)
        for number in range(count)
    ]
    for one in running:
        assert one.stdout is not None
        one.stdout.readline()
    for one in running:
        assert one.stdin is not None
        one.stdin.write("go\n")
        one.stdin.flush()
    texts = [one.communicate()[0] for one in running]
    return [json.loads(text) if text else {"counterexamples": ["it failed"]} for text in texts]


def proof(gpu: Gpu, arguments: argparse.Namespace) -> tuple[dict[str, object], bool]:
    """The summary, and whether all is well."""
    rng = random.Random(arguments.seed)
    begin = time.monotonic()
    ends = [interrupts(gpu, arguments.interrupts, rng), kills(gpu, arguments.kills, rng)]
    more = ("--rehearse",) if arguments.rehearse else ()
    reports = {
        "one campaign": campaigns(1, arguments.campaign_seconds / 2, arguments.seed, *more),
        "two campaigns at once": campaigns(2, arguments.campaign_seconds, arguments.seed, *more),
    }
    summary = {
        "device": gpu.info.name,
        "seed": arguments.seed,
        **{row.what: row.summary() for row in ends},
        **reports,
        "seconds": time.monotonic() - begin,
    }
    found = any(report["counterexamples"] for rows in reports.values() for report in rows)
    slow = any(max(row.seconds, default=0.0) >= arguments.worst for row in ends)
    return summary, not (slow or found or any(row.failures for row in ends))


def main() -> int:
    """Measures, prints and writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--interrupts", type=int, default=200)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--campaign-seconds", type=float, default=30)
    parser.add_argument("--worst", type=float, default=1.0, help="seconds that are too long")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rehearse", action="store_true", help="without a GPU")
    parser.add_argument("--victim", choices=KINDS, help=argparse.SUPPRESS)
    parser.add_argument("--campaign", type=float, help=argparse.SUPPRESS)
    arguments = parse(parser)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if arguments.victim:
        be_victim(arguments.victim, arguments.seed)
        return 0
    if arguments.campaign:
        be_campaign(arguments.campaign, arguments.seed, arguments.rehearse)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        if arguments.rehearse:
            rehearsal(Path(folder))
        with Gpu(0) as gpu:
            summary, fine = proof(gpu, arguments)
    text = json.dumps(summary, indent=1)
    print(text)
    (arguments.out / "interrupts.json").write_text(text + "\n", "utf-8")
    return int(not fine)


if __name__ == "__main__":
    sys.exit(main())
