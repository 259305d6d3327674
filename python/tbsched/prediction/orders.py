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
    """Finds the makespan of a program's events in other orders, without keeping single blocks.

    Args:
        seq: a timed sequence.
        device, policy, launch_interval, host: as for :func:`predict`. The time before a call moves
            with it.

    Raises:
        TypeError, ValueError: as :func:`predict`.
    """

    def __init__(
        self, seq: Sequence, device: str | os.PathLike[str] | DeviceSpec, policy: str | None,
        launch_interval: float = 0.0, host: Iterable[float] | None = None,
    ) -> None:  # fmt: skip
        self._run = Run(device, policy, None, launch_interval, False)
        self._events = self._run.events(seq)
        self._gap_ns = self._run.calls(seq, None, host).gap_ns

    def shortest(
        self, orders: Iterable[tuple[int, ...]], limit_ns: int = FOREVER_NS
    ) -> tuple[tuple[int, ...], int] | None:
        """Returns the first order with the shortest makespan, and that makespan in ns. An order is
        a permutation of the events' numbers. None: no makespan is below ``limit_ns``."""
        best = None
        untried = iter(orders)
        batch_size = 16
        while batch := list(itertools.islice(untried, batch_size)):
            began = time.monotonic()
            shorter = _core.shortest_order(
                self._run.model, self._events, np.array(batch, np.int32), self._run.state,
                self._gap_ns, self._run.interval_ns, limit_ns, min(os.cpu_count() or 1, len(batch)),
            )  # fmt: skip
            if shorter is not None:
                index, limit_ns = shorter
                best = batch[index], limit_ns
            # Batches of 0.1 s and more: an interrupt waits for one, and threads rarely idle.
            batch_size *= 2 if time.monotonic() - began < 0.1 else 1
        return best


def makespan_ns(
    seq: Sequence, device: str | os.PathLike[str] | DeviceSpec, policy: str | None = None, *,
    launch_interval: float = 0.0, host: Iterable[float] | None = None, limit_ns: int = FOREVER_NS,
) -> int | None:  # fmt: skip
    """Returns the nanoseconds from the start of the first block to the end of the last.

    It keeps nothing of single blocks, and lets other Python threads run. None: the makespan is at
    least ``limit_ns``.

    Raises:
        TypeError, ValueError: as :func:`predict`.
    """
    orders = OrdersOfEvents(seq, device, policy, launch_interval, host)
    shortest = orders.shortest([tuple(range(len(seq)))], limit_ns)
    return None if shortest is None else shortest[1]
