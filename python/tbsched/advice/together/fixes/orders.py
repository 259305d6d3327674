"""Launches that wait until others are resident."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

from tbsched.advice.together.fixes.fix import Fix, Unsafe
from tbsched.advice.together.given import Pairs, called, is_order, listed
from tbsched.advice.together.problem import decided


def order(unsafe: Unsafe) -> Iterator[Fix]:
    """One launch after another one; then as many as the witnesses ask for.

    What others wait for is of a group: a launch that may never come holds nobody up.
    """
    problem = unsafe.problem
    members, numbers = problem.members, range(len(problem.launches))
    for first, second in itertools.product(members, numbers):
        if first != second and (first, second) not in problem.after:
            yield from _fix(unsafe, [(first, second)])
    found: list[tuple[int, int]] = []
    stranding = unsafe.stranding
    while True:
        before = stranding.order[: stranding.order.index(stranding.stranded)]
        new = [(stranding.stranded, k) for k in before]
        new = [pair for pair in new if pair not in (*problem.after, *found)]
        found += new
        if not new or not is_order([*problem.after, *found], len(problem.launches)):
            return
        yield from _fix(unsafe, found)
        tried = decided(replace(problem, after=(*problem.after, *found)))
        if tried.stranding is None:
            return
        stranding = tried.stranding


def _fix(unsafe: Unsafe, pairs: list[tuple[int, int]]) -> Iterator[Fix]:
    problem = unsafe.problem
    after: Pairs = (*problem.after, *pairs)
    if not is_order(after, len(problem.launches)):
        return
    words = []
    for first, rows in itertools.groupby(sorted(pairs), key=lambda pair: pair[0]):
        later = listed(called(problem.launches, second) for _, second in rows)
        words.append(f"{later} when all blocks of {called(problem.launches, first)} have started")
    text = f"launch {'; '.join(words)}"
    yield Fix("order", text, problem.launches, after, problem.groups)
