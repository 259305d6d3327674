"""Every value of a trace file replaced by every wrong one: refused, or a trace that works."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tbsched as tb
from tbsched.traces.placement import DeviceInfo
from tbsched.traces.records import read_record, record_line

WRONG: tuple[Any, ...] = (
    None, True, -1, 7, 1.5, 2**31, 2**63, 10**400, "3", [], [0], [[]], {"a": 1}, float("nan"),
)  # fmt: skip
HELD = tb.Sequence([tb.Launch(2, 64, 16, name="a"), tb.Launch(3, 32, 16, stream=1), tb.Release(0)])
TIMED = tb.Sequence(
    [
        tb.Launch(2, 32, 16, stream=0, duration=tb.Drawn("uniform", 1e-3, 1e-4)),
        tb.RecordEvent(0, 0),
        tb.WaitEvent(0, 1),
        tb.Launch(2, 32, 16, stream=1, duration=(1e-3, 2e-3)),
    ]
)

NEW = tb.Sequence(
    [
        tb.Graph([tb.Launch(2, 32, 16, duration=1e-3)]).launch(0, non_blocking=True),
        tb.Launch(
            2, 32, 16, stream=1, duration=1e-3, cooperative=True, programmatic=True, trigger=1e-4,
            partition=tb.Partition((0, 1), split=tb.SmSplit(2, groups=1), group=0),
        ),
    ]
)  # fmt: skip


def lines_of(sequence: tb.Sequence, folder: Path) -> list[Any]:
    """The objects of a trace file that has everything."""
    if sequence is NEW:
        placements = (tb.Placement(np.zeros(2, np.int32)), tb.Placement(np.ones(2, np.int32)))
        trace = tb.Trace(NEW, DeviceInfo("G", 4), placements)
    else:
        trace = tb.predict(sequence, "rtx3090", warp_slots=not sequence.timed)
    extra = {"issued_ns": [0, 5], "seed": 1, "shrunk": True, "unstable": "wavers"}
    tb.save_traces(folder / "t.jsonl", [dataclasses.replace(trace, id="t", extra=extra)])
    return [json.loads(line) for line in (folder / "t.jsonl").read_text().splitlines()]


def places(value: Any) -> Iterator[tuple[Any, ...]]:
    """Where the values in a value are."""
    items = value.items() if isinstance(value, dict) else ()
    for key, inner in enumerate(value) if isinstance(value, list) else items:
        yield (key,)
        yield from ((key, *rest) for rest in places(inner))


def copied(value: Any, place: tuple[Any, ...]) -> tuple[Any, Any]:
    """A copy, of which what leads to the place is new, and the list or object that has the place.

    All the rest is shared: a whole copy for each mutation would take most of the time.
    """
    copy = holder = value.copy()
    for key in place[:-1]:
        holder[key] = holder[key].copy()
        holder = holder[key]
    return copy, holder


def mutations(lines: list[Any]) -> Iterator[list[Any]]:
    for place in places(lines):
        for wrong in WRONG:
            changed, holder = copied(lines, place)
            holder[place[-1]] = wrong
            yield changed
        changed, holder = copied(lines, place)
        del holder[place[-1]]
        yield changed


@pytest.mark.parametrize("sequence", [HELD, TIMED, NEW], ids=["held", "timed", "new"])
def test_what_is_loaded_works(tmp_path: Path, sequence: tb.Sequence) -> None:
    path = tmp_path / "m.jsonl"
    loaded = 0
    for lines in mutations(lines_of(sequence, tmp_path)):
        path.write_text("\n".join(map(json.dumps, lines)))
        with contextlib.suppress(ValueError):
            for trace in tb.load_traces(path):
                loaded += 1
                assert str(trace)
                assert trace.issue_times is None or len(trace.issue_times) == 2
                again = read_record(json.loads(record_line(trace)), trace.devices)
                assert again.sequence == trace.sequence
    assert loaded > 100
