"""CuPy: a thread waits for the event behind a kernel, and the host stops the kernel after that."""

import threading

import cupy
import cupyx
import numpy
from begin import begin

SOURCE = r"""
extern "C" __global__ void monitor(const volatile int* stop, volatile int* beats) {
  int beat = 0;
  while (stop[0] == 0) {
    if (threadIdx.x == 0) beats[0] = ++beat;
    __nanosleep(1000);
  }
}
"""

fixed = begin()
monitor = cupy.RawKernel(SOURCE, "monitor")
stop, beats = cupyx.zeros_pinned((1,), numpy.int32), cupyx.zeros_pinned((1,), numpy.int32)
arguments = numpy.uint64(stop.ctypes.data), numpy.uint64(beats.ctypes.data)
ended = cupy.cuda.Event(disable_timing=True)
stream = cupy.cuda.Stream(non_blocking=True)
with stream:
    monitor((1,), (32,), arguments)
ended.record(stream)


def report():
    cupy.cuda.Device(0).use()
    ended.synchronize()
    print("beats", beats[0])


reporter = threading.Thread(target=report)
reporter.start()
if fixed:
    stop[0] = 1
reporter.join()
stop[0] = 1
stream.synchronize()
print("ended")
