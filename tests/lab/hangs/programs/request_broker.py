"""Request broker: a worker thread owns the GPU side, the main thread owns the requests."""

import queue
import sys
import threading

import cupy as cp
import cupyx
import numpy as np
import turn

turn.take()

SCORE = cp.RawKernel(
    r"""
extern "C" __global__ void score_request(volatile float *query, volatile int *query_id, int want,
                                         const float *table, int n, float *out)
{
    if (threadIdx.x == 0) { while (*query_id < want) __nanosleep(2000); __threadfence_system(); }
    __syncthreads();
    float s = 0.f;
    for (int i = threadIdx.x; i < n; i += blockDim.x) s += table[i] * query[i & 63];
    atomicAdd(out, s);
}
""",
    "score_request",
)


class Worker(threading.Thread):
    def __init__(self, query, query_id):
        super().__init__(daemon=True)
        self.query, self.query_id = query, query_id
        self.jobs, self.results = queue.Queue(), queue.Queue()

    def run(self):
        with cp.cuda.Device(0):
            stream = cp.cuda.Stream(non_blocking=True)
            table = cp.arange(1 << 16, dtype=cp.float32) / 65536
            out = cp.zeros(1, dtype=cp.float32)
            cp.cuda.Device().synchronize()
            while True:
                want = self.jobs.get()
                if want is None:
                    return
                with stream:
                    SCORE(
                        (1,),
                        (256,),
                        (
                            np.uintp(self.query.ctypes.data),
                            np.uintp(self.query_id.ctypes.data),
                            np.int32(want),
                            table,
                            np.int32(table.size),
                            out,
                        ),
                    )
                stream.synchronize()
                self.results.put((want, float(out[0])))


def main():
    fixed = len(sys.argv) > 1 and sys.argv[1] == "fixed"
    query = cupyx.zeros_pinned(64, dtype=np.float32)
    query_id = cupyx.zeros_pinned(1, dtype=np.int32)
    w = Worker(query, query_id)
    w.start()
    query[:] = 1.0
    query_id[0] = 1
    w.jobs.put(1)
    print("health check", w.results.get(), flush=True)
    for r in range(2, 12):
        w.jobs.put(r)  # let the worker launch ahead
        if fixed:
            query[:] = r
            query_id[0] = r
            print("request", *w.results.get(), flush=True)
        else:
            # only one request may be out: take the answer, then hand in the next query
            print("request", *w.results.get(), flush=True)
            query[:] = r
            query_id[0] = r
    w.jobs.put(None)
    w.join()


if __name__ == "__main__":
    main()
