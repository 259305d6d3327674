"""What traces come from."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from tbsched.program.sequence import Sequence
from tbsched.traces.trace import Trace


@runtime_checkable
class Oracle(Protocol):
    """Anything that can say where the blocks of a sequence go."""

    def observe(self, seq: Sequence, /) -> Trace:
        """The observation.

        Raises:
            UnstableMeasurement, DeadlineExceeded: a campaign counts it, and goes on.
        """
