"""A softmax in NumPy on the host between two parts of a GPU step."""

from collections.abc import Callable

import numpy as np
import torch

DEFECT = "the logits go to the host, NumPy does the softmax there, and the result goes back"
CAUSE = "host work (NumPy on the main thread) after a blocking device-to-host copy; the GPU is idle"
FIX = "torch.softmax on the GPU"


def numpy_softmax(values: np.ndarray) -> np.ndarray:
    """Return the softmax of each row."""
    powers: np.ndarray = np.exp(values - values.max(axis=1, keepdims=True))
    powers /= powers.sum(axis=1, keepdims=True)
    return powers


def build(variant: str) -> Callable[[], object]:
    """Return one step: logits, softmax, then five matrix products."""
    x = torch.randn(2048, 1024, device="cuda")
    head = torch.randn(1024, 1024, device="cuda") / 32
    big = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
    weight = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16) / 64

    def step() -> object:
        logits = x @ head
        if variant == "defect":
            probabilities = torch.from_numpy(numpy_softmax(logits.cpu().numpy())).to("cuda")
        else:
            probabilities = torch.softmax(logits, dim=1)
        y = big * probabilities.amax()
        for _ in range(5):
            y = y @ weight
        return y

    return step
