"""CuPy: a reader on a Stream() waits for a mail that is written without a stream."""

import cupy
from begin import begin

SOURCE = r"""
extern "C" __global__ void read_mail(const volatile int* mail, int* read) {
  if (threadIdx.x == 0) {
    while (mail[0] == 0) __nanosleep(100);
    read[blockIdx.x] = mail[0];
  }
}
"""

fixed = begin()
read_mail = cupy.RawKernel(SOURCE, "read_mail")
mail, read = cupy.zeros(1, cupy.int32), cupy.zeros(8, cupy.int32)
mail.fill(7)  # what writes and what reads is loaded
read_mail((8,), (32,), (mail, read))
mail.fill(0)
cupy.cuda.Device().synchronize()
reader, writer = cupy.cuda.Stream(), cupy.cuda.Stream(non_blocking=True)
with reader:
    read_mail((8,), (32,), (mail, read))
if fixed:
    with writer:
        mail.fill(7)
else:
    mail.fill(7)
cupy.cuda.Device().synchronize()
print("ended")
