"""A CUDA program without a GPU: it loads what is injected, and the fake CUPTI plays its records."""

from __future__ import annotations

import ctypes
import os

WAIT_FOR_EVENT, STREAM_WAITS, WAIT_FOR_STREAM, WAIT_FOR_CONTEXT = 1, 2, 3, 4
EDGE, CLONE = 15, 20
DEFAULT, NON_BLOCKING, NULL = 1, 2, 3
COMPILER, BUFFER_FLUSH, INSTRUMENTATION, RESOURCE, FUNCTION = 1, 1 << 16, 2 << 16, 3 << 16, 5 << 16


class Gpu:
    """What CUPTI would say; calls and times are numbers, times in ns since the capture began."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(os.environ["TBSCHED_CUPTI"])

    def play(self, what: str, *values: object) -> None:
        """A record or callback, as ``fake_cupti/cupti.cc`` has it."""
        self._library[f"fake_{what}"](*map(_passed, values))

    def records(self, name: str) -> bool:
        """Whether calls of a function are recorded."""
        return bool(self._library.fake_records(name.encode()))

    def flushes(self) -> int:
        """How often CUPTI was told to flush."""
        return int(self._library.fake_flushes())

    def copies(self) -> int:
        """How often memory of the GPU was copied to the host."""
        return int(self._library.fake_copies())

    def questions(self) -> int:
        """How often the driver or CUPTI was asked about a stream."""
        return int(self._library.fake_questions())

    def begin(self) -> None:
        """A GPU with a context, its null stream 7, and the streams 13 (urgent) and 14."""
        self.play("device", "Fake H100", 132)
        self.play("context", 1, 7, 0, 0)
        self.play("stream", 1, 7, NULL, 0)
        self.play("stream", 1, 13, NON_BLOCKING, -1)
        self.play("stream", 1, 14, DEFAULT, 0)

    def launch(
        self,
        call: int,
        stream: int = 13,
        name: str = "_Z3addPfi",
        node: int = 0,
        shared: int = 1024,
    ) -> None:
        """A kernel of 4 us, 10 us after that of the call before; ``shared``: static bytes."""
        begin = 10_000 * call
        if not node:
            self.play("call", "cudaLaunchKernel", call, 77, wide(begin), wide(begin + 500))
        times = wide(begin + 2_000), wide(begin + 6_000)
        self.play("kernel", name, call, 1, stream, *times, 66, 256, 32, wide(node), shared)


def wide(value: int) -> ctypes.c_uint64:
    return ctypes.c_uint64(value)


def injected() -> Gpu:
    """What cuInit of the driver does with CUDA_INJECTION64_PATH."""
    if "CUDA_INJECTION64_PATH" in os.environ:
        assert ctypes.CDLL(os.environ["CUDA_INJECTION64_PATH"]).InitializeInjection() == 1
    return Gpu()


def _passed(value: object) -> object:
    return value.encode() if isinstance(value, str) else value
