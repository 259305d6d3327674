"""The end of a launch whose blocks are held on their SMs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tbsched.program.checks import integer
from tbsched.program.events.launch import MAX_LAUNCHES, Launch


@dataclass(frozen=True, slots=True)
class Release:
    """Lets every block of an earlier launch exit.

    Attributes:
        launch: the number of the :class:`Launch` in its sequence, from 0.

    Raises:
        TypeError, ValueError: not the number of a launch; names the field, the value and the limit.

    Example:
        >>> sequence = tb.Sequence([tb.Launch(132, 1024, 64), tb.Launch(1, 32, 16), tb.Release(0)])
        >>> sequence[2].launch
        0
    """

    launch: int

    def __post_init__(self) -> None:
        launch = integer("Release", "launch", self.launch, 0, MAX_LAUNCHES)
        object.__setattr__(self, "launch", launch)

    @property
    def launches(self) -> tuple[Launch, ...]:
        """Empty, because a release launches nothing."""
        return ()

    def __repr__(self) -> str:
        return f"Release({self.launch})"


def release_to_data(release: Release) -> int:
    return release.launch


def release_from_data(where: str, given: Any) -> Release:
    return Release(given)
