"""A DataLoader on the main thread whose samples cost next to nothing."""

from collections.abc import Callable, Iterator

import torch
from torch.utils.data import DataLoader, Dataset

SUSPECT = "num_workers=4 instead of num_workers=0"

PRODUCTS = 4


class Samples(Dataset[torch.Tensor]):
    """Samples that cost a few microseconds each."""

    def __len__(self) -> int:
        return 32 * 5000

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.full((256,), float(index % 7))


def endless(loader: DataLoader[torch.Tensor]) -> Iterator[torch.Tensor]:
    """Yield the loader's batches over and over."""
    while True:
        yield from loader


def build(variant: str) -> Callable[[], object]:
    """Return one step: the next batch, then about 11 ms of GPU work."""
    weight = torch.randn(4096, 4096, device="cuda") / 64
    x = torch.randn(4096, 4096, device="cuda")
    workers = 0 if variant == "given" else 4
    batches = endless(DataLoader(Samples(), batch_size=32, num_workers=workers))

    def step() -> object:
        batch = next(batches).to("cuda", non_blocking=True)
        y = x * batch.mean()
        for _ in range(PRODUCTS):
            y = y @ weight
        return y

    return step
