"""Seismic migration: the stack kernel is started beside the migration kernel and waits for it."""

import cupy as cp
import numpy as np
import turn

turn.take()

MOD = cp.RawModule(
    code=r"""
extern "C" __global__ void migrate(float *trace, int n, long long sweeps, int *migrated)
{
    float a = trace[blockIdx.x * blockDim.x + threadIdx.x];
    for (long long i = 0; i < sweeps; ++i) a = fmaf(a, 0.99995f, 0.00001f);
    trace[blockIdx.x * blockDim.x + threadIdx.x] = a;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(migrated, 1);
}
extern "C" __global__ void stack_traces(const float *trace, int n, int *migrated, int want, float *stacked)
{
    if (threadIdx.x == 0) while (atomicAdd(migrated, 0) < want) __nanosleep(2000);
    __syncthreads();
    float s = 0.f;
    for (int i = threadIdx.x; i < n; i += blockDim.x) s += ((volatile const float *)trace)[i];
    atomicAdd(stacked, s);
}
"""
)
MIGRATE = MOD.get_function("migrate")
STACK = MOD.get_function("stack_traces")


def main():
    blocks, n = 32, 32 * 256
    trace = cp.ones(n, dtype=cp.float32)
    migrated = cp.zeros(1, dtype=cp.int32)
    stacked = cp.zeros(1, dtype=cp.float32)
    s_mig, s_stack = cp.cuda.Stream(non_blocking=True), cp.cuda.Stream(non_blocking=True)
    cp.cuda.Device().synchronize()

    def migrate(sweeps):
        MIGRATE((blocks,), (256,), (trace, np.int32(n), np.int64(sweeps), migrated))

    with s_mig:
        migrate(1000)
        a, b = cp.cuda.Event(), cp.cuda.Event()
        a.record(s_mig)
        migrate(20_000_000)
        b.record(s_mig)
        b.synchronize()
    ms = cp.cuda.get_elapsed_time(a, b)
    with s_stack:
        STACK((1,), (256,), (trace, np.int32(n), migrated, np.int32(2 * blocks), stacked))
    s_stack.synchronize()
    sweeps = int(20_000_000 * 21_000 / ms)
    print(f"test sweep {ms:.1f} ms, migrating with {sweeps} sweeps", flush=True)
    with s_stack:
        STACK((1,), (256,), (trace, np.int32(n), migrated, np.int32(3 * blocks), stacked))
    with s_mig:
        migrate(sweeps)
    s_stack.synchronize()
    print("stacked", float(stacked[0]), flush=True)


if __name__ == "__main__":
    main()
