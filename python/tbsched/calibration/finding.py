"""What a probe found out about one value of a device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

TOLD, DOCUMENTED, ASSUMED = "told", "documented", "assumed"


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
    """

    def __init__(self) -> None:
        self._findings: dict[str, Finding] = {}
        self.notes: dict[str, Any] = {}

    def add(self, finding: Finding) -> None:
        """Takes the place of what was found for the same value."""
        self._findings[finding.path.rpartition(".")[2]] = finding

    @property
    def findings(self) -> tuple[Finding, ...]:
        """In the order of finding."""
        return tuple(self._findings.values())

    def is_told(self, name: str) -> bool:
        """Whether no other value is left."""
        return name in self._findings and self._findings[name].kind == TOLD

    def __getitem__(self, name: str) -> Any:
        return self._findings[name].value

    def __iter__(self) -> Any:
        return iter(self._findings)

    def __len__(self) -> int:
        return len(self._findings)
