"""Iterations of a program, as a profile marks them."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from tbsched.advice.account.intervals import NO_INTERVALS, Intervals
from tbsched.program.activity import ANNOTATION, STEP, Activity
from tbsched.program.arrays import Int64Array

_DIGITS = re.compile(r"\d+")
_LEAST = 3  # times that something repeats, to be a step
_ROUNDED_NS = 1000  # by which steps that follow each other may overlap, as times are rounded
_COVERED = 0.5  # of the time from first to last work


class Steps(NamedTuple):
    """Iterations.

    Attributes:
        times: when each ran on its host thread, disjoint and sorted.
        names: of each.
    """

    times: Intervals
    names: tuple[str, ...]


NO_STEPS = Steps(NO_INTERVALS, ())


def steps_of(activity: Activity) -> Steps:
    """The steps of torch.profiler; else annotations that differ in a number, or repeat.

    Of several such groups the one counts whose members cover the most time. They must not overlap.
    """
    host = activity.host
    marked = np.flatnonzero(host["kind"] == STEP)
    if len(marked):
        return _steps(activity, marked) or NO_STEPS
    rows = np.flatnonzero(host["kind"] == ANNOTATION)
    if not len(rows) or not len(activity.work):
        return NO_STEPS
    alike: dict[str, list[int]] = {}
    names = np.unique(host["name"][rows]).tolist()
    for name in names:
        alike.setdefault(_DIGITS.sub("#", activity.names[name]), []).append(name)
    span = int(activity.work["end_ns"].max()) - int(activity.work["start_ns"].min())
    best, most = NO_STEPS, _COVERED * span
    for group in alike.values():
        own = rows[np.isin(host["name"][rows], group)]
        found = _steps(activity, own) if len(own) >= _LEAST else None
        if found is not None and found.times.length > most:
            best, most = found, found.times.length
    return best


def _steps(activity: Activity, rows: Int64Array) -> Steps | None:
    """Rows of the host as steps; None: they overlap, or are of several threads."""
    host = activity.host
    own = rows[np.argsort(host["begin_ns"][rows], kind="stable")]
    begin, end = host["begin_ns"][own].copy(), host["end_ns"][own].copy()
    if len(np.unique(host["thread"][own])) > 1 or (begin[1:] + _ROUNDED_NS < end[:-1]).any():
        return None
    end[:-1] = np.minimum(end[:-1], begin[1:])
    names = tuple(activity.names[name] for name in host["name"][own].tolist())
    return Steps(
        Intervals(begin.astype(np.int64), end.astype(np.int64), np.arange(len(own))), names
    )
