"""Decides whether launches are resident together: by the search, and above the scheduler.

The search covers the thread block scheduler alone. The stages between the host and the scheduler
can hang a program, too; `above` checks these.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

from tbsched.advice.together.above import Above, hang_above, issue_times
from tbsched.advice.together.beside.deciding import (
    Arrival,
    arrival,
    called_pairs,
    keeps_calls,
    launch_pairs,
    room_of_driver_kernels,
)
from tbsched.advice.together.beside.operations import Operations, operations_of, other_work
from tbsched.advice.together.given import Groups, Pairs, held
from tbsched.errors import shown
from tbsched.hardware.initial_state import InitialState
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import predict
from tbsched.prediction.recorded import held as alone
from tbsched.prediction.together.search import PLAYS, FullSms, Question, search, witness_sequence
from tbsched.program.checks import MAX_SECONDS
from tbsched.program.events.graph import Node
from tbsched.program.sequence import Event, Launch, Release, Sequence, with_launches

NO_PROOF = "none"


@dataclass(frozen=True, slots=True)
class Problem:
    """Launches that must become resident together: the checked arguments of `coresident`.

    Attributes:
        deadline: by time.monotonic().
        around: the program, if it has other work that counts. Its launches are those of this
            problem; other operations have the numbers behind them.
    """

    spec: DeviceSpec
    policy: str
    launches: tuple[Launch, ...]
    groups: Groups
    after: Pairs = ()
    plays: int = PLAYS
    deadline: float = math.inf
    around: Sequence | None = None

    @property
    def members(self) -> tuple[int, ...]:
        """The launches of all groups."""
        members = sorted(member for group in self.groups for member in group)
        return tuple(member for member in members if member < len(self.launches))

    @property
    def program(self) -> Sequence | None:
        """The program with the launches of this problem; None: there is nothing but launches.

        Raises:
            ValueError: it cannot have them.
        """
        return None if self.around is None else with_launches(self.around, self.launches)

    def operations(self) -> Operations | None:
        """Returns the operations of the program.

        Raises:
            ValueError: the launches cannot be in it, or `after` contradicts its order.
        """
        program = self.program
        return None if program is None else operations_of(program, self.after)

    @property
    def others(self) -> tuple[Event | Node, ...]:
        """The operations that are no launches; their numbers follow those of the launches."""
        return () if self.around is None else other_work(self.around)

    @property
    def count(self) -> int:
        """How many launches and other operations there are."""
        return len(self.launches) + len(self.others)

    def with_launch(self, number: int, launch: Launch) -> Problem:
        """Returns the problem with one launch replaced."""
        launches = (*self.launches[:number], launch, *self.launches[number + 1 :])
        return replace(self, launches=launches)


@dataclass(frozen=True, slots=True)
class Stranding:
    """A witness: a sequence, with its initial state, in which a block never becomes resident.

    Attributes:
        sequence: the witness.
        issue_times: times of its launch calls, if it has durations.
        order: for each of its launches, the number among the given ones.
        state: the latent state from which it strands the block.
        stranded: the number of the launch of that block.
        cause, behind: what refuses its blocks, and which launch holds them up, or None.
        host: if the program does more than launch, for each event the seconds since its host's
            last call returned.
        waiting: how many blocks never start then.
    """

    sequence: Sequence
    issue_times: tuple[float, ...] | None
    order: tuple[int, ...]
    state: InitialState
    stranded: int
    cause: str
    behind: int | None
    host: tuple[float, ...] | None = None
    waiting: int = 0


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether the launches of a problem are resident together.

    Attributes:
        safe: None if it is not known.
        proof: if safe, ``full_sms`` or ``played``; else ``none``.
        full_sms: numbers of the proof by full SMs.
        stranding: the witness, if unsafe.
        plays: how many predictions it took.
        wanted: if not known, what may decide it; as in `Found`.
        why: if not known because of other work than launches, what may hang, in words.
    """

    safe: bool | None
    proof: str
    full_sms: tuple[FullSms, ...]
    stranding: Stranding | None
    plays: int
    wanted: str = ""
    why: str = ""


def deadline_in(owner: str, seconds: float | None) -> float:
    """Returns the deadline after ``seconds``, by time.monotonic(); None is never.

    Raises:
        ValueError: not a number of seconds.
    """
    if seconds is None:
        return math.inf
    if not isinstance(seconds, (int, float)) or not 0 <= seconds < math.inf:
        raise ValueError(f"{owner}.seconds: a number from 0 is needed, got {shown(seconds)}")
    return time.monotonic() + min(seconds, MAX_SECONDS)


def decided(problem: Problem, *, only_to_prove: bool = False) -> Decision:
    """Decides whether all groups become resident in every case; optionally without a witness.

    Raises:
        ValueError: a launch that the device refuses.
    """
    work = problem.operations()
    if work is not None:
        return _decided_around(problem, work, only_to_prove)
    # A hang above the scheduler is found fast, and there is no proof then.
    first = _above(problem, shrinks=False) if only_to_prove else None
    if first is not None and first.hang is not None:
        return Decision(None, NO_PROOF, (), None, first.plays)
    launches, pairs = held(problem.launches)
    question = Question(
        launches, problem.groups, (*problem.after, *pairs), problem.plays, only_to_prove,
        problem.deadline - time.monotonic(),
    )  # fmt: skip
    found = search(problem.spec, problem.policy, question)
    if found.verdict == "unsafe":
        order = tuple([step.launch for step in found.steps if not step.leaving])
        behind = None if found.behind < 0 else found.behind
        sequence, times = witness_sequence(launches, found, problem.spec, problem.policy)
        stranding = Stranding(
            sequence, times, order, found.state, found.stranded, found.cause, behind
        )
        return Decision(False, NO_PROOF, (), stranding, found.plays)
    above = _above(problem) if first is None else first
    if above.hang is not None:
        hang, state = above.hang, problem.spec.initial_states(problem.policy)[0]
        stranding = Stranding(
            hang.sequence,
            issue_times(len(hang.order)),
            hang.order,
            state,
            hang.stranded,
            hang.cause,
            hang.behind,
        )
        return Decision(False, NO_PROOF, (), stranding, found.plays + above.plays)
    safe = True if found.verdict == "safe" and above.complete else None
    proof = found.proof if safe else NO_PROOF
    wanted = found.wanted
    if safe is None and problem.deadline <= time.monotonic():
        wanted = "seconds"
    return Decision(safe, proof, found.full_sms, None, found.plays + above.plays, wanted)


def _decided_around(problem: Problem, work: Operations, only_to_prove: bool) -> Decision:
    """Decides for a program that does more than launch.

    All operations of the groups happen if the launches find room. And these find room whenever they
    arrive: the order in which they do does not matter.
    """
    first = arrival(
        work, problem.spec, problem.policy, problem.groups, problem.deadline,
        only_to_prove=only_to_prove,
    )  # fmt: skip
    if first.hung is not None:
        return Decision(False, NO_PROOF, (), _stranding(problem, first), first.plays)
    if first.sure is None and only_to_prove:
        return Decision(None, NO_PROOF, (), None, first.plays, why=first.why)
    found = _room(problem, work, only_to_prove)
    plays = first.plays + found.plays
    if found.safe is False:
        return replace(found, plays=plays)
    kernels = [alone(one) for one in problem.launches]
    room = room_of_driver_kernels(work, problem.spec, problem.policy, kernels)
    why = first.why or found.why or room
    if first.sure and found.safe and not why:
        return replace(found, plays=plays)
    return Decision(None, NO_PROOF, (), None, plays, found.wanted, why)


def _room(problem: Problem, work: Operations, only_to_prove: bool) -> Decision:
    """Decides whether the launches of the groups find room, whenever they arrive."""
    launches = tuple(alone(one) for one in problem.launches)
    groups = tuple(
        tuple(member for member in group if member < len(launches)) for group in problem.groups
    )
    groups = tuple(group for group in groups if group)
    if not groups:
        return Decision(True, "played", (), None, 0)
    pairs = launch_pairs(work, problem.spec, problem.after)
    asked = replace(problem, launches=launches, groups=groups, after=pairs, around=None)
    found = decided(asked, only_to_prove=only_to_prove)
    if found.stranding is None or keeps_calls(work, found.stranding.order):
        return found
    # The host calls the launches in another order. Each that is called first arrives first.
    again = decided(replace(asked, after=called_pairs(work, pairs)))
    if again.stranding is not None and keeps_calls(work, again.stranding.order):
        return replace(again, plays=found.plays + again.plays)
    why = "no order of the calls is known in which launches find no room, and no proof"
    return Decision(None, NO_PROOF, (), None, found.plays + again.plays, why=why)


def _stranding(problem: Problem, first: Arrival) -> Stranding:
    assert first.hung is not None
    hung = first.hung
    state = problem.spec.initial_states(problem.policy)[0]
    return Stranding(
        hung.sequence, None, hung.order, state, hung.stranded, hung.cause, hung.behind, hung.host,
        hung.waiting,
    )  # fmt: skip


def proved(problem: Problem, known: Stranding | None = None) -> bool:
    """Returns whether all groups are proved to become resident.

    The witness of a similar problem is tried first, as a search takes far longer.

    Raises:
        ValueError: a launch that the device refuses.
    """
    if known is not None and problem.around is None and _is_witness_for(problem, known):
        return False
    return decided(problem, only_to_prove=True).safe is True


def _is_witness_for(problem: Problem, known: Stranding) -> bool:
    """Returns whether the witness of a similar problem strands a block of this one as well."""
    if known.issue_times is not None:
        return False
    launches, pairs = held(problem.launches)
    numbers = iter(known.order)
    events = [
        one if isinstance(one, Release) else launches[next(numbers)] for one in known.sequence
    ]
    sequence = Sequence(events)
    trace = predict(sequence, problem.spec, problem.policy, known.state)
    whole = [bool((placement.smid >= 0).all()) for placement in trace]
    place = {number: at for at, number in enumerate(known.order)}
    for first, second in (*problem.after, *pairs):
        if second not in place:
            continue
        if first not in place or place[first] > place[second] or not whole[place[first]]:
            return False
    if not all(whole[event.launch] for event in events if isinstance(event, Release)):
        return False
    last = trace[place[known.stranded]]
    smid = last.smid if last.final_smid is None else last.final_smid
    return bool((smid < 0).any())


def _above(problem: Problem, *, shrinks: bool = True) -> Above:
    return hang_above(
        problem.spec, problem.policy, problem.launches, problem.members, problem.after,
        problem.deadline, shrinks=shrinks,
    )  # fmt: skip
