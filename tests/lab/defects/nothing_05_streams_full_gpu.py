"""Independent kernels that each fill the GPU and the memory bandwidth."""

from collections.abc import Callable

import torch

SUSPECT = "spread the independent kernels over four streams"

TENSORS = 4
PASSES = 3


def build(variant: str) -> Callable[[], object]:
    """Return one step of twelve kernels that read and write 1 GB each."""
    sources = [torch.rand(256 * 1024 * 1024, device="cuda") for _ in range(TENSORS)]
    targets = [torch.empty_like(source) for source in sources]
    streams = [torch.cuda.Stream() for _ in range(TENSORS)]

    def work(index: int) -> None:
        for _ in range(PASSES):
            torch.mul(sources[index], 1.5, out=targets[index])

    def step_given() -> object:
        for i in range(TENSORS):
            work(i)
        return targets[0][:1024]

    def step_changed() -> object:
        main = torch.cuda.current_stream()
        for i, stream in enumerate(streams):
            stream.wait_stream(main)
            with torch.cuda.stream(stream):
                work(i)
        for stream in streams:
            main.wait_stream(stream)
        return targets[0][:1024]

    return {"given": step_given, "changed": step_changed}[variant]
