"""Measures how kernels slow each other: the same SMs, other SMs, the same GPC, L2 and DRAM.

python tests/lab/inside/neighbours/record.py --out DIR --seconds 60

Writes ``neighbours.jsonl``, a row per case. ``--model`` plays a GPU whose numbers mean nothing, to
rehearse. ``--once`` launches every kernel once, for a profiler. ``--seed`` draws other pairs of
real kernels, and measures nothing but these and each kernel alone.
"""

from __future__ import annotations

import argparse
import json
import lzma
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TextIO

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[3]))
sys.path.insert(0, str(Path(__file__).parent))

import plan
from card import FAR_BYTES, NEAR_BYTES, Array, Card, CupyCard, PlayedCard

import tbsched as tb
from lab.script import parse

CLOCKS = 200_000
MOST_FAILED = 5
MASKS = {"near": NEAR_BYTES - 1, "far": FAR_BYTES - 1, "-": NEAR_BYTES - 1}


class Recorder:
    """Runs cases on a card, and writes rows."""

    def __init__(self, card: Card, file: TextIO) -> None:
        self.card, self._file = card, file
        self._salt = 0

    def write(self, kind: str, **row: Any) -> None:
        """A row; what is written stays."""
        self._file.write(json.dumps({"kind": kind, **row}, separators=(",", ":")) + "\n")
        self._file.flush()

    def body(self, number: int, body: plan.Body, clocks: int, expected: int) -> int:
        """Launches blocks of a body, in the stream of that number."""
        card = self.card
        self._salt += 1
        memory = "near" if body.memory == "-" else body.memory
        roles = card.address(f"roles{number}") if body.sms is not None else 0
        blocks = body.per_sm * card.sms
        card.launch(
            body.name, blocks, plan.THREADS,
            np.uint64(card.address(f"records{number}")), np.uint64(card.address("control")),
            np.uint64(roles), np.uint64(card.address(memory)), np.uint32(MASKS[body.memory]),
            np.uint32(self._salt), np.int64(clocks), np.uint32(expected), stream=number,
        )  # fmt: skip
        return blocks

    def steady(self, bodies: tuple[plan.Body, ...], repeats: int, **notes: Any) -> None:
        """Bodies that begin together and go on for as long."""
        for number, body in enumerate(bodies):
            if body.sms is not None:
                self.card.roles(number, body.sms)
        expected = sum(body.per_sm for body in bodies) * self.card.sms
        runs = []
        for _ in range(repeats):
            self.card.clear()
            blocks = [self.body(k, body, CLOCKS, expected) for k, body in enumerate(bodies)]
            found = [self.card.records(k, count) for k, count in enumerate(blocks)]
            runs.append([self._rate(body, own) for body, own in zip(bodies, found, strict=True)])
        of = [[body.name, body.memory, body.per_sm, _sms(body)] for body in bodies]
        self.write("steady", of=of, runs=runs, **notes)

    def _rate(self, body: plan.Body, found: Array) -> list[float]:
        """Returns an SM's median rate, its spread, how many SMs have the right blocks, the time."""
        sms = self.card.sms
        count = np.bincount(found["sm"], minlength=sms)
        rate = np.bincount(found["sm"], weights=found["rate"], minlength=sms)
        there = np.arange(sms) if body.sms is None else np.array(body.sms)
        right = there[count[there] == body.per_sm]
        if not len(right):
            return [0.0, 0.0, 0.0, 0.0]
        low, middle, high = np.quantile(rate[right], [0.1, 0.5, 0.9]).tolist()
        own = np.isin(found["sm"], right)
        spent = np.median(found["end_ns"][own] - found["start_ns"][own])
        spread = (high - low) / max(middle, 1e-9)
        return [_short(middle), _short(spread), _short(len(right) / len(there)), float(spent)]

    def real(self, number: int, name: str, grid: int, threads: int = plan.REAL_THREADS) -> None:
        """Launches a real kernel, in the stream of that number."""
        card = self.card
        card.launch(
            name, grid, threads, np.uint64(card.address(f"records{number}")),
            np.uint64(card.address(f"x{number}")), np.uint64(card.address(f"y{number}")),
            np.int32(plan.REAL[name]), stream=number,
        )  # fmt: skip

    def lone(self, name: str, size: str, repeats: int = 5) -> None:
        """A real kernel alone, with the duration of each block in the run of median time."""
        grid = plan.grid_of(name, size, self.card.sms)
        runs, blocks = [], []
        for _ in range(repeats + 1):
            self.real(0, name, grid)
            found = self.card.records(0, grid).copy()
            runs.append(int(found["end_ns"].max() - found["start_ns"].min()))
            blocks.append((found["end_ns"] - found["start_ns"]).tolist())
        middle = int(np.argsort(runs[1:])[repeats // 2]) + 1
        facts = self.card.facts(name)
        self.write(
            "lone", name=name, size=size, grid=grid, runs=runs[1:], blocks=blocks[middle], **facts
        )

    def pair(self, one: tuple[str, str], other: tuple[str, str], repeats: int = 5) -> None:
        """Two real kernels in two streams."""
        grids = [plan.grid_of(*each, self.card.sms) for each in (one, other)]
        runs = []
        for _ in range(repeats + 1):
            self.card.gate()
            for number, (each, grid) in enumerate(zip((one, other), grids, strict=True)):
                self.real(number, each[0], grid)
            found = [self.card.records(number, grid).copy() for number, grid in enumerate(grids)]
            first = min(int(own["start_ns"].min()) for own in found)
            spans = [_span(own, first) for own in found]
            runs.append(spans)
        self.write("pair", of=[[*one, grids[0]], [*other, grids[1]]], runs=runs[1:])

    def ruled(self, name: str, size: str, ruler: plan.Body, repeats: int = 3) -> None:
        """A real kernel beside a body that goes on until the kernel ends."""
        grid = plan.grid_of(name, size, self.card.sms)
        runs = []
        for _ in range(repeats):
            self.card.clear()
            expected = np.uint32(ruler.per_sm * self.card.sms + 1)
            blocks = self.body(1, ruler, 0, int(expected))
            self.mark_begin(expected)
            self.real(0, name, grid)
            self.mark_end()
            own = self.card.records(0, grid).copy()
            beside = self.card.records(1, blocks)
            runs.append(self._beside(own, beside))
        of = [ruler.name, ruler.memory, ruler.per_sm]
        self.write("ruled", name=name, size=size, grid=grid, ruler=of, runs=runs)

    def mark_begin(self, expected: np.uint32) -> None:
        """Notes when what comes next in stream 0 starts, once so many blocks are there."""
        at = np.uint64(self.card.address("mark")), np.uint64(self.card.address("control"))
        self.card.launch("mark_begin", 1, 32, *at, expected)

    def mark_end(self) -> None:
        """Notes when what came before is over, and stops what is beside it."""
        at = np.uint64(self.card.address("mark")), np.uint64(self.card.address("control"))
        self.card.launch("mark_end", 1, 32, *at)

    def _beside(self, own: Array, beside: Array) -> list[float]:
        """The kernel's time and its blocks', then the ruler's time and rate with and without it."""
        took = own["end_ns"] - own["start_ns"]
        rate = np.bincount(beside["sm"], weights=beside["rate"], minlength=self.card.sms)
        there = np.isin(np.arange(self.card.sms), own["sm"])
        nobody = rate[~there] if (~there).any() else np.zeros(1)
        return [
            float(own["end_ns"].max() - own["start_ns"].min()), float(np.median(took)),
            float(np.median(beside["end_ns"] - beside["start_ns"])),
            _short(np.median(rate[there])), _short(np.median(nobody)),
        ]  # fmt: skip


def _short(value: float) -> float:
    return float(f"{value:.5g}")


def _sms(body: plan.Body) -> Any:
    return None if body.sms is None else [len(body.sms), body.sms[0], body.sms[-1]]


def _span(own: Array, first: int) -> list[int]:
    """First and last start, first and last end, and the median time of a block."""
    start, end = own["start_ns"].astype(np.int64), own["end_ns"].astype(np.int64)
    times = [start.min(), start.max(), end.min(), end.max()]
    return [int(time - first) for time in times] + [int(np.median(end - start))]


class Budget:
    """Seconds for everything, and cases that may fail."""

    def __init__(self, recorder: Recorder, seconds: float) -> None:
        self._recorder = recorder
        self._until = time.monotonic() + seconds

    def each(self, name: str, share: float, cases: Iterable[Callable[[], object]]) -> None:
        """Runs cases until a share of what is left is spent; a case that fails is noted."""
        begin = time.monotonic()
        until = begin + share * max(0.0, self._until - begin)
        done, failed, text = 0, 0, ""
        left = iter(cases)
        while failed <= MOST_FAILED:
            if time.monotonic() > until:
                text = text or "time over"
                break
            try:
                case = next(left, None)
                if case is None:
                    break
                case()
                done += 1
            except Exception:
                failed += 1
                text = traceback.format_exc()
        spent = round(time.monotonic() - begin, 1)
        self._recorder.write("phase", name=name, done=done, failed=failed, s=spent, text=text)
        print(f"{name}: {done} done, {failed} failed, {spent} s {text}", flush=True)


def gpcs_of(card: Card, played: bool) -> list[list[int]]:
    """The SMs of each GPC of this board."""
    spec = tb.device("h200" if played else "gpu")
    per_tpc = spec.sms // spec.tpcs
    return [[per_tpc * tpc + k for tpc in tpcs for k in range(per_tpc)] for tpcs in spec.gpcs]


def check_sharing(recorder: Recorder) -> None:
    """Says whether a kernel runs beside a ruler, and the ruler hears when it is over."""
    recorder.ruled("mandelbrot", "one", plan.Body("fma4", "-", 1))
    begin = time.monotonic()
    recorder.ruled("mandelbrot", "one", plan.Body("fma4", "-", 1))
    print(
        f"a kernel beside a ruler, 3 times: {1e3 * (time.monotonic() - begin):.1f} ms", flush=True
    )


EACH = [(name, size) for name in plan.REAL for size in plan.SIZES]


def measure_pairs(recorder: Recorder, budget: Budget, seed: int) -> None:
    """Real kernels, alone and in pairs."""
    recorder.write("about", **recorder.card.about, clocks=CLOCKS, seed=seed)
    budget.each("lone", 0.4, (lambda e=e: recorder.lone(*e) for e in EACH))
    budget.each("pairs", 1.0, (lambda p=p: recorder.pair(*p) for p in plan.real_pairs(seed)))


def measure(recorder: Recorder, budget: Budget, played: bool) -> None:
    """All phases, the dearest to miss first."""
    from figures import figures
    from library import library

    card = recorder.card
    recorder.write("about", **card.about, clocks=CLOCKS, seed=plan.SEED)
    check_sharing(recorder)
    budget.each("alone", 0.2, (lambda b=b: recorder.steady(b, 3) for b in plan.alone(card.sms)))
    budget.each("lone", 0.2, (lambda e=e: recorder.lone(*e) for e in EACH))
    budget.each("pairs", 0.3, (lambda p=p: recorder.pair(*p) for p in plan.real_pairs(plan.SEED)))
    rulers = [plan.Body(*ruler, n) for ruler in plan.RULERS for n in plan.RULER_BLOCKS]
    budget.each(
        "rulers", 0.4, (lambda e=e, r=r: recorder.ruled(*e, r) for r in rulers for e in EACH)
    )
    budget.each("figures", 0.3, figures(recorder))
    budget.each("gpcs", 0.3, _gpc_cases(recorder, played))
    budget.each("beside", 0.5, (lambda b=b: recorder.steady(b, 2) for b in plan.beside()))
    budget.each("apart", 0.5, (lambda b=b: recorder.steady(b, 2) for b in plan.apart(card.sms)))
    budget.each("library", 1.0, library(recorder))


def _gpc_cases(recorder: Recorder, played: bool) -> Iterable[Callable[[], object]]:
    gpcs = gpcs_of(recorder.card, played)
    recorder.write("gpcs", sms=gpcs)
    for where, *bodies in plan.in_gpcs(gpcs):
        yield lambda b=tuple(bodies), w=where: recorder.steady(b, 3, where=w)


def once(card: Card) -> None:
    """Every kernel once, for a profiler, in the order that is printed."""
    recorder = Recorder(card, sys.stderr)
    for name in plan.REAL:
        for size in ("one", "whole"):
            recorder.real(0, name, plan.grid_of(name, size, card.sms))
            card.wait()
    for name, memory in plan.bodies():
        card.clear()
        recorder.body(0, plan.Body(name, memory, 4), CLOCKS, 0)
        card.wait()


def main() -> int:
    """Measures and writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="for how long")
    parser.add_argument("--model", action="store_true", help="rehearses without a GPU")
    parser.add_argument("--seed", type=int, help="other pairs, and nothing else")
    parser.add_argument("--once", action="store_true", help="every kernel once")
    arguments = parse(parser)
    begin = time.monotonic()
    card: Card = PlayedCard() if arguments.model else CupyCard()
    print(f"ready after {time.monotonic() - begin:.1f} s", flush=True)
    if arguments.once:
        once(card)
        return 0
    path = arguments.out / "neighbours.jsonl"
    with path.open("w", encoding="utf-8") as file:
        recorder = Recorder(card, file)
        budget = Budget(recorder, arguments.seconds)
        if arguments.seed is None:
            measure(recorder, budget, arguments.model)
        else:
            measure_pairs(recorder, budget, arguments.seed)
    content = path.read_bytes()
    packed = lzma.compress(content)
    (arguments.out / "neighbours.jsonl.xz").write_bytes(packed)
    print(f"{time.monotonic() - begin:.1f} s, {len(content):,} bytes, {len(packed):,} packed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
