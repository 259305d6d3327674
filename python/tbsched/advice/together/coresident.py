"""Whether launches are resident together in every order of arrival, and if not, what to change."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import overload

from tbsched.advice.together.beside.arrival import default_group
from tbsched.advice.together.beside.operations import check_events
from tbsched.advice.together.deciding import decide
from tbsched.advice.together.fixes.fix import Fix, Unproved
from tbsched.advice.together.fixes.table import fixes_of
from tbsched.advice.together.given import (
    Groups,
    Pairs,
    checked_after,
    checked_groups,
    has_other_work,
    launches_of,
)
from tbsched.advice.together.limits import Limit
from tbsched.advice.together.problem import (
    Decision,
    Problem,
    Stranding,
    deadline_in,
    stranded_blocks,
)
from tbsched.advice.together.ranks.coresident import Devices, RankCoresidency, coresident_ranks
from tbsched.counting import counted
from tbsched.hardware.assumed import QUEUE, SEVERAL, needs_of, rules_of
from tbsched.hardware.catalogue import device as find_device
from tbsched.hardware.initial_state import InitialState
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.model import policy_of, prepared
from tbsched.prediction.program_device import with_connections
from tbsched.prediction.together.search import MAX_PLAYS, PLAYS, FullSms
from tbsched.program.checks import flag, integer
from tbsched.program.events.graph import Node
from tbsched.program.sequence import Event, Launch, Sequence, check_streams
from tbsched.progress import pulse
from tbsched.shown import Shown
from tbsched.traces.placement import DeviceInfo

# What may decide what nobody knows.
_HELP = {
    "solver": "pip install ortools adds a solver that decides most of these",
    "seconds": "more seconds may decide it",
    "plays": "more plays may decide it",
    "": "neither more seconds nor more plays would decide it: treat it as unsafe",
}


@dataclass(frozen=True, slots=True, repr=False)
class Coresidency(Shown):
    """Whether launches are resident together; prints the reason, or what strands a block.

    Attributes:
        device: the device.
        launches: what was asked about, as given.
        groups: of each group the numbers of its launches, and of its other operations.
        after: pairs of which the second launch waits until the first is resident whole.
        safe: True, False, or None if the search ended without a proof or a witness.
        argument: why, in words and numbers.
        proof: of a safe answer: ``full_sms``, because too few SMs can be full, or ``played``,
            because every order was played; else ``none``.
        full_sms: of the first proof, a row per launch.
        witness: the fewest events that strand a block; ``tb.predict(witness, device,
            initial_state=state, issue_times=issue_times)`` shows it. It has durations where blocks
            of a launch leave singly, or where launches hang above the thread block scheduler. A
            second then stands for ever.
        issue_times: when the launches of a witness with durations are called, else None.
        order: of each launch of the witness, its number in ``launches``.
        state: the latent state of the GPU before the witness.
        stranded: the number of the launch that is not resident whole, or of the other operation
            that never happens.
        waiting: how many of its blocks never start.
        cause: what they wait for, a word as in ``Placement.limiter``; in a program that does more
            than launch also ``host``, a call that never returns, and ``copy_engine``.
        behind: the launch that holds them up, where it is one.
        limits: of each class of SMs, what refuses one block more of that launch.
        fixes: of each kind of change the least that is proved to make the launches safe, a
            :class:`Fix` each; also where it is not known whether they are.
        plays: how many predictions the search took.
        others: if the program does more than launch, its other operations: copies, memsets, host
            functions, values, calls, events. Their numbers follow those of the launches.
        host: of a witness that has them, for each event the seconds since its host's last call
            returned: ``tb.predict(witness, device, host=host)`` shows it. A second stands for ever.

    Example:
        >>> kernels = [tb.Launch(132, 1024, 32, name="a"), tb.Launch(140, 1024, 32, name="b")]
        >>> found = tb.coresident(kernels, "h200")
        >>> found.safe, found.cause, found.waiting
        (False, 'warps', 8)
        >>> found.witness.launches == tuple(kernels)
        True
    """

    device: DeviceInfo
    launches: tuple[Launch, ...]
    groups: Groups
    after: Pairs
    safe: bool | None
    argument: str
    proof: str
    full_sms: tuple[FullSms, ...]
    witness: Sequence | None = None
    issue_times: tuple[float, ...] | None = None
    order: tuple[int, ...] = ()
    state: InitialState | None = None
    stranded: int | None = None
    waiting: int = 0
    cause: str | None = None
    behind: int | None = None
    limits: tuple[Limit, ...] = ()
    fixes: tuple[Fix, ...] = ()
    plays: int = 0
    others: tuple[Event | Node, ...] = ()
    host: tuple[float, ...] | None = None

    @property
    def assumed_rules(self) -> tuple[str, ...]:
        """Returns which rules the answer rests on that are assumed for the GPU, in words.

        Example:
            >>> tb.coresident([tb.Launch(1, 384, 168), tb.Launch(1, 64, 32)], "h200").assumed_rules
            ()
        """
        needs = needs_of(self.launches)
        # Hangs above the thread block scheduler count, too.
        needs |= {QUEUE} if SEVERAL in needs else set()
        return rules_of(self.device.assumed or (), needs)


@overload
def coresident(
    launches: Iterable[Launch] | Sequence,
    device: str | os.PathLike[str] | DeviceSpec,
    *,
    groups: Iterable[Iterable[int]] | None = None,
    after: Iterable[tuple[int, int]] = (),
    fixes: bool = True,
    policy: str | None = None,
    connections: int | None = None,
    plays: int = PLAYS,
    seconds: float | None = None,
) -> Coresidency: ...
@overload
def coresident(
    launches: Sequence,
    device: Devices,
    *,
    after: Iterable[tuple[int, int]] = (),
    fixes: bool = True,
    policy: str | None = None,
    connections: int | None = None,
    plays: int = PLAYS,
    seconds: float | None = None,
) -> RankCoresidency: ...
def coresident(
    launches: Iterable[Launch] | Sequence,
    device: str | os.PathLike[str] | DeviceSpec | Devices,
    *,
    groups: Iterable[Iterable[int]] | None = None,
    after: Iterable[tuple[int, int]] = (),
    fixes: bool = True,
    policy: str | None = None,
    connections: int | None = None,
    plays: int = PLAYS,
    seconds: float | None = None,
) -> Coresidency | RankCoresidency:
    """Returns whether kernels that wait for each other can hang because a block finds no room.

    The launches of a group wait for each other, at a barrier within a grid or across grids. They
    leave only when all their blocks are resident. *Safe* means that this happens in every order of
    arrival, from every latent state of the GPU, and whichever blocks of the other launches are
    resident or gone. Blocks of a launch in no group may stay for ever.

    The search either proves that, or finds the fewest events that strand a block. For up to six
    launches it ends with one or the other, unless single blocks of the others decide; for more it
    may end with neither. It never says safe without a proof. Where single blocks decide, the extra
    OR-tools (``pip install ortools``) adds a solver that finds most proofs.

    Hangs above the thread block scheduler count, too: kernels that are loaded at their first use,
    the legacy stream, streams that share a hardware queue, more grids than the GPU takes.

    A :class:`Sequence` may do more than launch. Copies, memsets, host functions, values and calls
    have the numbers behind those of the launches, in the order of the sequence, and can be in a
    group: its kernels stay until the copy is over. Launches still arrive in any order. All else
    keeps its place in its stream, a call that waits in its host thread, and a CUDA event's records
    and waits among each other. Launches that must come after some of it are ordered by that.

    With a list of devices, the question is about a program of several GPUs: can it hang, however
    late each host thread (a rank) is? Its groups are the names of ``Launch.meets``, and what comes
    before what is as in the sequence: on each GPU by streams, CUDA events and synchronisations. See
    :doc:`/how-to/several-gpus`.

    Args:
        launches: the kernels, at least one; or a :class:`Sequence` of at most 500 events if it has
            others that count. A duration does not matter; a first use needs one. With a list of
            devices, the program, a timed sequence.
        device, policy: as for :func:`tbsched.predict`; a list has one device for each GPU.
        groups: of each group the numbers of its launches, from 0, and of other operations, behind
            them. None is one group of all launches, and of all copies, memsets, host functions and
            values that do not wait for one of these in any case.
        after: pairs (a, b): the program launches b only when all blocks of a have started, or if a
            is no launch, when it is over.
        fixes: whether to look for changes that make the launches safe, unless they are.
        connections: the environment variable ``CUDA_DEVICE_MAX_CONNECTIONS``; None is the
            device's own number of hardware queues.
        plays: after so many predictions the search gives up; for a fix of more than six
            launches, after a thirtieth of them.
        seconds: after so many it gives up, fixes included; None is never.

    Returns:
        A :class:`Coresidency`; with a list of devices a :class:`RankCoresidency`.

    Raises:
        TypeError, ValueError: no launches, a launch that the device refuses, groups or pairs of
            launches that are not there; ``groups`` with a list of devices; beside other work, a
            wait for a ``completion_event``; names the field, the value and the limit.

    Example:
        >>> workers = tb.Launch(128, 256, 168, 100 * 1024, name="workers")
        >>> schedulers = tb.Launch(16, 128, 32, name="schedulers")
        >>> found = tb.coresident([workers, schedulers], "h200")
        >>> found.safe, found.waiting
        (False, 12)
        >>> found.fixes[1].text
        'a carveout of 44 % for schedulers'
    """
    most = integer("coresident", "plays", plays, 0, MAX_PLAYS)
    wants_fixes = flag("coresident", "fixes", fixes)
    if isinstance(device, list | tuple):
        if groups is not None:
            raise ValueError(
                "coresident.groups: with a list of devices, Launch.meets says which launches meet"
            )
        return coresident_ranks(
            launches, device, after=after, fixes=wants_fixes, policy=policy,
            connections=connections, plays=most, seconds=seconds,
        )  # fmt: skip
    spec = with_connections("coresident", find_device(device), connections)
    policy = policy_of(spec, policy)
    problem = _problem(
        launches, spec, policy, groups, after, most, deadline_in("coresident", seconds)
    )
    given = problem.launches
    info = prepared(spec, policy)[1]
    with pulse("looking for a proof or a witness"):
        found = decide(problem)
    asked = (info, given, problem.groups, problem.after, found.safe)
    others = problem.others
    stranding = found.stranding
    changes = fixes_of(Unproved(problem, stranding)) if wants_fixes and not found.safe else ()
    if stranding is None:
        return Coresidency(
            *asked, _argument(problem, found, 0), found.proof, found.full_sms, fixes=changes,
            plays=found.plays, others=others,
        )  # fmt: skip
    waiting, limits = stranded_blocks(spec, policy, stranding)
    return Coresidency(
        *asked, _argument(problem, found, waiting), found.proof, (), stranding.sequence,
        stranding.issue_times, stranding.order, stranding.state, stranding.stranded, waiting,
        stranding.cause, stranding.behind, limits, changes, found.plays, others, stranding.host,
    )  # fmt: skip


def _problem(
    launches: Iterable[Launch] | Sequence, spec: DeviceSpec, policy: str,
    groups: Iterable[Iterable[int]] | None, after: Iterable[tuple[int, int]], plays: int,
    deadline: float,
) -> Problem:  # fmt: skip
    """Returns the problem, from checked arguments."""
    launches_ = launches_of("coresident", "launches", launches)
    if not launches_:
        raise ValueError("coresident.launches: a launch is needed, got none")
    around = launches if isinstance(launches, Sequence) else None
    unchecked = Problem(spec, policy, launches_, (), (), plays, deadline, around)
    count = unchecked.count
    pairs = checked_after(after, count)
    if groups is None:
        is_bare = around is None or not has_other_work(around)
        groups = [
            range(len(launches_)) if is_bare or around is None else default_group(around, spec)
        ]
    chosen = checked_groups(groups, count)
    greatest_number = max(k for part in (*chosen, *pairs) for k in part)
    if around is None or (greatest_number < len(launches_) and not has_other_work(around)):
        check_streams((f"coresident.launches[{k}]", one) for k, one in enumerate(launches_))
        return replace(unchecked, groups=chosen, after=pairs, around=None)
    check_events("coresident.launches", around)
    problem = replace(unchecked, groups=chosen, after=pairs)
    problem.operations()  # refuses pairs that contradict the order of the program
    return problem


def _argument(problem: Problem, decision: Decision, waiting: int) -> str:
    """Returns the sentence that gives the verdict and its reason, with numbers."""
    if decision.stranding is not None:
        return _stranded(problem, decision.stranding, waiting)
    if decision.safe is None and decision.why:
        return decision.why
    if decision.safe is None:
        words = f"neither a proof nor a witness in {counted(decision.plays, 'prediction')}"
        return f"{words}; {_HELP[decision.wanted]}"
    if decision.proof == "full_sms":
        return _full_sms(problem, decision)
    return (
        f"every history was played or ruled out, in {decision.plays:,} "
        "predictions: no block waits for ever"
    )


def _full_sms(problem: Problem, decision: Decision) -> str:
    """Returns a sentence: how many SMs must be full for a launch, and how many can be."""
    if all(row.most + 1e-6 < 1 for row in decision.full_sms):
        return "all blocks together fill no SM"
    tightest = max(decision.full_sms, key=lambda row: row.most / row.needed if row.needed else 0.0)
    name = problem.name_of(tightest.launch)
    fewer = f"{int(tightest.most + 1e-6):,} at most"
    return (
        f"before a block of {name} finds no room, {tightest.needed:,} SMs must be full for it; all "
        f"other blocks together fill {fewer}, whatever the order"
    )


def _stranded(problem: Problem, stranding: Stranding, waiting: int) -> str:
    """Returns words for the launch with stranded blocks, and the cause."""
    words = f"{problem.name_of(stranding.stranded)} never happens"
    if stranding.stranded < len(problem.launches):
        launch = problem.launches[stranding.stranded]
        name = problem.name_of(stranding.stranded)
        words = f"{waiting:,} of {counted(launch.blocks, 'block')} of {name} never start"
    words += f" ({stranding.cause})"
    if stranding.behind is not None:
        words += f", behind {problem.name_of(stranding.behind)}"
    return words


def assert_coresident(
    launches: Iterable[Launch] | Sequence,
    device: str | os.PathLike[str] | DeviceSpec,
    *,
    groups: Iterable[Iterable[int]] | None = None,
    after: Iterable[tuple[int, int]] = (),
    policy: str | None = None,
    connections: int | None = None,
    plays: int = PLAYS,
    seconds: float | None = None,
) -> None:
    """Asserts that kernels that wait for each other are resident together; for tests.

    Args:
        launches, device, groups, after, policy, connections, plays, seconds: as for
            :func:`coresident`.

    Raises:
        AssertionError: it is not sure that they are. The message has the witness and the fixes.
        TypeError, ValueError: as :func:`coresident`.

    Example:
        >>> def test_workers_and_schedulers_fit():
        ...     workers = tb.Launch(128, 256, 168, 100 * 1024, name="workers")
        ...     schedulers = tb.Launch(16, 128, 32, carveout=100, name="schedulers")
        ...     tb.assert_coresident([workers, schedulers], "h200")
    """
    __tracebackhide__ = True
    found = coresident(
        launches, device, groups=groups, after=after, policy=policy, connections=connections,
        plays=plays, seconds=seconds,
    )  # fmt: skip
    if found.safe is not True:
        raise AssertionError(str(found))
