"""PyTorch: a server waits in a stream for work that the host puts into pinned memory. Before it
does, the graph of a decoding step is captured."""

import cupy
import cupyx
import numpy as np
import torch
from begin import begin

SERVE = r"""
extern "C" __global__ void serve(const volatile int* work, float* answers) {
  if (threadIdx.x == 0)
    while (work[0] == 0) __nanosleep(1000);
  __syncthreads();
  answers[threadIdx.x] = work[0];
}
"""

fixed = begin()
hidden, weights = torch.ones(256, device="cuda"), torch.ones(256, device="cuda")
work, answers = cupyx.zeros_pinned(1, np.int32), cupy.zeros(64, cupy.float32)
serve = cupy.RawKernel(SERVE, "serve")
stream = cupy.cuda.Stream(non_blocking=True)


def start_server():
    with stream:
        serve((1,), (64,), (work.ctypes.data, answers))


def capture():
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        hidden.mul_(weights).add_(1.0)
    return graph


work[0] = 1
start_server()
hidden.mul_(weights).add_(1.0)
torch.cuda.synchronize()
work[0] = 0
if fixed:
    step = capture()
    start_server()
else:
    start_server()
    step = capture()
work[0] = 7
step.replay()
torch.cuda.synchronize()
print("ended")
