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
_MAX_EVENTS_PLAYED = 6  # events, whose orders are played only for a proof
_STREAM_WORK = (Copy, Memset, HostFunction, WriteValue, WaitValue)


def default_group(sequence: Sequence, spec: DeviceSpec) -> tuple[int, ...]:
    """Returns the numbers of all launches and of stream work that need not wait for one."""
    work = operations_of(sequence)
    waits = sure_waits(work, spec)
    return tuple(
        number
        for number, row in enumerate(work.rows)
        if row.is_launch or (isinstance(row.work, _STREAM_WORK) and not waits[number])
    )


def arrival(problem: Problem, work: Operations, *, only_to_prove: bool) -> Decision:
    """Returns whether the operations of all groups surely happen, provided that all launches find
    room; with a witness if one was found."""

    def before(first: int, second: int) -> bool:
        """Returns whether the first event may be called before the second."""
        return first != second and not work.called_before[first] >> second & 1

    sure = happening(Waits(work, problem.spec, before), problem.groups)
    if not sure.missing():
        return Decision(True)
    why = _possible_hang(problem, sure)
    if only_to_prove and len(work.called_before) > _MAX_EVENTS_PLAYED:
        return Decision(None, why=why)
    plays = Plays(problem, work)
    witness = plays.find_hang(sure)
    if witness is not None:
        return Decision(False, witness, plays.predictions)
    if not plays.is_uncertain:
        return Decision(True, plays=plays.predictions)
    return Decision(None, plays=plays.predictions, why=why)


def _possible_hang(problem: Problem, sure: Happening) -> str:
    """Returns a sentence part: which operation may wait for ever, for what cause, and behind
    which.
    """
    number = sure.missing()[0]
    cause, behind = sure.why(number)
    words = f"{problem.name_of(number)} may wait for ever ({cause})"
    return words if behind is None else f"{words}, behind {problem.name_of(behind)}"


def room_of_driver_kernels(
    work: Operations, spec: DeviceSpec, policy: str, launches: list[Launch]
) -> str:
    """Returns why the driver's copy kernels may lack room or take it from others; empty: not.

    Returns:
        Words; empty: each finds room, and takes none that is needed.
    """
    kernels = [_driver_kernel(row.work, spec) for row in work.rows if row.is_kernel]
    ending = [kernel for kernel in kernels if kernel is not None]
    if not ending or always_fit([*launches, _DRIVER_KERNEL], ending, spec, policy):
        return ""
    return (
        "copies within the GPU's memory and memsets run on SMs, too: neither a proof nor a witness "
        "that they find room there, and leave enough"
    )


def _driver_kernel(work: object, spec: DeviceSpec) -> Launch | None:
    """Returns the kernel by which the driver does a copy or memset; None: it uses none."""
    if isinstance(work, Memset) and work.bytes <= spec.small_memset_bytes:
        return None
    if not isinstance(work, Copy | Memset):
        return None
    bytes_ = max(spec.copy_block_bytes, 1)
    return replace(_DRIVER_KERNEL, blocks=max(1, -(-work.bytes // bytes_)))


def launch_pairs(work: Operations, spec: DeviceSpec, after: Pairs) -> Pairs:
    """Returns pairs of launches of which the second arrives when the first is resident whole."""
    waits = sure_waits(work, spec)[: work.launches]
    pairs = [(first, second) for second, awaited in enumerate(waits) for first in sorted(awaited)]
    pairs += [pair for pair in after if max(pair) < work.launches]
    return tuple(dict.fromkeys(pairs))


def called_pairs(work: Operations, pairs: Pairs) -> Pairs:
    """Returns ``pairs``, and in addition the pairs of launches whose calls always have the same
    order."""
    events = [row.event for row in work.rows[: work.launches]]
    more = [
        (first, second)
        for second, first in itertools.product(range(len(events)), repeat=2)
        if work.called_before[events[second]] >> events[first] & 1
    ]
    all_pairs = tuple(dict.fromkeys((*pairs, *more)))
    return all_pairs if is_order(all_pairs) else pairs


def keeps_calls(work: Operations, order: tuple[int, ...]) -> bool:
    """Returns whether a program can call its launches in this order."""
    events = (work.rows[number].event for number in order)
    return not any(
        work.called_before[first] >> second & 1
        for first, second in itertools.combinations(events, 2)
    )
