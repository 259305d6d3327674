"""Algorithm 1 of the ICCD 2023 paper in plain Python, line by line, for an RTX 3090.

Written from the paper's pseudocode and Table I alone, slow, and sharing nothing with the core.
Comments give the paper's line numbers. Only the number of SMs can be chosen, to be quicker.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tbsched.program.sequence import Launch, Release, Sequence

# Table I.
GRAN_R = 32 * 8
GRAN_S = 128
CUDART_S = 1024
CONFIGURATIONS = [8 * 1024, 16 * 1024, 32 * 1024, 64 * 1024, 100 * 1024]
SLOTS = 16
WARPS_PER_PB = 1536 // 32 // 4
REGISTERS_PER_PB = 65536 // 4
LOCAL_MEMORY_AT_FIRST = 1024

CANNOT_SCHEDULE_NOW = -1


@dataclass
class ThreadBlock:
    """TB: what the algorithm is told of the block."""

    t: int
    r: int
    s: int
    config_l: int
    config_s: int = 0

    @property
    def w(self) -> int:  # 4
        return -(-self.t // 32)

    @property
    def registers(self) -> int:  # 5
        return -(-self.r * 32 // GRAN_R) * GRAN_R

    @property
    def shared(self) -> int:  # 6
        return -(-self.s // GRAN_S) * GRAN_S + CUDART_S


@dataclass
class Resident:
    """A block on an SM, and what it has there."""

    sm: int
    block: ThreadBlock
    processing_blocks: list[int]  # of each warp
    address: int


@dataclass
class SM:
    """SM[i]: slots b, pointer p, per processing block warps w and registers r."""

    b: int = SLOTS
    p: int = 0
    w: list[int] = field(default_factory=lambda: [WARPS_PER_PB] * 4)
    r: list[int] = field(default_factory=lambda: [REGISTERS_PER_PB] * 4)


class GPU:
    """GPGPU: its SMs, what is resident, and both kinds of configuration."""

    def __init__(self, n_sm: int) -> None:
        self.n_sm = n_sm
        self.sm = [SM() for _ in range(n_sm)]
        self.resident: list[Resident] = []
        self.tpc_config_s = [0] * (n_sm // 2)
        self.config_l = LOCAL_MEMORY_AT_FIRST

    def tpc_is_idle(self, i: int) -> bool:
        return not any(block.sm // 2 == i // 2 for block in self.resident)

    def gaps(self, i: int) -> list[tuple[int, int]]:
        """The free (address, size) of an SM's shared memory, by address."""
        taken = sorted((b.address, b.block.shared) for b in self.resident if b.sm == i)
        edges = [0]
        for address, size in taken:
            edges += [address, address + size]
        edges.append(self.tpc_config_s[i // 2])
        return [(a, b - a) for a, b in zip(edges[::2], edges[1::2], strict=True)]

    def schedule(self, tb: ThreadBlock) -> int:
        """Algorithm 1."""
        if self.resident and tb.config_l > self.config_l:  # 1
            return CANNOT_SCHEDULE_NOW  # 2
        max_thread_blocks = 0  # 7
        smid = 0  # 8
        for i in [*range(0, self.n_sm, 2), *range(1, self.n_sm, 2)]:  # 9
            sm = self.sm[i]
            idle = self.tpc_is_idle(i)
            if not idle and tb.config_s > self.tpc_config_s[i // 2]:  # 10
                continue  # 11
            limit_b = sm.b  # 13
            limit_pb_w = [min(sm.w[j], sm.r[j] // tb.registers) for j in range(4)]  # 14 to 17
            limit_w = 0
            for j in range(4):  # 18
                smpb_p = (sm.p + j) % 4  # 19
                if limit_pb_w[smpb_p] == min(limit_pb_w):  # 20
                    limit_w = min(limit_pb_w) * 4 + j  # 21
                    break  # 22
            # 25; SM[i].s is the available contiguous shared memory.
            contiguous = tb.config_s if idle else max(size for _, size in self.gaps(i))
            limit_s = contiguous // tb.shared
            cur_thread_blocks = min(limit_b, limit_w // tb.w, limit_s)  # 26
            if cur_thread_blocks > max_thread_blocks:  # 27
                max_thread_blocks = cur_thread_blocks  # 28
                smid = i  # 29
        return smid if max_thread_blocks else CANNOT_SCHEDULE_NOW  # 33 to 36

    def place(self, tb: ThreadBlock, i: int) -> Resident:
        """Mechanisms 2.1, 2.2, 3 and 4: what placing the block changes."""
        if self.tpc_is_idle(i):
            self.tpc_config_s[i // 2] = tb.config_s
        sm = self.sm[i]
        turns = [(sm.p + warp) % 4 for warp in range(tb.w)]
        for j in turns:
            sm.w[j] -= 1
            sm.r[j] -= tb.registers
        sm.p = (sm.p + tb.w + (tb.w % 4 == 0)) % 4
        sm.b -= 1
        address = next(address for address, size in self.gaps(i) if size >= tb.shared)
        block = Resident(i, tb, turns, address)
        self.resident.append(block)
        self.config_l = max(self.config_l, tb.config_l)
        return block

    def exit(self, block: Resident) -> None:
        sm = self.sm[block.sm]
        for j in block.processing_blocks:
            sm.w[j] += 1
            sm.r[j] += block.block.registers
        sm.b += 1
        self.resident = [other for other in self.resident if other is not block]


def thread_block(launch: Launch) -> ThreadBlock:
    tb = ThreadBlock(launch.threads, launch.registers, launch.shared_memory, launch.local_memory)
    # Mechanism 3: as many blocks as an SM can accommodate times their shared memory, rounded up.
    per_pb = min(WARPS_PER_PB, REGISTERS_PER_PB // tb.registers)
    blocks = min(SLOTS, 4 * per_pb // tb.w, CONFIGURATIONS[-1] // tb.shared)
    tb.config_s = next(size for size in CONFIGURATIONS if size >= blocks * tb.shared)
    return tb


def run(sequence: Sequence, n_sm: int) -> tuple[list[list[int]], list[list[int]]]:
    """The SMs of each launch's blocks before the next event, and after all events.

    Launches wait in line. What is left of a released launch runs as room comes, as many blocks at
    a time as fit, each such wave making room for the next.
    """
    gpu = GPU(n_sm)
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
                sm = gpu.schedule(tb)
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
            blocks.append(thread_block(event))
            placed.append([])
            wanted.append(event.blocks)
            held.append([])
            serve()
            smid.append(padded(len(blocks) - 1))
    return smid, [padded(k) for k in range(len(blocks))]
