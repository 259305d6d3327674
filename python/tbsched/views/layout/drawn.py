"""Programs that hang, with an end to be drawn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tbsched.program.arrays import Int64Array
from tbsched.traces.annotations import NEVER_NS
from tbsched.traces.trace import Trace

_LONGER = 20  # what never ends is drawn until so small a part of the time after everything else


def drawn(trace: Trace) -> Trace:
    """Returns the trace; of one that hangs, what never ends ends a while after everything else.

    What never starts has no SM, and is not drawn.
    """
    if trace.hang is None:
        return trace
    columns = [p.start_ns for p in trace] + [p.end_ns for p in trace]
    columns += [trace.transfer_ns, trace.call_ns]
    known = [
        int(column[column < NEVER_NS].max(initial=0)) for column in columns if column is not None
    ]
    last = max(known, default=0)
    until = last + max(1, last // _LONGER)
    return replace(
        trace,
        placements=tuple(
            replace(p, start_ns=_ended(p.start_ns, until), end_ns=_ended(p.end_ns, until))
            for p in trace
        ),
        transfer_ns=_ended(trace.transfer_ns, until),
        call_ns=_ended(trace.call_ns, until),
        hang=None,
        check=False,
    )


def _ended(times: Int64Array | None, until: int) -> Int64Array | None:
    return None if times is None else np.where(times == NEVER_NS, until, times)
