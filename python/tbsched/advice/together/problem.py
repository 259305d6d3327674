"""Launches that must become resident together, and what is decided of them."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

import numpy as np

from tbsched.advice.together.beside.operations import Operations, operations_of, other_work
from tbsched.advice.together.given import Groups, Pairs, name_of
from tbsched.advice.together.limits import NO_CLUSTER, Limit, limits_of
from tbsched.errors import shown
from tbsched.hardware.initial_state import InitialState
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import predict
from tbsched.prediction.together.search import FOREVER, PLAYS, FullSms
from tbsched.program.checks import MAX_SECONDS
from tbsched.program.events.graph import Node
from tbsched.program.sequence import Event, Launch, Release, Sequence, with_launches
from tbsched.traces.trace import OF_SMS, Trace

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
        """Numbers of the launches of all groups, ascending."""
        members = sorted(member for group in self.groups for member in group)
        return tuple(member for member in members if member < len(self.launches))

    @property
    def program(self) -> Sequence | None:
        """The program with these launches; None: there are only launches.

        Raises:
            ValueError: it cannot have them.
        """
        return None if self.around is None else with_launches(self.around, self.launches)

    def operations(self) -> Operations | None:
        """Returns the operations of the program; None: there are only launches. Raises ValueError:
        the launches cannot be in it, or `after` contradicts its order."""
        program = self.program
        return None if program is None else operations_of(program, self.after)

    @property
    def others(self) -> tuple[Event | Node, ...]:
        """Operations that are not launches; their numbers follow those of the launches."""
        return () if self.around is None else other_work(self.around)

    @property
    def count(self) -> int:
        """Number of launches and other operations."""
        return len(self.launches) + len(self.others)

    def name_of(self, number: int) -> str:
        """Returns the name of a launch, or of another operation, for sentences."""
        return name_of(self.launches, number, self.others)

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
        stranding: the witness, if unsafe.
        plays: how many predictions it took.
        why: if not known because of other work than launches, what may hang, in words.
        wanted: if not known, what may decide it; as in `Found`.
        proof: if safe, ``full_sms`` or ``played``; else ``none``.
        full_sms: numbers of the proof by full SMs.
    """

    safe: bool | None
    stranding: Stranding | None = None
    plays: int = 0
    why: str = ""
    wanted: str = ""
    proof: str = NO_PROOF
    full_sms: tuple[FullSms, ...] = ()


def deadline_in(owner: str, seconds: float | None) -> float:
    """Returns the time of time.monotonic() after ``seconds``; infinity for None. Raises ValueError:
    not a number of seconds."""
    if seconds is None:
        return math.inf
    if not isinstance(seconds, (int, float)) or not 0 <= seconds < math.inf:
        raise ValueError(f"{owner}.seconds: a number from 0 is needed, got {shown(seconds)}")
    return time.monotonic() + min(seconds, MAX_SECONDS)


def late_blocks(trace: Trace, launch: int) -> int:
    """Returns the number of a launch's blocks that start only after others ended, or never."""
    start_ns = trace[launch].start_ns
    assert start_ns is not None
    return int(np.count_nonzero((trace[launch].smid < 0) | (start_ns >= FOREVER * 1e9)))


def stranded_blocks(
    spec: DeviceSpec, policy: str, stranding: Stranding
) -> tuple[int, tuple[Limit, ...]]:
    """Returns how many blocks never start, and for each class of SMs what refuses one more block
    there. There are no classes if the cause is not the room of an SM."""
    if stranding.host is not None:
        return stranding.waiting, ()
    sequence, place = stranding.sequence, stranding.order.index(stranding.stranded)
    if sequence.timed:
        trace = predict(sequence, spec, policy, stranding.state, issue_times=stranding.issue_times)
        return late_blocks(trace, place), ()
    launch = sequence.launches[place]
    # A prediction has each SM's limit only for a launch without room, so one more is added.
    more = replace(launch, blocks=launch.cluster, stream=None, cooperative=False)
    trace = predict(Sequence([*sequence, more]), spec, policy, stranding.state)
    released = {event.launch for event in sequence if isinstance(event, Release)}
    own, others = np.zeros(spec.sms, np.int32), np.zeros(spec.sms, np.int32)
    waiting = 0
    for number, placement in enumerate(trace.placements[:-1]):
        smid = placement.smid if placement.final_smid is None else placement.final_smid
        taken = np.bincount(smid[smid >= 0], minlength=spec.sms).astype(np.int32)
        if number == place:
            own, waiting = taken, int(np.count_nonzero(smid < 0))
        elif number not in released:
            others += taken
    if stranding.cause not in OF_SMS or trace.capacities is None:
        return waiting, ()
    room = trace.capacities()[-1]
    pairs = zip(room.blocks, room.limiters, strict=True)
    causes = [(NO_CLUSTER,) if blocks else every for blocks, every in pairs]
    return waiting, limits_of(causes, own, others)
