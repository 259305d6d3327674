"""A wavefront of tiles: each waits for the tile above and the tile to its left, by events."""

import cupy
from cupy_kernels import logistic

CHANGES = {"columns": "a stream for each column, and the tiles issued column by column"}
ROWS, COLUMNS = 5, 8


def build(change=None):
    by_column = change == "columns"
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(COLUMNS if by_column else ROWS)]
    tiles = [[cupy.full(64 * 256, 0.3, cupy.float32) for _ in range(COLUMNS)] for _ in range(ROWS)]
    events = [[cupy.cuda.Event(disable_timing=True) for _ in range(COLUMNS)] for _ in range(ROWS)]
    order = [(row, column) for row in range(ROWS) for column in range(COLUMNS)]
    if by_column:
        order.sort(key=lambda at: (at[1], at[0]))
    cupy.cuda.Device().synchronize()

    def body():
        for row, column in order:
            stream = streams[column if by_column else row]
            if row and not by_column:
                stream.wait_event(events[row - 1][column])
            if column and by_column:
                stream.wait_event(events[row][column - 1])
            with stream:
                blocks = 24 + 16 * ((row + column) % 3)
                logistic(tiles[row][column], blocks, 6000 + 2500 * ((3 * row + column) % 4))
            events[row][column].record(stream)

    return body
