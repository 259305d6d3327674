"""The numbers of streams, of CUDA events, of host threads and of GPUs."""

from __future__ import annotations

from typing import Literal, TypeAlias

from tbsched.program.checks import integer

# CUDA's default stream, which waits for earlier work of all streams and holds up their later work.
LEGACY_STREAM: Literal["legacy"] = "legacy"
Stream: TypeAlias = int | Literal["legacy"]
MAX_STREAM = 2**31 - 1
MAX_HOSTS = 1024
MAX_GPUS = 1024


def checked_stream(owner: str, value: object) -> Stream:
    """Returns the stream itself, its number as a plain int.

    Raises:
        TypeError, ValueError: naming ``owner.stream``.
    """
    if isinstance(value, str) and value == LEGACY_STREAM:
        return LEGACY_STREAM
    return integer(owner, "stream", value, 0, MAX_STREAM)


def checked_cuda_event(owner: str, field: str, value: object) -> int:
    """Returns the number of a CUDA event.

    Raises:
        TypeError, ValueError: naming ``owner.field``.
    """
    return integer(owner, field, value, 0, 2**31 - 1)


def checked_host(owner: str, value: object) -> int:
    """Returns the number of a host thread.

    Raises:
        TypeError, ValueError: naming ``owner.host``.
    """
    return integer(owner, "host", value, 0, MAX_HOSTS - 1)


def checked_gpu(owner: str, value: object, field: str = "gpu") -> int:
    """Returns the index of a GPU.

    Raises:
        TypeError, ValueError: naming ``owner.field``.
    """
    return integer(owner, field, value, 0, MAX_GPUS - 1)
