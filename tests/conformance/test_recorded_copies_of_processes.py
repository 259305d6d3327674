"""Copies, and hosts that wait, of two processes on an H200, against the model.

The rules were found in these directed programs. Around each copy the recorder recorded two events.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tbsched as tb
from conformance.test_recorded_processes import launch_of, overlap, recorded, round_of, turns_of

# First runs in which the order of processes was that of the model, and both had a kernel.
LABELS = ["chain_d2h_beside", "chain_small_beside", "copy_while_stopped", "d2h_after_kernel"]
LABELS += ["host_loop"]


def events_of(row: dict[str, Any]) -> list[tb.Launch | tb.Copy | tb.RecordEvent | tb.Synchronize]:
    stream = row["stream"] * 10  # as launch_of
    if row["what"] == "launch":
        return [launch_of(row)]
    if row["what"] == "copy":
        copy = tb.Copy(row["bytes"], row["kind"], stream=stream, non_blocking=True)
        return [tb.RecordEvent(0, stream=stream), copy, tb.RecordEvent(1, stream=stream)]
    return [tb.Synchronize(stream=None if row["what"] == "synchronize" else stream)]


def predicted(row: dict[str, Any], *, as_kernels: bool = False) -> tb.Processes:
    """From the gaps between calls. ``as_kernels``: as if kernels copied."""
    programs, gaps = [], []
    for number in round_of(row):
        events, own, last_ns = [], [], None
        for each in row["processes"][number]["events"]:
            found = events_of({**each, "kind": "d2d"} if as_kernels and "kind" in each else each)
            events += found
            own += [0.0 if last_ns is None else max(0, each["called_ns"][0] - last_ns) * 1e-9]
            own += [0.0] * (len(found) - 1)
            last_ns = each["called_ns"][1]
        first = [p["events"][0]["called_ns"][0] for p in row["processes"]]
        own[0] = (first[number] - min(first)) * 1e-9
        programs.append(tb.Sequence(events))
        gaps.append(own)
    return tb.predict_processes(programs, "h200", host=gaps)


def alike(found: tb.Processes, row: dict[str, Any]) -> float:
    """The share of time in which both give the GPU to the same process."""
    start = min(int(trace.timeline["start_ns"].min()) for trace in found.traces)
    shift = int(found.turns["begin_ns"][0]) - start
    turns = [[process, begin + shift, end + shift] for process, begin, end in turns_of(found, row)]
    both = overlap(turns, row["turns"])
    return both / (sum(end - begin for _, begin, end in [*turns, *row["turns"]]) - both)


@pytest.mark.parametrize("label", LABELS)
def test_turns_of_processes_that_copy(label: str) -> None:
    (row,) = [row for row in recorded("copies-h200") if row["id"] == label]
    assert alike(predicted(row), row) > 0.97


def test_kernels_that_copy_would_take_other_turns() -> None:
    rows = [
        row
        for row in recorded("copies-h200")
        if row["id"].startswith("chain_") and row["id"] in LABELS
    ]
    shares = [alike(predicted(row, as_kernels=True), row) for row in rows]
    assert len(shares) == 2
    assert max(shares) < 0.7


def test_copies_beside_a_full_gpu_do_not_wait() -> None:
    for kind in ("h2d", "d2h"):
        (row,) = [row for row in recorded("copies-h200") if row["id"] == f"beside_{kind}_4194304"]
        kernel = row["processes"][1]["events"][0]
        copies = [each for each in row["processes"][0]["events"] if each["what"] == "copy"]
        assert len(copies) == 8
        took = [each["end_ns"] - each["start_ns"] for each in copies]
        assert max(took) < 90_000
        assert kernel["start_ns"] < copies[0]["start_ns"] < copies[-1]["end_ns"] < kernel["end_ns"]
        (found,) = [
            np.asarray(t.transfer_ns) for t in predicted(row).traces if len(t.sequence.transfers)
        ]
        assert np.ptp(found, axis=1) == pytest.approx(took, rel=0.15)
