"""Programs over two H200s whose blocks meet: hang or end, and blocks begun, as recorded."""

from __future__ import annotations

import json
import lzma
import random
from typing import Any

import pytest

import tbsched as tb
from helpers import ROOT
from lab.several.drawn import Row, is_call, sequence_of

_GPUS = ROOT / "tests" / "traces" / "gpus"
_UNEVEN = 0.05  # share by which some blocks of a launch stay longer than others
_JITTER = 0.3  # blocks that were to end together left within this share of their duration


def recording(name: str) -> dict[str, Any]:
    return json.loads(lzma.open(_GPUS / name).read())  # type: ignore[no-any-return]


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
    found, rng = recording("meetings-h200.json.xz"), random.Random(3)
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
    found, spec = recording("meetings-h200.json.xz"), tb.device("h200")
    alone = {c["bytes"]: c["ns"] for c in found["copies"] if not c["both_ways"]}
    both = {c["bytes"]: c["ns"] for c in found["copies"] if c["both_ways"]}
    large, less = 2.0**28, 2.0**26
    rate = (large - less) / (alone[large] - alone[less]) * 1e3  # bytes per microsecond
    assert spec.peer_copy_bandwidth == pytest.approx(rate, rel=0.01)
    assert both[large] == pytest.approx(alone[large], rel=0.01)
    hop = {n: min(c["ns_per_hop"] for c in found["chains"] if c["gpus"] == n) for n in (1, 2)}
    most = max(c["ns_per_hop"] for c in found["chains"] if c["gpus"] == 2)
    assert hop[2] - hop[1] <= spec.peer_event_latency_ns <= most - hop[1]


def uneven(rows: list[Row], rng: random.Random) -> list[list[int]]:
    """How long blocks stay, ns: those of a launch do not end at the same instant."""
    return [
        [round(row[-1] * (1 + _UNEVEN * rng.random())) for _ in range(row[2])]
        for row in rows
        if not is_call(row)
    ]


def test_programs_near_the_limit_hang_and_begin_as_recorded() -> None:
    """A quarter of a thousand: near the limit and equally long blocks, and neither of both."""
    found, rng = recording("several-h200.json.xz"), random.Random(3)
    verdicts = begun = hung = 0
    for program in [*found["programs"][1::8], *found["programs"][2::8]]:
        if None in program["runs"]:
            continue
        (hangs, blocks), (hangs_again, blocks_again) = program["runs"]
        stay = None if program["spread"] else uneven(program["rows"], rng)
        trace = tb.predict(
            sequence_of(program["rows"], program["spread"], stay),
            ["h200", "h200"],
            connections=found["connections"],
            launch_interval=found["launch_interval"],
        )
        counts = [int((p.smid >= 0).sum()) for p in trace]
        full = [row[2] for row in program["rows"] if not is_call(row)]
        if hangs == hangs_again:
            assert (trace.hang is not None) == hangs
            verdicts += 1
            hung += hangs
        if blocks == blocks_again:
            assert counts == (blocks or full)
            begun += 1
    assert (verdicts, begun, hung) == (248, 247, 51)


def test_programs_that_hung_on_gpus_with_late_hosts_are_not_safe() -> None:
    found = recording("several-h200.json.xz")
    for late in found["late"]:
        assert late["hung"] > 0
        rows = late.get("rows") or found["programs"][late["program"]]["rows"]
        said = tb.coresident(
            sequence_of(rows), ["h200", "h200"], connections=found["connections"], fixes=False
        )
        assert said.safe is False
