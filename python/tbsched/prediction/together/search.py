"""Whether launches become resident together, in every order of arrival and from every state."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence as Several
from dataclasses import dataclass, replace

import numpy as np

from tbsched import _core
from tbsched.hardware.initial_state import InitialState
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.model import prepared
from tbsched.prediction.predict import check_blocks, predict
from tbsched.prediction.together.proving import solver
from tbsched.program.sequence import Event, Launch, Release, Sequence

# Times of a witness with durations, in seconds: a step, and a block that never leaves.
STEP = 1e-3
FOREVER = 1.0
# Default and largest number of predictions after which the search gives up.
PLAYS, MAX_PLAYS = 200_000, 2**31 - 1


@dataclass(frozen=True, slots=True)
class Question:
    """What the search is asked: do the launches of each group become resident together?

    Attributes:
        launches: without durations.
        groups: the indices of each group's launches.
        after: pairs; the second launch arrives only when all blocks of the first are resident.
        plays: number of predictions after which the search gives up.
        only_to_prove: whether it gives up as soon as no proof can succeed.
        seconds: time after which it gives up.
    """

    launches: tuple[Launch, ...]
    groups: tuple[tuple[int, ...], ...]
    after: tuple[tuple[int, int], ...] = ()
    plays: int = PLAYS
    only_to_prove: bool = False
    seconds: float = math.inf


@dataclass(frozen=True, slots=True)
class FullSms:
    """Why a launch never waits for room: too few of its SMs can be full at once.

    Attributes:
        launch: its index.
        most: how many of its SMs all other blocks can fill at most.
        needed: how many must be full before one of its blocks finds no room.

    Example:
        >>> pair = [tb.Launch(60, 256, 32), tb.Launch(60, 256, 32)]
        >>> row = tb.coresident(pair, "h200").full_sms[0]
        >>> row.most < row.needed
        True
    """

    launch: int
    most: float
    needed: int


@dataclass(frozen=True, slots=True)
class Step:
    """A launch arrives, or some of its blocks leave.

    Attributes:
        launch: its index.
        leaving: the blocks that leave; empty: the launch arrives.
    """

    launch: int
    leaving: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """Answer of the search.

    Attributes:
        verdict: ``safe``, ``unsafe`` or ``undecided``.
        proof: if safe, ``full_sms`` or ``played``; else ``none``.
        full_sms: the proof by full SMs, a row per launch.
        steps: if unsafe, the steps that strand a block.
        state: the initial state of these steps.
        group, stranded: the group and the launch whose block is stranded, or -1.
        cause, behind: what refuses this block, and the launch that holds it up, or -1.
        plays: how many predictions were made.
        wanted: if undecided, what may decide it: ``solver``, ``seconds``, ``plays`` or nothing.
    """

    verdict: str
    proof: str
    full_sms: tuple[FullSms, ...]
    steps: tuple[Step, ...]
    state: InitialState
    group: int
    stranded: int
    cause: str
    behind: int
    plays: int
    wanted: str = ""


def search(spec: DeviceSpec, policy: str, question: Question) -> Found:
    """Returns whether every group of launches becomes resident whole in every case, with the proof.
    Raises ValueError: a launch that could never run on the device, or too many blocks."""
    given = Sequence(question.launches)
    spec.check(given)
    check_blocks(given)
    model, _, states = prepared(spec, policy)
    asked = _core.Sequence(question.launches)
    deadline = time.monotonic() + question.seconds
    solve = solver(lambda: deadline - time.monotonic())
    (
        verdict, proof, full_sms, steps, state, group, stranded, cause, behind, plays
    ) = _core.coresident(
        model, asked, question.groups, question.after, question.plays, question.only_to_prove,
        question.seconds, solve,
    )  # fmt: skip
    wanted = ""
    if verdict == "undecided":
        wanted = _wanted(plays >= question.plays, deadline <= time.monotonic(), solve is None)
    return Found(
        verdict, proof, tuple([FullSms(*row) for row in full_sms]),
        tuple([Step(launch, tuple(leaving)) for launch, leaving in steps]),
        list(states)[state if verdict == "unsafe" else 0], group, stranded, cause, behind, plays,
        wanted,
    )  # fmt: skip


def _wanted(no_plays: bool, no_seconds: bool, no_solver: bool) -> str:
    """Returns what an undecided search lacked: ``Found.wanted``, the first of plays, seconds and a
    solver."""
    if no_seconds:
        return "seconds"
    if no_solver:
        return "solver"
    return "plays" if no_plays else ""


def witness_sequence(
    launches: Several[Launch], found: Found, spec: DeviceSpec, policy: str
) -> tuple[Sequence, tuple[float, ...] | None]:
    """Returns the steps of a witness as a sequence, and the times of issue if it is a timed one.

    If launches leave only whole, the sequence has releases and no times. Else it is timed: blocks
    that leave end at their step, :data:`STEP` apart, and the others run for :data:`FOREVER`. Blocks
    of one step that others wait for leave one after the other, as in the search.
    """
    steps = found.steps
    order = [step.launch for step in steps if not step.leaving]
    if all(len(step.leaving) in (0, launches[step.launch].blocks) for step in steps):
        events: list[Event] = []
        for step in steps:
            if step.leaving:
                events.append(Release(order.index(step.launch)))
            else:
                events.append(launches[step.launch])
        return Sequence(events), None
    durations = {launch: [FOREVER] * launches[launch].blocks for launch in order}
    arrival_step = {step.launch: k for k, step in enumerate(steps) if not step.leaving}
    issue_times = tuple([arrival_step[launch] * STEP for launch in order])

    def timed() -> Sequence:
        """Returns the launches with the durations found so far."""
        return Sequence([replace(launches[k], duration=tuple(durations[k])) for k in order])

    for k, step in enumerate(steps):
        if not step.leaving:
            continue
        now = k * STEP
        trace = predict(timed(), spec, policy, found.state, issue_times=issue_times)
        starts = [np.asarray(launch.start_ns) / 1e9 for launch in trace]
        issued = [start for start, time in zip(starts, issue_times, strict=True) if time < now]
        any_waits = any(np.any(start > now) for start in issued)
        apart = STEP / 2 / len(step.leaving) if any_waits else 0.0
        block_starts = starts[order.index(step.launch)]
        for position, block in enumerate(step.leaving):
            durations[step.launch][block] = now + position * apart - float(block_starts[block])
    return timed(), issue_times
