"""CuPy: a kernel in a Stream() waits for one in the null stream, which waits for it."""

import cupy as cp
from begin import begin

fixed = begin()
module = cp.RawModule(
    code=r"""
extern "C" __global__ void blend(const volatile int* uploaded, const float* image, float* out) {
  if (threadIdx.x == 0) while (uploaded[0] == 0) {}
  __syncthreads();
  out[threadIdx.x] = 0.5f * image[threadIdx.x];
}
extern "C" __global__ void upload(float* image, int* uploaded) {
  image[threadIdx.x] = threadIdx.x;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) atomicExch(uploaded, 1);
}
"""
)
blend, upload = module.get_function("blend"), module.get_function("upload")
image, out = cp.zeros(256, cp.float32), cp.zeros(256, cp.float32)
uploaded = cp.zeros(1, cp.int32)
upload((1,), (256,), (image, uploaded))
blend((1,), (256,), (uploaded, image, out))
uploaded.fill(0)
cp.cuda.Device().synchronize()

stream = cp.cuda.Stream(non_blocking=fixed)
with stream:
    blend((1,), (256,), (uploaded, image, out))
upload((1,), (256,), (image, uploaded))
cp.cuda.Device().synchronize()
print("ended")
