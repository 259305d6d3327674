"""24 programs of two ranks: 19 hang, 5 are slow. What each does is in truth.py.

    python programs.py NAME RANK FOLDER      # one program, as it is
    python programs.py fixed RANK FOLDER NAME ...  # the fixed variants, one after the other

It imports PyTorch, writes "ready" to its marks, and waits for FOLDER/go before it touches the GPU.
A line of FOLDER/marks.rRANK is a time and a word: "start", "steady" and "step" of slow programs,
and "end", which no program that hangs writes unless it is fixed. With RANKS=gloo they run on the
CPU, to rehearse: what needs a GPU waits in Python instead.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import queue
import sys
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

CUDA = os.environ.get("RANKS") != "gloo"
MB = 250_000 if CUDA else 250  # floats
BF16 = torch.bfloat16
WAITING = 300.0  # seconds for the go file

KERNELS = r"""
extern "C" __global__ void __launch_bounds__(1024, 2) consume(volatile int *flag, int *arrived) {
    extern __shared__ int tile[];
    if (threadIdx.x == 0) {
        atomicAdd(arrived, 1);
        while (*flag == 0) {
            __nanosleep(200);
        }
        tile[0] = arrived[0];
    }
    __syncthreads();
}

extern "C" __global__ void behind(int *arrived) { atomicAdd(arrived, 1); }

extern "C" __global__ void compute(float *out, int turns) {
    float value = threadIdx.x;
    for (int turn = 0; turn < turns; ++turn) {
        value = value * 0.999f + 0.5f;
        value = value * 1.001f - 0.25f;
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = value;
}
"""


def forever() -> None:
    while True:
        time.sleep(1)


class Rank:
    """One rank: its device, its two groups, its marks."""

    def __init__(self, rank: int, folder: Path, own_kernels: bool) -> None:
        self.rank, self.other, self.folder = rank, 1 - rank, folder
        self.fixed = False
        self.device = torch.device("cuda", rank) if CUDA else torch.device("cpu")
        if CUDA:
            torch.cuda.set_device(rank)
        dist.init_process_group(
            "nccl" if CUDA else "gloo",
            store=dist.FileStore(str(folder / "store"), 2),
            rank=rank,
            world_size=2,
            device_id=self.device if CUDA else None,
        )
        self.first, self.second = dist.new_group([0, 1]), dist.new_group([0, 1])
        self.kernels = {}
        if CUDA and own_kernels:
            for name in ("consume", "behind", "compute"):
                self.kernels[name] = torch.cuda._compile_kernel(KERNELS, name)
        self.warm()

    def mark(self, word: str) -> None:
        with open(self.folder / f"marks.r{self.rank}", "a") as file:
            file.write(f"{time.time():.3f} {word}\n")

    def tensor(self, megabytes: float, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        floats = int(megabytes * MB)
        return torch.ones(max(2, floats * 4 // dtype.itemsize), dtype=dtype, device=self.device)

    def sync(self) -> None:
        if CUDA:
            torch.cuda.synchronize()

    def warm(self) -> None:
        """Connects the ranks, and loads every kernel that a program uses behind a collective."""
        for group in (dist.group.WORLD, self.first, self.second):
            for size in (0.008, 64):
                for dtype in (torch.float32, BF16):
                    dist.all_reduce(self.tensor(size, dtype), group=group)
                x = self.tensor(size)
                dist.broadcast(x, 0, group=group)
                dist.all_to_all_single(torch.empty_like(x), x, group=group)
                dist.all_gather_into_tensor(torch.cat([x, x]), x, group=group)
        x = self.tensor(64)
        for sender in (0, 1):
            self.send_or_receive(x, self.rank == sender)
        x.add_(1)
        x.sum().item()
        self.tensor(1, BF16).sum().item()
        self.flag()[0].fill_(1)
        for name, arguments in (("consume", ()), ("behind", ()), ("compute", (1,))):
            if name in self.kernels:
                numbers = torch.ones(1024, dtype=torch.int32, device=self.device)
                tensors = [numbers, numbers][: 2 if name == "consume" else 1]
                self.kernels[name](
                    grid=(1, 1, 1), block=(32, 1, 1), args=[*tensors, *arguments], shared_mem=64
                )
        self.sync()

    def send_or_receive(self, x: torch.Tensor, sends: bool) -> None:
        if sends:
            dist.send(x, self.other)
        else:
            dist.recv(x, self.other)

    def flag(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The flag that consume waits for, and the count of its blocks that are on the GPU."""
        zeros = torch.zeros(64, dtype=torch.int32, device=self.device)
        return zeros[:1], zeros[32:33]

    def consume(
        self,
        stream: Any,
        flag: torch.Tensor,
        arrived: torch.Tensor,
        blocks: int,
        threads: int = 256,
        shared_memory: int = 64,
    ) -> None:
        """Launches consume, and gives it the time to start."""
        kernel = self.kernels["consume"]
        kernel.set_shared_memory_config(shared_memory)
        torch.cuda.synchronize()
        kernel(
            grid=(blocks, 1, 1),
            block=(threads, 1, 1),
            args=[flag, arrived],
            shared_mem=shared_memory,
            stream=stream,
        )
        time.sleep(0.3)

    def stream(self, blocking: bool = False) -> Any:
        """A stream; a blocking one waits for the legacy stream, and that for it."""
        if not blocking:
            return torch.cuda.Stream()
        handle = ctypes.c_void_p()
        assert int(torch.cuda.cudart().cudaStreamCreate(ctypes.addressof(handle))) == 0
        return torch.cuda.ExternalStream(handle.value)

    def in_order(self, *calls: Callable[[], Any]) -> None:
        """Makes the calls in this order on rank 0 and, unless fixed, in the other on rank 1."""
        for call in calls if self.rank == 0 or self.fixed else reversed(calls):
            call()

    def wait_for_file(self, name: str) -> None:
        while not (self.folder / name).exists():
            time.sleep(0.01)


# The order of ranks ------------------------------------------------------------------------------
def two_groups(at: Rank) -> None:
    a, b = at.tensor(64), at.tensor(64)
    at.in_order(
        lambda: dist.all_reduce(a, group=at.first), lambda: dist.all_reduce(b, group=at.second)
    )


def two_types(at: Rank) -> None:
    a, b = at.tensor(64), at.tensor(128, BF16)
    at.in_order(
        lambda: dist.all_reduce(a, group=at.first), lambda: dist.all_reduce(b, group=at.second)
    )


def both_send(at: Rank) -> None:
    mine, theirs = at.tensor(256), at.tensor(256)
    sends_first = at.rank == 0 or not at.fixed
    at.send_or_receive(mine if sends_first else theirs, sends_first)
    at.send_or_receive(theirs if sends_first else mine, not sends_first)


def small_large(at: Rank) -> None:
    small, large = at.tensor(0.008), at.tensor(256)
    works: list[Any] = []
    at.in_order(
        lambda: works.append(dist.all_reduce(small, async_op=True)),
        lambda: works.append(dist.all_reduce(large, async_op=True)),
    )
    for work in works:
        work.wait()


def skipped(at: Rank) -> None:
    gradients, metrics, result = at.tensor(256), at.tensor(0.008), at.tensor(256)
    gathered = torch.cat([metrics, metrics])
    if at.rank == 0 or at.fixed:
        dist.all_reduce(gradients)
    dist.all_gather_into_tensor(gathered, metrics)
    at.send_or_receive(result, at.rank == 0)


def other_kind(at: Rank) -> None:
    x = at.tensor(256)
    if at.rank == 0 or at.fixed:
        dist.all_reduce(x)
    else:
        dist.broadcast(x, 0)


def micro_batches(at: Rank) -> None:
    batch, gradients = at.tensor(256), at.tensor(64)
    for _ in range(4 if at.rank == 0 or at.fixed else 3):
        at.send_or_receive(batch, at.rank == 0)
    dist.all_reduce(gradients, group=at.first)


def a2a_vs_reduce(at: Rank) -> None:
    tokens, routed, gradients = at.tensor(128), at.tensor(128), at.tensor(64)
    at.in_order(
        lambda: dist.all_to_all_single(routed, tokens, group=at.first),
        lambda: dist.all_reduce(gradients, group=at.second),
    )


def two_threads(at: Rank) -> None:
    tensors = {at.first: at.tensor(64), at.second: at.tensor(64)}
    issued = {group: threading.Event() for group in tensors}
    earlier, later = at.first, at.second
    if at.rank == 1 and not at.fixed:
        earlier, later = later, earlier

    def reduce(group: Any) -> None:
        with torch.cuda.device(at.rank) if CUDA else nullcontext():
            if group is later:
                issued[earlier].wait()
            dist.all_reduce(tensors[group], group=group)
            issued[group].set()
            at.sync()

    threads = [threading.Thread(target=reduce, args=(group,)) for group in tensors]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def graphs(at: Rank) -> None:
    if not CUDA:
        two_groups(at)
        return
    tensors, recorded = [at.tensor(64), at.tensor(64)], []
    for tensor, group in zip(tensors, (at.first, at.second), strict=True):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            dist.all_reduce(tensor, group=group)
        recorded.append(graph)
    for graph in recorded:  # the first replay loads it
        graph.replay()
    at.sync()
    at.in_order(recorded[0].replay, recorded[1].replay)


def item_between(at: Rank) -> None:
    a, b = at.tensor(64), at.tensor(128, BF16)

    def reduced_sum(tensor: torch.Tensor, group: Any) -> None:
        dist.all_reduce(tensor, group=group)
        tensor.sum().item()

    at.in_order(lambda: reduced_sum(a, at.first), lambda: reduced_sum(b, at.second))


# The host ----------------------------------------------------------------------------------------
def file(at: Rank) -> None:
    gradients = at.tensor(64)
    if at.rank == 0:
        if at.fixed:
            (at.folder / "checkpoint").touch()
        dist.all_reduce(gradients)
        at.sync()
        (at.folder / "checkpoint").touch()
    else:
        at.wait_for_file("checkpoint")
        dist.all_reduce(gradients)


def lock(at: Rank) -> None:
    held, taken = threading.Lock(), threading.Event()

    def log() -> None:
        with held:
            taken.set()
            if not at.fixed:
                forever()

    if at.rank == 1:
        threading.Thread(target=log, daemon=True).start()
        taken.wait()
        with held:
            pass
    dist.all_reduce(at.tensor(64))


def queue_empty(at: Rank) -> None:
    batches: queue.Queue[torch.Tensor] = queue.Queue()
    count = 3 if at.rank == 0 or at.fixed else 2

    def load() -> None:
        for _ in range(count):
            batches.put(torch.ones(1 << 10))

    threading.Thread(target=load, daemon=True).start()
    gradients = at.tensor(64)
    for _ in range(3):
        gradients[: 1 << 10] += batches.get().to(at.device)
        dist.all_reduce(gradients)
        at.sync()


# Room, hardware queue, legacy stream, loading -------------------------------------------------
def persistent_smem(at: Rank) -> None:
    if not CUDA:
        return at.fixed or forever()
    gradients = at.tensor(64)
    flag, arrived = at.flag()
    blocks = torch.cuda.get_device_properties(at.device).multi_processor_count
    persistent, own = at.stream(), at.stream()

    def reduce() -> None:
        with torch.cuda.stream(own):
            dist.all_reduce(gradients)
            flag.fill_(1)

    at.sync()
    if at.fixed:
        reduce()
    if at.rank == 0:
        at.consume(persistent, flag, arrived, blocks, shared_memory=200 << 10)
    if not at.fixed:
        reduce()
    return None


def persistent_threads(at: Rank) -> None:
    if not CUDA:
        return at.fixed or forever()
    gradients = at.tensor(64)
    flag, arrived = at.flag()
    sms = torch.cuda.get_device_properties(at.device).multi_processor_count
    persistent, own = at.stream(), at.stream()
    at.consume(persistent, flag, arrived, sms // 2 if at.fixed else 2 * sms, threads=1024)
    with torch.cuda.stream(own):
        dist.all_reduce(gradients)
        flag.fill_(1)
    return None


def legacy_between(at: Rank) -> None:
    if not CUDA:
        return at.fixed or forever()
    gradients, scale = at.tensor(64), at.tensor(1)
    flag, arrived = at.flag()
    one, two = at.stream(blocking=not at.fixed), at.stream(blocking=not at.fixed)
    at.sync()
    if at.rank == 0:
        at.consume(one, flag, arrived, 8)
        scale.add_(1)  # in the legacy stream
    with torch.cuda.stream(two):
        gradients.add_(1)
        dist.all_reduce(gradients)
        flag.fill_(1)
    return None


def one_queue(at: Rank) -> None:
    if not CUDA:
        return at.fixed or forever()
    gradients = at.tensor(64)
    flag, arrived = at.flag()
    one, two = at.stream(), at.stream()

    def reduce() -> None:
        with torch.cuda.stream(two):
            dist.all_reduce(gradients)
            flag.fill_(1)

    at.sync()
    if at.rank == 0:
        at.consume(one, flag, arrived, 8)
        if at.fixed:
            reduce()
        at.kernels["behind"](grid=(8, 1, 1), block=(32, 1, 1), args=[arrived], stream=one)
    if at.rank == 1 or not at.fixed:
        reduce()
    return None


def first_use(at: Rank) -> None:
    if not CUDA:
        return at.fixed or forever()
    gradients, x, out = at.tensor(64), at.tensor(1), at.tensor(1)
    side = at.stream()
    if at.fixed:
        torch.hypot(x, x, out=out)
    at.sync()
    if at.rank == 0:
        dist.all_reduce(gradients)
        time.sleep(0.2)
        with torch.cuda.stream(side):
            torch.hypot(x, x, out=out)
        (at.folder / "launched").touch()
    else:
        at.wait_for_file("launched")
        dist.all_reduce(gradients)
    return None


# Slow, but they go on ----------------------------------------------------------------------------
def steps(at: Rank) -> Any:
    """Numbers of steps: without end, or three if fixed. Marks each."""
    for number in range(3) if at.fixed else itertools.count():
        yield number
        at.sync()
        at.mark("step")


def late_once(at: Rank) -> None:
    gradients = at.tensor(64)
    for number in steps(at):
        if number == 3 and at.rank == 1:
            time.sleep(8)
        dist.all_reduce(gradients)
        at.sync()
        if number == 3:
            at.mark("steady")
        time.sleep(0.05)


def late_each(at: Rank) -> None:
    gradients = at.tensor(64)
    at.mark("steady")
    for _ in steps(at):
        if at.rank == 1:
            until = time.perf_counter() + 1.2
            while time.perf_counter() < until:
                sum(range(10_000))
        dist.all_reduce(gradients)


def long_kernel(at: Rank) -> None:
    gradients = at.tensor(64)
    out = at.tensor(4 * 132 * 256 / 250_000)
    at.mark("steady")
    for _ in steps(at):
        for _ in range(2):
            if at.rank == 0 and not at.fixed:
                if CUDA:
                    at.kernels["compute"](
                        grid=(264, 1, 1), block=(256, 1, 1), args=[out, 600_000_000]
                    )
                    at.sync()
                else:
                    time.sleep(1)
                at.mark("step")
        dist.all_reduce(gradients)


def large_reduces(at: Rank) -> None:
    gradients = at.tensor(8192)
    at.mark("steady")
    for _ in steps(at):
        for _ in range(4):
            dist.all_reduce(gradients)


def side_by_side(at: Rank) -> None:
    tensors = [at.tensor(256), at.tensor(256)]
    at.mark("steady")
    for _ in steps(at):
        works: list[Any] = []

        def reduce(number: int, works: list[Any] = works) -> None:
            group = (at.first, at.second)[number]
            works.append(dist.all_reduce(tensors[number], group=group, async_op=True))

        at.in_order(lambda: reduce(0), lambda: reduce(1))
        for work in works:
            work.wait()


PROGRAMS = [
    two_groups, two_types, both_send, small_large, skipped, other_kind, micro_batches,
    a2a_vs_reduce, two_threads, graphs, item_between, file, lock, queue_empty, persistent_smem,
    persistent_threads, legacy_between, one_queue, first_use, late_once, late_each, long_kernel,
    large_reduces, side_by_side,
]  # fmt: skip
OWN_KERNELS = [
    "persistent_smem",
    "persistent_threads",
    "legacy_between",
    "one_queue",
    "long_kernel",
]


def wait_for_go(folder: Path, rank: int, began_by: int) -> None:
    with open(folder / f"marks.r{rank}", "a") as file:
        file.write(f"{time.time():.3f} ready\n")
    until = time.monotonic() + WAITING
    while not (folder / "go").exists():
        if time.monotonic() > until or os.getppid() != began_by:
            raise SystemExit("nobody said go")
        time.sleep(0.02)


def run(at: Rank, name: str) -> None:
    if CUDA and at.fixed:
        torch.cuda.empty_cache()
    dist.barrier()
    at.mark(f"start {name}")
    {program.__name__: program for program in PROGRAMS}[name](at)
    at.sync()
    at.mark(f"end {name}")


def main() -> None:
    name, rank, folder = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    fixed = sys.argv[4:] if name == "fixed" else []
    wait_for_go(folder, rank, os.getppid())
    at = Rank(rank, folder, any(each in OWN_KERNELS for each in [name, *fixed]))
    at.fixed = bool(fixed)
    for each in fixed or [name]:
        run(at, each)
    dist.barrier()
    os._exit(0)


if __name__ == "__main__":
    main()
