"""Witnesses and fixes on the GPU, with real barriers and a time limit."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from tbsched.advice.together.above import ABOVE, endless, issue_times
from tbsched.advice.together.coresident import Coresidency
from tbsched.advice.together.fixes.fix import Fix
from tbsched.advice.together.given import held, keeps_order, name_of
from tbsched.campaigns.steer import steer
from tbsched.hardware.initial_state import InitialState
from tbsched.hardware.spec import DeviceSpec
from tbsched.launcher.meet import Meeting, meet
from tbsched.launcher.observe import Gpu
from tbsched.prediction.together.search import STEP
from tbsched.program.sequence import Sequence
from tbsched.traces.placement import Placement
from tbsched.traces.trace import Trace
from tbsched.views.tables import render, table_of

_ALL_ORDERS = 4  # launches; of more, one order is run
_LATE = STEP / 4  # a block of a witness leaves half a step before the next launch comes, or earlier
_TRIES = 5
_MORE = "it does more than launch, and barriers are run of launches alone"
_SEEN = {None: "not run", True: "as predicted", False: "NOT as predicted"}


@dataclass(frozen=True, slots=True)
class Ran:
    """The witness, or a fix in several orders of arrival.

    Attributes:
        what: in words.
        hangs: whether it should hang.
        runs: how many orders were run.
        hung: how many of them hung.
        why: what kept it from running, else empty.
    """

    what: str
    hangs: bool
    runs: int = 0
    hung: int = 0
    why: str = ""

    @property
    def agrees(self) -> bool | None:
        """Whether all was as predicted; None if nothing ran."""
        return None if not self.runs else self.hung == (self.runs if self.hangs else 0)


def check_on_gpu(coresidency: Coresidency, spec: DeviceSpec) -> list[Ran]:
    """Runs the witness, and each fix in every order of up to four launches.

    Raises:
        NoGpuError, CudaError, UnstableMeasurement: as :func:`tbsched.meet`.
    """
    with Gpu(0) as gpu:
        return [
            _witness(coresidency, spec, gpu),
            *(_fix(coresidency, fix, gpu) for fix in coresidency.fixes),
        ]


def _witness(coresidency: Coresidency, spec: DeviceSpec, gpu: Gpu) -> Ran:
    """Runs the witness on the GPU; returns how often it hung, or why it was not run."""
    if coresidency.witness is None or coresidency.stranded is None:
        return Ran("nothing strands a block", False, why="there is no witness to run")
    words = f"strands {name_of(coresidency.launches, coresidency.stranded, coresidency.others)}"
    if coresidency.host is not None:
        return Ran(words, True, why=_MORE)
    queues = gpu.info.details.get("max_connections", spec.hardware_queues)
    if coresidency.cause == "hardware_queue" and queues != spec.hardware_queues:
        return Ran(words, True, why=f"CUDA_DEVICE_MAX_CONNECTIONS is {queues} here")
    groups = numbered(coresidency.groups, coresidency.order)
    try:
        meeting = meet_on_time(
            gpu, spec, coresidency.witness, groups, coresidency.state, coresidency.issue_times
        )
    except ValueError as error:  # nobody can run it, such as a kernel that is loaded late
        return Ran(words, True, why=str(error))
    return Ran(words, True, 1, 0 if meeting else 1)


def meet_on_time(
    gpu: Gpu,
    spec: DeviceSpec,
    witness: Sequence,
    groups: list[list[int]],
    state: InitialState | None,
    issue_times: tuple[float, ...] | None,
) -> Meeting:
    """Runs a witness from its latent state; a few times more while the host is late with a launch.

    Raises:
        ValueError: nobody can run it, such as a kernel that is loaded late.
    """
    for _ in range(_TRIES):
        steer(gpu, spec, to=state)
        meeting = meet(witness, groups, gpu=gpu, issue_times=issue_times)
        if issue_times is None or not was_late(meeting.trace, issue_times):
            break
    return meeting


def was_late(trace: Trace, issue_times: tuple[float, ...]) -> bool:
    """Returns whether launches came so early or late that other blocks may have been there.

    The first one starts at once. So one that starts too soon after it says that the first was late.
    """
    issued = trace.issue_times
    if issued is None:
        return False
    first = _start(trace[0])
    for planned, call, launch in zip(issue_times, issued, trace, strict=True):
        wanted, start = planned - issue_times[0], _start(launch)
        if abs(call - issued[0] - wanted) > _LATE:
            return True
        if first is not None and start is not None and start - first < wanted - _LATE:
            return True
    return False


def _start(launch: Placement) -> float | None:
    """Returns the start of the first block that was placed, in seconds."""
    is_placed = launch.smid >= 0
    if launch.start_ns is None or not is_placed.any():
        return None
    return float(launch.start_ns[is_placed].min()) / 1e9


def _fix(coresidency: Coresidency, fix: Fix, gpu: Gpu) -> Ran:
    """Runs a fix on the GPU in all its orders; returns how often it hung."""
    words = f"{fix.kind}: {fix.text}"
    if fix.sequence is not None:
        return Ran(words, False, why=_MORE)
    if fix.device is not None:
        return Ran(words, False, why="a process sets it up before its first launch")
    launches, pairs = held(fix.launches)
    orders = list(orders_of(len(launches), (*fix.after, *pairs)))
    above = coresidency.cause in ABOVE
    if above:
        launches = tuple(endless(launch) for launch in fix.launches)
    hung = 0
    for order in orders:
        sequence = Sequence([launches[k] for k in order])
        times = issue_times(len(order)) if above else None
        try:
            meeting = meet(sequence, numbered(fix.groups, order), gpu=gpu, issue_times=times)
        except ValueError as error:
            return Ran(words, False, why=str(error))
        hung += not meeting
    return Ran(words, False, len(orders), hung)


def orders_of(launches: int, after: Iterable[tuple[int, int]]) -> Iterator[tuple[int, ...]]:
    """Yields the orders of arrival that the pairs allow; of many launches, one."""
    pairs = list(after)
    allowed = (
        order for order in itertools.permutations(range(launches)) if keeps_order(order, pairs)
    )
    return allowed if launches <= _ALL_ORDERS else itertools.islice(allowed, 1)


def numbered(groups: Iterable[Iterable[int]], order: tuple[int, ...]) -> list[list[int]]:
    """The groups, by the places of their launches in an order; those that came."""
    placed = [[order.index(k) for k in group if k in order] for group in groups]
    return [group for group in placed if group]


def ran_words(runs: list[Ran]) -> str:
    """Returns a table with a row per program that ran."""
    rows = [
        (run.what, f"{run.hung} of {run.runs}", _SEEN[run.agrees] + (run.why and f": {run.why}"))
        for run in runs
    ]
    return render(table_of(("on the GPU", "hung", "verdict"), rows, left=(0, 2)))


def ran_data(runs: list[Ran]) -> list[dict[str, Any]]:
    """An object per thing that ran."""
    return [{**asdict(run), "agrees": run.agrees} for run in runs]
