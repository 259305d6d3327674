"""Two resident Numba kernels take turns on a shared board; a turn takes a few milliseconds."""

import numpy as np
import turn
from numba import cuda

turn.take()

CELLS = 4096


@cuda.jit
def player(board, turn, me, turns, work):
    for k in range(turns):
        if cuda.threadIdx.x == 0:
            while cuda.atomic.add(turn, 0, 0) != 2 * k + me:
                cuda.nanosleep(1000)
        cuda.syncthreads()
        i = cuda.threadIdx.x
        while i < CELLS:
            v = board[i]
            for _ in range(work):
                v = v * np.float32(0.99) + np.float32(0.01)
            board[i] = v + np.float32(me)
            i += cuda.blockDim.x
        cuda.threadfence()
        cuda.syncthreads()
        if cuda.threadIdx.x == 0:
            cuda.atomic.add(turn, 0, 1)


def play(board, turn, turns, work, streams):
    turn.copy_to_device(np.zeros(1, np.int32))
    cuda.synchronize()
    start, end = cuda.event(), cuda.event()
    start.record(streams[0])
    for me in (0, 1):
        player[1, 256, streams[me]](board, turn, me, turns, work)
    end.record(streams[0])
    for s in streams:
        s.synchronize()
    return cuda.event_elapsed_time(start, end)


def main():
    board = cuda.to_device(np.ones(CELLS, np.float32))
    turn = cuda.to_device(np.zeros(1, np.int32))
    streams = [cuda.stream(), cuda.stream()]
    player[1, 256, streams[0]](board, turn, 0, 0, 1)  # compiles
    cuda.synchronize()
    ms = play(board, turn, 10, 20000, streams)
    turns = int(10 * 22000 / ms)
    print(f"ten rounds in {ms:.1f} ms, playing {turns} rounds", flush=True)
    ms = play(board, turn, turns, 20000, streams)
    print(
        f"{turns} rounds in {ms / 1000:.1f} s, board[0] = {board.copy_to_host()[0]:.3f}", flush=True
    )


if __name__ == "__main__":
    main()
