"""What a host could do sooner: call, not wait, have kernels loaded, and work elsewhere."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from tbsched.advice.explain.changes.host_windows import (
    gaps_without,
    times_of_rows,
    unrecorded_times,
)
from tbsched.advice.explain.changes.operators import without_host_wait
from tbsched.advice.explain.changes.proposal import Proposal, edited, relaunched
from tbsched.advice.explain.changes.reads import propose_no_operators
from tbsched.advice.explain.changes.waits import gaps_without_waits, pure_waits
from tbsched.advice.explain.explanation import Cause
from tbsched.advice.explain.facts import Facts
from tbsched.counting import counted, first_listed
from tbsched.prediction.calls import waits_for_gpu
from tbsched.program.activity import CALL, OPERATOR, UNKNOWN
from tbsched.program.arrays import Float64Array
from tbsched.program.sequence import Copy, HostCall

_MAX_NAMED = 2  # launches that a condition names
_MAX_SINGLE_WAITS = 8  # waits of a host; of more, each is one of many that are alike
# Shorter parts of which a profile says nothing are between operators, and shorter operators only
# describe tensors.
_UNRECORDED_NS = 100_000
# Seconds between two calls that another thread can take over; to hand over less costs as much.
_MIN_HANDED_OVER = 1e-4
_NOT_USED = "the host does not use what the GPU has computed by then"
# Calls that take or give back memory; those of pools (cudaMallocAsync) do not wait for the GPU.
_MEMORY = re.compile(
    r"(?!.*Async)(cuda|cu)(Malloc|Free|MemAlloc|MemFree|HostAlloc|MemHostAlloc|MallocHost|FreeHost|"
    r"HostRegister|HostUnregister|MemHostRegister|MemCreate|MemMap|MemUnmap|MemRelease|MemSetAccess)"
)
_LOADERS = re.compile(r"dataloader", re.IGNORECASE)


def propose_no_pauses(facts: Facts, launch: int, cause: Cause) -> Iterator[Proposal]:
    """Proposes, as a bound, no time between calls and no waits of hosts."""
    events = facts.program.sequence
    hosts = {getattr(event, "host", 0) for event in events}
    who = "the host" if len(hosts) == 1 else f"all {len(hosts)} host threads"
    waits = {k: without_host_wait(event) for k, event in enumerate(events) if waits_for_gpu(event)}
    changed = edited(
        facts,
        f"a bound: no time between the calls of {who}{', and no waits' if waits else ''}, as many "
        "calls as now, and launches as short as those of loaded kernels without a profiler (less "
        "work there comes near it; CUDA graphs and larger kernels need fewer calls, and may save "
        "more)",
        waits,
        gaps=(0.0,) * len(events),
    )
    yield replace(changed, is_bound=True, edits=None)


def propose_no_memory_calls(facts: Facts, launch: int, cause: Cause) -> Iterator[Proposal]:
    """Proposes the program without allocations or frees that made the host late."""
    names, host = facts.account.activity.names, facts.account.activity.host
    name = facts.host_name(cause)
    if name == UNKNOWN or _MEMORY.match(names[name]) is None:
        return
    is_meant = np.array([_MEMORY.match(each) is not None for each in names], np.bool_)
    is_call = is_meant[host["name"]] & (host["kind"] == CALL)
    gaps = gaps_without(facts, times_of_rows(facts, is_call))
    words = sorted({names[each] for each in host["name"][is_call].tolist()})
    events = {
        place: event
        for place, event in enumerate(facts.program.sequence)
        if isinstance(event, HostCall) and _MEMORY.match(event.name) is not None
    }
    condition = "if the memory that they take and give back can be kept"
    if any(waits_for_gpu(event) for event in events.values()):
        condition += f", and {_NOT_USED}"
    yield edited(
        facts,
        f"without {counted(int(is_call.sum()), 'call')} of {', '.join(words)}: memory that is "
        "kept, or a pool (cudaMallocAsync, or a caching allocator)",
        dict.fromkeys(events),
        condition,
        gaps,
    )


def propose_no_host_work(facts: Facts, launch: int, cause: Cause) -> Iterator[Proposal]:
    """Proposes the program without the time of a host function between calls."""
    name, host = facts.host_name(cause), facts.account.activity.host
    condition = "if it does not need what the GPU has just computed, and cores are free"
    if name == UNKNOWN:
        yield edited(
            facts,
            "record the profile again, with_stack=True or with NVTX ranges, to see what this is: "
            "the work of the host of which the profile has nothing, done before it is needed, by "
            "other threads or processes",
            {},
            f"at most, as nobody knows what it is; {condition}",
            gaps_without(facts, unrecorded_times(facts), _UNRECORDED_NS),
        )
        return
    if _launches_work(facts, name):
        return  # what launches cannot be done elsewhere
    word = facts.account.activity.names[name]
    is_loader = _LOADERS.search(word) is not None
    rows = host[host["name"] == name]
    is_short = (rows["end_ns"] - rows["begin_ns"]).mean() < _UNRECORDED_NS
    if not is_loader and (CALL in rows["kind"] or (is_short and OPERATOR in rows["kind"])):
        return
    how = "by workers of the loader (num_workers, prefetch_factor)"
    how = how if is_loader else "by other threads or processes, or by the GPU"
    gaps = gaps_without(facts, times_of_rows(facts, host["name"] == name))
    if _weighted_mean_seconds(np.subtract(facts.program.host, gaps)) < _MIN_HANDED_OVER:
        return
    yield edited(facts, f"the work of {word} done before it is needed, {how}", {}, condition, gaps)


def _weighted_mean_seconds(seconds: Float64Array) -> float:
    """Returns the mean duration, in seconds, weighted by duration."""
    total = float(seconds.sum())
    return float((seconds**2).sum()) / total if total > 0 else 0.0


def _launches_work(facts: Facts, name: int) -> bool:
    """Returns whether work is launched inside a host row of this name."""
    activity, inside = facts.account.activity, facts.account.times.inside
    rows = np.unique(activity.work["call"])
    rows = rows[rows != UNKNOWN]
    while len(rows):
        if (activity.host["name"][rows] == name).any():
            return True
        rows = np.unique(inside[rows])
        rows = rows[rows != UNKNOWN]
    return False


def propose_no_synchronisation(facts: Facts, launch: int, cause: Cause) -> Iterator[Proposal]:
    """Proposes the program without calls that wait for the GPU: all of one kind, or the last.

    With a wait goes the time right before it in which the profile has nothing: it is needed to call
    it, as ``torch.cuda.synchronize()`` does before it reaches CUDA. A host call that does more than
    wait still takes its time.
    """
    sequence, host = facts.program.sequence, facts.host_of(launch)
    waits = {  # what each becomes without its wait
        place: without_host_wait(event)
        for place, event in enumerate(sequence)
        if getattr(event, "host", 0) == host and waits_for_gpu(event)
    }
    last = max((place for place in waits if place < facts.event[launch]), default=None)
    if last is None:
        return
    calls = {place: x.name for place in waits if isinstance(x := sequence[place], HostCall)}
    pure = pure_waits(facts, host)
    yield from propose_no_operators(facts, [*pure])
    if len(pure) > 1:
        what = f"without {len(pure)} synchronisations of the host{_copy_advice(facts, pure)}"
        yield edited(
            facts, what, pure, f"if {_not_used(facts, pure)}", gaps_without_waits(facts, pure)
        )
    if len(calls) > 1:
        words = ", ".join(sorted(set(calls.values())))
        what = f"without the waits of {counted(len(calls), 'call')} of {words}"
        yield edited(facts, what, {place: waits[place] for place in calls}, _replaced(words))
    if len(waits) <= _MAX_SINGLE_WAITS:
        name, before = calls.get(last), f"before {facts.named(launch)}"
        what = f"without the {'synchronisation' if name is None else f'wait of {name}'} {before}"
        what += _copy_advice(facts, [last])
        condition = f"if {_not_used(facts, [last])}" if name is None else _replaced(name)
        yield edited(facts, what, {last: waits[last]}, condition)


def _copy_advice(facts: Facts, waits: Iterable[int]) -> str:
    """Returns words for waits that are pageable copies, which always wait; empty: none are."""
    events = [facts.program.sequence[place] for place in waits]
    count = sum(isinstance(event, Copy) and not event.pinned for event in events)
    how = "with pinned memory and non_blocking=True (cudaMemcpyAsync)"
    if not count:
        return ""
    if len(events) == 1:
        return f", {how}"
    return f", {count} of them copies, {how}"


def _not_used(facts: Facts, waits: Iterable[int]) -> str:
    """Returns the condition under which waits can go: the host does not use their results."""
    sequence = facts.program.sequence
    from_gpu = any(isinstance(sequence[place], Copy) for place in waits)
    to_gpu = any(isinstance(event, Copy) and event.kind == "h2d" for event in sequence)
    return f"{_NOT_USED}, nor copies it back to the GPU" if from_gpu and to_gpu else _NOT_USED


def _replaced(words: str) -> str:
    """Returns the condition for calls that do more than wait to go on without their waits."""
    return f"if calls that do not wait can do the work of {words}, and {_NOT_USED}"


def warmed_up(facts: Facts, launch: int, cause: Cause) -> Iterator[Proposal]:
    """Proposes kernels that were used before, so that none is loaded by a launch."""
    launches, host = facts.program.sequence.launches, [*facts.program.host]
    calls = facts.long_calls
    usual = statistics.median([host[place] for place in facts.event.tolist()])
    loaded = [
        number
        for number in calls.launch[calls.loads | calls.may_load].tolist()
        if launches[number].first_use or host[facts.event[number]] > usual
    ]
    if not loaded:
        return
    for number in loaded:
        host[facts.event[number]] = min(host[facts.event[number]], usual)
    conditions = ["if the host only loads kernels in the time before these launches"]
    guessed = [number for number in loaded if not launches[number].first_use]
    if guessed:
        who = first_listed(map(facts.named, guessed), _MAX_NAMED)
        conditions.append(f"as first calls that took long suggest: {who}")
    count = f"{len(loaded)} kernels" if len(loaded) > 1 else facts.named(loaded[0])
    what = f"{count} used once before (or CUDA_MODULE_LOADING=EAGER)"
    changed = {k: replace(launches[k], first_use=False) for k in loaded}
    yield relaunched(facts, what, changed, ", ".join(conditions), tuple(host))
