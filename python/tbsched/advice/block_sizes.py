"""Launches in blocks of other sizes."""

from __future__ import annotations

from dataclasses import replace

from tbsched.program.library_kernels import is_of_library
from tbsched.program.sequence import Launch

BLOCK_SIZES = (64, 128, 256, 512, 1024)


def with_block_size(launch: Launch, threads: int) -> Launch | None:
    """Returns a launch with another block size, the same threads and shared memory per thread.

    None: it has clusters, or durations per block, or is of a library, so it keeps its size; or no
    launch can have so many blocks, or so much shared memory.
    """
    if launch.cluster != 1 or isinstance(launch.duration, tuple) or is_of_library(launch):
        return None
    blocks = -(-launch.blocks * launch.threads // threads)
    shared_memory = -(-launch.shared_memory * threads // launch.threads)
    try:
        return replace(launch, blocks=blocks, threads=threads, shared_memory=shared_memory)
    except ValueError:
        return None
