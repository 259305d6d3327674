"""Whether a program of several GPUs can hang, however late its ranks are."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

from tbsched.advice.together.given import Pairs, checked_after
from tbsched.advice.together.problem import deadline_in
from tbsched.advice.together.ranks.changes import RankFix, fixes_of
from tbsched.advice.together.ranks.room import GpuRoom, check_launches
from tbsched.advice.together.ranks.standstill import Standstill, TooManySets, standstills
from tbsched.advice.together.ranks.witness import CALL, Witness, WitnessSearch, longer_words
from tbsched.advice.together.ranks.work import LaunchOrder, work_of
from tbsched.errors import shown
from tbsched.hardware.assumed import QUEUE, SEVERAL, needs_of, rules_of
from tbsched.hardware.catalogue import device as find_device
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.model import policy_of, prepared
from tbsched.prediction.program_device import with_connections
from tbsched.program.checks import instance
from tbsched.program.meeting_groups import meeting_groups
from tbsched.program.sequence import Launch, Sequence
from tbsched.progress import pulse
from tbsched.shown import Shown
from tbsched.traces.hang import Hang
from tbsched.traces.placement import DeviceInfo

Device: TypeAlias = str | os.PathLike[str] | DeviceSpec
Devices: TypeAlias = list[str] | list[DeviceSpec] | list[Device] | tuple[Device, ...]

_IN_ORDER = "if launches arrive at a GPU in the order of its host's calls"
_MAX_STANDSTILLS = 200  # ways to hang that are played, and shown


@dataclass(frozen=True, slots=True, repr=False)
class RankCoresidency(Shown):
    """Whether a program of several GPUs can hang; prints the reason, and what to change.

    Attributes:
        devices: of each GPU, by index.
        sequence: the program.
        groups: the names of its groups, and of each the numbers of its launches.
        safe: True: it ends, however late each rank is. False: the witness hangs. None: neither a
            proof nor a witness is found.
        argument: why, in words.
        proof: of a safe answer: ``order``, because all launches of a GPU that can meet at a time
            find room there, and no groups wait for each other in a circle; else ``none``.
        witness: of an unsafe one, the program that hangs: ``sequence``, if need be with other
            durations.
        host: how late its calls are: for each event the seconds since its host's last call
            returned. ``tb.predict(witness, devices, host=host).hang`` shows it.
        hang: what that comes to, as ``Trace.hang``.
        fixes: changes that are proved to make the program safe, a :class:`RankFix` each.
        plays: how many predictions the search took.
        in_order: whether a safe answer rests on the order of arrival: launches of one host that
            nothing keeps waiting arrive at their GPU in the order of its calls. With kernels that
            keep reading the memory of the host, they do not always.

    Example:
        >>> def kernel(name, gpu):
        ...     where = {"stream": 0, "gpu": gpu, "host": gpu}
        ...     return tb.Launch(20, 512, 64, **where, meets=name, duration=1e-5)
        >>> turned = tb.Sequence([kernel("a", 0), kernel("b", 0), kernel("b", 1), kernel("a", 1)])
        >>> found = tb.coresident(turned, ["h200", "h200"])
        >>> found.safe, [fix.kind for fix in found.fixes]
        (False, ['order'])
        >>> tb.coresident(found.fixes[0].sequence, ["h200", "h200"]).safe
        True
    """

    devices: tuple[DeviceInfo, ...]
    sequence: Sequence
    groups: dict[str, tuple[int, ...]]
    safe: bool | None
    argument: str
    proof: str
    witness: Sequence | None = None
    host: tuple[float, ...] | None = None
    hang: Hang | None = None
    fixes: tuple[RankFix, ...] = ()
    plays: int = 0
    in_order: bool = False

    @property
    def assumed_rules(self) -> tuple[str, ...]:
        """Returns the assumed rules of any of the GPUs on which the answer rests, in words."""
        needs = needs_of(self.sequence.launches)
        needs |= {QUEUE} if SEVERAL in needs else set()
        rows = (rules_of(info.assumed or (), needs) for info in self.devices)
        return tuple(dict.fromkeys(rule for row in rows for rule in row))


@dataclass(slots=True)
class SafetyCheck:
    """Checks programs for hangs on the same GPUs, and counts the predictions.

    Attributes:
        predictions: how many predictions they took.
    """

    specs: tuple[DeviceSpec, ...]
    after: Pairs
    policy: str | None
    plays: int
    deadline: float
    predictions: int = 0

    def possible_hangs(
        self, sequence: Sequence, in_order: bool = True
    ) -> tuple[LaunchOrder, list[Standstill], str]:
        """Returns the launches of a program with their order, all standstills that may hang it, and
        in words why that may not be all; empty: it is all."""
        work = work_of(sequence, self.specs, self.after, in_order)
        return work, *self.standstills_of(work)

    def standstills_of(self, work: LaunchOrder) -> tuple[list[Standstill], str]:
        """Returns all standstills that may hang these launches, and in words why that may not be
        all; empty: it is all."""
        rooms = [
            GpuRoom(work, gpu, spec, policy_of(spec, self.policy), self.plays, self.deadline)
            for gpu, spec in enumerate(self.specs)
        ]
        found: list[Standstill] = []
        why = f"{work.unseen[0]} are not looked at" if work.unseen else ""
        try:
            for standstill in standstills(work, rooms):
                found.append(standstill)
                if len(found) == _MAX_STANDSTILLS:
                    break
        except TooManySets:
            why = why or "too many groups can be under way at a time"
        self.predictions += sum(room.predictions for room in rooms)
        return found, why

    def is_safe(self, sequence: Sequence, in_order: bool = True) -> bool:
        """Returns whether a program is proved to end."""
        _, found, why = self.possible_hangs(sequence, in_order)
        return not found and not why

    def with_condition(self, fix: RankFix) -> RankFix:
        """Returns a proved fix, whose words say so if it is proved only for the order of calls in
        the program."""
        if self.is_safe(fix.sequence, in_order=False):
            return fix
        return replace(fix, text=f"{fix.text} ({_IN_ORDER})")


def coresident_ranks(
    program: Iterable[Launch] | Sequence, devices: Devices, *, after: Iterable[tuple[int, int]],
    fixes: bool, policy: str | None, connections: int | None, plays: int, seconds: float | None,
) -> RankCoresidency:  # fmt: skip
    """Returns whether a program can hang: :func:`tbsched.coresident` with a list of devices. Raises
    TypeError or ValueError: as that."""
    if not devices:
        raise ValueError("coresident.device: a device is needed, got none")
    specs = tuple(
        with_connections("coresident", find_device(device), connections) for device in devices
    )
    sequence = instance("coresident", "launches", program, Sequence)
    for number, launch in enumerate(sequence.launches):
        if launch.gpu >= len(specs):
            raise ValueError(
                f"coresident.launches: launch {number} is on GPU {launch.gpu}, but there are "
                f"{len(specs)} devices"
            )
    if not any(launch.meets for launch in sequence.launches):
        raise ValueError(
            "coresident.launches: no launch meets another; Launch(meets=name) says which do, "
            f"got {shown(sequence)}"
        )
    meeting_groups(sequence)
    check_launches("coresident.launches", sequence, specs, policy)
    pairs = checked_after(after, len(sequence.launches))
    check = SafetyCheck(specs, pairs, policy, plays, deadline_in("coresident", seconds))
    with pulse("looking for a proof or a witness"):
        work, standstills, why = check.possible_hangs(sequence)
        search = WitnessSearch(sequence, specs, pairs, policy, check.deadline)
        witness = search.witness(work, standstills) if standstills or why else None
        changes: tuple[RankFix, ...] = ()
        if fixes and (standstills or why):
            stuck = frozenset(
                name for standstill_ in standstills for name in standstill_.groups
            ) or frozenset(work.groups)
            changes = tuple(map(check.with_condition, fixes_of(sequence, stuck, check.is_safe)))
    safe = False if witness else None if standstills or why else True
    in_order = bool(safe) and not check.is_safe(sequence, in_order=False)
    infos = tuple(prepared(spec, policy_of(spec, policy))[1] for spec in specs)
    groups = {
        name: tuple(k for k, one in enumerate(sequence.launches) if one.meets == name)
        for name in work.groups
    }
    return RankCoresidency(
        infos, sequence, groups, safe,
        _argument(safe, in_order, witness, sequence, standstills, why),
        "order" if safe else "none",
        None if witness is None else witness.sequence, None if witness is None else witness.host,
        None if witness is None else witness.hang, changes,
        check.predictions + search.plays, in_order,
    )  # fmt: skip


def _argument(
    safe: bool | None, in_order: bool, witness: Witness | None, sequence: Sequence,
    standstills: list[Standstill], why: str,
) -> str:  # fmt: skip
    """Returns the sentence that gives the verdict and its reason."""
    if safe:
        return (
            "all launches that can be on a GPU at a time find room there, and no groups wait for "
            "each other in a circle" + (f", {_IN_ORDER}" if in_order else "")
        )
    if witness is not None:
        first = next((each for each in standstills if each.certain), None)
        if first is not None:
            names = " and ".join(map(repr, sorted(first.groups)))
            return (
                f"{names} wait for each other in a circle, by the order in which ranks issue them"
            )
        late = "if ranks are late" if max(witness.host) > CALL else "although no rank is late"
        return f"it hangs {late}{longer_words(sequence, witness.sequence)}"
    if why:
        return why
    names = " and ".join(map(repr, sorted(standstills[0].groups)))
    return f"{names} may keep each other from room; no delay is known with which they do"
