"""Oracles that other processes can be given, and that end them."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from tbsched.errors import CudaError
from tbsched.prediction.predict import predict
from tbsched.program.sequence import Sequence
from tbsched.traces.trace import Trace

RIGHT = "rtx3090"


@dataclass
class Dying:
    """The right model; its process is killed in the middle of what it observes.

    Attributes:
        once: a file: whoever makes it is the one that dies. None: every process dies.
        after: observations before that.
        error: fails with an error of the GPU instead.
        at: dies where it observes this sequence, not by number.
    """

    once: Path | None
    after: int = 100
    error: bool = False
    at: Sequence | None = None
    seen: int = 0

    def observe(self, seq: Sequence, /) -> Trace:
        self.seen += 1
        due = self.seen == self.after if self.at is None else seq[: len(self.at)] == self.at
        if due and self._first():
            if self.error:
                raise CudaError("cuLaunchKernel", "CUDA_ERROR_ILLEGAL_ADDRESS")
            os.kill(os.getpid(), signal.SIGKILL)
        return predict(seq, RIGHT)

    def _first(self) -> bool:
        if self.once is None:
            return True
        try:
            self.once.touch(exist_ok=False)
        except FileExistsError:
            return False
        return True


@dataclass
class Slow:
    """The right model, which takes its time; it makes a file once it has observed some."""

    seconds: float = 0.01
    file: str | None = None
    seen: int = 0

    def observe(self, seq: Sequence, /) -> Trace:
        self.seen += 1
        if self.file is not None and self.seen == 20:
            Path(self.file).touch()
        time.sleep(self.seconds)
        return predict(seq, RIGHT)
