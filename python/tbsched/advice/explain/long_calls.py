"""Calls that kept a host thread long, so that all it launched later came late."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tbsched.program.arrays import BoolArray, Int64Array
from tbsched.program.program import Program

_LONG = 5  # times the usual


@dataclass(frozen=True, slots=True)
class LongCalls:
    """Calls of launches that took long, (calls,) each.

    Attributes:
        launch: the first launch of the call, int64.
        loads: whether it loads its kernel, as the program says, bool.
        may_load: whether it seems to: it is the first launch of a kernel, bool.
    """

    launch: Int64Array
    loads: BoolArray
    may_load: BoolArray

    @classmethod
    def of(cls, program: Program, call_ns: Int64Array) -> LongCalls:
        """Finds the long calls of a program, given the duration of each launch's call."""
        usual = float(np.median(call_ns)) if len(call_ns) else 0.0
        rows: list[tuple[int, bool, bool]] = []
        names: set[str] = set()
        number = 0
        for event in program.sequence:
            launches = event.launches
            loads = any(launch.first_use for launch in launches)
            if loads or (launches and 0 < usual * _LONG < call_ns[number]):
                may_load = any(launch.name not in names for launch in launches)
                rows.append((number, loads, may_load))
            names.update(launch.name for launch in launches if launch.name is not None)
            number += len(launches)
        launch, loaded, may = np.array(rows, np.int64).reshape(-1, 3).T
        return cls(launch, loaded.astype(np.bool_), may.astype(np.bool_))
