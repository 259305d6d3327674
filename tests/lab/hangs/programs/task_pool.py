"""A small task-graph executor on a pool of CuPy streams. Tasks that read a block poll for its
version word, so that the executor needs no events between the streams."""

import sys

import cupy as cp
import numpy as np
import turn

turn.take()

SRC = r"""
extern "C" __global__ void factor_block(float *blocks, int *version, int b, int size, int v)
{
    float *x = blocks + (long long)b * size;
    for (int i = threadIdx.x; i < size; i += blockDim.x) x[i] = sqrtf(fabsf(x[i]) + 1.f);
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) atomicExch(&version[b], v);
}
extern "C" __global__ void update_block(float *blocks, int *version, int dst, int src, int size, int v)
{
    if (threadIdx.x == 0) while (atomicAdd(&version[src], 0) < v) __nanosleep(500);
    __syncthreads();
    float *d = blocks + (long long)dst * size;
    volatile float *s = blocks + (long long)src * size;
    for (int i = threadIdx.x; i < size; i += blockDim.x) d[i] -= 0.1f * s[i];
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) atomicMax(&version[dst], v);
}
"""
SIZE = 8192
BLOCKS = 12


class Executor:
    def __init__(self, nstreams):
        self.streams = [cp.cuda.Stream(non_blocking=True) for _ in range(nstreams)]
        mod = cp.RawModule(code=SRC)
        self.factor = mod.get_function("factor_block")
        self.update = mod.get_function("update_block")
        self.blocks = cp.ones((BLOCKS, SIZE), dtype=cp.float32)
        self.version = cp.zeros(BLOCKS, dtype=cp.int32)
        cp.cuda.Device().synchronize()

    def submit(self, slot, task):
        with self.streams[slot % len(self.streams)]:
            if task[0] == "factor":
                self.factor(
                    (1,),
                    (256,),
                    (
                        self.blocks,
                        self.version,
                        np.int32(task[1]),
                        np.int32(SIZE),
                        np.int32(task[2]),
                    ),
                )
            else:
                self.update(
                    (1,),
                    (256,),
                    (
                        self.blocks,
                        self.version,
                        np.int32(task[1]),
                        np.int32(task[2]),
                        np.int32(SIZE),
                        np.int32(task[3]),
                    ),
                )

    def wait(self):
        for s in self.streams:
            s.synchronize()


def schedule(v):
    """Column sweep: critical path first, so the update of the next column gets an early slot."""
    tasks = []
    for c in range(0, BLOCKS - 1, 4):
        tasks += [
            ("update", c + 1, c, v),
            ("update", c + 2, c, v),
            ("update", c + 3, c, v),
            ("noop",),
            ("factor", c, v),
        ]
    return tasks


def main():
    fixed = len(sys.argv) > 1 and sys.argv[1] == "fixed"
    ex = Executor(4)
    for t in (("factor", 0, 1), ("update", 1, 0, 1)):
        ex.submit(0, t)
    ex.wait()
    print("pool of", len(ex.streams), "streams warmed", flush=True)
    for v in range(2, 6):
        tasks = schedule(v)
        if fixed:
            tasks.sort(key=lambda t: t[0] != "factor")
        for slot, t in enumerate(tasks):
            if t[0] != "noop":
                # five slots a column on four streams
                ex.submit(slot % 5 if not fixed else slot, t)
        ex.wait()
        print(f"sweep {v}: block sum {float(ex.blocks.sum()):.3f}", flush=True)


if __name__ == "__main__":
    main()
