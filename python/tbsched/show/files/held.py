"""What a Perfetto trace shows of a held sequence, which has no times: event n is at second n."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import assert_never

import numpy as np

from tbsched.program.arrays import Int64Array
from tbsched.program.sequence import Launch, RecordEvent, Release, WaitEvent
from tbsched.show.files.slices import Runs, Slices, Waits, together
from tbsched.traces.trace import Trace

_EVENT_NS = 10**9
_MOST_REPLAYED = 200  # releases: each takes a prediction of all that comes before it

NO_TIMES = (
    "The blocks are held until they are released, so there are no times: event n of the sequence "
    "is at second n. Blocks are left out where nobody knows after which event they came."
)


def held_slices(trace: Trace) -> Slices:
    """Which blocks were resident from which event to which."""
    came, left = _events(trace)
    stays = np.where(left >= 0, left, len(trace.sequence))
    smid = [placement.smid for placement in trace]
    launch = np.repeat(np.arange(len(trace)), [len(x) for x in smid])
    block = np.concatenate([np.empty(0, np.int64), *(np.arange(len(x)) for x in smid)])
    sm = np.concatenate([np.empty(0, np.int64), *smid])
    at_once = sm >= 0
    later = _later(trace)
    launch, block, sm = (
        np.concatenate([given[at_once], more])
        for given, more in zip((launch, block, sm), later, strict=False)
    )
    begin = came[launch]
    begin[len(begin) - len(later[3]) :] = later[3]
    own = np.unique(launch)
    return Slices(
        blocks=together(launch, block, sm, begin * _EVENT_NS, stays[launch] * _EVENT_NS),
        runs=Runs(own, came[own] * _EVENT_NS, stays[own] * _EVENT_NS),
        waits=_waits(trace, came, stays, later),
        issue_ns=came * _EVENT_NS,
        release_ns=np.where(left >= 0, left * _EVENT_NS, -1),
    )


def _events(trace: Trace) -> tuple[Int64Array, Int64Array]:
    """The events that launched, and released, each launch; -1: none did."""
    came, left = np.full(len(trace), -1), np.full(len(trace), -1)
    launches = 0
    for number, event in enumerate(trace.sequence):
        match event:
            case Launch():
                came[launches] = number
                launches += 1
            case Release():
                left[event.launch] = number
            case RecordEvent() | WaitEvent():
                raise AssertionError("only timed sequences have them")
            case _:
                assert_never(event)
    return came, left


def _later(trace: Trace) -> tuple[Int64Array, ...]:
    """Blocks that came after the event behind their launch: launch, block, SM and event.

    Of those on one SM the lowest number comes first. They come at releases; a prediction knows
    what each SM holds after it.
    """
    waiting: dict[tuple[int, int], deque[int]] = defaultdict(deque)
    there: dict[tuple[int, int], int] = defaultdict(int)
    for number, placement in enumerate(trace):
        if trace.replay is None or placement.final_smid is None:
            continue
        late = np.flatnonzero((placement.smid < 0) & (placement.final_smid >= 0))
        for block, sm in zip(late.tolist(), placement.final_smid[late].tolist(), strict=True):
            waiting[number, sm].append(block)
        for sm, count in enumerate(placement.occupancy(trace.device.sms).tolist()):
            if (number, sm) in waiting:
                there[number, sm] = count
    found: list[tuple[int, int, int, int]] = []
    releases = [n for n, event in enumerate(trace.sequence) if isinstance(event, Release)]
    for event in releases[:_MOST_REPLAYED]:
        if not any(waiting.values()):
            break
        rows = trace.residents(event + 1).rows
        held: dict[tuple[int, int], int] = defaultdict(int)
        for number, sm, count in rows[["launch", "sm", "blocks"]].tolist():
            held[number, sm] += count
        for (number, sm), blocks in waiting.items():
            for _ in range(held[number, sm] - there[number, sm]):
                found.append((number, blocks.popleft(), sm, event))
                there[number, sm] += 1
    return tuple(np.array(found, np.int64).reshape(-1, 4).T)


def _waits(
    trace: Trace, came: Int64Array, stays: Int64Array, later: tuple[Int64Array, ...]
) -> Waits:
    """From each launch to its last block, as far as that is known; at least to the next event."""
    launch = np.array([k for k, placement in enumerate(trace) if placement.limiter], np.int64)
    until = came + 1
    np.maximum.at(until, later[0], later[3])
    for number in launch.tolist():
        final = trace[number].final_smid
        if final is not None and (final < 0).any():
            until[number] = stays[number]  # some of its blocks never came
    words = np.array([trace[number].limiter for number in launch], np.str_)
    causes, cause = np.unique(words, return_inverse=True)
    return Waits(
        launch, np.full(len(launch), -1), cause, came[launch] * _EVENT_NS,
        until[launch] * _EVENT_NS, tuple(causes.tolist()),
    )  # fmt: skip
