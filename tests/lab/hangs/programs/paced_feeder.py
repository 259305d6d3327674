"""A resident CuPy kernel takes items from a pinned mailbox; the producer delivers one every half
second (a slow instrument)."""

import threading
import time

import cupy as cp
import cupyx
import numpy as np
import turn

turn.take()

TAKER = cp.RawKernel(
    r"""
extern "C" __global__ void take_items(volatile float *box, volatile int *ctl, int first, int last, float *sum)
{
    for (int k = first; k < last; ++k) {
        if (threadIdx.x == 0) while (ctl[0] <= k) __nanosleep(5000);
        __syncthreads();
        atomicAdd(sum, box[(k % 8) * 64 + threadIdx.x]);
        __threadfence_system();
        __syncthreads();
        if (threadIdx.x == 0) ctl[16] = k + 1;
    }
}
""",
    "take_items",
)


class Mailbox:
    def __init__(self):
        self.box = cupyx.zeros_pinned((8, 64), dtype=np.float32)
        self.ctl = cupyx.zeros_pinned(32, dtype=np.int32)
        self.sum = cp.zeros(1, dtype=cp.float32)
        self.stream = cp.cuda.Stream(non_blocking=True)

    def deliver(self, k):
        self.box[k % 8] = k + 1
        self.ctl[0] = k + 1

    def start(self, first, last):
        with self.stream:
            TAKER(
                (1,),
                (64,),
                (
                    np.uintp(self.box.ctypes.data),
                    np.uintp(self.ctl.ctypes.data),
                    np.int32(first),
                    np.int32(last),
                    self.sum,
                ),
            )


def instrument(mailbox, first, last):
    for k in range(first, last):
        time.sleep(0.5)
        mailbox.deliver(k)


def main():
    mb = Mailbox()
    cp.cuda.Device().synchronize()
    mb.deliver(0)
    mb.start(0, 1)
    mb.stream.synchronize()
    print("calibration item taken", flush=True)
    items = 45
    mb.start(1, items)
    t = threading.Thread(target=instrument, args=(mb, 1, items))
    t.start()
    mb.stream.synchronize()
    t.join()
    print("sum", float(mb.sum[0]), flush=True)


if __name__ == "__main__":
    main()
