"""What traces come from."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from tbsched.program.sequence import Sequence
from tbsched.traces.trace import Trace


@runtime_checkable
class Oracle(Protocol):
    """Anything that can say where the blocks of a sequence go.

    A class of your own needs no base class: a method ``observe`` is enough.

    Example:
        >>> from tbsched.campaigns import ModelGpu, Oracle
        >>> isinstance(ModelGpu("h200"), Oracle)
        True
    """

    def observe(self, seq: Sequence, /) -> Trace:
        """Returns the observation.

        Raises:
            UnstableMeasurement, DeadlineExceeded: a campaign counts it, and goes on.

        Example:
            >>> class Always:
            ...     def observe(self, seq):
            ...         return tb.predict(seq, "xavier", "round_robin")
            >>> Always().observe(tb.Sequence([tb.Launch(2, 64, 32)]))[0].smid.tolist()
            [0, 2]
        """
