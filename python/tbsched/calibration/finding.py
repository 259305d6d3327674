"""What a probe found out about one value of a device."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Sequence as ListOf
from dataclasses import dataclass, replace
from itertools import combinations, product
from math import prod
from typing import Any, TypeAlias

TOLD, DOCUMENTED, ASSUMED = "told", "documented", "assumed"
# Of several fields, by their names.
Values: TypeAlias = Mapping[str, Any]
NO_RULE = "no rule fits"  # of a finding: no device is left
_MOST_AT_ONCE = 64


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


def told(path: str, value: Any, because: str) -> Finding:
    """A value that the observations leave no other one for."""
    return Finding(path, value, TOLD, because)


def assumed(path: str, value: Any, because: str, rivals: tuple[Any, ...] = ()) -> Finding:
    """A value that may be another one."""
    return Finding(path, value, ASSUMED, because, rivals)


class Found(Mapping[str, Any]):
    """The values found so far, by the name of the field; what later probes read.

    Attributes:
        notes: what a probe observed and a later one needs, which is no value of a device.
        idle: values that are not told, and change nothing on this device.
        eliminated: values that are told as all others were struck out.
        partial: values of which elimination knows a part, and which it tells nothing about.
        resting: what the probe that asks takes for granted.
        most_at_once: so many combinations of what is left of values a probe tries at most.
    """

    def __init__(self) -> None:
        self._findings: dict[str, Finding] = {}
        self._left: list[tuple[Values, ...]] = []
        self.notes: dict[str, Any] = {}
        self.idle: set[str] = set()
        self.eliminated: set[str] = set()
        self.partial: set[str] = set()
        self.resting: tuple[str, ...] = ()
        self.most_at_once = _MOST_AT_ONCE

    def add(self, finding: Finding) -> None:
        """Takes the place of what was found for the same value."""
        self._findings[finding.name] = finding

    @property
    def findings(self) -> tuple[Finding, ...]:
        """In the order of finding."""
        return tuple(self._findings.values())

    def finding(self, name: str) -> Finding:
        """What was found of a value."""
        return self._findings[name]

    def is_told(self, name: str) -> bool:
        """Whether no other value is left."""
        return name in self._findings and self._findings[name].kind == TOLD

    def leave(self, left: Iterable[Values]) -> None:
        """Notes all that is left of some values, which belong together.

        It takes the place of what was left of any of them.
        """
        values = tuple(left)
        self._left = [
            group for group in self._left if group[0].keys().isdisjoint(values[0].keys())
        ] + [values]

    def forget(self, names: Iterable[str]) -> None:
        """What else these values may be is not known after all."""
        unknown = set(names)
        self._left = [group for group in self._left if group[0].keys().isdisjoint(unknown)]

    def doubt(self) -> None:
        """What is told by elimination is not, as something that it takes for granted is wrong."""
        for name in self.eliminated & self._findings.keys():
            finding = self._findings[name]
            if finding.kind == TOLD:
                because = f"{finding.because}; but no device explains all that was observed"
                self._findings[name] = replace(finding, kind=ASSUMED, because=because)

    def unknown(self, names: Iterable[str]) -> list[str]:
        """Those of which nobody knows what else they may be, or of which too much is left."""
        open_ones = self._open(names)
        groups = self._groups(open_ones)
        if prod(map(len, groups)) > self.most_at_once:
            return open_ones
        return [name for name in open_ones if all(name not in group[0] for group in groups)]

    def bases(self) -> list[Values]:
        """All that is left of what the probe takes for granted; the assumed values first."""
        if self.unknown(self.resting):
            return [{}]
        found: list[Values] = [{}]
        for group in self._groups(self._open(self.resting)):
            found = [{**one, **other} for one in found for other in group]
        return found

    def open_together(self) -> tuple[str, ...]:
        """All values of which it is known what is left; none if that is too much at once."""
        groups = [group for group in self._left if len(group) > 1]
        if prod(map(len, groups)) > self.most_at_once:
            return ()
        return tuple(name for group in groups for name in group[0])

    def prefer(self, values: Values, because: str) -> None:
        """Assumes these values, none of which is told, in the place of others that are wrong."""
        for name, value in values.items():
            finding = self._findings[name]
            if finding.value == value:
                continue
            left = [each[name] for group in self._groups([name]) for each in group]
            rivals = tuple(dict.fromkeys(rival for rival in left if rival != value))
            self._findings[name] = replace(finding, value=value, rivals=rivals, because=because)
        self._left = [_first(group, values) for group in self._left]

    def _open(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if not self.is_told(name) and name not in self.idle]

    def _groups(self, names: Iterable[str]) -> list[tuple[Values, ...]]:
        return [group for group in self._left if not group[0].keys().isdisjoint(names)]

    @property
    def left_together(self) -> tuple[tuple[Values, ...], ...]:
        """All that is left of values that are not told, in groups that belong together."""
        return tuple(self._left)

    def __getitem__(self, name: str) -> Any:
        return self._findings[name].value

    def __iter__(self) -> Any:
        return iter(self._findings)

    def __len__(self) -> int:
        return len(self._findings)


def _first(group: tuple[Values, ...], values: Values) -> tuple[Values, ...]:
    """What is left of some values, that which is preferred first."""
    return tuple(
        sorted(
            group,
            key=lambda left: any(left[name] != values.get(name, left[name]) for name in left),
        )
    )


def choices(groups: ListOf[tuple[Values, ...]]) -> Iterator[Values]:
    """One of each group but for what is assumed, which most groups have: fewest changes first."""
    open_ones = [group[1:] for group in groups if len(group) > 1]
    for count in range(len(open_ones) + 1):
        for some in combinations(open_ones, count):
            for chosen in product(*some):
                yield {name: value for values in chosen for name, value in values.items()}
