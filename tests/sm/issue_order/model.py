"""Small warp schedulers of one processing block, and the machine code that they issue.

A warp issues its instructions in order. After one it waits the cycles that the compiler wrote into
its control field; then it is ready. In each cycle one of the ready warps issues.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

WORDS = npt.NDArray[np.uint64]


class Instruction(NamedTuple):
    """One of the straight line.

    Attributes:
        reads_clock: whether it is a read of the clock.
        is_measured: whether it is one of the measured kind. A few load constants.
        stall: cycles until the warp may issue its next one.
        lets_others: whether the compiler's hint asks for another warp next.
    """

    reads_clock: bool
    is_measured: bool
    stall: int
    lets_others: bool


# Bits 8 to 15 of the second word of a CS2R, which is 0x805: SR_CLOCKLO.
CLOCK, LOW = 0x805, 0x50


def code_of(cubin: bytes) -> WORDS:
    """The machine code of the kernel ``order``, of shape (instructions, 2)."""
    offset, size, count, names = (
        *struct.unpack_from("<Q", cubin, 0x28),
        *struct.unpack_from("<HHH", cubin, 0x3A),
    )
    sections = [
        struct.unpack_from("<IIQQQQ", cubin, offset + size * number) for number in range(count)
    ]
    text = sections[names][4]
    for name, _, _, _, begin, length in sections:
        if cubin[text + name :].startswith(b".text.order\0"):
            return np.frombuffer(cubin[begin : begin + length], np.uint64).reshape(-1, 2)
    raise ValueError("the cubin has no section .text.order")


def straight_line(code: WORDS) -> list[Instruction]:
    """From the first read of the clock to the last, what a warp issues."""
    low, high = code[:, 0], code[:, 1]
    opcode = (low & np.uint64(0xFFF)).astype(int)
    control = (high >> np.uint64(41)).astype(int)
    is_clock = (opcode == CLOCK) & ((high >> np.uint64(8) & np.uint64(0xFF)).astype(int) == LOW)
    measured = np.bincount(opcode).argmax()
    first, last = np.flatnonzero(is_clock)[[0, -1]]
    # The compiler's bit is 0 where it asks for another warp.
    return [
        Instruction(
            bool(is_clock[k]),
            bool(opcode[k] == measured),
            int(control[k] & 15),
            not control[k] >> 4 & 1,
        )
        for k in range(first, last + 1)
    ]


class Last(NamedTuple):
    """The warp that issued last, and what else a scheduler may know.

    Attributes:
        warp: its number, or -1.
        just_now: whether that was in the cycle before this one.
        going: all warps that have not ended, ready or not.
    """

    warp: int
    just_now: bool
    going: Sequence[int] = ()


# Takes the warps that are ready and the one that issued last; returns who issues, None: no warp.
Pick = Callable[[Sequence[int], Last], int | None]


def oldest(ready: Sequence[int], last: Last) -> int:
    """The first warp of all."""
    return min(ready)


def youngest(ready: Sequence[int], last: Last) -> int:
    """The last warp of all."""
    return max(ready)


def greedy_then_oldest(ready: Sequence[int], last: Last) -> int:
    """The same warp as long as it can, and then the first one."""
    return last.warp if last.warp in ready else min(ready)


def loose_round_robin(ready: Sequence[int], last: Last) -> int:
    """The next ready warp after the one that issued last."""
    return min(ready, key=lambda warp: (warp <= last.warp, warp))


def greedy_round_robin(ready: Sequence[int], last: Last) -> int:
    """The same warp as long as it can, and then the next one."""
    return last.warp if last.warp in ready else loose_round_robin(ready, last)


def unbroken_round_robin(ready: Sequence[int], last: Last) -> int:
    """The same warp as long as it issues in every cycle, and then the next one."""
    stays = last.just_now and last.warp in ready
    return last.warp if stays else loose_round_robin(ready, last)


def cycling(ready: Sequence[int], last: Last) -> int | None:
    """The next warp after the one that issued last, and no one while that one is not ready.

    The policy that a thesis supposes for GF100 GPUs, with one scheduler of a processing block.
    """
    following = loose_round_robin(last.going, last)
    return following if following in ready else None


def two_level(ready: Sequence[int], last: Last) -> int:
    """Round robin within groups of four warps, the first group before the second."""
    group = min(ready) // 4
    return loose_round_robin([warp for warp in ready if warp // 4 == group], last)


SCHEDULERS: dict[str, Pick] = {
    pick.__name__: pick
    for pick in (
        oldest, youngest, greedy_then_oldest, loose_round_robin, greedy_round_robin,
        unbroken_round_robin, cycling, two_level,
    )
}  # fmt: skip


def with_waits(line: Sequence[Instruction], alone: npt.NDArray[np.int64]) -> list[Instruction]:
    """The line with what a warp alone waited for constants: in the control field it is not said.

    Args:
        line: what a warp issues.
        alone: when a warp read its clocks with nobody beside it, of shape (reads,) in cycles.
    """
    alike = clocks(line, np.zeros(1, np.int64), 1, oldest)[0]
    late = int((alone[1] - alone[0]) - (alike[1] - alike[0]))
    return [
        one if one.reads_clock or one.is_measured else one._replace(stall=one.stall + late)
        for one in line
    ]


def clocks(
    line: Sequence[Instruction], begin: npt.NDArray[np.int64], interval: int, pick: Pick
) -> npt.NDArray[np.int64]:
    """When each warp reads its clocks, of shape (warps, reads) in cycles.

    Args:
        line: what each warp issues.
        begin: when each warp is ready for its first instruction, of shape (warps,).
        interval: cycles between two instructions of the measured kind, of any warps.
        pick: the scheduler.
    """
    warps = len(begin)
    at: list[list[int]] = [[] for _ in range(warps)]
    next_one, ready_at = [0] * warps, begin.astype(int).tolist()
    pipe_free, last, last_at, now = 0, -1, -1, int(begin.min())
    while any(number < len(line) for number in next_one):
        ready = [
            warp
            for warp in range(warps)
            if next_one[warp] < len(line)
            and ready_at[warp] <= now
            and (not line[next_one[warp]].is_measured or pipe_free <= now)
        ]
        going = [warp for warp in range(warps) if next_one[warp] < len(line)]
        chosen = pick(ready, Last(last, last_at == now - 1, going)) if ready else None
        if chosen is not None:
            last, last_at = chosen, now
            one = line[next_one[last]]
            next_one[last] += 1
            ready_at[last] = now + max(one.stall, 1)
            if one.reads_clock:
                at[last].append(now)
            if one.is_measured:
                pipe_free = now + interval
        now += 1
    return np.array(at)
