"""Iterations of a program, as a profile marks them, or as its work repeats."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from tbsched.advice.account.intervals import NO_INTERVALS, Intervals
from tbsched.program.activity import ANNOTATION, STEP, Activity
from tbsched.program.arrays import Int64Array, read_only

_DIGITS = re.compile(r"\d+")
_MIN_REPEATS = 3  # times that something repeats, to be a step
_ROUNDED_NS = 1000  # tolerated overlap of consecutive steps, as times are rounded
_MIN_COVERED = 0.5  # least share of time that steps cover; of work, if nothing is marked
_MIN_ALIKE = 0.8  # least share of repetitions with the same work
_MIN_WORK = 4  # least kernels, copies and memsets of a step


class Steps(NamedTuple):
    """Iterations.

    Attributes:
        times: when each ran, disjoint and sorted: on its host thread, or, if ``names`` is empty, on
            the GPU, from the start of its first work to that of the next one's.
        names: of each, as the profile marks it; empty: it does not, and they repeat the same work.
    """

    times: Intervals
    names: tuple[str, ...]

    @property
    def run_ahead(self) -> bool:
        """Whether the host was ahead of the GPU in most steps, and waited for it in a few. What the
        GPU does in the time of a step on the host is then that of other steps."""
        length = self.times.end - self.times.begin
        return bool(self.names) and 2 * float(np.median(length)) * len(length) < length.sum()


NO_STEPS = Steps(NO_INTERVALS, ())


def steps_of(activity: Activity) -> Steps:
    """Returns the steps of torch.profiler, or of annotations that repeat, or of repeated work. Of
    several such groups the one counts whose members cover the most time. They must not overlap."""
    marked = _marked(activity)
    return marked if len(marked.names) or not len(activity.work) else _repeated(activity)


def named_alike(activity: Activity, steps: Steps) -> Activity:
    """Returns the activity with one name for all steps, such as ``batch #`` for ``batch 7``. What
    the host did in each of them then counts together."""
    marked = {*steps.names}
    numbers = [k for k, name in enumerate(activity.names) if name in marked]
    rows = np.isin(activity.host["name"], numbers) & (activity.host["kind"] == ANNOTATION)
    if len(numbers) < 2 or not rows.any():
        return activity
    host = activity.host.copy()
    host["name"][rows] = len(activity.names)
    name = _common_name(list(marked))
    return replace(activity, host=read_only(host), names=(*activity.names, name))


def _common_name(names: list[str]) -> str:
    """Returns the one name of names that differ in numbers, with ``#`` for these numbers."""
    numbers = [_DIGITS.findall(name) for name in names]
    words = _DIGITS.split(names[0])
    found = words[0]
    for index, word in enumerate(words[1:]):
        values = {number[index] for number in numbers}
        found += (values.pop() if len(values) == 1 else "#") + word
    return found


def _marked(activity: Activity) -> Steps:
    """Returns the steps that the profile marks, or annotations that repeat; else none."""
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
    best, most = NO_STEPS, _MIN_COVERED * span
    for group in alike.values():
        group_rows = rows[np.isin(host["name"][rows], group)]
        steps = _steps(activity, group_rows) if len(group_rows) >= _MIN_REPEATS else None
        if steps is not None and steps.times.length > most:
            best, most = steps, steps.times.length
    return best


def _steps(activity: Activity, rows: Int64Array) -> Steps | None:
    """Returns rows of the host as steps; None: they overlap, or are of several threads. Of several
    processes, which are ranks, the first one counts."""
    host = activity.host
    process = np.array(activity.processes, np.int64)[host["thread"][rows]]
    rows = rows[process == process.min()]
    order = rows[np.argsort(host["begin_ns"][rows], kind="stable")]
    begin, end = host["begin_ns"][order].copy(), host["end_ns"][order].copy()
    if len(np.unique(host["thread"][order])) > 1 or (begin[1:] + _ROUNDED_NS < end[:-1]).any():
        return None
    end[:-1] = np.minimum(end[:-1], begin[1:])
    names = tuple(activity.names[name] for name in host["name"][order].tolist())
    return Steps(
        Intervals(begin.astype(np.int64), end.astype(np.int64), np.arange(len(order))), names
    )


def _repeated(activity: Activity) -> Steps:
    """Returns the longest repeated parts in the work of the busiest GPU, as steps.

    Each begins with the same kernel, copy or memset. What is between two of them is the same if it
    is the same work as often, in any order.
    """
    work = activity.work
    gpus, rows = np.unique(work["gpu"], return_counts=True)
    work_ = work[work["gpu"] == gpus[rows.argmax()]]
    work_ = work_[np.argsort(work_["start_ns"], kind="stable")]
    names, count = np.unique(work_["name"], return_inverse=True, return_counts=True)[1:]
    weights = np.random.default_rng(0).integers(0, 2**63, len(count), dtype=np.uint64)
    sums = np.append(np.uint64(0), weights[names].cumsum(dtype=np.uint64))  # of earlier work
    for kind in np.argsort(count, kind="stable").tolist():
        if count[kind] <= _MIN_REPEATS or len(work_) < _MIN_WORK * count[kind]:
            continue
        first = np.flatnonzero(names == kind)
        first = first[np.append(True, np.diff(first) > 1)]  # first of consecutive ones
        contents = np.diff(sums[first])
        commonest, counts = np.unique(contents, return_counts=True)
        begin = work_["start_ns"][first].astype(np.int64)
        is_long = first[-1] - first[0] > _MIN_COVERED * len(work_)
        if len(contents) >= _MIN_REPEATS and counts.max() >= _MIN_ALIKE * len(contents) and is_long:
            alike = np.flatnonzero(contents == commonest[counts.argmax()])
            return Steps(Intervals(begin[alike], begin[alike + 1], np.arange(len(alike))), ())
    return NO_STEPS
