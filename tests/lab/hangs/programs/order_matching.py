"""Order matching replay: the matcher runs in its own CuPy stream and waits for the closing tick of
each auction; ticks are written with ordinary array assignments."""

import sys

import cupy as cp
import numpy as np
import turn

turn.take()

MATCH = cp.RawKernel(
    r"""
extern "C" __global__ void match_auction(const float *bid, const float *ask, volatile int *tick,
                                         int want, int n, float *volume)
{
    __shared__ float part;
    if (threadIdx.x == 0) {
        part = 0.f;
        while (*tick < want) __nanosleep(1000);
        __threadfence();
    }
    __syncthreads();
    float v = 0.f;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        v += fmaxf(bid[i] - ask[i], 0.f);
    atomicAdd(&part, v);
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(volume, part);
}
""",
    "match_auction",
)


class Book:
    def __init__(self, n, seed=3):
        rng = np.random.default_rng(seed)
        self.n = n
        self.bid = cp.asarray(rng.normal(100.0, 1.0, n).astype(np.float32))
        self.ask = cp.asarray(rng.normal(100.5, 1.0, n).astype(np.float32))
        self.tick = cp.zeros(1, dtype=cp.int32)
        self.volume = cp.zeros(1, dtype=cp.float32)


def replay(book, stream, auctions, early):
    for _a in range(1, auctions + 1):
        if early:
            with stream:
                MATCH(
                    (16,),
                    (256,),
                    (
                        book.bid,
                        book.ask,
                        book.tick,
                        np.int32(int(book_tick[0]) + 1),
                        np.int32(book.n),
                        book.volume,
                    ),
                )
            book_tick[0] += 1
            book.tick += 1  # closing tick of the auction
        else:
            book_tick[0] += 1
            book.tick += 1
            cp.cuda.Device().synchronize()
            with stream:
                MATCH(
                    (16,),
                    (256,),
                    (
                        book.bid,
                        book.ask,
                        book.tick,
                        np.int32(int(book_tick[0])),
                        np.int32(book.n),
                        book.volume,
                    ),
                )
        stream.synchronize()
        print(f"auction {book_tick[0]} matched", flush=True)


book_tick = [0]


def main():
    fixed = len(sys.argv) > 1 and sys.argv[1] == "fixed"
    book = Book(1 << 20)
    stream = cp.cuda.Stream(non_blocking=fixed)
    cp.cuda.Device().synchronize()
    replay(book, stream, 3, early=False)  # historic part: ticks are known
    replay(book, stream, 5, early=True)  # live part: matcher first
    print("volume", float(book.volume[0]), flush=True)


if __name__ == "__main__":
    main()
