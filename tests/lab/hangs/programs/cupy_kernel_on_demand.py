"""CuPy: a kernel that collects reports stays until the last has come. The kernel for the summary is
a RawKernel of the module, compiled when it is called."""

import cupy
from begin import begin

COLLECT = r"""
extern "C" __global__ void collect(const volatile int* reports, int wanted, float* log) {
  if (threadIdx.x == 0)
    while (reports[0] < wanted) __nanosleep(400);
  __syncthreads();
  log[threadIdx.x] = reports[0];
}
"""
REPORT = 'extern "C" __global__ void report(int* reports) { atomicAdd(reports, 1); }'
SUMMARISE = r"""
extern "C" __global__ void summarise(int* reports, const float* log, float* summary) {
  float sum = 0;
  for (int i = 0; i < 64; ++i) sum += log[i];
  summary[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(reports, 1);
}
"""
collect = cupy.RawKernel(COLLECT, "collect")
report = cupy.RawKernel(REPORT, "report")
summarise = cupy.RawKernel(SUMMARISE, "summarise")

fixed = begin()
reports, log = cupy.zeros(1, cupy.int32), cupy.zeros(64, cupy.float32)
summary = cupy.zeros(32, cupy.float32)
report((1,), (1,), (reports,))
collect((1,), (64,), (reports, cupy.int32(1), log))
if fixed:
    summarise((1,), (32,), (reports, log, summary))
reports.fill(0)
cupy.cuda.Device().synchronize()
collecting, reporting = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream(non_blocking=True)
with collecting:
    collect((1,), (64,), (reports, cupy.int32(3), log))
with reporting:
    report((1,), (1,), (reports,))
    report((1,), (1,), (reports,))
    summarise((1,), (32,), (reports, log, summary))
cupy.cuda.Device().synchronize()
print("ended")
