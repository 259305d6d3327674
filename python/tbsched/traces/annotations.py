"""What else the record of a trace says: the keys of ``Trace.extra``, as fields.

Nobody else reads or writes these keys by name. Keys that are not known here are kept as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence as ListOf
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

from tbsched.errors import shown
from tbsched.program.arrays import Int64Array

Extra: TypeAlias = Mapping[str, Any]

NEVER_NS = 2**63 - 1  # start and end of what never starts, end of what never ends
MAX_NS = 2**62  # limit of times in files, so that differences fit 64 bits as well
_UNSTABLE = "unstable"
_REFUSED = "refused"
_ISSUED_NS = "issued_ns"
_CALLED_NS = "called_ns"
_GROUPS = "groups"
_MET = "met"
_COMPARED = "compared"
# Fields of where a counterexample comes from, with their types; "shrunk" is read apart.
_ORIGIN = {"predictor": str, "policy": str, "level": str, "from": str, "seed": int}


@dataclass(frozen=True, slots=True)
class Origin:
    """How a counterexample came into its corpus.

    Attributes:
        predictor, policy, level: what it refutes, and how closely the traces were compared.
        seed: of the campaign.
        shrunk: whether this is the minimal sequence, or the one that was drawn.
        found_as: the id of the one that was drawn; None where this is it.
    """

    predictor: str
    policy: str
    level: str
    seed: int
    shrunk: bool
    found_as: str | None = None

    def added_to(self, extra: Extra) -> dict[str, Any]:
        """Returns the keys with others added."""
        keys = asdict(self)
        source = keys.pop("found_as")
        return {**extra, **keys, **({} if source is None else {"from": source})}

    @classmethod
    def read(cls, extra: Extra) -> Origin | None:
        """Returns what the record of a mechanism says."""
        shrunk = extra.get("shrunk")
        if not isinstance(shrunk, bool):
            return None
        return cls(
            predictor=extra.get("predictor", ""),
            policy=extra.get("policy", ""),
            level=extra.get("level", ""),
            seed=extra.get("seed", 0),
            shrunk=shrunk,
            found_as=extra.get("from"),
        )


@dataclass(frozen=True, slots=True)
class Shows:
    """Which mechanism a recorded sequence shows.

    Attributes:
        mechanism: in words.
        ablation: device and policy (None: its own) of a predictor without the mechanism; None
            where no shipped one lacks it.
    """

    mechanism: str
    ablation: tuple[str, str | None] | None

    @classmethod
    def read(cls, extra: Extra) -> Shows:
        """Returns what the record of a trace says that it shows.

        Raises:
            KeyError: it is not the record of a mechanism.
        """
        device, policy = extra["ablation"], extra["policy"]
        return cls(extra["mechanism"], None if device is None else (device, policy))


def unstable_reason(extra: Extra) -> str | None:
    """Why the observation does not count, if it does not."""
    reason = extra.get(_UNSTABLE)
    return str(reason) if reason else None


def marked_unstable(extra: Extra, reason: str) -> dict[str, Any]:
    """Returns the keys, and why the observation does not count."""
    return {**extra, _UNSTABLE: reason}


def refusal_reason(extra: Extra) -> str | None:
    """Why the sequence did not run at all, if the oracle does not take it."""
    reason = extra.get(_REFUSED)
    return str(reason) if reason else None


def marked_refused(extra: Extra, reason: str) -> dict[str, Any]:
    """Returns the keys, and why the sequence did not run."""
    return {**extra, _REFUSED: reason}


def compared_part(extra: Extra) -> Mapping[str, Any] | None:
    """What a part of a calibration's campaign counted; None: the record is of a run."""
    part = extra.get(_COMPARED)
    return part if isinstance(part, dict) else None


def of_part(part: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the keys of a record that has no run, only what a part of a campaign counted."""
    return {_COMPARED: dict(part)}


def check_known(extra: Extra, launches: int, events: int, *, hangs: bool = False) -> None:
    """Refuses keys that are known here and do not hold what they should.

    In a program that hangs, None stands for never.

    Raises:
        ValueError: naming the key.
    """
    times = extra.get(_ISSUED_NS)
    if times is not None and not (_are_times(times, hangs) and len(times) == launches):
        raise ValueError(
            f"{_ISSUED_NS}: nanoseconds per launch are needed, integers of 0 to {MAX_NS}, "
            f"{launches} in all"
        )
    calls = extra.get(_CALLED_NS)
    if calls is not None and not (
        isinstance(calls, list)
        and len(calls) == events
        and all(_are_times(call, hangs) and len(call) == 2 and _ascend(*call) for call in calls)
    ):
        raise ValueError(
            f"{_CALLED_NS}: when each call began and returned is needed, integers of 0 to "
            f"{MAX_NS}, {events} pairs in all"
        )
    if _GROUPS in extra and not _are_groups(extra[_GROUPS], extra.get(_MET), launches):
        raise ValueError(
            f"{_GROUPS}: lists of launches are needed, each in one at most, and in {_MET!r} true "
            "or false for each list"
        )
    if isinstance(extra.get("shrunk"), bool):
        for key, kind in _ORIGIN.items():
            if key in extra and not isinstance(extra[key], kind):
                needed = "text" if kind is str else "an integer"
                raise ValueError(f"{key}: {needed} is needed, got {shown(extra[key])}")


def _are_groups(groups: object, flags: object, launches: int) -> bool:
    """Returns whether ``groups`` and ``flags`` of a file are groups of launches and flags."""
    if not (isinstance(groups, list) and isinstance(flags, list) and len(flags) == len(groups)):
        return False
    if not all(isinstance(group, list) for group in groups):
        return False
    launches_of_groups = [launch for group in groups for launch in group]
    return (
        all(type(launch) is int and 0 <= launch < launches for launch in launches_of_groups)
        and len(set(launches_of_groups)) == len(launches_of_groups)
        and all(isinstance(flag, bool) for flag in flags)
    )


def _are_times(times: object, hangs: bool) -> bool:
    return isinstance(times, list) and all(
        (type(time) is int and 0 <= time <= MAX_NS) or (hangs and time is None) for time in times
    )


def _ascend(began: int | None, returned: int | None) -> bool:
    return returned is None or (began is not None and began <= returned)


def issued(times_ns: ListOf[int | None]) -> dict[str, Any]:
    """Returns the annotation of the time of each launch call, in ns; None: never."""
    return {_ISSUED_NS: times_ns}


def issued_ns(extra: Extra) -> list[int | None] | None:
    """Returns the time of each launch call, in ns from the first; None: unknown."""
    return extra.get(_ISSUED_NS)


def known_times(times_ns: Int64Array) -> list[int | None]:
    """Returns times as a file has them: None stands for never."""
    return [None if time == NEVER_NS else time for time in times_ns.tolist()]


def called(calls_ns: ListOf[ListOf[int | None]]) -> dict[str, Any]:
    """Returns the annotation of each event's call: begin and return, ns from the first."""
    return {_CALLED_NS: calls_ns}


def called_ns(extra: Extra) -> list[list[int]] | None:
    """Returns begin and return of each call, in ns from the first; None: unknown."""
    return extra.get(_CALLED_NS)


def meetings(groups: tuple[tuple[int, ...], ...], has_met: tuple[bool, ...]) -> dict[str, Any]:
    """The launches of each group whose blocks wait for each other, and whether they have met."""
    return {_GROUPS: [list(group) for group in groups], _MET: list(has_met)}


def met_groups(extra: Extra) -> list[tuple[tuple[int, ...], bool]] | None:
    """Returns each group of launches, and whether its blocks have met; None: unknown."""
    if _GROUPS not in extra:
        return None
    return [(tuple(g), bool(m)) for g, m in zip(extra[_GROUPS], extra[_MET], strict=True)]
