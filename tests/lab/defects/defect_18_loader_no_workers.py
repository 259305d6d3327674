"""A DataLoader that prepares every sample on the main thread."""

from collections.abc import Callable, Iterator

import torch
from torch.utils.data import DataLoader, Dataset

DEFECT = "DataLoader(num_workers=0): the main thread prepares 32 samples before it can launch"
CAUSE = "host work: enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__ on the main thread"
FIX = "num_workers=6 with prefetching"


class Samples(Dataset[torch.Tensor]):
    """Samples that each cost about 0.1 ms of Python."""

    def __len__(self) -> int:
        return 32 * 5000

    def __getitem__(self, index: int) -> torch.Tensor:
        state = index
        for _ in range(1500):
            state = (state * 1103515245 + 12345) & 0x7FFFFFFF
        return torch.full((256,), state / 0x7FFFFFFF)


def endless(loader: DataLoader[torch.Tensor]) -> Iterator[torch.Tensor]:
    """Yield the loader's batches over and over."""
    while True:
        yield from loader


def build(variant: str) -> Callable[[], object]:
    """Return one step: the next batch, then six matrix products."""
    x = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
    weight = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16) / 64
    if variant == "defect":
        loader = DataLoader(Samples(), batch_size=32, num_workers=0)
    else:
        loader = DataLoader(Samples(), batch_size=32, num_workers=6, prefetch_factor=4)
    batches = endless(loader)

    def step() -> object:
        batch = next(batches).to("cuda", non_blocking=True)
        y = x * batch.mean()
        for _ in range(6):
            y = y @ weight
        return y

    return step
