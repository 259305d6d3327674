"""Decides whether launches are resident together in a program that does more than launch."""

from __future__ import annotations

import itertools
from dataclasses import replace

from tbsched.advice.together.beside.operations import Operations, operations_of
from tbsched.advice.together.beside.plays import Plays
from tbsched.advice.together.beside.waits import Happening, Waits, happening, sure_waits
from tbsched.advice.together.given import Pairs, is_order
from tbsched.advice.together.problem import Decision, Problem
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.together.ended_work import always_fit
from tbsched.program.sequence import (
    Copy,
    HostFunction,
    Launch,
    Memset,
    Sequence,
    WaitValue,
    WriteValue,
)

# A launch that leaves one slot of 1,024 threads free leaves room for the driver's kernels
# (docs/explanation/copies.md). Their own threads and registers are not measured.
_DRIVER_KERNEL = Launch(1, 1024, 32)
_MOST_PLAYED_TO_PROVE = 6  # events, whose orders are played only for a proof
_OF_STREAMS = (Copy, Memset, HostFunction, WriteValue, WaitValue)


def default_group(sequence: Sequence, spec: DeviceSpec) -> tuple[int, ...]:
    """Returns all launches, and all other work of streams that need not wait for one of them."""
    work = operations_of(sequence)
    waits = sure_waits(work, spec)
    return tuple(
        number
        for number, row in enumerate(work.rows)
        if row.is_launch or (isinstance(row.work, _OF_STREAMS) and not waits[number])
    )


def arrival(problem: Problem, work: Operations, *, only_to_prove: bool) -> Decision:
    """Decides whether the operations of groups are sure to happen, if launches find room."""

    def before(first: int, second: int) -> bool:
        return first != second and not work.called_before[first] >> second & 1

    found = happening(Waits(work, problem.spec, before), problem.groups)
    if not found.missing():
        return Decision(True)
    why = _doubt(problem, found)
    if only_to_prove and len(work.called_before) > _MOST_PLAYED_TO_PROVE:
        return Decision(None, why=why)
    plays = Plays(problem, work)
    hung = plays.hung(found)
    if hung is not None:
        return Decision(False, hung, plays.taken)
    if not plays.doubtful:
        return Decision(True, plays=plays.taken)
    return Decision(None, plays=plays.taken, why=why)


def _doubt(problem: Problem, found: Happening) -> str:
    number = found.missing()[0]
    cause, behind = found.why(number)
    words = f"{problem.called(number)} may wait for ever ({cause})"
    return words if behind is None else f"{words}, behind {problem.called(behind)}"


def room_of_driver_kernels(
    work: Operations, spec: DeviceSpec, policy: str, launches: list[Launch]
) -> str:
    """Returns why copies and memsets that run on SMs may find no room, or take it from others.

    Returns:
        Words; empty: each finds room, and takes none that is needed.
    """
    kernels = [_driver_kernel(row.work, spec) for row in work.rows if row.is_kernel]
    ending = [one for one in kernels if one is not None]
    if not ending or always_fit([*launches, _DRIVER_KERNEL], ending, spec, policy):
        return ""
    return (
        "copies within the GPU's memory and memsets run on SMs, too: neither a proof nor a witness "
        "that they find room there, and leave enough"
    )


def _driver_kernel(work: object, spec: DeviceSpec) -> Launch | None:
    """Returns the kernel with which the driver does a copy or memset; None without one."""
    if isinstance(work, Memset) and work.bytes <= spec.small_memset_bytes:
        return None
    if not isinstance(work, Copy | Memset):
        return None
    bytes_ = max(spec.copy_block_bytes, 1)
    return replace(_DRIVER_KERNEL, blocks=max(1, -(-work.bytes // bytes_)))


def launch_pairs(work: Operations, spec: DeviceSpec, after: Pairs) -> Pairs:
    """Returns pairs of launches of which the second arrives when the first is resident whole."""
    waits = sure_waits(work, spec)[: work.launches]
    pairs = [(first, second) for second, found in enumerate(waits) for first in sorted(found)]
    pairs += [pair for pair in after if max(pair) < work.launches]
    return tuple(dict.fromkeys(pairs))


def called_pairs(work: Operations, pairs: Pairs) -> Pairs:
    """Returns the pairs, and those of launches that are called in one order in any case."""
    events = [row.event for row in work.rows[: work.launches]]
    more = [
        (first, second)
        for second, first in itertools.product(range(len(events)), repeat=2)
        if work.called_before[events[second]] >> events[first] & 1
    ]
    found = tuple(dict.fromkeys((*pairs, *more)))
    return found if is_order(found) else pairs


def keeps_calls(work: Operations, order: tuple[int, ...]) -> bool:
    """Returns whether launches may be called in this order."""
    events = (work.rows[number].event for number in order)
    return not any(
        work.called_before[first] >> second & 1
        for first, second in itertools.combinations(events, 2)
    )
