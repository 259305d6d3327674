"""What a probe found out about one value of a device."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Sequence as ListOf
from dataclasses import dataclass, replace
from itertools import combinations, product
from math import prod
from typing import Any, TypeAlias

TOLD, DOCUMENTED, ASSUMED = "told", "documented", "assumed"
# Values of several fields, by name.
Values: TypeAlias = Mapping[str, Any]
NO_RULE = "no rule fits"  # in ``Finding.because``: all candidates are eliminated
_MAX_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Finding:
    """One value of a device, and how sure it is.

    Attributes:
        path: the value's key in a device file, such as ``limits.blocks_per_sm``.
        value: what the device file says.
        kind: ``told``: the observations leave no other value. ``documented``: they leave others, or
            no probe asked, and NVIDIA documents this one. ``assumed``: nor is it documented.
        because: the observations, or why they tell nothing, in words.
        rivals: other values that agree with every observation, as far as they are known.
        probe: which probe asked; empty where none did.

    Example:
        >>> from tbsched.calibration import Finding
        >>> Finding("topology.sms", 132, "told", "each of 0..131 had a block").kind
        'told'
    """

    path: str
    value: Any
    kind: str
    because: str
    rivals: tuple[Any, ...] = ()
    probe: str = ""

    @property
    def name(self) -> str:
        """The value's field of a device, such as ``blocks_per_sm``."""
        return self.path.rpartition(".")[2]


def determined(path: str, value: Any, because: str) -> Finding:
    """Returns the finding of a value to which the observations leave no alternative."""
    return Finding(path, value, TOLD, because)


def assumed(path: str, value: Any, because: str, rivals: tuple[Any, ...] = ()) -> Finding:
    """Returns the finding of a value that may be wrong; ``rivals`` are known alternatives."""
    return Finding(path, value, ASSUMED, because, rivals)


class KnownValues(Mapping[str, Any]):
    """The values found so far, by field name, as later probes read them.

    Attributes:
        notes: observations that later probes need and that are no values of a device.
        irrelevant: fields that are not determined, and change nothing on this device.
        by_elimination: fields that are determined because all other values were eliminated.
        partial: fields whose possible values are known in part only; elimination never
            determines them.
        premises: fields whose values the current probe takes for granted.
        most_at_once: most combinations of possible values that a probe tries.
    """

    def __init__(self) -> None:
        self._findings: dict[str, Finding] = {}
        self._combinations: list[tuple[Values, ...]] = []
        self.notes: dict[str, Any] = {}
        self.irrelevant: set[str] = set()
        self.by_elimination: set[str] = set()
        self.partial: set[str] = set()
        self.premises: tuple[str, ...] = ()
        self.most_at_once = _MAX_AT_ONCE

    def add(self, finding: Finding) -> None:
        """Adds a finding, or replaces the one of the same field."""
        self._findings[finding.name] = finding

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings, in the order in which their fields were first found."""
        return tuple(self._findings.values())

    def finding(self, name: str) -> Finding:
        """Returns the finding of a field."""
        return self._findings[name]

    def is_determined(self, name: str) -> bool:
        """Returns whether the observations leave no other value."""
        return name in self._findings and self._findings[name].kind == TOLD

    def set_remaining(self, remaining: Iterable[Values]) -> None:
        """Sets the possible combinations of values of some fields.

        Replaces all earlier combinations that contain any of these fields.
        """
        values = tuple(remaining)
        self._combinations = [
            group for group in self._combinations if group[0].keys().isdisjoint(values[0].keys())
        ] + [values]

    def forget(self, names: Iterable[str]) -> None:
        """Discards the possible combinations of these fields: other values may be possible."""
        unknown = set(names)
        self._combinations = [
            group for group in self._combinations if group[0].keys().isdisjoint(unknown)
        ]

    def demote_eliminated(self) -> None:
        """Marks all values determined by elimination as assumed, since a premise is wrong."""
        for name in self.by_elimination & self._findings.keys():
            finding = self._findings[name]
            if finding.kind == TOLD:
                because = f"{finding.because}; but no device explains all that was observed"
                self._findings[name] = replace(finding, kind=ASSUMED, because=because)

    def unknown(self, names: Iterable[str]) -> list[str]:
        """Returns the names of fields that are open and have no known combinations of values; all
        of these fields if there are too many combinations."""
        open_ones = self._open(names)
        groups = self._groups(open_ones)
        if prod(map(len, groups)) > self.most_at_once:
            return open_ones
        return [name for name in open_ones if all(name not in group[0] for group in groups)]

    def bases(self) -> list[Values]:
        """Returns all possible combinations of the premises' values, the assumed ones first."""
        if self.unknown(self.premises):
            return [{}]
        bases: list[Values] = [{}]
        for group in self._groups(self._open(self.premises)):
            bases = [{**base, **combination} for base in bases for combination in group]
        return bases

    def undetermined(self) -> tuple[str, ...]:
        """Returns the fields with several known combinations; none if these are too many."""
        groups = [group for group in self._combinations if len(group) > 1]
        if prod(map(len, groups)) > self.most_at_once:
            return ()
        return tuple(name for group in groups for name in group[0])

    def prefer(self, values: Values, because: str) -> None:
        """Assumes these values instead of contradicted ones; none of the fields is determined."""
        for name, value in values.items():
            finding = self._findings[name]
            if finding.value == value:
                continue
            alternatives = [
                combination[name] for group in self._groups([name]) for combination in group
            ]
            rivals = tuple(dict.fromkeys(rival for rival in alternatives if rival != value))
            self._findings[name] = replace(finding, value=value, rivals=rivals, because=because)
        self._combinations = [_preferred_first(group, values) for group in self._combinations]

    def _open(self, names: Iterable[str]) -> list[str]:
        return [
            name for name in names if not self.is_determined(name) and name not in self.irrelevant
        ]

    def _groups(self, names: Iterable[str]) -> list[tuple[Values, ...]]:
        return [group for group in self._combinations if not group[0].keys().isdisjoint(names)]

    @property
    def remaining_groups(self) -> tuple[tuple[Values, ...], ...]:
        """Possible combinations, one group per set of fields that depend on each other."""
        return tuple(self._combinations)

    def __getitem__(self, name: str) -> Any:
        return self._findings[name].value

    def __iter__(self) -> Any:
        return iter(self._findings)

    def __len__(self) -> int:
        return len(self._findings)


def _preferred_first(group: tuple[Values, ...], values: Values) -> tuple[Values, ...]:
    """Returns the group, with the combinations that agree with ``values`` first."""
    return tuple(
        sorted(
            group,
            key=lambda combination: any(
                combination[name] != values.get(name, combination[name]) for name in combination
            ),
        )
    )


def choices(groups: ListOf[tuple[Values, ...]]) -> Iterator[Values]:
    """Yields changes from the assumed values (the first of each group), fewest groups first."""
    alternatives = [group[1:] for group in groups if len(group) > 1]
    for count in range(len(alternatives) + 1):
        for chosen_groups in combinations(alternatives, count):
            for chosen in product(*chosen_groups):
                yield {name: value for values in chosen for name, value in values.items()}
