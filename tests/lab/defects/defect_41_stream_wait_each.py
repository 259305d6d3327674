"""Three independent ensembles of oscillators, each too small to fill the GPU, on three streams."""

import torch
import triton
import triton.language as tl

DEFECT = "the host waits for each stream before it launches the work of the next one"
CAUSE = (
    "stream.synchronize() right after each stream's launches: the streams' kernels, which would "
    "fit on the GPU side by side, run one after the other"
)
FIX = "launch on all streams first and synchronise with them afterwards"

STREAMS = 3
LAUNCHES = 4
PROGRAMS = 40
block_size = 256
TIME_STEPS = 32000


@triton.jit
def duffing(place, speed, damping, delta, steps, block_size: tl.constexpr):
    i = tl.program_id(0) * block_size + tl.arange(0, block_size)
    x = tl.load(place + i)
    v = tl.load(speed + i)
    d = tl.load(damping + i)
    for _ in range(steps):
        v += delta * (x - x * x * x - d * v)
        x += delta * v
    tl.store(place + i, x)
    tl.store(speed + i, v)


def build(variant):
    count = PROGRAMS * block_size
    streams = [torch.cuda.Stream() for _ in range(STREAMS)]
    starts = torch.randn(STREAMS, count, device="cuda")
    damping = torch.rand(STREAMS, count, device="cuda") * 0.5 + 0.5
    places = torch.empty_like(starts)
    speeds = torch.empty_like(starts)

    def step():
        places.copy_(starts)
        speeds.zero_()
        main = torch.cuda.current_stream()
        for number, stream in enumerate(streams):
            stream.wait_stream(main)
            with torch.cuda.stream(stream):
                for _ in range(LAUNCHES):
                    duffing[(PROGRAMS,)](
                        places[number],
                        speeds[number],
                        damping[number],
                        0.001,
                        TIME_STEPS,
                        block_size,
                    )
            if variant == "defect":
                stream.synchronize()
        if variant == "fixed":
            for stream in streams:
                stream.synchronize()
        return places

    return step
