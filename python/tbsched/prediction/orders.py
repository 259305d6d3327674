"""Programs in other orders of their events."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterable

import numpy as np

from tbsched import _core
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import Run
from tbsched.program.sequence import Sequence

FOREVER_NS = 2**63 - 1


class OrdersOfEvents:
    """The events of a program in other orders, of which only the makespan is wanted.

    Args:
        seq: a timed sequence.
        device, policy, launch_interval, host: as for :func:`predict`. The time before a call moves
            with it.

    Raises:
        TypeError, ValueError: as :func:`predict`.
    """

    def __init__(
        self,
        seq: Sequence,
        device: str | os.PathLike[str] | DeviceSpec,
        policy: str | None,
        launch_interval: float = 0.0,
        host: Iterable[float] | None = None,
    ) -> None:
        self._run = Run(device, policy, None, launch_interval, False)
        self._events = self._run.events(seq)
        self._gap_ns = self._run.calls(seq, None, host).gap_ns

    def shortest(
        self, orders: Iterable[tuple[int, ...]], limit_ns: int = FOREVER_NS
    ) -> tuple[tuple[int, ...], int] | None:
        """Returns the first order of the shortest makespan, and that in nanoseconds.

        Each order is the numbers of all events. None: no makespan is less than ``limit_ns``.
        """
        best = None
        waiting = iter(orders)
        at_once = 16
        while some := list(itertools.islice(waiting, at_once)):
            began = time.monotonic()
            found = _core.shortest_order(
                self._run.model, self._events, np.array(some, np.int32), self._run.state,
                self._gap_ns, self._run.interval_ns, limit_ns, min(os.cpu_count() or 1, len(some)),
            )  # fmt: skip
            if found is not None:
                number, limit_ns = found
                best = some[number], limit_ns
            # An interrupt need not wait long, and threads need not wait often for each other.
            at_once *= 2 if time.monotonic() - began < 0.1 else 1
        return best


def makespan_ns(
    seq: Sequence,
    device: str | os.PathLike[str] | DeviceSpec,
    policy: str | None = None,
    *,
    launch_interval: float = 0.0,
    host: Iterable[float] | None = None,
    limit_ns: int = FOREVER_NS,
) -> int | None:
    """Nanoseconds from the start of the first block to the end of the last.

    Nothing is kept of single blocks, and other threads run meanwhile. None: it is not less than
    ``limit_ns``.

    Raises:
        TypeError, ValueError: as :func:`predict`.
    """
    orders = OrdersOfEvents(seq, device, policy, launch_interval, host)
    found = orders.shortest([tuple(range(len(seq)))], limit_ns)
    return None if found is None else found[1]
