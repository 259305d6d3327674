"""What a Perfetto trace shows of a held sequence, which has no times: event n is at second n."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tbsched.program.arrays import Int64Array, numbered_blocks
from tbsched.program.sequence import Release
from tbsched.show.files.slices import Runs, Slices, Waits, together
from tbsched.show.layout.events import launched_and_released
from tbsched.traces.trace import Trace

Flags = npt.NDArray[np.bool_]

_EVENT_NS = 10**9
_MOST_REPLAYED = 200  # releases: each takes a prediction of all that comes before it

NO_TIMES = (
    "The blocks are held until they are released, so there are no times: event n of the sequence "
    "is at second n. Blocks are left out where nobody knows after which event they came."
)


def held_slices(trace: Trace) -> Slices:
    """Which blocks were resident from which event to which."""
    came, left = launched_and_released(trace.sequence)
    stays = np.where(left >= 0, left, len(trace.sequence))
    blocks = _blocks(trace)
    at_once = blocks["smid"] >= 0
    event = np.where(at_once, came[blocks["launch"]], -1)
    sm = np.where(at_once, blocks["smid"], blocks["final_smid"])
    if trace.replay is not None:
        _find_later(trace, blocks["launch"], sm, at_once, event)
    there = event >= 0
    launch, block, sm, begin = (
        blocks["launch"][there],
        blocks["block"][there],
        sm[there],
        event[there],
    )
    own = np.unique(launch)
    return Slices(
        blocks=together(launch, block, sm, begin * _EVENT_NS, stays[launch] * _EVENT_NS),
        runs=Runs(own, came[own] * _EVENT_NS, stays[own] * _EVENT_NS),
        waits=_waits(trace, came, stays, launch, begin),
        transfers=Runs(own[:0], own[:0], own[:0]),
        calls=Runs(own[:0], own[:0], own[:0]),
        issue_ns=came * _EVENT_NS,
        release_ns=np.where(left >= 0, left * _EVENT_NS, -1),
    )


def _blocks(trace: Trace) -> dict[str, Int64Array]:
    """Of every block its launch, number, and SM before the next event and in the end."""
    smid = [placement.smid for placement in trace]
    launch, block = numbered_blocks(np.array([len(x) for x in smid], np.int64))
    final = [p.smid if p.final_smid is None else p.final_smid for p in trace]
    nothing = np.empty(0, np.int64)
    return {
        "launch": launch,
        "block": block,
        "smid": np.concatenate([nothing, *smid]),
        "final_smid": np.concatenate([nothing, *final]),
    }


def _find_later(
    trace: Trace, launch: Int64Array, sm: Int64Array, at_once: Flags, event: Int64Array
) -> None:
    """Sets the event of blocks that came behind the one after their launch.

    They come at releases, and a prediction knows what each SM holds after one. Of blocks of one
    launch on one SM those with the lowest numbers come first.
    """
    place = launch * trace.device.sms + sm
    late = np.flatnonzero(~at_once & (sm >= 0))
    late = late[np.argsort(place[late], kind="stable")]
    places, first, key = np.unique(place[late], return_index=True, return_inverse=True)
    rank = np.arange(len(late)) - first[key]
    there = _counted(places, place[at_once], np.ones(np.count_nonzero(at_once), np.int64))
    taken = np.zeros_like(there)
    releases = [n for n, each in enumerate(trace.sequence) if isinstance(each, Release)]
    for number in releases[:_MOST_REPLAYED]:
        waits = event[late] < 0
        if not waits.any():
            break
        rows = trace.residents(number + 1).rows
        held = rows["launch"].astype(np.int64) * trace.device.sms + rows["sm"]
        taken = np.maximum(taken, _counted(places, held, rows["blocks"]) - there)
        event[late[waits & (rank < taken[key])]] = number


def _counted(places: Int64Array, place: Int64Array, blocks: Int64Array) -> Int64Array:
    """How many blocks there are at each of the places, which ascend."""
    found = np.zeros(len(places), np.int64)
    at = np.searchsorted(places, place)
    known = at < len(places)
    known[known] = places[at[known]] == place[known]
    np.add.at(found, at[known], blocks[known])
    return found


def _waits(
    trace: Trace, came: Int64Array, stays: Int64Array, launch: Int64Array, begin: Int64Array
) -> Waits:
    """From each launch to its last block, as far as that is known; at least to the next event."""
    own = np.array([k for k, placement in enumerate(trace) if placement.limiter], np.int64)
    until = came + 1
    np.maximum.at(until, launch, begin)
    for number in own.tolist():
        final = trace[number].final_smid
        if final is not None and (final < 0).any():
            until[number] = stays[number]  # some of its blocks never came
    words = np.array([trace[number].limiter for number in own], np.str_)
    behind = np.full(len(own), -1)
    return Waits(own, behind, words, came[own] * _EVENT_NS, until[own] * _EVENT_NS)
