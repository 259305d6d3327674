"""Numba's kernels in three streams, issued one stream after the other."""

import numpy as np

np.row_stack = np.vstack  # numba-cuda of 2026 asks for it, and NumPy 2.5 no longer has it
from numba import cuda  # noqa: E402

CHANGES = {"in_turn": "the streams are issued to in turn"}


@cuda.jit
def decay(x, rounds):
    i = cuda.grid(1)
    value = x[i]
    for _ in range(rounds):
        value = value * np.float32(0.999) + np.float32(0.001)
    x[i] = value


def build(change=None):
    streams = [cuda.stream() for _ in range(3)]
    values = [cuda.to_device(np.ones(32 * 256, np.float32)) for _ in streams]
    steps = [(step, k) for k in range(3) for step in range(8)]
    if change == "in_turn":
        steps.sort()
    cuda.synchronize()

    def body():
        for _, k in steps:
            decay[32, 256, streams[k]](values[k], 100_000)

    return body
