"""Calls that kept a host thread long, so that all it launched later came late."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tbsched.hardware.spec import DeviceSpec
from tbsched.program.arrays import Float64Array, Int64Array
from tbsched.program.program import Program

_LONG = 5  # times the usual


@dataclass(frozen=True, slots=True)
class LongCalls:
    """Calls of launches that took long, (calls,) each.

    Attributes:
        launch: the first launch of the call, int64.
        host: its host thread, int64.
        begin_ns, end_ns: when the thread was kept, float64, on the clock of the profile. Of a
            launch that loads its kernel that begins where the last call returned: other calls than
            the launch load kernels, too, and a profile does not have those.
        loads: whether it loads its kernel, as the program says, bool.
        may_load: whether it seems to: it is the first launch of a kernel, bool.
    """

    launch: Int64Array
    host: Int64Array
    begin_ns: Float64Array
    end_ns: Float64Array
    loads: np.typing.NDArray[np.bool_]
    may_load: np.typing.NDArray[np.bool_]

    @classmethod
    def of(
        cls, program: Program, spec: DeviceSpec, issued_ns: Float64Array, call_ns: Int64Array
    ) -> LongCalls:
        """Of a program, when its launches were issued, and how long their calls took."""
        usual = float(np.median(call_ns)) if len(call_ns) else 0.0
        rows: list[tuple[float, ...]] = []
        names: set[str] = set()
        last: dict[int, float] = {}  # of each host thread, when its launch before was issued
        number = 0
        for event, gap in zip(program.sequence, program.host, strict=True):
            launches = event.launches
            loads = any(launch.first_use for launch in launches)
            is_long = bool(launches) and 0 < usual * _LONG < call_ns[number]
            host = getattr(event, "host", 0)
            if loads or is_long:
                since = gap * 1e9 + spec.first_use_ns + spec.load_ns if loads else call_ns[number]
                end = float(issued_ns[number])
                begin = max(end - since, last.get(host, -np.inf))
                may_load = any(launch.name not in names for launch in launches)
                rows.append((number, host, begin, end, loads, may_load))
            if launches:
                last[host] = float(issued_ns[number])
            names.update(launch.name for launch in launches if launch.name is not None)
            number += len(launches)
        launch, thread, since_ns, until_ns, loaded, may = (
            np.array(rows, np.float64).reshape(-1, 6).T
        )
        return cls(
            launch.astype(np.int64), thread.astype(np.int64), since_ns, until_ns,
            loaded.astype(np.bool_), may.astype(np.bool_),
        )  # fmt: skip
