"""CuPy compiles an elementwise operation at its first use: here a RawKernel waits for that."""

import cupy
from begin import begin

fixed = begin()
await_mask = cupy.RawKernel(
    r"""
extern "C" __global__ void await_mask(const volatile int* mask, int* out) {
  while (mask[0] == 0) __nanosleep(100);
  out[0] = mask[0];
}
""",
    "await_mask",
)
mask, base = cupy.ones(256, cupy.int32), cupy.ones(256, cupy.int32)
out = cupy.zeros(1, cupy.int32)
await_mask((1,), (1,), (mask, out))
if fixed:
    cupy.bitwise_or(mask, base, out=mask)
mask.fill(0)
cupy.cuda.Device().synchronize()

waiting, computing = (cupy.cuda.Stream(non_blocking=True) for _ in range(2))
with waiting:
    await_mask((1,), (1,), (mask, out))
with computing:
    cupy.bitwise_or(mask, base, out=mask)
cupy.cuda.Device().synchronize()
print("ended")
