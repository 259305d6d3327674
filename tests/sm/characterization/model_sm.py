"""A literal SM in the place of a GPU: each processing block issues one instruction at a time."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

import tbsched as tb
from tbsched.program.arrays import StructuredArray
from tbsched.sm.characterization import Loop, Mode, Opcode, Placed, Wanted
from tbsched.sm.characterization.placing import NOBODY
from tbsched.sm.characterization.runs import HELD, MEASURED, RECORD
from tbsched.sm.characterization.words import SCOREBOARDS


@dataclass(frozen=True)
class Class:
    """How the model SM executes an opcode.

    Attributes:
        latency: clocks until the result is there.
        interval: clocks from one warp's instruction to the next one's, in a processing block.
        waits: whether a warp waits for the result by itself.
    """

    latency: int = 4
    interval: int = 1
    waits: bool = False


@dataclass
class ModelSm:
    """A bench: a GPU whose SMs behave as the classes say.

    Attributes:
        classes: by name of an opcode; others are as ``Class()``.
        instructions: of a loop, about.
        jitter: clocks by which warps begin later, at most.
        reasons: opcodes without a verified loop.
    """

    classes: Mapping[str, Class] = field(default_factory=dict)
    instructions: int = 240
    jitter: int = 0
    reasons: Mapping[str, str] = field(default_factory=dict)
    iterations: int = 1
    seed: int = 0
    launched: int = 0

    def __post_init__(self) -> None:
        self.spec = tb.device("h200")
        self._rng = np.random.default_rng(self.seed)
        self._times: dict[tuple[object, ...], list[tuple[int, int]]] = {}

    def about(self) -> dict[str, object]:
        return {"name": "model SM", "sms": self.spec.sms}

    def workshop(self, opcodes: Iterable[Opcode]) -> ModelSm:
        return self

    def reason(self, opcode: Opcode) -> str:
        return self.reasons.get(opcode.name, "")

    def waits(self, opcode: Opcode) -> bool:
        return self.classes.get(opcode.name, Class()).waits

    def distances(self, opcode: Opcode, mode: Mode) -> tuple[int, ...]:
        most = SCOREBOARDS if self.waits(opcode) else 16
        return tuple(range(1, 1 + (most if mode is Mode.WRITE_READ else 8)))

    def loops(self, opcode: Opcode, wanted: Iterable[Wanted]) -> list[Loop]:
        return [
            Loop(
                w.opcode, w.mode, w.distance, w.spacing or 1, w.updates,
                w.distance * (w.updates or self.instructions // w.distance), b"",
            )
            for w in wanted
        ]  # fmt: skip

    def run(self, loop: Loop, placed: Placed, iterations: int) -> StructuredArray:
        self.launched += 1
        per_block = placed.threads // 32
        records = np.zeros((placed.blocks, per_block), RECORD)
        records["smid"] = placed.smid[:, None]
        records["kind"][:, 0] = HELD
        for sm in np.unique(placed.smid) if placed.target == NOBODY else [placed.target]:
            blocks = np.flatnonzero(placed.smid == sm)
            places = [
                (block, warp)
                for turn, block in enumerate(blocks)
                for warp in range(per_block)
                if turn != placed.short_block or warp < placed.short_warps
            ]
            for slot, ((block, warp), (start, end)) in enumerate(
                zip(places, self._clocks(loop, len(places), iterations), strict=True)
            ):
                result = self._result(loop)
                records[block, warp] = (start, end, start, end, MEASURED, sm, slot, result)
        return records.ravel()

    def _result(self, loop: Loop) -> int:
        cls = self.classes.get(loop.opcode, Class())
        is_right = cls.waits or loop.spacing * loop.distance >= cls.latency
        return 1 if is_right else 1000 + loop.spacing

    def _clocks(self, loop: Loop, warps: int, iterations: int) -> list[tuple[int, int]]:
        """The first and the last clock of each warp; its slot says its processing block."""
        base = 1_000_000 + int(self._rng.integers(1000))
        key = loop.opcode, loop.mode, loop.distance, loop.spacing, loop.updates, warps
        if key not in self._times:  # all SMs are alike
            self._times[key] = self._simulated(loop, warps, iterations)
        return [(base + start, base + end) for start, end in self._times[key]]

    def _simulated(self, loop: Loop, warps: int, iterations: int) -> list[tuple[int, int]]:
        cls = self.classes.get(loop.opcode, Class())
        count = loop.instructions * iterations
        blocks = self.spec.processing_blocks
        chained = cls.waits and loop.mode is Mode.WRITE_READ
        found = [(0, 0)] * warps
        for block in range(blocks):
            mine = range(block, warps, blocks)
            starts = {w: int(self._rng.integers(self.jitter + 1)) for w in mine}
            issued: dict[int, list[int]] = {w: [] for w in mine}
            ready = [(start, w) for w, start in starts.items()]
            heapq.heapify(ready)
            free = 0
            while ready:
                at, w = heapq.heappop(ready)
                at = max(at, free)
                free = at + cls.interval
                issued[w].append(at)
                done = len(issued[w])
                if done == count:
                    found[w] = (starts[w], at + cls.latency)
                    continue
                after = at + loop.spacing
                if chained and done >= loop.distance:
                    after = max(after, issued[w][done - loop.distance] + cls.latency)
                heapq.heappush(ready, (after, w))
        return found
