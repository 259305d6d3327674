"""When blocks ran and what launches waited for, of traces whose launches have durations."""

from __future__ import annotations

import numpy as np

from tbsched.show.text import launch_words as words_of
from tbsched.show.text import render, seconds_words, table_of, trace_head
from tbsched.traces.trace import StructuredArray, Trace

BLOCK = np.dtype(
    [("launch", np.int32), ("block", np.int32), ("sm", np.int32),
     ("start_ns", np.int64), ("end_ns", np.int64)]
)  # fmt: skip

_PARTS_SHOWN = 4
_BESIDE_SHOWN = 3
_LAUNCHES_SHOWN = 50

# What a launch waited for and, in brackets, what would have let it run.
_CAUSE_WORDS = {
    "stream": "for {who}, before it in its stream (in another stream it would not have waited)",
    "event": "for an event recorded after {who} (without the WaitEvent it would not have waited)",
    "legacy_stream": (
        "for {who}, as work in the legacy stream and all other work wait for each other "
        "(without launches in the legacy stream it would not have waited)"
    ),
    "hardware_queue": (
        "behind {who} in hardware queue {queue} (false dependency: another stream, same queue; "
        "more queues, CUDA_DEVICE_MAX_CONNECTIONS, or fewer streams would separate them)"
    ),
    "grids": "for a resident grid to end (the GPU takes no more grids at once)",
    "turn": "for the thread block scheduler to turn to it from {who}",
    "queue": (
        "held up behind {who}, which waits for room itself (issued before it, or with a more "
        "urgent priority, it would have come first)"
    ),
    "priority": "held up behind {who}, which is more urgent and waits for room itself",
    "slots": "for thread block slots, beside {who} (fewer, larger blocks need fewer)",
    "warps": "for warp slots, beside {who} (blocks of fewer threads would have fitted sooner)",
    "registers": (
        "for registers, beside {who} (fewer per thread, or smaller blocks, would have fitted "
        "sooner)"
    ),
    "shared_memory": (
        "for shared memory, beside {who} (less of it per block would have fitted sooner)"
    ),
    "configuration": (
        "for SMs with another shared-memory configuration than {who} set (launches that ask for "
        "the same can share an SM)"
    ),
    "local_memory": (
        "for the GPU to be idle of {who}, to set up more local memory (issued first, it would "
        "not have waited)"
    ),
}


# Causes that name no launch: what runs holds the resource.
_OF_AN_SM = {"slots", "warps", "registers", "shared_memory", "configuration", "local_memory"}


def timeline_of(trace: Trace) -> StructuredArray:
    """One row per block, by launch and block (see :attr:`tbsched.Trace.timeline`)."""
    rows = np.empty(sum(launch.blocks for launch in trace.sequence.launches), BLOCK)
    begin = 0
    for number, placement in enumerate(trace):
        if placement.start_ns is None or placement.end_ns is None:
            raise ValueError(f"timeline: nobody recorded when the blocks of launch {number} ran")
        some = rows[begin : begin + len(placement.start_ns)]
        some["launch"], some["block"] = number, np.arange(len(some))
        some["sm"] = placement.smid if placement.final_smid is None else placement.final_smid
        some["start_ns"], some["end_ns"] = placement.start_ns, placement.end_ns
        begin += len(some)
    return rows


def makespan_of(trace: Trace) -> float:
    """Seconds from the start of the first block to the end of the last."""
    rows = timeline_of(trace)
    ran = rows[rows["sm"] >= 0]
    return float(ran["end_ns"].max() - ran["start_ns"].min()) / 1e9 if len(ran) else 0.0


def span(trace: Trace, launch: int) -> tuple[int, int]:
    """When the first block of a launch started and the last one ended, in nanoseconds."""
    placement = trace[launch]
    if placement.start_ns is None or placement.end_ns is None:
        raise ValueError(f"timeline: nobody recorded when the blocks of launch {launch} ran")
    return int(placement.start_ns.min()), int(placement.end_ns.max())


def explain(trace: Trace, launch: int, blocks: StructuredArray | None = None) -> str:
    """Why a launch waited (see :meth:`tbsched.Trace.explain`); ``blocks`` is the timeline."""
    waits = _waits(trace, launch)
    begin, end = (seconds_words(time / 1e9) for time in span(trace, launch))
    ran = f"Its blocks ran from {begin} to {end}."
    if not len(waits):
        return f"Launch {launch} did not wait. {ran}"
    shares = _shares(waits)
    blocks = timeline_of(trace) if blocks is None else blocks
    parts = []
    for (cause, behind), waited in shares[:_PARTS_SHOWN]:
        who = f"launch {behind}" if behind >= 0 else "other work"
        if cause in _OF_AN_SM:
            who = _beside(blocks, launch, waits[waits["cause"] == cause])
        words = _CAUSE_WORDS[cause].format(who=who, queue=trace[launch].hardware_queue)
        parts.append(f"{seconds_words(waited / 1e9)} {words}")
    if len(shares) > _PARTS_SHOWN:
        parts.append(f"the rest for {len(shares) - _PARTS_SHOWN} causes more")
    total = seconds_words(int((waits["end_ns"] - waits["begin_ns"]).sum()) / 1e9)
    return f"Launch {launch} waited {total}: {'; '.join(parts)}. {ran}"


def _beside(blocks: StructuredArray, launch: int, waits: StructuredArray) -> str:
    """The launches that ran while this one waited."""
    begin, end = waits["begin_ns"].min(), waits["end_ns"].max()
    there = (blocks["start_ns"] < end) & (blocks["end_ns"] > begin)
    found = np.unique(blocks["launch"][there]).tolist()
    names = ["its own blocks" if number == launch else f"launch {number}" for number in found]
    more = [f"{len(names) - _BESIDE_SHOWN} launches more"] if len(names) > _BESIDE_SHOWN else []
    return " and ".join(filter(None, (", ".join(names[:_BESIDE_SHOWN]), *more)))


def _waits(trace: Trace, launch: int) -> StructuredArray:
    if trace.waits is None:
        raise ValueError("explain: nobody recorded what the launches waited for")
    if not 0 <= launch < len(trace):
        raise ValueError(f"explain: launch {launch} is outside 0..{len(trace) - 1}")
    first, last = np.searchsorted(trace.waits["launch"], [launch, launch + 1])
    return trace.waits[first:last]


def _shares(rows: StructuredArray) -> list[tuple[tuple[str, int], int]]:
    """Nanoseconds by cause and the launch behind it, the longest first."""
    shares: dict[tuple[str, int], int] = {}
    for row in rows:
        key = (str(row["cause"]), int(row["behind"]))
        shares[key] = shares.get(key, 0) + int(row["end_ns"] - row["begin_ns"])
    return sorted(shares.items(), key=lambda item: -item[1])


def timeline_text(trace: Trace) -> str:
    """A table of the launches over time, and why they waited."""
    table_rows = []
    shown = range(min(len(trace), _LAUNCHES_SHOWN))
    for number in shown:
        begin, end = (seconds_words(time / 1e9) for time in span(trace, number))
        waited, mostly = "", ""
        if trace.waits is not None and len(rows := _waits(trace, number)):
            waited = seconds_words(int((rows["end_ns"] - rows["begin_ns"]).sum()) / 1e9)
            (mostly, _), _ = _shares(rows)[0]
        launch = trace.sequence.launches[number]
        table_rows.append((str(number), words_of(launch), begin, end, waited, mostly))
    headings = ("launch", "blocks x threads", "start", "end", "waited", "mostly for")
    lines = [trace_head(trace), render(table_of(headings, table_rows), width=160)]
    if len(trace) > len(shown):
        lines.append(f"and {len(trace) - len(shown)} launches more")
    lines += ["", f"makespan {seconds_words(makespan_of(trace))}"]
    if trace.waits is not None:
        blocks = timeline_of(trace)
        lines += [explain(trace, k, blocks) for k in shown if len(_waits(trace, k))]
    return "\n".join(lines)
