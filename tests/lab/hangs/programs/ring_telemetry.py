"""Telemetry ring: a CuPy kernel writes records into a pinned ring and waits when the ring is full;
the host drains the ring and moves the tail."""

import sys
import time

import cupy as cp
import cupyx
import numpy as np
import turn

turn.take()

WRITER = cp.RawKernel(
    r"""
extern "C" __global__ void write_records(volatile float *ring, volatile int *ctl, int slots, int records)
{
    // ctl[0]: head (device), ctl[16]: tail (host)
    for (int r = 0; r < records; ++r) {
        if (threadIdx.x == 0) while (r - ctl[16] >= slots) __nanosleep(2000);
        __syncthreads();
        ring[(r % slots) * 32 + threadIdx.x] = r + 0.01f * threadIdx.x;
        __threadfence_system();
        __syncthreads();
        if (threadIdx.x == 0) ctl[0] = r + 1;
    }
}
""",
    "write_records",
)

SLOTS = 64


class Telemetry:
    def __init__(self):
        self.ring = cupyx.zeros_pinned((SLOTS, 32), dtype=np.float32)
        self.ctl = cupyx.zeros_pinned(32, dtype=np.int32)
        self.stream = cp.cuda.Stream(non_blocking=True)
        self.total = 0.0

    def start(self, records):
        self.ctl[:] = 0
        with self.stream:
            WRITER(
                (1,),
                (32,),
                (
                    np.uintp(self.ring.ctypes.data),
                    np.uintp(self.ctl.ctypes.data),
                    np.int32(SLOTS),
                    np.int32(records),
                ),
            )

    def drain(self):
        head, tail = int(self.ctl[0]), int(self.ctl[16])
        for r in range(tail, head):
            self.total += float(self.ring[r % SLOTS].sum())
        self.ctl[16] = head
        return head


def collect(tele, records, poll):
    tele.start(records)
    if poll:
        while tele.drain() < records:
            time.sleep(0.001)
    # the launch is complete, so that all its records are visible now
    tele.stream.synchronize()
    return tele.drain()


def main():
    fixed = len(sys.argv) > 1 and sys.argv[1] == "fixed"
    tele = Telemetry()
    for records in (16, 48, 200):
        got = collect(tele, records, poll=fixed)
        print(f"{got} records, running total {tele.total:.1f}", flush=True)


if __name__ == "__main__":
    main()
