"""What the threads of a kernel do: spin, compute, or wait for others of their block."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from tbsched.hangs.instruction import is_clock_or_count, registers_written
from tbsched.hangs.snapshot import Sample

SPINS, COMPUTES, WAITS, UNKNOWN = "spins", "computes", "waits", "unknown"
_BRANCH = re.compile(r"\bBRA(?:\.\S+)?\s+(?:\S+,\s*)*0x([0-9a-f]+)")
# Loads that see what others write, and sleeping between two of them.
_POLLS = re.compile(
    r"^(?:@\S+ )?(?:LDG?\S*\.STRONG\S*|LDG?\S*\.MMIO\S*|ATOM\S*|LDS\S*|NANOSLEEP\S*)"
)
_READS_SHARED = re.compile(r"^(?:@\S+ )?(?:LDG?\S*\.(?:STRONG|MMIO)|NANOSLEEP)")
_BARRIERS = re.compile(r"^(?:@\S+ )?(?:BAR\.|WARPSYNC|BSYNC|DEPBAR|UCGABAR_WAIT|BSSY|EXIT|YIELD)")
_ADDRESS = re.compile(r"\[(R\d+)\.64(?:\+(-?0x[0-9a-f]+))?\]|\[(R\d+)(?:\+(-?0x[0-9a-f]+))?\]")
_LOAD = re.compile(r"^(?:@\S+ )?(?:LDG?|ATOMG?)\.")
_LOCAL = re.compile(r"^(?:@\S+ )?(?:LDS|NANOSLEEP)")
_REGISTER = re.compile(r"^U?R\d+$")


@dataclass(frozen=True, slots=True)
class ThreadState:
    """What a thread does.

    Attributes:
        sample: where it was.
        does: ``spins``, ``computes``, ``waits`` (for threads of its block) or ``unknown``.
        address: of the memory that it polls; None: unknown.
        is_local: whether what it polls, or waits for, is of its own block alone.
    """

    sample: Sample
    does: str
    address: int | None = None
    is_local: bool = False


def thread_states(now: Iterable[Sample], before: Iterable[Sample] = ()) -> tuple[ThreadState, ...]:
    """Returns what sampled threads do, from one snapshot or two.

    A thread spins if its loop does nothing but look at memory, or if it is twice at the same
    instruction with the same registers: only memory that others write can let it leave. If
    registers have changed that its loop does not write, it has left the loop in between.
    """
    earlier = {(each.grid_id, each.block, each.thread): each for each in before}
    return tuple(
        [_thread_state(each, earlier.get((each.grid_id, each.block, each.thread))) for each in now]
    )


def kernel_activity(states: Iterable[ThreadState]) -> str:
    """Returns what a kernel does: the first of spins, computes, waits that a thread does."""
    activities = {state.does for state in states}
    return next(
        (activity for activity in (SPINS, COMPUTES, WAITS) if activity in activities), UNKNOWN
    )


def polled_addresses(
    states: Iterable[ThreadState], is_host_memory: Callable[[int], bool | None]
) -> tuple[set[int], set[int]]:
    """Returns the addresses that spinning threads poll: in host memory, and in other memory."""
    in_host: set[int] = set()
    elsewhere: set[int] = set()
    for state in states:
        if state.does == SPINS and state.address is not None:
            (in_host if is_host_memory(state.address) else elsewhere).add(state.address)
    return in_host, elsewhere


def _thread_state(sample: Sample, earlier: Sample | None) -> ThreadState:
    """Returns what a thread does: spins, waits or computes."""
    loop = min(_loops(sample), key=len, default=[])  # the smallest one
    polls = [text for _, text in loop if _POLLS.match(text)]
    if polls and len(loop) <= _MAX_POLLING_LOOP:
        if earlier is not None and _has_left_loop(sample, earlier):
            return ThreadState(sample, COMPUTES)
        is_local = all(_LOCAL.match(text) for text in polls)
        return ThreadState(sample, SPINS, _polled_address(polls, sample), is_local)
    instruction = next((text for address, text in sample.instructions if address == sample.pc), "")
    if _BARRIERS.match(instruction) or _is_after_barrier(sample):
        return ThreadState(sample, WAITS, is_local=True)
    if earlier is None:
        return ThreadState(sample, UNKNOWN)
    if sample.pc == earlier.pc and sample.registers == earlier.registers:
        loads = [text for _, text in loop if _LOAD.match(text)]
        return ThreadState(sample, SPINS, _polled_address(loads, sample))
    # A loop that is longer than what is listed may look at memory and count, too.
    if not loop and any(_READS_SHARED.match(text) for _, text in sample.instructions):
        return ThreadState(sample, UNKNOWN)
    return ThreadState(sample, COMPUTES)


_MAX_POLLING_LOOP = 40  # instructions of a loop that only waits


def _has_left_loop(now: Sample, earlier: Sample) -> bool:
    """Returns whether a thread has left its polling loop between two samples, and is in it again.

    Registers say it that no loop around it writes which is short enough to do nothing but poll. A
    loop that also ends by a count or by the time says nothing.
    """
    widest = max((loop for loop in _loops(now) if len(loop) <= _MAX_POLLING_LOOP), key=len)
    texts = [text for _, text in widest]
    same_grid_has_ended = earlier.pc in {address for address, _ in widest}
    if not same_grid_has_ended or any("CALL" in text or is_clock_or_count(text) for text in texts):
        return False
    written = {name for text in texts for name in registers_written(text)}
    kept = {name for name in earlier.registers if _REGISTER.match(name)} - written
    return any(now.registers.get(each) != earlier.registers[each] for each in kept)


def _loops(sample: Sample) -> Iterator[list[tuple[int, str]]]:
    """Yields the listed instructions of each loop around a thread's instruction."""
    for address, text in sample.instructions:
        branch = _BRANCH.search(text)
        if branch is None or address < sample.pc:
            continue
        target = int(branch[1], 16)
        if target > sample.pc or target == address:
            continue
        yield [inst for inst in sample.instructions if target <= inst[0] <= address]


def _is_after_barrier(sample: Sample) -> bool:
    """Returns whether the instruction before a thread's is a barrier, at which it then waits."""
    addresses = [address for address, _ in sample.instructions]
    if sample.pc not in addresses:
        return False
    index = addresses.index(sample.pc)
    return index > 0 and sample.instructions[index - 1][1].startswith(
        ("BAR.", "@!PT BAR", "WARPSYNC")
    )


def _polled_address(polls: list[str], sample: Sample) -> int | None:
    """Returns the 64-bit address that the first load with a known address reads; None: none."""
    for text in polls:
        row = _ADDRESS.search(text)
        if row is None:
            continue
        name, offset = row[1] or row[3], row[2] or row[4]
        low, high = (sample.registers.get(each) for each in (name, f"R{int(name[1:]) + 1}"))
        if low is not None and high is not None:
            return (high << 32 | low) + (int(offset, 16) if offset else 0)
    return None
