"""Algorithm 1 of the ICCD 2023 paper in plain Python, line by line.

Written from the paper's pseudocode alone, slow, and sharing nothing with the core. What Table I
says of a GPU is read from its spec. Comments give the paper's line numbers. Where the paper cannot
mean what it prints, there is a repair (:class:`Repairs`), and each can be taken out.
"""

from __future__ import annotations

import copy
from collections.abc import Container
from dataclasses import dataclass, field

from tbsched.hardware.spec import DeviceSpec
from tbsched.program.sequence import Launch, Release, Sequence

CANNOT_SCHEDULE_NOW = -1
UNBOUNDED = 2**31


@dataclass(frozen=True)
class Repairs:
    """What is changed of the printed text. Without any, this is the paper to the letter.

    Attributes:
        blocks: line 26 divides limit_w by w. Printed: it compares warps with blocks.
        order: ties go in the device's own order. Printed, line 9: even SMs, then odd ones. On the
            paper's GPU the two are the same.
    """

    blocks: bool = True
    order: bool = True


AS_PRINTED = Repairs(blocks=False, order=False)
REPAIRED = Repairs()


def even_then_odd(sms: int) -> tuple[int, ...]:
    """The SMs in the order of line 9."""
    return (*range(0, sms, 2), *range(1, sms, 2))


def rounded(value: int, granularity: int) -> int:
    return -(-value // granularity) * granularity


@dataclass
class ThreadBlock:
    """TB: what the algorithm is told of the block, in the units of the GPU."""

    w: int
    registers: int  # of a warp
    shared: int
    config_l: int
    config_s: int = 0


@dataclass
class Resident:
    """A block on an SM, and what it has there."""

    sm: int
    block: ThreadBlock
    processing_blocks: list[int]  # of each warp
    address: int


@dataclass
class SM:
    """SM[i]: slots b, pointer p, per processing block warps w and registers r; what is resident."""

    b: int
    w: list[int]
    r: list[int]
    p: int = 0
    resident: list[Resident] = field(default_factory=list)


class GPU:
    """GPGPU: its SMs, what is resident, and both kinds of configuration."""

    def __init__(self, spec: DeviceSpec, repairs: Repairs = REPAIRED) -> None:
        self.repairs = repairs
        self.order = spec.sm_preference if repairs.order else even_then_odd(spec.sms)
        n = spec.processing_blocks
        w, r = spec.warps_per_sm // n, spec.registers_per_sm // n
        self.spec = spec
        self.n_smpb = n
        self.sm = [SM(spec.blocks_per_sm, [w] * n, [r] * n) for _ in range(spec.sms)]
        self.tpc_config_s = [0] * spec.tpcs
        self.config_l = spec.local_memory_initial

    def tpc(self, i: int) -> int:
        return i // self.spec.sms_per_tpc

    def tpc_is_idle(self, i: int) -> bool:
        first = self.tpc(i) * self.spec.sms_per_tpc
        return not any(sm.resident for sm in self.sm[first : first + self.spec.sms_per_tpc])

    def is_idle(self) -> bool:
        return not any(sm.resident for sm in self.sm)

    def gaps(self, i: int) -> list[tuple[int, int]]:
        """The free (address, size) of an SM's shared memory, by address."""
        taken = sorted((b.address, b.block.shared) for b in self.sm[i].resident)
        edges = [0]
        for address, size in taken:
            edges += [address, address + size]
        edges.append(self.tpc_config_s[self.tpc(i)])
        return [(a, b - a) for a, b in zip(edges[::2], edges[1::2], strict=True)]

    def schedule(self, tb: ThreadBlock, open_to: Container[int] | None = None) -> int:
        """Algorithm 1, among those SMs; it says nothing of others."""
        if not self.is_idle() and tb.config_l > self.config_l:  # 1
            return CANNOT_SCHEDULE_NOW  # 2
        max_thread_blocks = 0  # 7
        smid = 0  # 8
        for i in self.order:  # 9
            if open_to is not None and i not in open_to:
                continue
            sm = self.sm[i]
            idle = self.tpc_is_idle(i)
            if not idle and tb.config_s > self.tpc_config_s[self.tpc(i)]:  # 10
                continue  # 11
            limit_b = sm.b  # 13
            limit_pb_w = [
                min(sm.w[j], sm.r[j] // tb.registers)
                for j in range(self.n_smpb)  # 14 to 17
            ]
            limit_w = 0
            for j in range(self.n_smpb):  # 18
                smpb_p = (sm.p + j) % self.n_smpb  # 19
                if limit_pb_w[smpb_p] == min(limit_pb_w):  # 20
                    limit_w = min(limit_pb_w) * self.n_smpb + j  # 21
                    break  # 22
            # 25; SM[i].s is the available contiguous shared memory.
            contiguous = tb.config_s if idle else max(size for _, size in self.gaps(i))
            limit_s = contiguous // tb.shared if tb.shared else UNBOUNDED
            if self.repairs.blocks:
                limit_w //= tb.w
            cur_thread_blocks = min(limit_b, limit_w, limit_s)  # 26
            if cur_thread_blocks > max_thread_blocks:  # 27
                max_thread_blocks = cur_thread_blocks  # 28
                smid = i  # 29
        return smid if max_thread_blocks else CANNOT_SCHEDULE_NOW  # 33 to 36

    def has_room(self, tb: ThreadBlock, i: int) -> bool:
        """Whether the SM can take the block: by the mechanisms, whatever line 26 counts."""
        alone = copy.copy(self)
        alone.repairs = REPAIRED
        return alone.schedule(tb, {i}) == i

    def place(self, tb: ThreadBlock, i: int) -> Resident:
        """Mechanisms 2.1, 2.2, 3 and 4: what placing the block changes."""
        if self.tpc_is_idle(i):
            self.tpc_config_s[self.tpc(i)] = tb.config_s
        sm = self.sm[i]
        turns = [(sm.p + warp) % self.n_smpb for warp in range(tb.w)]
        for j in turns:
            sm.w[j] -= 1
            sm.r[j] -= tb.registers
        sm.p = (sm.p + tb.w + (tb.w % self.n_smpb == 0)) % self.n_smpb
        sm.b -= 1
        address = next(address for address, size in self.gaps(i) if size >= tb.shared)
        block = Resident(i, tb, turns, address)
        sm.resident.append(block)
        self.config_l = max(self.config_l, tb.config_l)
        return block

    def exit(self, block: Resident) -> None:
        sm = self.sm[block.sm]
        for j in block.processing_blocks:
            sm.w[j] += 1
            sm.r[j] += block.block.registers
        sm.b += 1
        sm.resident = [other for other in sm.resident if other is not block]


def thread_block(launch: Launch, spec: DeviceSpec) -> ThreadBlock:
    tb = ThreadBlock(
        -(-launch.threads // 32),  # 4
        rounded(launch.registers * 32, spec.register_unit),  # 5
        rounded(launch.shared_memory, spec.shared_memory_unit) + spec.shared_memory_reserve,  # 6
        rounded(launch.local_memory, spec.local_memory_unit),
    )
    # Mechanism 3: as many blocks as an SM can accommodate times their shared memory, rounded up.
    sizes, n = spec.shared_memory_configurations, spec.processing_blocks
    per_pb = min(spec.warps_per_sm // n, spec.registers_per_sm // n // tb.registers)
    by_shared = sizes[-1] // tb.shared if tb.shared else UNBOUNDED
    blocks = min(spec.blocks_per_sm, n * per_pb // tb.w, by_shared)
    tb.config_s = next(size for size in sizes if size >= blocks * tb.shared)
    return tb


def run(
    sequence: Sequence, spec: DeviceSpec, repairs: Repairs = REPAIRED
) -> tuple[list[list[int]], list[list[int]]]:
    """The SMs of each launch's blocks before the next event, and after all events.

    An unrepaired line 26 also names SMs without room. It is asked of those that have room.

    Launches wait in line. What is left of a released launch runs as room comes, as many blocks at
    a time as fit, each such wave making room for the next.
    """
    gpu = GPU(spec, repairs)
    blocks: list[ThreadBlock] = []
    placed: list[list[int]] = []
    wanted: list[int] = []
    held: list[list[Resident]] = []
    released: set[int] = set()
    smid: list[list[int]] = []

    def padded(k: int) -> list[int]:
        return placed[k] + [-1] * (wanted[k] - len(placed[k]))

    def serve() -> None:
        for k, tb in enumerate(blocks):
            while len(placed[k]) < wanted[k]:
                room = None if repairs.blocks else [i for i in gpu.order if gpu.has_room(tb, i)]
                sm = gpu.schedule(tb, room)
                if sm != CANNOT_SCHEDULE_NOW:
                    held[k].append(gpu.place(tb, sm))
                    placed[k].append(sm)
                elif k in released and held[k]:
                    leave(k)
                else:
                    return
            if k in released:
                leave(k)

    def leave(k: int) -> None:
        for block in held[k]:
            gpu.exit(block)
        held[k] = []

    for event in sequence:
        if isinstance(event, Release):
            released.add(event.launch)
            leave(event.launch)
            serve()
        else:
            blocks.append(thread_block(event, spec))
            placed.append([])
            wanted.append(event.blocks)
            held.append([])
            serve()
            smid.append(padded(len(blocks) - 1))
    return smid, [padded(k) for k in range(len(blocks))]
