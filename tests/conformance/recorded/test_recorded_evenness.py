"""Forced evenness against what an H200 did with the first launch of each recorded sequence."""

from __future__ import annotations

import functools
import json
import lzma
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from helpers import TRACES
from tbsched.advice.evenness import Evenness, forced_even
from tbsched.program.sequence import Launch
from tbsched.traces.records import read_header, read_record
from tbsched.traces.trace import Trace


@functools.cache
def first_launches() -> tuple[Trace, ...]:
    """The first launch of every recording, which starts on an idle GPU; the rest is not read."""
    return tuple(trace for path in sorted(TRACES.glob("*.jsonl*")) for trace in _first(path))


def _first(path: Path) -> Iterator[Trace]:
    reader = lzma.open if path.suffix == ".xz" else open
    with reader(path, "rt", encoding="utf-8") as file:
        devices = read_header(json.loads(next(file)))
        for number, line in enumerate(file):
            first = {key: [_first_item(line, f'"{key}":[')] for key in ("events", "smid")}
            yield read_record({"id": f"{path.name}, {number}", **first}, devices)


def _first_item(line: str, key: str) -> object:
    """Returns the first item of a list in JSON; most of the time would go into the others."""
    item, _ = json.JSONDecoder().raw_decode(line, line.index(key) + len(key))
    return item


@functools.cache
def even_on_an_h200(launch: Launch) -> Evenness:
    return forced_even("h200", launch)


def is_even(trace: Trace) -> bool:
    return int(np.ptp(trace[0].occupancy(132))) <= 1


def test_h200_spreads_evenly_whatever_is_forced_to_be_even() -> None:
    reasons: Counter[str] = Counter()
    for trace in first_launches():
        found = even_on_an_h200(trace.sequence.launches[0])
        if found:
            assert is_even(trace), trace.id
            reasons[found.reason.split(" fill ")[-1]] += 1
    assert reasons["an SM holds one block at most"] > 1000
    assert reasons["there is one block"] > 100
    assert reasons["the blocks of one cluster go to different SMs"] > 100
    assert sum(count for reason, count in reasons.items() if "SMs x" in reason) >= 10


def test_h200_holds_as_many_blocks_per_sm_as_forced_even_counts() -> None:
    overflowing = 0
    for trace in first_launches():
        first = trace.sequence.launches[0]
        found = even_on_an_h200(first)
        if first.cluster == 1 and first.blocks > found.blocks_per_sm * found.sms:
            overflowing += 1
            assert set(trace[0].occupancy(132).tolist()) == {found.blocks_per_sm}, trace.id
    assert overflowing > 300


def test_h200_spreads_single_blocks_evenly_even_where_nothing_forces_it_but_not_clusters() -> None:
    single = [trace for trace in first_launches() if trace.sequence.launches[0].cluster == 1]
    clusters = [trace for trace in first_launches() if trace.sequence.launches[0].cluster > 1]
    assert len(single) > 10_000
    assert all(map(is_even, single))
    assert not all(map(is_even, clusters))
