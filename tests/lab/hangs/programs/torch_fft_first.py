"""PyTorch: the first Fourier transform, while a kernel waits for the spectrum."""

import torch
import triton
import triton.language as tl
from begin import begin


@triton.jit
def await_spectrum(bits, out):
    while tl.load(bits, volatile=True) == 0:
        pass
    tl.store(out, 1.0)


fixed = begin()
signal = torch.ones(4096, dtype=torch.complex64, device="cuda")
spectrum = torch.ones(4096, dtype=torch.complex64, device="cuda")
bits, out = torch.view_as_real(spectrum).view(torch.int32), torch.zeros(1, device="cuda")
await_spectrum[(1,)](bits, out)
waiting, transforming = torch.cuda.Stream(), torch.cuda.Stream()
if fixed:
    with torch.cuda.stream(transforming):
        torch.fft.fft(signal, out=spectrum)
    torch.cuda.synchronize()
torch.view_as_real(spectrum).zero_()
torch.cuda.synchronize()

with torch.cuda.stream(waiting):
    await_spectrum[(1,)](bits, out)
with torch.cuda.stream(transforming):
    torch.fft.fft(signal, out=spectrum)
torch.cuda.synchronize()
print("ended")
