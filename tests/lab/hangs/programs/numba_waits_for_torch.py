"""A Numba kernel in a stream of Numba waits until PyTorch has its weights, and says so in a tensor
that both see."""

import numpy
import torch
from begin import begin

numpy.row_stack = numpy.vstack  # numba-cuda asks for it, and newer versions of numpy lack it
from numba import cuda  # noqa: E402


@cuda.jit
def simulate(ready, weights, out):
    i = cuda.threadIdx.x
    if i == 0:
        while cuda.atomic.add(ready, 0, 0) == 0:
            cuda.nanosleep(500)
    cuda.syncthreads()
    out[i] = 2.0 * weights[i]


fixed = begin()
ready = torch.ones(1, dtype=torch.int32, device="cuda")
weights, out = torch.zeros(64, device="cuda"), torch.zeros(64, device="cuda")
torch.cuda.synchronize()
arrays = [cuda.as_cuda_array(each) for each in (ready, weights, out)]
side = torch.cuda.Stream()
stream = cuda.external_stream(side.cuda_stream) if fixed else cuda.stream()
simulate[1, 64, stream](*arrays)  # everything is compiled and loaded
torch.cuda.synchronize()
weights.add_(1.0)
ready.fill_(0)
torch.cuda.synchronize()

simulate[1, 64, stream](*arrays)
weights.add_(1.0)
ready.fill_(1)
torch.cuda.synchronize()
print("ended")
