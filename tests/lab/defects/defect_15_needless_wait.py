"""Two streams with independent work, one of which waits for an event of the other."""

from collections.abc import Callable

import torch
import triton
import triton.language as tl

DEFECT = "the second stream waits for the first one's event though it uses none of its results"
CAUSE = "cudaStreamWaitEvent between two independent streams"
FIX = "leave the wait out"

KERNELS = 5
BLOCKS = 16
ROUNDS = 80_000


@triton.jit
def iterate(source, target, rounds, block: tl.constexpr):
    """Apply x -> 0.999 x + 0.001 many times to every element."""
    offsets = tl.program_id(0) * block + tl.arange(0, block)
    x = tl.load(source + offsets)
    for _ in range(rounds):
        x = x * 0.999 + 0.001
    tl.store(target + offsets, x)


def build(variant: str) -> Callable[[], object]:
    """Return one step: five small kernels in each of two streams, joined at the end."""
    sources = torch.rand(2, BLOCKS * 256, device="cuda")
    targets = torch.empty_like(sources)
    first, second = torch.cuda.Stream(), torch.cuda.Stream()
    event = torch.cuda.Event()

    def work(index: int, stream: torch.cuda.Stream) -> None:
        with torch.cuda.stream(stream):
            for _ in range(KERNELS):
                iterate[(BLOCKS,)](sources[index], targets[index], ROUNDS, block=256)

    def step() -> object:
        main = torch.cuda.current_stream()
        first.wait_stream(main)
        second.wait_stream(main)
        work(0, first)
        if variant == "defect":
            event.record(first)
            second.wait_event(event)
        work(1, second)
        main.wait_stream(first)
        main.wait_stream(second)
        return targets

    return step
