"""Programs over two H200s whose blocks meet: hang or end, and blocks begun, as recorded."""

from __future__ import annotations

import json
import lzma
import random
from typing import Any

import pytest

import tbsched as tb
from helpers import ROOT

_FILE = ROOT / "tests" / "traces" / "gpus" / "meetings-h200.json.xz"
_JITTER = 0.3  # blocks that were to end together left within this share of their duration


def recording() -> dict[str, Any]:
    return json.loads(lzma.open(_FILE).read())  # type: ignore[no-any-return]


def program_of(rows: list[list[int]], registers: int, rng: random.Random) -> tb.Sequence:
    """A program; on the GPUs, polling made blocks of a launch leave one after the other."""
    return tb.Sequence(
        [
            tb.Launch(
                blocks,
                threads,
                registers,
                shared,
                stream=stream,
                gpu=gpu,
                non_blocking=True,
                duration=tuple(ns / 1e9 * rng.uniform(1, 1 + _JITTER) for _ in range(blocks)),
                meets=None if group < 0 else f"group {group}",
            )
            for gpu, stream, blocks, threads, shared, group, ns in rows
        ]
    )


def test_programs_over_two_gpus_hang_and_begin_as_recorded() -> None:
    found, rng = recording(), random.Random(3)
    verdicts = begun = hung = 0
    for program in found["programs"]:
        first, second = program["runs"]
        seq = program_of(program["launches"], found["registers"], rng)
        trace = tb.predict(
            seq, ["h200", "h200"], connections=found["connections"], launch_interval=6e-6
        )
        if first["hangs"] == second["hangs"]:
            assert (trace.hang is not None) == first["hangs"]
            verdicts += 1
            hung += first["hangs"]
        if first == second:
            assert [int((p.smid >= 0).sum()) for p in trace] == first["begun"]
            begun += 1
    assert (len(found["programs"]), verdicts, begun, hung) == (300, 299, 298, 74)


def test_copies_and_events_between_gpus_take_as_long_as_recorded() -> None:
    found, spec = recording(), tb.device("h200")
    alone = {c["bytes"]: c["ns"] for c in found["copies"] if not c["both_ways"]}
    both = {c["bytes"]: c["ns"] for c in found["copies"] if c["both_ways"]}
    large, less = 2.0**28, 2.0**26
    rate = (large - less) / (alone[large] - alone[less]) * 1e3  # bytes per microsecond
    assert spec.peer_copy_bandwidth == pytest.approx(rate, rel=0.01)
    assert both[large] == pytest.approx(alone[large], rel=0.01)
    hop = {n: min(c["ns_per_hop"] for c in found["chains"] if c["gpus"] == n) for n in (1, 2)}
    most = max(c["ns_per_hop"] for c in found["chains"] if c["gpus"] == 2)
    assert hop[2] - hop[1] <= spec.peer_event_latency_ns <= most - hop[1]
