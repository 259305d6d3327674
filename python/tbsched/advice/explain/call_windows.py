"""The times of host threads between their calls, by the profile."""

from __future__ import annotations

import re

import numpy as np

from tbsched.advice.account.intervals import Intervals
from tbsched.program.activity import UNKNOWN, Activity
from tbsched.program.arrays import Float64Array, Int64Array
from tbsched.program.program import Program
from tbsched.traces.trace import Trace

# Calls that only ask.
ASKS = re.compile(
    r"(cuda|cu)(Get|PeekAtLastError|Occupancy|FuncGet|DeviceGet|CtxGet|StreamGet|StreamIsCapturing|"
    r"EventQuery|StreamQuery|KernelGet|PointerGet)"
)
_PRELUDE_NS = 20_000  # of Python before cudaDeviceSynchronize: 9 to 11 us on hosts of H100s


def windows_before_calls(program: Program, activity: Activity) -> tuple[Intervals, Int64Array]:
    """Returns the times before known calls since their host's last call returned, and threads.

    Also returns the thread of each, a number of ``activity.host``; ``owner`` is the place of the
    event. In the order of events.
    """
    calls = program.calls
    assert calls is not None  # an explained program has them
    known = np.flatnonzero(calls != UNKNOWN)
    rows = activity.host[calls[known]]
    begin, end = rows["begin_ns"].copy(), rows["begin_ns"]
    hosts = np.array([getattr(event, "host", 0) for event in program.sequence])[known]
    for host in np.unique(hosts).tolist():
        of_host = np.flatnonzero(hosts == host)
        returned = np.maximum.accumulate(rows["end_ns"][of_host])
        begin[of_host[1:]] = np.minimum(returned[:-1], end[of_host[1:]])
    return Intervals(begin, end, known), rows["thread"].astype(np.int64)


def window_seconds(program: Program, activity: Activity) -> Float64Array:
    """Returns the seconds between the last call of a host and each call, float64 (events,); NaN:
    unknown."""
    windows, _ = windows_before_calls(program, activity)
    seconds = np.full(len(program.sequence), np.nan)
    seconds[windows.owner] = (windows.end - windows.begin) / 1e9
    return seconds


def longer_seconds(program: Program, prediction: Trace, activity: Activity) -> Float64Array:
    """Returns by how many seconds each call took longer than predicted, float64 (events,); below 0:
    it took less, NaN: unknown."""
    calls, host = program.calls, activity.host
    assert calls is not None  # an explained program has them
    assert prediction.call_ns is not None  # of a prediction with the host's gaps
    took_ns = np.full(len(calls), np.nan)
    known = calls != UNKNOWN
    took_ns[known] = host["end_ns"][calls[known]] - host["begin_ns"][calls[known]]
    longer: Float64Array = (took_ns - (prediction.call_ns[:, 1] - prediction.call_ns[:, 0])) / 1e9
    return longer


def preludes(activity: Activity, rows: Int64Array) -> Int64Array:
    """Returns since when, in ns, a thread has led to each row of ``activity.host``, int64 (rows,).

    That is since something else of its thread last began or ended, but for calls that only ask, and
    at most for as long as Python takes before a call.
    """
    host = activity.host
    asks = np.array([ASKS.match(name) is not None for name in activity.names], np.bool_)
    tells = ~asks[host["name"]]
    begin_ns = host["begin_ns"][rows].astype(np.int64)
    since_ns = begin_ns - _PRELUDE_NS
    for thread in np.unique(host["thread"][rows]).tolist():
        own = host[tells & (host["thread"] == thread)]
        times_ns = np.sort(np.concatenate([own["begin_ns"], own["end_ns"]]))
        is_own = host["thread"][rows] == thread
        last = np.searchsorted(times_ns, begin_ns[is_own]) - 1
        known = last >= 0
        since_ns[is_own] = np.where(
            known, np.maximum(since_ns[is_own], times_ns[np.maximum(last, 0)]), since_ns[is_own]
        )
    return since_ns
