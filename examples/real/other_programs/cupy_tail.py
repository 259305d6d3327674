"""Pieces of the Mandelbrot set, in four streams: blocks of very unequal times, and a long tail."""

import cupy
from cupy_kernels import MANDELBROT

CHANGES = {"reversed": "the pieces in the opposite order"}
PIECES = ((-2.0, -1.2, 0.8), (-1.2, -0.4, 0.8), (-0.4, -0.4, 0.8), (-0.4, 0.4, 0.8))
WIDTH = 512


def build(change=None):
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in PIECES]
    images = [cupy.zeros((WIDTH, WIDTH), cupy.int32) for _ in PIECES]
    order = list(range(len(PIECES)))
    if change == "reversed":
        order.reverse()
    cupy.cuda.Device().synchronize()

    def body():
        for _ in range(6):
            for k in order:
                x, y, size = (cupy.float32(value) for value in PIECES[k])
                with streams[k]:
                    MANDELBROT((WIDTH // 16, WIDTH // 16), (16, 16),
                               (images[k], cupy.int32(WIDTH), x, y, size,
                                cupy.int32(5000)))  # fmt: skip

    return body
