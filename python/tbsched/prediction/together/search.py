"""Whether launches become resident together, in every order of arrival and from every state."""

from __future__ import annotations

from collections.abc import Sequence as Several
from dataclasses import dataclass
from typing import Any

from tbsched import _core
from tbsched.hardware.initial_state import InitialState
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.model import prepared
from tbsched.prediction.together import standin
from tbsched.program.sequence import Event, Launch, Release, Sequence


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked.

    Attributes:
        launches: without durations.
        groups: of each the numbers of its launches.
        after: pairs; the second launch arrives only when all blocks of the first are resident.
        plays: after so many predictions the search gives up.
    """

    launches: tuple[Launch, ...]
    groups: tuple[tuple[int, ...], ...]
    after: tuple[tuple[int, int], ...] = ()
    plays: int = 100_000


@dataclass(frozen=True, slots=True)
class FullSms:
    """Why a launch never waits for room: too few of its SMs can be full at once.

    Attributes:
        launch: its number.
        most: how many of its SMs all the other blocks can fill at most.
        needed: how many must be full before a block of it finds no room.

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
class Found:
    """What the search answers.

    Attributes:
        verdict: ``safe``, ``unsafe`` or ``undecided``.
        proof: of a safe one ``full_sms`` or ``played``.
        full_sms: of the first proof.
        steps: of an unsafe one what strands a block: ("launch", k) or ("release", k).
        state: from which.
        group, stranded, cause, behind: whose block, what refuses it, and the launch that holds it
            up, or -1.
        plays: how many predictions it took.
    """

    verdict: str
    proof: str
    full_sms: tuple[FullSms, ...]
    steps: tuple[tuple[str, int], ...]
    state: InitialState
    group: int
    stranded: int
    cause: str
    behind: int
    plays: int


def search(spec: DeviceSpec, policy: str, question: Question) -> Found:
    """Whether every group of launches becomes resident whole, whatever happens.

    Raises:
        ValueError: a launch that could never run on the device.
    """
    spec.check(Sequence(question.launches))
    model, _, _ = prepared(spec, policy)
    answer: Any = standin.coresident(
        model, question.launches, question.groups, question.after, question.plays
    )
    return Found(
        answer.verdict, answer.proof, tuple([FullSms(*row) for row in answer.full_sms]),
        tuple(answer.events), InitialState(**answer.state), answer.group, answer.stranded,
        _core.CAUSES[answer.refusal], answer.behind, answer.plays,
    )  # fmt: skip


def played(launches: Several[Launch], steps: Several[tuple[str, int]]) -> Sequence:
    """The steps of a witness as a sequence."""
    order = [number for what, number in steps if what == "launch"]
    events: list[Event] = []
    for what, number in steps:
        events.append(launches[number] if what == "launch" else Release(order.index(number)))
    return Sequence(events)
