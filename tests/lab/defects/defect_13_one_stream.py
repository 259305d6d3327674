"""Sixteen independent kernels of eight blocks each, all in one stream."""

from collections.abc import Callable

import torch
import triton
import triton.language as tl

DEFECT = "sixteen independent kernels that each fill 8 of 132 multiprocessors run one by one"
CAUSE = "independent small-grid kernels serialised in one stream"
FIX = "spread them over eight streams"

KERNELS = 16
STREAMS = 8
BLOCKS = 8
ROUNDS = 120_000


@triton.jit
def iterate(source, target, rounds, block: tl.constexpr):
    """Apply x -> 0.999 x + 0.001 many times to every element."""
    offsets = tl.program_id(0) * block + tl.arange(0, block)
    x = tl.load(source + offsets)
    for _ in range(rounds):
        x = x * 0.999 + 0.001
    tl.store(target + offsets, x)


def build(variant: str) -> Callable[[], object]:
    """Return one step of sixteen small kernels in one stream or in eight."""
    sources = torch.rand(KERNELS, BLOCKS * 256, device="cuda")
    targets = torch.empty_like(sources)
    pairs = list(zip(sources.unbind(), targets.unbind(), strict=True))
    streams = [torch.cuda.Stream() for _ in range(STREAMS)]

    def step_defect() -> object:
        for source, target in pairs:
            iterate[(BLOCKS,)](source, target, ROUNDS, block=256)
        return targets

    def step_fixed() -> object:
        main = torch.cuda.current_stream()
        for stream in streams:
            stream.wait_stream(main)
        for i, (source, target) in enumerate(pairs):
            with torch.cuda.stream(streams[i % STREAMS]):
                iterate[(BLOCKS,)](source, target, ROUNDS, block=256)
        for stream in streams:
            main.wait_stream(stream)
        return targets

    return {"defect": step_defect, "fixed": step_fixed}[variant]
