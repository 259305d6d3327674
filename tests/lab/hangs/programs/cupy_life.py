"""CuPy: the game of life on a torus of 16,384 by 16,384 cells until it comes to rest; every 64
generations the host counts the cells that changed."""

import cupy
from begin import begin

begin()
life = cupy.ElementwiseKernel(
    "raw uint8 old, int32 side",
    "uint8 now",
    """
    const int row = i / side, column = i % side;
    int around = 0;
    for (int down = -1; down <= 1; ++down)
      for (int right = -1; right <= 1; ++right)
        around += old[((row + down + side) % side) * (long long)side
                      + (column + right + side) % side];
    around -= old[i];
    now = around == 3 || (around == 2 && old[i]);
    """,
    "life",
)
side = 16384
cells = (cupy.arange(side * side, dtype=cupy.uint32) * cupy.uint32(2654435761) >> 30 == 0).astype(
    cupy.uint8
)
generation = 0
while True:
    before, cells = cells, life(cells, side, size=side * side)
    generation += 1
    if generation % 64 == 0 and int((before != cells).sum()) == 0:
        break
print("ended")
